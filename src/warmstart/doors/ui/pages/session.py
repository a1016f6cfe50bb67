"""One session as a timeline: each call with its outcome, how that is known, its cost, and what the session was shown."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from warmstart.doors.cli.sessions import describe_call, describe_session, write_call
from warmstart.doors.cli.usage import format_figure
from warmstart.doors.pages.markup import Markup, element, isolate, join, typeset_code
from warmstart.doors.render.fitted import cut_at_word, flatten
from warmstart.doors.render.terminal import format_time
from warmstart.doors.ui.layout import (
    Content,
    link,
    make_action,
    make_address,
    make_badge,
    make_facts,
    make_field,
    make_pager,
    make_part,
    make_table,
    make_time,
)
from warmstart.doors.ui.request import PageRequest, UiPage
from warmstart.ingest.records import Record
from warmstart.plurals import format_count
from warmstart.store import CallRow, SessionRow, TrialRow, TrialStore
from warmstart.usage.report import UsageRow

_SHOWN = 200  # calls on one page
_BASES = {
    "flag": "the transcript's own flag",
    "exit_code": "the exit code",
    "structure": "the structure of the result",
    "text": "the words of the result",
    "none": "nothing in the transcript",
}
_HOW = {
    "brief": "in the brief",
    "tell": "before a call",
    "correct": "as a corrected call",
    "stop": "by stopping a call",
}


class TimelineView(Struct, frozen=True, kw_only=True):
    """A session with what is known about it."""

    record: Record
    usage: UsageRow
    trials: list[TrialRow]
    showings: list[tuple[str, str, str, float]]  # note, session, how, at
    occurrences: list[tuple[str, int, str, int | None, int | None, str]]
    notes: dict[str, str]  # texts of the notes that it was shown
    parent: str | None  # key of the session that started it


def _load(asked: PageRequest) -> TimelineView:
    ws = asked.ws
    record = ws.session(asked.name)
    row = record.session
    showings = [tuple(one) for one in ws.store.rows("showings_in", (row.id,))]
    occurrences = [tuple(one) for one in ws.store.rows("occurrences_in", (row.id,))]
    texts = {note: _find_text(asked, note) for note in {one[0] for one in (*showings, *occurrences)}}
    parents = ws.store.rows("keys_by_id", (row.parent,)) if row.parent else []
    return TimelineView(
        record=record,
        usage=ws.usage.of_session(row),
        trials=TrialStore(ws.store).trials_of_session(row.id, row.key),
        showings=showings,
        occurrences=occurrences,
        notes=texts,
        parent=parents[0][0] if parents else None,
    )


def _find_text(asked: PageRequest, note: str) -> str:
    rows = asked.ws.store.rows("notes_by_prefix", (note,))
    return str(msgspec.json.decode(rows[0][1]).get("text", "")) if rows else "(deleted)"


def _show(view: TimelineView, asked: PageRequest) -> Content:
    row, calls = view.record.session, view.record.calls
    only_errors = asked.text("errors") is not None
    wanted = [call for call in calls if not only_errors or call.status == "error"]
    at = asked.number("call", 0)
    start = asked.number("offset", 0)
    if asked.text("call") is not None:
        start = max(0, next((place for place, call in enumerate(wanted) if call.ordinal >= at), 0) // _SHOWN * _SHOWN)
    shown = wanted[start : start + _SHOWN]
    address = make_address("/sessions", row.key)
    switch = (
        link(address, f"All {len(calls):,} calls")
        if only_errors
        else link(make_address("/sessions", row.key, errors=1), f"Only the {row.errors:,} that failed")
        if row.errors
        else None
    )
    query = {"errors": 1 if only_errors else None}
    return Content(
        title=cut_at_word(flatten(row.task or row.id), 120),
        json=make_address("/sessions", row.key) + ".json",
        body=[
            _show_facts(view),
            make_part("What it was shown", _show_shown(view)),
            make_part("Why this verdict", _show_evidence(row)),
            make_part(
                f"{format_count(len(wanted), 'call')}",
                element("p", {}, switch) if switch else None,
                element(
                    "ol",
                    {"class": "timeline", "data-session": row.key},
                    *(_show_call(view, one, asked) for one in shown),
                ),
                make_pager(address, query, total=len(wanted), limit=_SHOWN, offset=start),
                name="calls",
            ),
        ],
    )


def _show_facts(view: TimelineView) -> Markup:
    row, usage = view.record.session, view.usage
    figures = [
        f"{name.replace('_', ' ')} {format_figure(value, name, name in usage.estimated, True)}"
        for name in ("input", "output", "cache_read", "cache_write", "cost")
        if (value := getattr(usage, name)) is not None
    ]
    ended = join(make_time(row.ended), f" {row.end_reason or ''}")
    facts: list[tuple[str, str | Markup]] = [
        ("Session", row.id),
        ("Agent", " ".join(filter(None, (row.agent, row.model)))),
        ("Project", link(make_address("/sessions", project=row.project), row.project) if row.project else ""),
        ("Started", make_time(row.started)),
        ("Ended", ended if row.ended else ""),
        ("Kind", f"{row.category}/{row.task_type}"),
        (
            "Verdict",
            join(make_badge(row.verdict), f" quality {row.quality:.2f}, confidence {row.confidence:.2f}"),
        ),
        ("Usage", "; ".join(figures) or "unknown"),
        ("Scope", row.scope),
        (
            "Started by",
            link(make_address("/sessions", view.parent), row.parent or "") if view.parent else row.parent or "",
        ),
        ("Transcript", row.source_uri),
    ]
    return make_facts(facts)


def _show_shown(view: TimelineView) -> Markup | None:
    items = []
    for trial in view.trials:
        picks = [f"{pick['template']}@{pick['version']}" for pick in msgspec.json.decode(trial.picks)]
        seed = f"; examples of {', '.join(sorted(set(picks)))}" if picks and trial.given != "cold" else ""
        where = f" of the experiment {trial.experiment}" if trial.experiment else ""
        items.append(element("li", {}, isolate(f"It ran in the arm {trial.given}{where}{seed}.")))
    results = {one[0]: one for one in view.occurrences}
    for note, _session, how, at in view.showings:
        items.append(
            _show_note(view, note, f"shown {_HOW.get(how, how)} at {format_time(at)}", results.pop(note, None))
        )
    for note, one in results.items():
        items.append(_show_note(view, note, "withheld, for comparison" if one[1] else "shown", one))
    return element("ul", {"class": "shown"}, *items) if items else None


def _show_note(view: TimelineView, note: str, how: str, result: Any) -> Markup:
    ending = ""
    if result is not None and result[3] is not None:
        ending = "; the call or its retry failed" if result[3] else "; the call worked"
    return element(
        "li", {}, link(make_address("/notes", note), note), f" {how}{ending}: ", typeset_code(view.notes[note])
    )


def _show_evidence(row: SessionRow) -> Markup | None:
    evidence = msgspec.json.decode(row.score).get("evidence", [])
    rows = [
        (f"{one['weight']:+.2f}", str(one["sign"]), "" if one["step"] is None else str(one["step"])) for one in evidence
    ]
    return make_table(("#weight", "sign", "#step"), rows, "Evidence for the verdict") if rows else None


def _show_call(view: TimelineView, call: CallRow, asked: PageRequest) -> Markup:
    failed = call.status == "error"
    took = f"{call.answered - call.at:.1f} s" if call.at is not None and call.answered is not None else ""
    known = f"known by {_BASES.get(call.basis, call.basis)}"
    facts = [known, call.error_kind and f"{call.error_kind} error", call.turn and f"turn {call.turn}", took]
    head = element(
        "p",
        {"class": "about"},
        f"{call.ordinal}. ",
        element("strong", {}, isolate(call.tool)),
        " ",
        make_badge(call.status),
        " ",
        make_time(call.at),
        f" · {' · '.join(str(fact) for fact in facts if fact)}",
    )
    findings = msgspec.json.decode(call.findings, type=list[str]) if call.findings else []
    return element(
        "li",
        {"id": f"call-{call.ordinal}", "class": "failed" if failed else None},
        head,
        element("p", {"class": "intent"}, isolate(cut_at_word(flatten(call.intent), 300))) if call.intent else None,
        element("pre", {"class": "code", "tabindex": 0}, _write_call(call)[:2_000]),
        element("p", {"class": "cause"}, isolate(call.cause)) if call.cause else None,
        element("p", {"class": "cause"}, "A person said: ", isolate(call.words)) if call.words else None,
        element("p", {"class": "cause"}, isolate(", ".join(findings))) if findings else None,
        _show_result(call),
        _offer_note(view, call)
        if call.status == "error" and asked.may_change and view.record.session.project
        else None,
    )


def _write_call(call: CallRow) -> str:
    """Write a call as the command line does; arguments that are one text, such as a patch, with their lines."""
    text = write_call(call)
    if text.startswith('"'):
        with suppress(msgspec.DecodeError):
            return msgspec.json.decode(text, type=str)
    return text


def _show_result(call: CallRow) -> Markup:
    if call.excerpt is None:
        return element("p", {"class": "about"}, "no answer")
    text = call.excerpt
    return element(
        "details", {}, element("summary", {}, "Result"), element("pre", {"class": "code", "tabindex": 0}, text)
    )


def _offer_note(view: TimelineView, call: CallRow) -> Markup:
    fixed = {"session": view.record.session.key, "call": str(call.ordinal)}
    field = make_field("text", "Its sentence (empty: as learning words it)", "", size=60)
    form = make_action("notes/make", "Make and use the note", fixed, field)
    return element("details", {}, element("summary", {}, "Make a note of it"), form)


def describe_usage(usage: UsageRow) -> Any:
    return msgspec.to_builtins(usage)


def _describe(view: TimelineView) -> dict[str, Any]:
    calls: Sequence[CallRow] = view.record.calls
    return describe_session(view.record.session) | {
        "tool_calls": [describe_call(call) for call in calls],
        "usage_total": describe_usage(view.usage),
        "trials": [{"arm": trial.given, "experiment": trial.experiment} for trial in view.trials],
        "shown": [{"note": note, "how": how, "text": view.notes[note]} for note, _session, how, _at in view.showings],
    }


PAGE = UiPage(_load, _show, _describe)
