"""The notes: what projects know, the evidence for it, and a person's decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import ndiff
from functools import partial
from typing import Any, cast

from msgspec import Struct

from warmstart.doors.cli.notes import describe_note, describe_shown_note
from warmstart.doors.cli.templates import name_scope
from warmstart.doors.pages.markup import Markup, element, isolate, join, typeset_code
from warmstart.doors.render.effect import state_recurrence
from warmstart.doors.render.note_trials import state_verdict
from warmstart.doors.ui.figures import Figure
from warmstart.doors.ui.layout import (
    Content,
    keep_together,
    link,
    link_session,
    make_action,
    make_address,
    make_badge,
    make_choice,
    make_facts,
    make_field,
    make_filter,
    make_note,
    make_pager,
    make_part,
    make_pending,
    make_table,
    make_time,
)
from warmstart.doors.ui.request import PageRequest, UiPage
from warmstart.errors import NotFound, Refused
from warmstart.notes.library import ShownNote
from warmstart.notes.types import KINDS, Note
from warmstart.pipeline import Warmstart
from warmstart.plurals import format_count
from warmstart.ports import Progress
from warmstart.scopes import SHARED, Border

_LISTED = 100
_STATUSES = ("proposed", "active", "retired")
_COLUMNS = ("note", "text", "status", "kind", "project", "#sessions", "#shown", "#met again", "last seen (UTC)")
_WAS = "was: "


def _is_within(note: Note, border: Border | None) -> bool:
    return border is None or border.admits(note.scope, note.project)


# The list


class NoteList(Struct, frozen=True, kw_only=True):
    """The notes that match."""

    notes: tuple[Note, ...]
    counts: dict[str, int]  # by status, of all


def _load(asked: PageRequest) -> NoteList:
    ws, project = asked.ws, asked.text("project")
    status, kind = asked.text("status"), asked.text("kind")
    if status not in (None, *_STATUSES) or kind not in (None, *KINDS):
        raise Refused(f"there are no notes of status {status!r} and kind {kind!r}")
    name = ws.projects.find(project).name if project else None
    listed = [note for note in ws.notes.list(project=name) if _is_within(note, asked.border)]
    matching = (note for note in listed if status in (None, note.status) and kind in (None, note.kind))
    return NoteList(notes=tuple(matching), counts=Counter(note.status for note in listed))


def _show(view: NoteList, asked: PageRequest) -> Content:
    wanted = {name: asked.text(name) for name in ("status", "kind", "project")}
    offset = asked.number("offset", 0)
    rows = [_make_row(note) for note in view.notes[offset : offset + _LISTED]]
    counts = ", ".join(f"{view.counts.get(status, 0):,} {status}" for status in _STATUSES)
    empty = "No note matches." if any(wanted.values()) else "No notes yet: ingest transcripts and learn, on Home."
    return Content(
        title="Notes",
        lead=f"Facts about projects that sessions met, counted and checkable: {counts}.",
        json=make_address("/notes.json", **wanted),
        body=[
            make_filter(
                "/notes",
                make_choice(
                    "status", "Status", [("", "any"), *((one, one) for one in _STATUSES)], wanted["status"] or ""
                ),
                make_choice("kind", "Kind", [("", "any"), *((one, one) for one in KINDS)], wanted["kind"] or ""),
                make_field("project", "Project", wanted["project"] or "", size=30),
            ),
            make_table(_COLUMNS, rows, "Notes") if rows else make_note(empty),
            make_pager("/notes", wanted, total=len(view.notes), limit=_LISTED, offset=offset),
            make_part("What a brief would say", _offer_brief(wanted["project"] or "")) if asked.may_change else None,
        ],
    )


def _make_row(note: Note) -> tuple[str | Markup, ...]:
    return (
        link(make_address("/notes", note.id), note.id),
        typeset_code(note.text),
        make_badge(note.status),
        keep_together(note.kind),
        note.project or f"(all, {note.agent})",
        link(make_address("/notes", note.id) + "#met", f"{note.support:,}"),
        link(make_address("/notes", note.id) + "#shown", f"{note.shown:,}"),
        f"{note.recurred:,}",
        make_time(note.last_seen),
    )


def _offer_brief(project: str) -> Markup:
    fields = (
        make_field("task", "Task", "", size=50, placeholder="the request of a new session"),
        make_field("project", "Project", project, size=30),
    )
    return join(make_action("notes/brief", "Preview the brief", {}, *fields), element("div", {"class": "preview"}))


def _describe(view: NoteList) -> list[dict[str, Any]]:
    return [describe_note(note) for note in view.notes]


# One note


class NoteView(Struct, frozen=True, kw_only=True):
    """A note, and what its sessions show as far as that is computed."""

    note: Note
    figure: Figure

    @property
    def shown(self) -> ShownNote | None:
        return cast("ShownNote | None", self.figure.value)


def _load_one(asked: PageRequest) -> NoteView:
    name = asked.name
    matches = [note for note in asked.ws.notes.list() if note.id.startswith(name) and _is_within(note, asked.border)]
    if len(matches) != 1:
        raise NotFound(
            f"no note {name!r}; see the list" if not matches else f"{name} is the beginning of several notes"
        )
    note = matches[0]
    return NoteView(note=note, figure=asked.figure(("note", note.id), partial(weigh_note, name=note.id)))


def weigh_note(ws: Warmstart, _progress: Progress, name: str) -> ShownNote:
    """Compute what `warmstart notes show` prints."""
    return ws.notes.show(name)


def _show_one(view: NoteView, asked: PageRequest) -> Content:
    note, shown = view.note, view.shown
    return Content(
        title=note.text,
        heading=typeset_code(note.text),
        json=make_address("/notes", note.id) + ".json",
        body=[
            _show_facts(note),
            make_pending(view.figure),
            make_part("Decide", _offer_decisions(note)) if asked.may_change else None,
            make_part("Before and after it was shown", _show_recurrence(shown, asked) if shown else None, name="shown"),
            make_part("History", _show_history(shown, note) if shown else None),
            make_part("Sessions that met it", _link_sessions(note, shown), name="met") if asked.may_change else None,
            make_part("What a brief would say", _offer_brief(note.project)) if asked.may_change else None,
        ],
    )


def _show_facts(note: Note) -> Markup:
    calls = f"{note.failures} failed and {note.against} worked" if note.trigger else ""
    return make_facts(
        [
            ("Status", join(make_badge(note.status), " ", isolate(note.decision))),
            ("Project", note.project or f"rule of {note.agent}"),
            ("Kind", note.kind),
            ("About", note.subject),
            ("Instead", note.fix),
            ("Shown at calls", note.trigger or "none: it is shown only at the start of a session"),
            ("Evidence", f"{format_count(note.support, 'session')}, {format_count(note.people, 'person', 'people')}"),
            ("Of such calls", calls),
            ("First seen", make_time(note.first_seen)),
            ("Last seen", make_time(note.last_seen)),
            ("Suspicious", "; ".join(note.suspicions)),
            ("Scope", name_scope(note.scope)),
        ]
    )


def _offer_decisions(note: Note) -> Markup:
    reason = {"size": 40}
    forms = []
    if note.status != "active":
        field = make_field("reason", "Reason (kept on the record)", "", **reason)
        forms.append(make_action("notes/approve", "Approve", {"note": note.id}, field, css="main"))
    if note.status != "retired":
        field = make_field("reason", "Why", "", required="", **reason)
        forms.append(make_action("notes/retire", "Retire", {"note": note.id}, field))
    text = make_field("text", "Sentence", note.text, size=70, required="")
    forms.append(make_action("notes/edit", "Edit and use", {"note": note.id}, text))
    is_shared = note.scope == SHARED
    label = "Keep it to its scope again" if is_shared else "Share it with every scope of the project"
    forms.append(make_action("notes/unshare" if is_shared else "notes/share", label, {"note": note.id}))
    return element("div", {"class": "decide"}, *forms)


def _show_recurrence(shown: ShownNote, asked: PageRequest) -> Markup:
    if not shown.sessions:
        return make_note("It was not shown to any session yet.")
    rows = [
        ("before it was first shown", state_recurrence(shown.before)),
        (f"since, shown to {format_count(len(shown.sessions), 'session')}", state_recurrence(shown.since)),
    ]
    trial = shown.trial
    tried = None
    if trial is not None:
        counts = trial.counts
        tried = make_note(
            f"Tried at calls: {counts.shown_failed} of {counts.shown} failed when it was shown, {counts.withheld_failed} of "
            f"{counts.withheld} when it was withheld: {state_verdict(trial)}. {trial.blocked or ''}"
        )
    warning = "Projects change too, so that a drop alone proves nothing: see Effect."
    sessions = element("p", {"class": "note"}, "Shown to: ", *_list_links(shown.sessions)) if asked.may_change else None
    return join(make_table(("", "sessions that met it"), rows, "Recurrence"), tried, sessions, make_note(warning))


def _list_links(sessions: Sequence[str]) -> list[Markup | str]:
    parts: list[Markup | str] = []
    for session in sessions[:20]:
        parts += [link_session(session, session[:20]), " "]
    return [*parts, f"and {len(sessions) - 20:,} more" if len(sessions) > 20 else ""]


def _show_history(shown: ShownNote, note: Note) -> Markup:
    """Show the decisions, and for an edit what it changed."""
    items, sentence = [], note.text
    for decision in reversed(shown.decisions):
        change: Markup | None = None
        why, mark, old = decision.reason.partition(_WAS)
        if mark and decision.reason.startswith("edited"):
            change, sentence = _show_change(old, sentence), old
        head = [make_time(decision.at), " ", make_badge(decision.status), f" by {decision.by}: "]
        items.append(element("li", {}, *head, isolate(why.rstrip(": ") or decision.reason), change))
    return element("ol", {"class": "history", "reversed": ""}, *items)


def _show_change(old: str, new: str) -> Markup:
    """Show which words an edit has taken out and put in."""
    parts: list[Markup | str] = []
    for word in ndiff(old.split(), new.split()):
        kind, text = word[:1], word[2:]
        if kind in "+-":
            parts += [element("ins" if kind == "+" else "del", {}, text), " "]
        elif kind == " ":
            parts.append(f"{text} ")
    return element("p", {"class": "change"}, *parts)


def _link_sessions(note: Note, shown: ShownNote | None) -> Markup:
    address = make_address("/sessions", q=note.subject, project=note.project)
    met = element("p", {"class": "links"}, *_list_links(shown.met)) if shown and shown.met else None
    return join(met, element("p", {"class": "onward"}, link(address, "Search for the words of its subject")))


def _describe_one(view: NoteView) -> dict[str, Any]:
    assert view.shown is not None
    return describe_shown_note(view.shown)


PAGE = UiPage(_load, _show, _describe)
NOTE = UiPage(_load_one, _show_one, _describe_one)
