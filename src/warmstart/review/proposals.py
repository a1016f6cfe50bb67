"""Everything a review wants to write passes here: checked, redacted, compared with what is there, kept with its origin.

It is written at once only where the user's policy names its kind and nothing about it is suspicious. A no is final: what
says the same is not proposed again.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import structs

from warmstart.config import Settings
from warmstart.errors import Refused, WarmstartError
from warmstart.excerpt import first
from warmstart.names import check_name
from warmstart.redact import Redactor
from warmstart.review.apply import Applier, make_changed
from warmstart.review.claims import find_fault, normalise
from warmstart.review.proposal_drafts import MODEL, ProposalDraft
from warmstart.review.skills import read_skill
from warmstart.review.snapshot import Snapshot
from warmstart.store import ProposalRow, ProposalStore, SqliteStore
from warmstart.templates.suspicion import gives_orders

POLICY, PERSON = "policy:review", "person"
_SUMMARY = 160
_SECRET = "{{SECRET:"
_encode = msgspec.json.Encoder(order="deterministic").encode


class ProposalDesk:
    """Takes wishes, keeps proposals, and has them applied or discarded."""

    def __init__(self, store: SqliteStore, settings: Settings, clock: Callable[[], float]) -> None:
        self._store = store
        self._inbox = ProposalStore(store)
        self._settings = settings
        self._clock = clock
        self._redactor = Redactor(settings.secrets)
        self._applier = Applier(store, settings, clock)

    def propose(self, snapshot: Snapshot, wish: ProposalDraft, instruction: str = "") -> ProposalRow:
        """Keep a wish, or raise Refused with the reason why not."""
        self._compare(wish)
        if wish.write_origin == MODEL:
            fault = find_fault(snapshot, wish.kind, wish.claim, wish.cites, instruction)
            if fault:
                raise Refused(fault)
        row = self._write_row(snapshot, wish)
        with self._store.writing():
            if not self._inbox.put(row):
                raise Refused("the same was proposed before")
        if row.kind not in self._settings.review.apply or row.suspicions != "[]":
            return row
        try:
            return self.apply(row.id, by=POLICY)
        except (WarmstartError, OSError) as error:
            return structs.replace(row, reason=f"could not be applied: {error}")

    def apply(self, name: str, *, by: str = PERSON) -> ProposalRow:
        """Do what a proposal says. The store's lock is held meanwhile, so that two never write at once."""
        row = self._inbox.find(name)
        self._applier.prepare(row)
        with self._store.writing():
            reason = "applied at once" if by == POLICY else "a person applied it"
            self._inbox.decide(row, "applied", reason, self._clock(), by)
            self._applier.apply(row)
        return self._inbox.find(row.id)

    def discard(self, name: str, *, reason: str = "") -> ProposalRow:
        """A person's no. The same is not proposed again."""
        row = self._inbox.find(name)
        said = self._redactor.scope().text(reason) or "a person discarded it"
        with self._store.writing():
            self._inbox.decide(row, "discarded", said, self._clock(), PERSON)
        return self._inbox.find(row.id)

    def hide(self, name: str) -> str:
        """An id without what could be a secret."""
        return self._redactor.scope().identifier(name)

    def _compare(self, wish: ProposalDraft) -> None:
        """With what is there. Raises Refused where there is nothing to do, or no way to do it."""
        places, body = self._applier.places, wish.body
        if wish.kind == "memory":
            if wish.action != "add":
                places.memory.find(wish.target, str(body["old_text"]))
            if body["content"] and places.memory.knows(str(body["content"])):
                raise Refused("that is known already")
        elif wish.kind == "skill":
            self._compare_skill(wish)
        else:
            check_name(wish.target)

    def _compare_skill(self, wish: ProposalDraft) -> None:
        skills, name = self._applier.places.skills, wish.target
        if wish.action == "create":
            if skills.find(name) is not None:
                raise Refused(f"there is a skill {name} already; patch or edit it")
            if read_skill(str(wish.body["content"]), name).further:
                raise Refused("a review writes only name and description into a skill's frontmatter")
        elif wish.action == "delete":
            skills.read(name)
        else:
            make_changed(wish.action, wish.body, skills.read(name), name)

    def _write_row(self, snapshot: Snapshot, wish: ProposalDraft) -> ProposalRow:
        scope, session = self._redactor.scope(), snapshot.session
        body: dict[str, Any] = {key: scope.text(str(value)) for key, value in wish.body.items()}
        for key in ("old_string", "old_text"):
            if body.get(key, "") != wish.body.get(key, ""):
                raise Refused(f"there is a secret in {key}; that is for a person to change")
        if scope.text(wish.target) != wish.target:
            raise Refused("there is a secret in the name")
        said = "\n".join(map(str, body.values()))
        return ProposalRow(
            id=secrets.token_hex(16),
            digest=_digest(wish, snapshot.key),
            kind=wish.kind,
            action=wish.action,
            target=wish.target,
            summary=first(" ".join(scope.text(wish.claim).split()), _SUMMARY),
            body=_encode(body).decode(),
            cites=_encode(wish.cites).decode(),
            suspicions=_encode((*wish.suspicions, *_find_suspicions(said))).decode(),
            reason="waits for a person",
            write_origin=wish.write_origin,
            execution_context=snapshot.execution_context,
            session=scope.identifier(session.id),
            session_key=snapshot.key,
            source=scope.identifier(session.source_uri) if session.source_uri != "memory:" else "",
            parent=scope.identifier(session.parent) if session.parent else None,
            platform=scope.identifier(snapshot.platform),
            tool_call=scope.identifier(wish.tool_call) if wish.tool_call else None,
            created=self._clock(),
        )


def _find_suspicions(text: str) -> tuple[str, ...]:
    found = ["a secret was taken out of it"] if _SECRET in text else []
    found += ["it gives orders to an assistant"] if gives_orders(text) else []
    return tuple(found)


def _digest(wish: ProposalDraft, key: str) -> str:
    """Of what a wish says, not of how it is spelled. A template is its session's, whatever it is called."""
    if wish.identity:
        said: tuple[str, ...] = (wish.identity,)
    elif wish.kind == "template":
        said = (key,)
    elif wish.kind == "memory":
        said = (wish.action, wish.target, normalise(str(wish.body["content"])), normalise(str(wish.body["old_text"])))
    else:
        said = (wish.action, wish.target, *(normalise(str(value)) for _key, value in sorted(wish.body.items())))
    return hashlib.blake2b("\0".join((wish.kind, *said)).encode("utf-8", "replace"), digest_size=16).hexdigest()
