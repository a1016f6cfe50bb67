"""Make examples of whole exchanges: a request, all calls that met it in their order, the agent's own closing words.

Failed tries are left out, and a corrected call says what had been wrong. An exchange that is too long to be shown, whose
request is not known, or whose calls every coding agent makes by itself is none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from msgspec import structs

from warmstart.calls.commonplace import is_coding
from warmstart.calls.prose import count_meaning, opening
from warmstart.calls.shapes import canonical, mask_call
from warmstart.excerpt import cut
from warmstart.model import Example, ExampleCall, PastCall, PastSession
from warmstart.projects.paths import mask_root
from warmstart.templates.secret_stand_ins import put_secret_stand_ins
from warmstart.templates.stand_ins import find_stand_ins
from warmstart.templates.suspicion import suspect_example, without_reminders

MOST_CALLS = 8  # of an exchange that is shown whole
_RESULT = 240  # characters of each call's result
_SIZE = 4_000  # characters of all calls and results together
_TASK = 300  # characters of the session's first request
_MOST_LISTED = 6  # stand-ins that a note names
_WORD = re.compile(r"[^\W_]+")
_ALIKE = 0.7  # two exchanges with the same calls are one if their requests share this many words


class MinedExchange(NamedTuple):
    """A whole exchange, and which call of it somebody means."""

    example: Example
    place: int  # index among its calls


def find_exchanges(
    session: PastSession, calls: Sequence[PastCall], corrections: Mapping[int, str | None]
) -> dict[int, MinedExchange]:
    """Return the whole exchange of each call that worked, by the call's index; calls of one exchange share it.

    `calls`: without those of trivial tools and of the seed. `corrections`: what had been wrong, by index.
    """
    found: dict[int, MinedExchange] = {}
    if is_coding(session.agent, session.category):
        return found  # such a request takes dozens of calls; the few that teach are shown by themselves
    asked = {call.request: call.asked for call in reversed(session.calls) if call.asked}
    closings = {call.request: call.closing for call in session.calls if call.closing}
    for request, group in groupby(enumerate(calls), key=lambda pair: pair[1].request):
        members = list(group)
        words = mask_root(asked.get(request, ""), session.root), mask_root(closings.get(request, ""), session.root)
        if request and (example := _make_exchange(session, members, words, corrections)) is not None:
            worked = [at for at, call in members if _belongs(call)]
            found |= {at: MinedExchange(example, place) for place, at in enumerate(worked)}
    return found


def _make_exchange(
    session: PastSession,
    members: Sequence[tuple[int, PastCall]],
    words: tuple[str, str],
    corrections: Mapping[int, str | None],
) -> Example | None:
    asked, closing = words
    worked = [(at, call) for at, call in members if _belongs(call)]
    if len(worked) > MOST_CALLS or not count_meaning(asked, most=1):
        return None
    if not any(call.outcome.status == "ok" for _at, call in worked) or not _belongs(members[-1][1]):
        return None  # the request was given up after a failure, or nobody knows how it ended
    shown = tuple(
        ExampleCall(
            tool=call.tool,
            arguments=call.arguments,
            result=cut(without_reminders(call.excerpt or ""), _RESULT),
            correction=corrections.get(at),
        )
        for at, call in worked
    )
    written = [canonical(call.arguments).decode("utf-8", "replace") for call in shown]
    if sum(map(len, written)) + sum(len(call.result) for call in shown) > _SIZE:
        return None
    if any("characters left out ...]" in arguments for arguments in written):
        return None
    example = Example(
        tool=shown[0].tool,
        arguments=shown[0].arguments,
        result=shown[0].result,
        intent=asked,
        task=opening(session.task, _TASK),
        session=session.key,
        step=worked[0][1].ordinal,
        calls=shown,
        closing=closing,
    )
    return put_secret_stand_ins(name_made_up(example, session.stand_ins))


def _belongs(call: PastCall) -> bool:
    """Return whether a call is part of what met its request: it worked, or its answer was empty, which says nothing else."""
    return call.outcome.status == "ok" or (call.outcome.status == "unknown" and call.excerpt == "")


def name_made_up(example: Example, stand_ins: Sequence[str]) -> Example:
    """Return an example that names the stand-ins in its calls.

    Those in results are not named: that kept no model from copying them, and took the room of other examples.
    """
    if not stand_ins:
        return example
    calls = "\n".join(canonical(call.arguments).decode("utf-8", "replace") for call in example.shown)
    return structs.replace(example, stand_ins=tuple(find_stand_ins(calls, stand_ins)[:_MOST_LISTED]))


def list_further(
    examples: Sequence[Example], shown: Sequence[Example], hosts: Collection[str], most: int
) -> list[Example]:
    """Return the distinct exchanges that are not shown already, nothing suspicious in them; of equal ones the first."""
    known: dict[tuple[tuple[str, str], ...], list[frozenset[str]]] = {}
    for example in shown:
        known.setdefault(_name_calls(example), []).append(_words(example))
    kept: list[Example] = []
    for example in examples:
        others = known.setdefault(_name_calls(example), [])
        words = _words(example)
        if any(_share(words, other) >= _ALIKE for other in others):
            continue
        if any(True for _reason in suspect_example(example, hosts)):
            continue  # only a person could let it be shown
        others.append(words)
        kept.append(example)
        if len(kept) == most:
            break
    return kept


def take_call(exchange: MinedExchange, call: Example) -> Example:
    """Return an exchange that a call stands for in a template: the call's own facts, and all the calls around it."""
    whole = exchange.example
    own = whole.calls[exchange.place]
    return structs.replace(
        call,
        arguments=own.arguments,
        result=own.result,
        correction=own.correction,
        intent=whole.intent,
        calls=whole.calls,
        closing=whole.closing,
        stand_ins=whole.stand_ins,
    )


def name_exchange(example: Example) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    """Return what is the same for the calls of one exchange."""
    return example.session, example.intent, _name_calls(example)


def _name_calls(example: Example) -> tuple[tuple[str, str], ...]:
    return tuple(mask_call(call.tool, call.arguments) for call in example.shown)


def _words(example: Example) -> frozenset[str]:
    return frozenset(_WORD.findall(example.intent.lower()))


def _share(words: frozenset[str], others: frozenset[str]) -> float:
    return len(words & others) / (len(words | others) or 1)
