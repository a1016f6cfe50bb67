"""Find lessons in a session without a model: corrected calls, repeated errors, calls worth a template.

This is free and deterministic. Only what is new since the session's last review is returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from warmstart.calls.fixes import REACH, Fix, find_fixes
from warmstart.calls.shapes import command_of
from warmstart.excerpt import first
from warmstart.insights.errors import find_message, mask_message
from warmstart.insights.fixes import find_ending
from warmstart.model import PastCall, PastSession, Session, Template, ToolCall, ToolResult
from warmstart.review.memory import LONGEST, flatten_note
from warmstart.review.proposal_drafts import ProposalDraft

CORRECTED, REPEATED, TEMPLATE = "review:corrected_call", "review:repeated_error", "review:new_template"
_QUOTES = "it quotes what a tool has said"
_SHOWN, _MOST = 200, 20  # characters of a call, findings of each kind


class CallPlace(Struct, frozen=True):
    """The step numbers of a call and its result, from 1."""

    call: int
    result: int | None

    @property
    def cites(self) -> tuple[int, ...]:
        return (self.call,) if self.result is None else (self.call, self.result)

    def is_new(self, since: int) -> bool:
        return max(self.cites) > since


def place_calls(session: Session) -> list[CallPlace]:
    """Return the place of each call, in order. Agents reuse ids: a result answers the latest open call of its id."""
    places: list[CallPlace] = []
    waiting: dict[str, int] = {}
    for number, step in enumerate(session.steps, 1):
        if isinstance(step, ToolCall):
            waiting[step.call_id] = len(places)
            places.append(CallPlace(number, None))
        elif isinstance(step, ToolResult) and (at := waiting.pop(step.call_id, None)) is not None:
            places[at] = CallPlace(places[at].call, number)
    return places


def find_corrections(past: PastSession, places: Sequence[CallPlace], since: int) -> list[ProposalDraft]:
    """Draft notes about calls that failed and then worked in another form."""
    drafts = []
    for index, fix in sorted(find_fixes(past.calls).items(), key=lambda item: -item[1].weight)[:_MOST]:
        if places[index].is_new(since):
            failed = _find_failed(past.calls, index)
            cites = tuple(sorted({*places[index].cites, *(places[failed].cites if failed is not None else ())}))
            drafts.append(_draft_correction(past.calls[index], fix, cites))
    return drafts


def find_repeated(
    past: PastSession, places: Sequence[CallPlace], since: int, earlier: Iterable[PastSession] = ()
) -> list[ProposalDraft]:
    """Draft notes about errors that occurred at least twice, here or earlier, and at least once since the last review."""
    groups: dict[tuple[str, str, str], list[int]] = {}
    for index, call in enumerate(past.calls):
        if call.outcome.status == "error" and (key := _make_key(call)):
            groups.setdefault(key, []).append(index)
    fresh = {key: group for key, group in groups.items() if any(places[index].is_new(since) for index in group)}
    before: dict[tuple[str, str, str], int] = dict.fromkeys(fresh, 0)
    sessions = dict(before)
    for session in earlier if fresh else ():
        seen = [key for call in session.calls if call.outcome.status == "error" and (key := _make_key(call)) in fresh]
        for key in seen:
            before[key] += 1
        for key in set(seen):
            sessions[key] += 1
    repeated = [key for key, group in fresh.items() if len(group) + before[key] > 1][:_MOST]
    return [_draft_repeated(past, key, fresh[key], places, before[key], sessions[key]) for key in repeated]


def find_template(draft: Template, past: PastSession, places: Sequence[CallPlace], since: int) -> ProposalDraft | None:
    """Draft the proposal of this session's template, if any of its calls is new."""
    used = [
        places[example.step] for example in draft.examples if example.step is not None and example.step < len(places)
    ]
    if not any(place.is_new(since) for place in used):
        return None
    return ProposalDraft(
        kind="template",
        action="propose",
        target=draft.name,
        body={"name": draft.name, "description": draft.description},
        claim=draft.description or draft.name,
        cites=tuple(sorted({number for place in used for number in place.cites})),
        write_origin=TEMPLATE,
        suspicions=draft.provenance.suspicions,
    )


def _find_failed(calls: Sequence[PastCall], worked: int) -> int | None:
    """Return the nearest failure before a call, preferably of the same tool."""
    near = [at for at in range(worked - 1, max(-1, worked - 1 - REACH), -1) if calls[at].outcome.status == "error"]
    return next((at for at in near if calls[at].tool == calls[worked].tool), near[0] if near else None)


def _draft_correction(call: PastCall, fix: Fix, cites: tuple[int, ...]) -> ProposalDraft:
    note = fix.lesson or f'{call.tool}: after "{fix.said}" this worked: {_show(call)}'
    return _draft_note(note, cites, CORRECTED, f"correction {fix.pair}", () if fix.lesson else (_QUOTES,))


def _draft_repeated(
    past: PastSession, key: tuple[str, str, str], here: list[int], places: Sequence[CallPlace], before: int, others: int
) -> ProposalDraft:
    tool, message = key[0], mask_message(find_message(past.calls[here[-1]]))
    ending = find_ending(past.calls, here[-1])
    cites = {number for index in here for number in places[index].cites}
    if ending is not None:
        cites |= set(places[ending.index].cites)
    how = f"it ended by {ending.how}: {ending.what}" if ending else "nothing has ended it yet"
    where = f"{len(here) + before} times in {others + 1} session{'s' if others else ''}"
    return _draft_note(
        f'{tool} fails again and again with "{message}" ({where}); {how}',
        tuple(sorted(cites)),
        REPEATED,
        f"repeated {' '.join(key)}",
        (_QUOTES,),
    )


def _draft_note(
    text: str, cites: tuple[int, ...], origin: str, identity: str, suspicions: tuple[str, ...]
) -> ProposalDraft:
    content = flatten_note(first(text, LONGEST - 10))
    return ProposalDraft(
        kind="memory",
        action="add",
        target="memory",
        body={"content": content, "old_text": ""},
        claim=content,
        cites=cites,
        write_origin=origin,
        identity=identity,
        suspicions=suspicions,
    )


def _make_key(call: PastCall) -> tuple[str, str, str] | None:
    """Return a key that is equal for the same error about something else; None if the error has no message."""
    message = mask_message(find_message(call)).casefold()
    return (call.tool, call.outcome.error_kind or "", message) if message else None


def _show(call: PastCall) -> str:
    command = command_of(call.tool, call.arguments)
    text = command if command is not None else msgspec.json.encode(call.arguments).decode()
    return first(" ".join(text.split()), _SHOWN)
