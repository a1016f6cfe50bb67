"""Stored sessions as decoded values, one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from warmstart.model import Arguments, Evidence, Outcome, PastCall, PastSession, Verdict
from warmstart.ports import Progress
from warmstart.store.known import know_call, know_session, read_usage
from warmstart.store.protocol import Store
from warmstart.store.rows import CallRow, SessionRow

_SESSION = frozenset(PastSession.__struct_fields__) & frozenset(SessionRow.__struct_fields__) - {
    "calls",
    "task",
    "usage",
}
_CALL = frozenset(PastCall.__struct_fields__) & frozenset(CallRow.__struct_fields__) - {
    "arguments",
    "intent",
    "asked",
    "closing",
}


def decode_session(row: SessionRow, calls: Iterable[CallRow]) -> PastSession | None:
    """Return the session as a value; None if its record cannot be decoded."""
    row = know_session(row)
    try:
        return PastSession(
            **{name: getattr(row, name) for name in _SESSION},
            task=row.task or "",
            calls=tuple(map(_decode_call, map(know_call, calls))),
            usage=read_usage(row.usage) if row.usage else None,
            signs=_read_signs(row.score) if row.verdict == "failure" else (),
        )
    except (msgspec.DecodeError, RecursionError):
        return None


class _StoredScore(msgspec.Struct):
    evidence: tuple[Evidence, ...] = ()


_score = msgspec.json.Decoder(_StoredScore)


def _read_signs(score: str) -> tuple[str, ...]:
    """Return the signs of a failure, the heaviest first."""
    against = (sign for sign in _score.decode(score).evidence if sign.weight < 0)
    return tuple(sign.sign for sign in sorted(against, key=lambda sign: sign.weight))


def _decode_call(row: CallRow) -> PastCall:
    return PastCall(
        **{name: getattr(row, name) for name in _CALL},
        arguments=msgspec.json.decode(row.arguments, type=Arguments),
        intent=row.intent or "",
        asked=row.asked or "",
        closing=row.closing or "",
        outcome=Outcome(
            row.status,
            row.basis,
            row.error_kind,
            row.flagged,
            row.cause,
            msgspec.json.decode(row.findings, type=tuple[str, ...]) if row.findings else (),
            row.words,
        ),
    )


def read_history(
    store: Store,
    *,
    agent: str | None = None,
    project: str | None = None,
    since: float | None = None,
    verdict: Verdict | None = None,
    source: str | None = None,
    progress: Progress | None = None,
) -> Iterator[PastSession | None]:
    """Yield the matching sessions, earliest first; None for one whose record cannot be decoded.

    A store may hold millions of calls, so only one session is in memory at a time.
    """
    keys = [key for (key,) in store.rows("session_keys", (agent, project, since, verdict, source))]
    for done, key in enumerate(keys):
        if progress:
            progress(done, len(keys), key)
        for columns in store.rows("session_by_key", (key,)):  # no row if another process just deleted the session
            yield decode_session(SessionRow.from_columns(columns), store.calls_of(key))
