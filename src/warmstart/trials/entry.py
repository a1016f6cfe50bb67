"""What of a transcript enters a trial: the calls that this session made after its arm was drawn. Pure.

A seed cannot have caused what happened before it. A session that was at work before its trial began, such as an unknown
session that was resumed, is measured by its later calls and left out of comparisons.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from msgspec import structs

from warmstart.model import PastCall, PastSession

SKEW = 10.0  # seconds by which a transcript's clock may be behind ours, rounding included
IDLE = 3_600.0  # seconds for which an agent may have waited for its first request before the trial began

_LONG = 16  # characters of an id that is not a number in a series
_RANDOM = re.compile(r"(?=[0-9A-Za-z]*\d[0-9A-Za-z]*\d)(?=[0-9A-Za-z]*[A-Za-z])[0-9A-Za-z]{12}")


def began_earlier(session: PastSession, began: float, first_seen: float) -> bool:
    """Return whether a session was at work before its trial began. Without any time, whether it was stored before."""
    times = [call.at for call in session.calls if call.at is not None]
    if not times and session.started is None and session.ended is None:
        return first_seen < began - SKEW
    if times and min(times) < began - SKEW:
        return True
    has_ended = session.ended is not None and session.ended < began - SKEW
    return has_ended or (session.started is not None and session.started < began - IDLE)


def find_copied(repeated: Iterable[tuple[str, str, bool]]) -> set[str]:
    """Return the calls that a fork copied, from `(call id, id of the earlier session, whether it is the parent)`.

    Many programs number calls ("call_0"), so that equal ids prove nothing between strangers. A copy has the id of the
    parent that the session names, an id that only a random generator makes, or one that names the other session.
    """
    return {
        call
        for call, other, is_parent in repeated
        if is_parent or (len(call) >= _LONG and (_RANDOM.search(call) or (other and other in call)))
    }


def take_own_part(session: PastSession, began: float, copied: Collection[str] = ()) -> PastSession:
    """Return the session without the calls from before its trial and without those that it copied from another session.

    Turns are counted from there. Tokens and costs are known only of the whole transcript, so that they are then unknown.
    """
    own = [call for call in session.calls if call.call_id not in copied and not _is_before(call, session, began)]
    skipped = [call for call in session.calls if call.call_id in copied or _is_before(call, session, began)]
    if not skipped:
        return session
    before = max((call.turn for call in skipped if call.turn is not None), default=0)
    shifted = (structs.replace(call, turn=None if call.turn is None else max(1, call.turn - before)) for call in own)
    return structs.replace(
        session,
        calls=tuple(shifted),
        turns=None if session.turns is None else max(0, session.turns - before),
        started=max(session.started, began) if session.started is not None else None,
        usage=None,
    )


def _is_before(call: PastCall, session: PastSession, began: float) -> bool:
    """Return whether a call was made before the trial. One without a time has that of its session's start."""
    at = session.started if call.at is None else call.at
    return at is not None and at < began - SKEW
