"""The requests of agents that wait at the confirmation daemon. They are decided on the daemon's own page, by its own login."""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from warmstart.config import Settings
from warmstart.confirm.client.wire import Daemon, call, find_daemon
from warmstart.confirm.errors import ConfirmationError, NotAllowed, Unauthorized, Unreachable
from warmstart.confirm.tokens.files import AGENT_TOKEN, APPROVER_TOKEN
from warmstart.doors.pages.markup import Markup, element, isolate
from warmstart.doors.render.fitted import cut_at_word, flatten
from warmstart.doors.ui.layout import Content, link, make_badge, make_note, make_table, make_warning
from warmstart.doors.ui.request import PageRequest, UiPage
from warmstart.errors import ConfigError, NotFound
from warmstart.plurals import format_count

DaemonState = Literal["listed", "no token", "no daemon", "unreachable", "problem"]
_SECONDS, _AT_ONCE = 2.0, 0.2  # seconds that pages wait for the daemon
_LISTED = 200
_COLUMNS = ("request", "action", "risk", "asked by", "time left", "description")
_TOKEN = "warmstart confirm token create --scope approver:decide --subject me --save"


class ConfirmView(Struct, frozen=True, kw_only=True):
    """What the daemon lists, or why it does not."""

    state: DaemonState
    waiting: int | None = None  # number of requests; None: unknown
    requests: list[dict[str, Any]] = []  # without their arguments
    page: str = ""  # address of the daemon's page
    problem: str = ""


def ask_daemon(settings: Settings) -> ConfirmView:
    """Ask the daemon for the requests that wait, with the approver's token of the home."""
    try:
        daemon = find_daemon(settings.home, APPROVER_TOKEN)
    except (Unauthorized, ConfigError) as error:
        return _ask_without_token(settings, str(error))
    try:
        waiting, page = _reach(daemon)
        listed = call(daemon, "GET", f"/confirm?status=pending&limit={_LISTED}", timeout=_SECONDS)
    except Unreachable as error:
        return ConfirmView(state="unreachable", problem=str(error))
    except (Unauthorized, NotAllowed) as error:
        return _ask_without_token(settings, str(error))
    except (ConfirmationError, ConfigError, NotFound) as error:
        return ConfirmView(state="problem", problem=str(error))
    requests = [one for one in listed.get("requests", ()) if isinstance(one, dict)]
    return ConfirmView(state="listed", waiting=waiting, requests=requests, page=page)


def count_waiting(settings: Settings) -> int:
    """Return how many requests wait; 0 where no daemon answers at once."""
    try:
        return _reach(find_daemon(settings.home, AGENT_TOKEN), _AT_ONCE)[0]
    except (ConfirmationError, ConfigError, NotFound):
        return 0


def _ask_without_token(settings: Settings, why: str) -> ConfirmView:
    """Find out whether a daemon answers at all, which every token of the home allows."""
    try:
        waiting, page = _reach(find_daemon(settings.home, AGENT_TOKEN))
    except Unauthorized:
        return ConfirmView(state="no daemon", problem=f"no token of a daemon is in {settings.home}")
    except Unreachable as error:
        return ConfirmView(state="unreachable", problem=str(error))
    except (ConfirmationError, ConfigError) as error:
        return ConfirmView(state="problem", problem=str(error))
    return ConfirmView(state="no token", waiting=waiting, page=page, problem=why)


def _reach(daemon: Daemon, seconds: float = _SECONDS) -> tuple[int, str]:
    """Return how many requests wait, and the address of the daemon's page, empty if it is none of the web."""
    health = call(Daemon(daemon.url, "", daemon.find_key()), "GET", "/health", timeout=seconds)
    page = str(health.get("page_url", ""))
    return int(health.get("pending", 0)), page if urlsplit(page).scheme in ("http", "https") else ""


def _load(asked: PageRequest) -> ConfirmView:
    return ask_daemon(asked.ws.settings)


def _show(view: ConfirmView, _asked: PageRequest) -> Content:
    body: list[Markup | None] = []
    if view.state == "listed":
        rows = [_make_row(one, view.page) for one in view.requests]
        if rows:
            body.append(make_table(_COLUMNS, rows, "Requests that wait"))
            body.append(make_note("Their arguments are shown where they are decided."))
        else:
            body.append(make_note("Nothing is waiting."))
        if len(rows) == _LISTED:
            body.append(make_note(f"The newest {_LISTED}. All of them: warmstart confirm list --status pending --all"))
    elif view.state == "no token":
        body += [
            make_warning(view.problem),
            _explain("A daemon runs. To list its requests here, save a token that may decide: ", _TOKEN),
        ]
    elif view.state == "no daemon":
        body += [
            _explain("No confirmation daemon is in use here. To be asked before an agent does something dangerous: ",
                     "warmstart confirm serve"),
            make_note(view.problem),
        ]  # fmt: skip
    elif view.state == "unreachable":
        body += [make_warning(view.problem), _explain("To start the daemon: ", "warmstart confirm serve")]
    else:
        body.append(make_warning(view.problem))
    if view.page:
        body.append(element("p", {"class": "onward"}, _lead_out(view.page, "Open the daemon's page to decide")))
    count = f"{format_count(view.waiting, 'request waits', 'requests wait')}. " if view.waiting else ""
    lead = f"{count}They are decided on the daemon's own page: a login here approves no action of an agent."
    return Content(title="Confirm", lead=lead, json="/confirm.json", body=body)


def _make_row(request: dict[str, Any], page: str) -> tuple[str | Markup, ...]:
    id, left = str(request.get("id", "")), request.get("seconds_left")
    name = id[:12]
    return (
        _lead_out(f"{page.rstrip('/')}/#/request/{id}", name) if page and id.isalnum() else name,
        str(request.get("action", "")),
        make_badge("high risk", "bad") if request.get("high_risk") else "",
        str(request.get("requester", "")),
        f"{left:,.0f} s" if isinstance(left, (int, float)) else "",
        cut_at_word(flatten(str(request.get("description", ""))), 160),
    )


def _lead_out(address: str, text: str) -> Markup:
    return link(address, text, {"rel": "noopener noreferrer", "target": "_blank"})


def _explain(text: str, command: str) -> Markup:
    return element("p", {"class": "meaning"}, isolate(text), element("code", {}, command))


def _describe(view: ConfirmView) -> dict[str, Any]:
    return {
        "state": view.state,
        "waiting": view.waiting,
        "requests": view.requests,
        "page_url": view.page,
        "problem": view.problem,
    }


PAGE = UiPage(_load, _show, _describe)
