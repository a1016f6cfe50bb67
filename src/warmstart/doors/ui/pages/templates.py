"""The templates: examples that new sessions start with, their sources, versions and a person's decisions."""

from __future__ import annotations

from difflib import unified_diff
from typing import Any, cast, get_args

import msgspec
from msgspec import Struct

from warmstart.doors.cli.templates import list_sources, name_scope
from warmstart.doors.pages.markup import Markup, element, isolate, join
from warmstart.doors.render.as_json import describe_template, summarise_template
from warmstart.doors.ui.layout import (
    Content,
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
    make_table,
    make_time,
)
from warmstart.doors.ui.request import PageRequest, UiPage
from warmstart.errors import Refused
from warmstart.model import Decision, Effect, Example, Template, TemplateStatus
from warmstart.plurals import format_count
from warmstart.scopes import SHARED
from warmstart.store import TemplateRow

_LISTED = 100
_STATUSES = get_args(TemplateStatus)
_COLUMNS = ("template", "description", "status", "kind", "project", "#examples", "#used", "effect", "created (UTC)")
Found = list[tuple[TemplateRow, Template]]


def _load(asked: PageRequest) -> Found:
    status = asked.text("status")
    if status not in (None, *_STATUSES):
        raise Refused(f"there are no templates of status {status!r}")
    return asked.ws.templates.find(cast("TemplateStatus | None", status), border=asked.border)


def _show(found: Found, asked: PageRequest) -> Content:
    wanted, offset = {"status": asked.text("status")}, asked.number("offset", 0)
    options = [("", "any"), *((one, one) for one in _STATUSES)]
    rows = [_make_row(row, template) for row, template in found[offset : offset + _LISTED]]
    empty = "No template matches." if wanted["status"] else "No templates yet: ingest transcripts and learn, on Home."
    return Content(
        title="Templates",
        lead=f"Examples that new sessions start with: {format_count(len(found), 'version')}.",
        json=make_address("/templates.json", **wanted),
        body=[
            make_filter("/templates", make_choice("status", "Status", options, wanted["status"] or "")),
            make_table(_COLUMNS, rows, "Templates") if rows else make_note(empty),
            make_pager("/templates", wanted, total=len(found), limit=_LISTED, offset=offset),
            make_part("What a seed would show", _offer_seed()) if asked.may_change else None,
        ],
    )


def _make_row(row: TemplateRow, template: Template) -> tuple[str | Markup, ...]:
    name = f"{row.name}@{row.version}"
    return (
        link(make_address("/templates", name), name),
        template.description[:160],
        make_badge(row.status),
        f"{row.category}/{row.task_type}",
        row.project or "any",
        str(len(template.examples)),
        f"{row.used:,}",
        _state_effect(row),
        make_time(row.created),
    )


def _state_effect(row: TemplateRow) -> str:
    """Say what was measured, as the weighing stored it."""
    if row.effect is None:
        return "not measured"
    effect = msgspec.json.decode(row.effect, type=Effect)
    if effect.low is None or effect.high is None:
        return "too few sessions"
    return f"{effect.verdict}: {effect.low:+.1%} to {effect.high:+.1%}"


def _offer_seed() -> Markup:
    fields = (
        make_field("task", "Task", "", size=50, required="", placeholder="the request of a new session"),
        make_field("project", "Project", "", size=30),
    )
    return join(make_action("templates/seed", "Preview the seed", {}, *fields), element("div", {"class": "preview"}))


def _describe(found: Found) -> list[dict[str, Any]]:
    return [summarise_template(row, template) for row, template in found]


class TemplateView(Struct, frozen=True, kw_only=True):
    """A version of a template, with its decisions and sources."""

    row: TemplateRow
    template: Template
    decisions: list[Decision]
    sources: list[dict[str, str | None]]
    older: Template | None  # the version before
    versions: list[TemplateRow]


def _load_one(asked: PageRequest) -> TemplateView:
    library = asked.ws.templates
    row, template, decisions = library.show(asked.name, border=asked.border)
    versions = [one for one in library.versions(row.name) if asked.border is None or one.scope in ("", "*")]
    before = next((one for one in versions if one.version < row.version), None)
    older = library.show(f"{before.name}@{before.version}")[1] if before else None
    sources = list_sources(asked.ws, template) if asked.may_change else []
    return TemplateView(
        row=row, template=template, decisions=decisions, sources=sources, older=older, versions=versions
    )


def _show_one(view: TemplateView, asked: PageRequest) -> Content:
    row, template = view.row, view.template
    name = f"{row.name}@{row.version}"
    others = [
        element("li", {}, link(make_address("/templates", f"{one.name}@{one.version}"), f"version {one.version}"), " ")
        for one in view.versions
        if one.version != row.version
    ]
    return Content(
        title=name,
        lead=template.description,
        json=make_address("/templates", name) + ".json",
        body=[
            make_facts(
                [
                    ("Status", join(make_badge(row.status), " ", isolate(row.reason))),
                    ("Kind", f"{row.category}/{row.task_type}"),
                    ("Project", row.project or "any"),
                    ("Used", format_count(row.used, "session")),
                    ("Effect", _state_effect(row)),
                    ("Tags", ", ".join(template.tags)),
                    ("Suspicious", "; ".join(template.provenance.suspicions)),
                    ("Scope", name_scope(row.scope)),
                    ("Addendum", template.addendum or ""),
                    ("Other versions", element("ul", {"class": "inline"}, *others) if others else ""),
                    ("From", _link_sources(view)),
                ]
            ),
            make_part("Decide", _offer_decisions(row, name)) if asked.may_change else None,
            make_part(
                "Examples",
                element("ol", {"class": "timeline"}, *(_show_example(one, asked) for one in template.examples)),
            ),
            make_part("What changed since the version before", _show_change(view)),
            make_part("History", _show_history(view.decisions)),
        ],
    )


def _link_sources(view: TemplateView) -> Markup | str:
    parts: list[Markup | str] = []
    for source in view.sources:
        text = source["short"] or ""
        parts += [link_session(source["key"] or "", text) if source["id"] else f"{text} (deleted)", " "]
    return join(*parts) if parts else ""


def _offer_decisions(row: TemplateRow, name: str) -> Markup:
    forms = []
    if row.status != "active":
        field = make_field("reason", "Reason (kept on the record)", "", size=40)
        forms.append(make_action("templates/approve", "Approve", {"template": name}, field, css="main"))
    if row.status != "retired":
        field = make_field("reason", "Why", "", size=40, required="")
        forms.append(make_action("templates/retire", "Retire", {"template": name}, field))
    is_shared = row.scope == SHARED
    label = "Keep it to its scope again" if is_shared else "Share it with every scope and project"
    forms.append(make_action("templates/unshare" if is_shared else "templates/share", label, {"template": row.name}))
    return element("div", {"class": "decide"}, *forms)


def _show_example(example: Example, asked: PageRequest) -> Markup:
    seen = f"seen in {format_count(example.support, 'session')}; {example.successes} worked, {example.failures} failed"
    origin: Markup | None = None
    if example.session and example.step is not None and asked.may_change:
        origin = link_session(example.session, "its call", example.step)
    return element(
        "li",
        {},
        element("p", {"class": "about"}, element("strong", {}, isolate(example.tool)), f" · {seen} ", origin),
        element("p", {"class": "intent"}, isolate(example.intent)) if example.intent else None,
        element("pre", {"class": "code", "tabindex": 0}, _write_arguments(example)),
        element("p", {"class": "cause"}, "Fixes: ", isolate(example.correction)) if example.correction else None,
        element("p", {"class": "about"}, isolate(example.why)) if example.why else None,
        element(
            "details",
            {},
            element("summary", {}, "Result"),
            element("pre", {"class": "code", "tabindex": 0}, example.result),
        ),
    )


def _write_arguments(example: Example) -> str:
    return msgspec.json.encode(example.arguments).decode()[:4_000]


def _show_change(view: TemplateView) -> Markup | None:
    if view.older is None:
        return None
    old, new = ([f"{one.tool} {_write_arguments(one)}" for one in t.examples] for t in (view.older, view.template))
    lines = [line for line in unified_diff(old, new, lineterm="", n=1) if not line.startswith(("---", "+++", "@@"))]
    kinds = {"+": "ins", "-": "del"}
    items = (element(kinds.get(line[:1], "span"), {}, f"{line[:400]}\n") for line in lines)
    return (
        element("pre", {"class": "code change", "tabindex": 0}, *items) if lines else make_note("Only its description.")
    )


def _show_history(decisions: list[Decision]) -> Markup | None:
    items = [
        element(
            "li",
            {},
            make_time(one.at),
            f" @{one.version} ",
            make_badge(one.status),
            f" by {one.by}: ",
            isolate(one.reason),
        )
        for one in reversed(decisions)
    ]
    return element("ol", {"class": "history", "reversed": ""}, *items) if items else None


def _describe_one(view: TemplateView) -> dict[str, Any]:
    return describe_template(view.row, view.template, view.decisions) | {"sources": view.sources}


PAGE = UiPage(_load, _show, _describe)
TEMPLATE = UiPage(_load_one, _show_one, _describe_one)
