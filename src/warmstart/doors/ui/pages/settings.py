"""The settings: what is installed where, the health of the store, and the way to the confirmations."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from warmstart.doors.cli.doctor import describe_vanishing, examine
from warmstart.doors.cli.hook import examine_hooks
from warmstart.doors.pages.markup import Markup, element
from warmstart.doors.ui.figures import Figure
from warmstart.doors.ui.layout import (
    Content,
    link,
    make_facts,
    make_note,
    make_part,
    make_pending,
    make_table,
    make_warning,
)
from warmstart.doors.ui.request import PageRequest, UiPage
from warmstart.errors import StoreError
from warmstart.pipeline import Warmstart
from warmstart.ports import Progress


class SettingsView(Struct, frozen=True, kw_only=True):
    """What `warmstart doctor` and `warmstart hook status` find."""

    doctor: Figure
    hooks: list[dict[str, Any]]
    home: str


def _load(asked: PageRequest) -> SettingsView:
    try:
        doctor = asked.figure(("doctor",), examine_all, cost="slow")
    except StoreError as error:  # then nothing can be kept in it; the examination says why
        doctor = Figure("", _examine_damaged(asked.ws, error), is_current=True, made=0.0)
    settings = asked.ws.settings
    return SettingsView(doctor=doctor, hooks=examine_hooks(settings), home=str(settings.home))


def examine_all(ws: Warmstart, _progress: Progress) -> dict[str, Any]:
    """Compute what `warmstart doctor` prints."""
    return examine(ws)


def _examine_damaged(ws: Warmstart, error: StoreError) -> dict[str, Any]:
    report = examine(ws)
    return report if "error" in report["store"] else report | {"store": {"error": str(error)}, "healthy": False}


def _show(view: SettingsView, _asked: PageRequest) -> Content:
    report: dict[str, Any] | None = view.doctor.value
    hooks = [
        (
            str(place["agent"]),
            str(place["scope"]),
            str(place["path"]),
            ", ".join(place["events"]) or "not installed",
            ", ".join(place["missing"]) if place["events"] else "",
            str(place["problem"] or ""),
        )
        for place in view.hooks
    ]
    columns = ("agent", "for", "in", "events", "missing", "problem")
    body: list[Markup | None] = [
        make_pending(view.doctor),
        *(_show_report(report) if report else ()),
        make_part(
            "Hooks",
            make_table(columns, hooks, "Hooks"),
            lead="Install or remove them with: warmstart hook install --all, warmstart hook uninstall --all",
        ),
        make_part("Confirmations", _show_confirm()),
    ]
    return Content(title="Settings", lead=f"Home: {view.home}", json="/settings.json", body=body)


def _show_report(report: dict[str, Any]) -> list[Markup | None]:
    store = report["store"]
    places = [(one["agent"], one["path"], f"{one['files']:,}") for one in report["places"]]
    problem = make_warning(str(store["error"])) if "error" in store else None
    vanishing = describe_vanishing(report["vanishing"])
    return [
        problem or (None if report["healthy"] else make_warning("Something is wrong; see below.")),
        make_part("Store", make_facts([(name, str(value)) for name, value in store.items()])),
        make_part(
            "Agents",
            make_table(("agent", "transcripts in", "#files"), places, "Agents")
            if places
            else make_note("No transcripts found."),
            make_note(vanishing) if vanishing else None,
            *(make_note(line) for line in report["hooks"]),
        ),
        make_part("Versions", make_facts([(name, str(value)) for name, value in report["versions"].items()])),
    ]


def _show_confirm() -> Markup:
    """The confirmations have a page and logins of their own: a login here must not approve an agent's action."""
    return element(
        "p",
        {},
        link("/confirm", "Requests of agents"),
        " are decided on a page of their own. Start it with ",
        element("code", {}, "warmstart confirm serve"),
        " and open the link that ",
        element("code", {}, "warmstart confirm login"),
        " prints.",
    )


def _describe(view: SettingsView) -> dict[str, Any]:
    return {"doctor": view.doctor.value, "hooks": view.hooks}


PAGE = UiPage(_load, _show, _describe)
