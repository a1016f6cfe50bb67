"""The desk: submit, decide and execute requests. Doors call it; it knows nothing of HTTP.

Every change returns a Future that is done when the change is on disk. Reads use a connection of their own and never
wait for a writer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from functools import cached_property, lru_cache
from typing import Any, TypeVar

import msgspec

from warmstart.confirm.audit.anchor import Anchor, check_anchored
from warmstart.confirm.audit.anchorer import Anchorer
from warmstart.confirm.audit.feed import Feed
from warmstart.confirm.audit.memory import WriterMemory
from warmstart.confirm.audit.transaction import Transaction, load_request
from warmstart.confirm.canonical import digest_deed
from warmstart.confirm.desk import decide, submit
from warmstart.confirm.desk.load import check_load, read_load, read_past
from warmstart.confirm.desk.presence import Presence
from warmstart.confirm.desk.watch import Watch
from warmstart.confirm.desk.writer import LARGE_CHANGE, Writer
from warmstart.confirm.errors import RateLimited
from warmstart.confirm.masking.masker import Masker
from warmstart.confirm.masking.outside import OutsideMasker
from warmstart.confirm.model import (
    ALLOWED,
    Allowance,
    AuditEntry,
    Delivered,
    Identity,
    MaskedValue,
    NewRequest,
    Request,
    Status,
    Vote,
)
from warmstart.confirm.passkeys.proofs import find_unproven, keep_proven, report_unproven
from warmstart.confirm.policy.actions import key_of
from warmstart.confirm.policy.policy import Policy
from warmstart.confirm.policy.standing import Standing, judge, read_votes
from warmstart.confirm.problems import OpenProblems
from warmstart.confirm.store.open import open_store
from warmstart.confirm.store.protocol import Database
from warmstart.confirm.tokens import access
from warmstart.confirm.tokens.identity import derive_key, make_signer
from warmstart.confirm.tokens.keys import load_keys
from warmstart.confirm.tokens.tokens import derive

T = TypeVar("T")
_FIRST = 1 << 62  # above every sequence


class Desk:
    """Open one per process and database; `close()` it."""

    def __init__(
        self,
        database: Database,
        policy: Policy | None = None,
        *,
        secrets: Mapping[str, str] | None = None,
        channels: Sequence[str] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`channels` names the notification channels for new requests. The notifier sends what lies in the outbox."""
        self.policy = policy or Policy()
        self.channels = tuple(channels)
        self._clock = clock
        with ExitStack() as opened:
            self._writing_store = opened.enter_context(open_store(database))
            self.anchor = Anchor.of(self._writing_store)
            self.anchor.create(self._writing_store)
            check_anchored(self._writing_store, self.anchor.read(), self.anchor.path)
            with self._writing_store.writing():
                self._keys = load_keys(Transaction(self._writing_store, self.now(), self.policy))
            self.masker = Masker(secrets, self._keys["masks"])
            self.outside_masker = OutsideMasker(secrets or {}, self._keys["masks"])
            self.store = opened.enter_context(open_store(database))  # for reading
            self.feed = Feed(opened.enter_context(open_store(database)))
            anchoring_store = opened.enter_context(open_store(database))
            self._stores = opened.pop_all()
        self.problems = OpenProblems()
        self._disbelieved: set[str] = set()  # requests whose approval was reported as forged
        self._rule_on = lru_cache(1024)(self.policy.rule_on)
        self._anchorer = Anchorer(anchoring_store, self.anchor, self.problems)
        self._writer = Writer(self._writing_store, self._after_commit, self.problems)
        self._watch = Watch(self, self._anchorer.wake)

    def announce(self, address: str, version: str) -> None:
        """Record in the audit that a daemon started here with this policy; closing the desk records the stop."""
        presence = Presence(self.policy, address, version)
        self.change(presence.start).result()
        self._watch.presence = presence

    def close(self) -> None:
        self._watch.stop()
        self._writer.stop()
        self._anchorer.stop()
        self.outside_masker.close()
        self._stores.close()

    def now(self) -> int:
        return int(self._clock() * 1000)

    @property
    def trouble(self) -> str:
        """The open problems, for logged-in people; empty if there are none. The log has the reasons."""
        return self.problems.describe()

    def change(self, make: Callable[[Transaction], T | Exception]) -> Future[T]:
        """Queue a change for the writer. Its time is when it runs, not when it was queued."""
        return self._put(make)

    def _put(
        self, make: Callable[[Transaction], T | Exception], *, is_sure: bool = False, is_large: bool = False
    ) -> Future[T]:
        def change(memory: WriterMemory) -> T | Exception:
            return make(Transaction(self._writing_store, self.now(), self.policy, memory))

        return self._writer.put(change, is_sure=is_sure, is_large=is_large)

    def log(self, event: str, who: Identity | str, **details: Any) -> Future[int]:
        """Record an audit entry without any other change."""
        return self.change(lambda tx: tx.log(event, who, **details))

    # Requests

    def submit(self, who: Identity, new: NewRequest, key: submit.Key | None = None) -> Future[Request]:
        is_large = new.size > LARGE_CHANGE
        return self._put(lambda tx: submit.submit(tx, who, new, key, self.channels), is_sure=True, is_large=is_large)

    def check_load(self, who: Identity, size: int) -> RateLimited | None:
        """Return why this token may not submit `size` more bytes now, or None if it may."""
        now = self.now()
        past = read_past(self.store, self.policy, who, now)
        return check_load(self.policy, who, now, read_load(self.store, who, now), past, size)

    def has_answer(self, who: Identity, key: str) -> bool:
        """Return whether this token has submitted a request with this idempotency key."""
        return bool(key) and self.store.row("answer", {"credential": who.credential, "key": key}) is not None

    def deny_all(self, who: Identity, requester: str, reason: str) -> Future[tuple[int, int]]:
        """Deny what waits of one requester, a part at a time. Return how many were denied and how many could not be."""
        return self.change(lambda tx: decide.deny_all(tx, who, requester, reason))

    def decide(self, who: Identity, id: str, wish: decide.DecisionRequest) -> Future[Request]:
        return self.change(lambda tx: decide.decide(tx, who, id, wish))

    def execute(self, who: Identity, id: str, token: str, action: str, details: Any) -> Future[Request]:
        deed = decide.Deed(token, digest_deed(action, details))
        return self.change(lambda tx: decide.execute(tx, who, id, deed, self.execution_token(id)))

    def execution_token(self, id: str) -> str:
        """Return the request's execution token. It is derived, so a waiter gets the same one after a restart."""
        return derive(self._keys["execution"], id)

    @cached_property
    def identity(self) -> str:
        """The daemon's public key, by which clients know it."""
        return derive_key(self._keys["identity"])

    @cached_property
    def sign(self) -> Callable[[bytes], bytes]:
        """Sign with the daemon's private key."""
        return make_signer(self._keys["identity"])

    def csrf_token(self, session: str) -> str:
        return derive(self._keys["csrf"], session)

    def may_execute(self, who: Identity, request: Request) -> bool:
        """Return whether this caller gets the execution token: only the submitter, only while the approval is valid."""
        return (
            request.status in ALLOWED
            and request.executed is None
            and request.credential == who.credential
            and request.execute_by is not None
            and request.execute_by > self.now()
        )

    def find(self, id: str) -> Request | None:
        """Return a request under the policy in force, or None."""
        row = self.store.row("request", {"id": id})
        return self.apply_policy(load_request(row)) if row else None

    def apply_policy(self, request: Request) -> Request:
        """Return an open request with the risk and the quorum that apply now, a closed one unchanged. An approval that
        lacks the signature of a passkey is shown as denied."""
        if request.status in ALLOWED:
            why = find_unproven(self.store, request, self._rule_on(request.action), self.now())
            if why:
                return self._disbelieve(request, why)
        if not self._is_open(request):
            return request
        ruling = self._rule_on(request.action)
        quorum = max(request.quorum, ruling.quorum)
        return msgspec.structs.replace(request, quorum=quorum, high_risk=request.high_risk or ruling.high_risk)

    def _disbelieve(self, request: Request, why: str) -> Request:
        """Report an approval that is not proven, once, and return the request without it."""
        if request.id not in self._disbelieved:
            self._disbelieved.add(request.id)
            self.change(lambda tx: report_unproven(tx, request, why))
        reason = f"the approval is not believed: it {why}"
        return msgspec.structs.replace(request, status="denied", decided_by="daemon", reason=reason, execute_by=None)

    def find_standing(self, request: Request) -> Standing:
        """Return the approvals of a request; of an open one, separate those that no longer count."""
        return self._judge(request, self.votes(request.id))

    def _judge(self, request: Request, votes: list[Vote]) -> Standing:
        votes = keep_proven(self.store, request, votes)
        if not self._is_open(request):
            return Standing(request.quorum, votes, [])
        return judge(request, votes, self._rule_on(request.action))

    def _is_open(self, request: Request) -> bool:
        """Return whether the request can still be decided or executed."""
        if request.status == "pending":
            return True
        return request.status == "approved" and request.executed is None and (request.execute_by or 0) > self.now()

    def is_overdue(self, request: Request) -> bool:
        """Return whether the request is pending in the table although its deadline has passed."""
        return request.status == "pending" and request.deadline <= self.now()

    def expire(self, id: str) -> Future[bool]:
        return self.change(lambda tx: decide.expire(tx, id))

    def list_requests(
        self,
        *,
        status: Status | None,
        action: str | None,
        subject_key: str | None,
        limit: int,
        before: int | None,
        high_risk: bool = False,
    ) -> list[Request]:
        """Return requests without their details, newest first. None does not filter; `high_risk`: only those."""
        wanted = {
            "status": status or "",
            "action_key": key_of(action) if action else "",
            "subject_key": subject_key or "",
            "limit": limit,
            "before": before or _FIRST,
            "risk": "high" if high_risk else "",
        }
        if subject_key is not None:
            query = "requests_by_subject"
        elif action:
            query = "requests_by_action_and_status" if status else "requests_by_action"
        else:
            query = "requests_by_status" if status else "requests"
        return [load_request(row) for row in self.store.rows(query, wanted)]

    def votes(self, id: str) -> list[Vote]:
        return read_votes(self.store, id)

    def list_standings(self, requests: Sequence[Request]) -> dict[str, Standing]:
        """Return the approvals of several requests, by id."""
        votes: dict[str, list[Vote]] = {}
        for id, by, key, reason, at, revoked in self._rows_between("votes_between", requests):
            votes.setdefault(id, []).append(Vote(by, key, reason, at, bool(revoked)))
        return {one.id: self._judge(one, votes.get(one.id, [])) for one in requests}

    def list_notices(self, requests: Sequence[Request]) -> dict[str, list[Delivered]]:
        """Return the notifications of several requests, by id."""
        notices: dict[str, list[Delivered]] = {one.id: [] for one in requests}
        for id, *row in self._rows_between("notices_between", requests):
            notices.setdefault(id, []).append(Delivered(*row))
        return notices

    def _rows_between(self, query: str, requests: Sequence[Request]) -> list[Any]:
        sequences = [one.sequence for one in requests]
        return self.store.rows(query, {"first": min(sequences), "last": max(sequences)}) if sequences else []

    def list_masks(self, id: str) -> list[MaskedValue]:
        """Return the masks of a request, and how often their values were seen and approved before."""
        return [
            MaskedValue(mask, int(seen), int(ok)) for mask, seen, ok in self.store.rows("masks_of", {"request": id})
        ]

    def notices(self, id: str) -> list[Delivered]:
        return [Delivered(*row) for row in self.store.rows("notices", {"request": id})]

    def count_pending(self) -> int:
        return int(self.store.row("count_pending", {"now": self.now()})[0])

    def audit(self, limit: int, since: int | None) -> list[AuditEntry]:
        """Return entries after a sequence, or the latest ones; oldest first."""
        if since is not None:
            return [AuditEntry(*row) for row in self.store.rows("entries", {"since": since, "limit": limit})]
        return [AuditEntry(*row) for row in reversed(self.store.rows("latest_entries", {"limit": limit}))]

    # Tokens, logins and the whitelist

    def find_identity(self, secret: str) -> Identity | None:
        return access.find_identity(self.store, secret, self.now())

    def find_session(self, secret: str) -> access.BrowserSession | None:
        return access.find_session(self.store, secret, self.now())

    def log_in(self, code: str) -> Future[access.BrowserSession]:
        return self.change(lambda tx: access.log_in(tx, code))

    def log_out(self, who: Identity) -> Future[None]:
        return self.change(lambda tx: access.log_out(tx, who))

    def allowances(self) -> list[Allowance]:
        return access.list_allowances(self.store, self.now())

    def allow(self, new: access.NewAllowance, by: Identity) -> Future[Allowance]:
        return self.change(lambda tx: access.add_allowance(tx, new, by))

    def disallow(self, id: str, by: Identity) -> Future[str]:
        return self.change(lambda tx: access.remove_allowance(tx, id, by))

    def _after_commit(self) -> None:
        self.feed.look()
        self._anchorer.wake()
