"""The desk that every draft passes: check it, redact it, compare it with what exists, store it with its origin.

A proposal is applied at once only if the user's policy names its kind and nothing about it is suspicious. A discarded
proposal is final: the same is not proposed again.
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
from warmstart.ports import NoteDesk
from warmstart.redact import Redactor
from warmstart.review.apply import Applier, change_skill
from warmstart.review.claims import find_fault, normalise
from warmstart.review.proposal_drafts import MODEL, ProposalDraft
from warmstart.review.skills import read_skill
from warmstart.review.snapshot import Snapshot
from warmstart.store import ProposalRow, ProposalStore, Store
from warmstart.templates.suspicion import gives_orders

POLICY, PERSON = "policy:review", "person"
_SUMMARY = 160
_SECRET = "{{SECRET:"
_encode = msgspec.json.Encoder(order="deterministic").encode


class ProposalDesk:
    """Takes drafts, stores proposals, and applies or discards them."""

    def __init__(
        self, store: Store, settings: Settings, clock: Callable[[], float], notes: NoteDesk | None = None
    ) -> None:
        self._store = store
        self._proposals = ProposalStore(store)
        self._settings = settings
        self._clock = clock
        self._redactor = Redactor(settings.secrets)
        self._applier = Applier(store, settings, clock, notes)

    def propose(self, snapshot: Snapshot, draft: ProposalDraft, instruction: str = "") -> ProposalRow:
        """Store a draft as a proposal. Raises Refused with the reason why not."""
        self._compare(draft)
        if draft.write_origin == MODEL:
            fault = find_fault(snapshot, draft.kind, draft.claim, draft.cites, instruction)
            if fault:
                raise Refused(fault)
        row = self._write_row(snapshot, draft)
        with self._store.writing():
            if not self._proposals.put(row):
                raise Refused("the same was proposed before")
        if row.kind not in self._settings.review.apply or row.suspicions != "[]":
            return row
        try:
            return self.apply(row.id, by=POLICY)
        except (WarmstartError, OSError) as error:
            return structs.replace(row, reason=f"could not be applied: {error}")

    def apply(self, name: str, *, by: str = PERSON, anyway: bool = False) -> ProposalRow:
        """Apply a proposal. The store's lock is held meanwhile, so that two processes never write at once.

        `anyway`: a person's decision to make a template of a session that failed.
        """
        if anyway and by != PERSON:
            raise Refused("only a person can make a template of a session that failed")
        row = self._proposals.find(name)
        if row.kind == "note" and by != PERSON:
            raise Refused("only a person approves a note that waits")
        self._applier.prepare(row)
        with self._store.writing():
            reason = "applied at once" if by == POLICY else f"a person applied it{' --anyway' if anyway else ''}"
            self._proposals.decide(row, "applied", reason, self._clock(), by)
            self._applier.apply(row, by=by, anyway=anyway)
        return self._proposals.find(row.id)

    def discard(self, name: str, *, reason: str = "") -> ProposalRow:
        """Discard a proposal for a person. The same is not proposed again."""
        row = self._proposals.find(name)
        why = self._redactor.scope().text(reason) or "a person discarded it"
        with self._store.writing():
            self._proposals.decide(row, "discarded", why, self._clock(), PERSON)
        return self._proposals.find(row.id)

    def redact_id(self, name: str) -> str:
        """Return an id without secrets."""
        return self._redactor.scope().identifier(name)

    def _compare(self, draft: ProposalDraft) -> None:
        """Compare a draft with what exists. Raises Refused if it changes nothing or cannot be applied."""
        places, body = self._applier.places, draft.body
        if draft.kind == "memory":
            if draft.action != "add":
                places.memory.find(draft.target, str(body["old_text"]))
            if body["content"] and places.memory.knows(str(body["content"])):
                raise Refused("that is known already")
        elif draft.kind == "skill":
            self._compare_skill(draft)
        elif draft.kind == "template":
            check_name(draft.target)

    def _compare_skill(self, draft: ProposalDraft) -> None:
        skills, name = self._applier.places.skills, draft.target
        if draft.action == "create":
            if skills.find(name) is not None:
                raise Refused(f"there is a skill {name} already; patch or edit it")
            if read_skill(str(draft.body["content"]), name).further:
                raise Refused("a review writes only name and description into a skill's frontmatter")
        elif draft.action == "delete":
            skills.read(name)
        else:
            change_skill(draft.action, draft.body, skills.read(name), name)

    def _write_row(self, snapshot: Snapshot, draft: ProposalDraft) -> ProposalRow:
        scope, session = self._redactor.scope(), snapshot.session
        body: dict[str, Any] = {key: scope.text(str(value)) for key, value in draft.body.items()}
        for key in ("old_string", "old_text"):
            if body.get(key, "") != draft.body.get(key, ""):
                raise Refused(f"there is a secret in {key}; that is for a person to change")
        if scope.text(draft.target) != draft.target:
            raise Refused("there is a secret in the name")
        text = "\n".join(map(str, body.values()))
        return ProposalRow(
            id=secrets.token_hex(16),
            digest=_digest(draft, snapshot.key),
            kind=draft.kind,
            action=draft.action,
            target=draft.target,
            summary=first(" ".join(scope.text(draft.claim).split()), _SUMMARY),
            body=_encode(body).decode(),
            cites=_encode(draft.cites).decode(),
            suspicions=_encode((*draft.suspicions, *_find_suspicions(text))).decode(),
            reason="waiting for a person",
            write_origin=draft.write_origin,
            execution_context=snapshot.execution_context,
            session=scope.identifier(session.id),
            session_key=snapshot.key,
            source=scope.identifier(session.source_uri) if session.source_uri != "memory:" else "",
            parent=scope.identifier(session.parent) if session.parent else None,
            platform=scope.identifier(snapshot.platform),
            tool_call=scope.identifier(draft.tool_call) if draft.tool_call else None,
            created=self._clock(),
        )


def _find_suspicions(text: str) -> tuple[str, ...]:
    suspicions = ["a secret was removed from it"] if _SECRET in text else []
    suspicions += ["it gives orders to an assistant"] if gives_orders(text) else []
    return tuple(suspicions)


def _digest(draft: ProposalDraft, key: str) -> str:
    """Return a digest of a draft's content, independent of spelling. A session has one template, whatever its name."""
    if draft.identity:
        content: tuple[str, ...] = (draft.identity,)
    elif draft.kind == "template":
        content = (key,)
    elif draft.kind == "memory":
        texts = (normalise(str(draft.body[name])) for name in ("content", "old_text"))
        content = (draft.action, draft.target, *texts)
    else:
        content = (draft.action, draft.target, *(normalise(str(value)) for _key, value in sorted(draft.body.items())))
    return hashlib.blake2b("\0".join((draft.kind, *content)).encode("utf-8", "replace"), digest_size=16).hexdigest()
