"""Find lessons in a session without a model: corrected calls, repeated errors, calls worth a template.

This is free and deterministic. Only what is new since the session's last review is returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from warmstart.calls.fixes import Fix, find_fixes
from warmstart.calls.origins import Origins
from warmstart.calls.shapes import command_of
from warmstart.excerpt import first
from warmstart.insights.errors import Key, find_message, make_error_key, mask_message
from warmstart.insights.fixes import Ending, find_ending, has_passed, is_failing_check
from warmstart.model import MetNote, PastCall, PastSession, Session, Template, ToolCall, ToolResult
from warmstart.plurals import format_count
from warmstart.review.memory import LONGEST, flatten_note
from warmstart.review.proposal_drafts import ProposalDraft

CORRECTED, REPEATED, TEMPLATE = "review:corrected_call", "review:repeated_error", "review:new_template"
NOTE = "review:project_note"
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


class RepeatCount(Struct, frozen=True):
    """How often an error occurred, and in how many sessions, without forks and subagents."""

    times: int
    sessions: int


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
            cites = tuple(sorted({*places[index].cites, *places[fix.at].cites}))
            drafts.append(_draft_correction(past.calls[index], fix, cites))
    return drafts


def find_repeated(
    past: PastSession, places: Sequence[CallPlace], since: int, earlier: Iterable[PastSession] = ()
) -> list[ProposalDraft]:
    """Draft notes about errors that occurred at least twice, here or earlier, and at least once since the last review."""
    groups: dict[Key, list[int]] = {}
    for index, call in enumerate(past.calls):
        if call.outcome.status == "error" and find_message(call):
            groups.setdefault(make_error_key(call), []).append(index)
    fresh = {key: group for key, group in groups.items() if any(places[index].is_new(since) for index in group)}
    before: dict[Key, int] = dict.fromkeys(fresh, 0)
    origins = Origins()
    sessions = {key: {origins.add(past)} for key in fresh}
    for session in earlier if fresh else ():
        origin = origins.add(session)
        for call in session.calls:
            if call.outcome.status == "error" and (key := make_error_key(call)) in fresh:
                before[key] += 1
                sessions[key].add(origin)
    counts = {key: RepeatCount(len(fresh[key]) + before[key], len(origins.settle(sessions[key]))) for key in fresh}
    repeated = [key for key in fresh if counts[key].times > 1][:_MOST]
    return [_draft_repeated(past, key, fresh[key], places, counts[key]) for key in repeated]


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


def draft_notes(notes: Iterable[MetNote], places: Sequence[CallPlace], since: int) -> list[ProposalDraft]:
    """Draft the approval of notes about the project that the session met since its last review."""
    drafts = []
    for note in list(notes)[:_MOST]:
        met = [places[index] for index in note.calls if index < len(places)]
        if any(place.is_new(since) for place in met):
            body = {"note": note.id, "project": note.project, "kind": note.kind, "subject": note.subject}
            drafts.append(
                ProposalDraft(
                    kind="note",
                    action="approve",
                    target=note.id,
                    body=body | {"text": note.text},
                    claim=note.text,
                    cites=tuple(sorted({number for place in met for number in place.cites})),
                    write_origin=NOTE,
                    identity=f"note {note.id}",
                    suspicions=note.suspicions,
                )
            )
    return drafts


def _draft_correction(call: PastCall, fix: Fix, cites: tuple[int, ...]) -> ProposalDraft:
    note = fix.lesson or f'{call.tool}: after "{fix.said}" this worked: {_show(call)}'
    return _draft_note(note, cites, CORRECTED, f"correction {fix.pair}", () if fix.lesson else (_QUOTES,))


def _draft_repeated(
    past: PastSession, key: Key, here: list[int], places: Sequence[CallPlace], count: RepeatCount
) -> ProposalDraft:
    tool, message = key[0], mask_message(find_message(past.calls[here[-1]]))
    ending = find_ending(past.calls, here[-1])
    cites = {number for index in here for number in places[index].cites}
    if ending is not None:
        cites |= set(places[ending.index].cites)
    where = f"{count.times} times in {format_count(count.sessions, 'session')}"
    return _draft_note(
        f'{tool} fails again and again with "{message}" ({where}); {_describe_ending(past, here[-1], ending)}',
        tuple(sorted(cites)),
        REPEATED,
        f"repeated {' '.join(part or '' for part in key)}",
        (_QUOTES,),
    )


def _describe_ending(past: PastSession, at: int, ending: Ending | None) -> str:
    if ending is not None:
        return f"it was fixed by: {ending.what}" + (f" ({ending.example})" if ending.example else "")
    if is_failing_check(past.calls[at]):
        return "a failing check, which passed after changes" if has_passed(past.calls, at) else "a failing check"
    return "no fix was seen yet"


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


def _show(call: PastCall) -> str:
    command = command_of(call.tool, call.arguments)
    text = command if command is not None else msgspec.json.encode(call.arguments).decode()
    return first(" ".join(text.split()), _SHOWN)
