"""`warmstart confirm`: serve the daemon, and decide from a terminal.

What decides goes through the daemon with a token, like everybody else's; what concerns the database itself (verify,
tokens, whitelist, login links) works on the file.
"""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Callable
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warmstart import config
from warmstart.confirm.client.wire import call, find_daemon
from warmstart.confirm.masking.masker import is_turned, write_turned
from warmstart.confirm.model import STATUSES
from warmstart.confirm.tokens.files import APPROVER_TOKEN
from warmstart.doors.cli.confirm_database import ADMIN_COMMANDS, database_option, find_path
from warmstart.doors.cli.guard import guard
from warmstart.doors.cli.main import PATH, json_option
from warmstart.doors.render.terminal import clean, print_json, print_table
from warmstart.errors import ConfigError, NotFound, Refused
from warmstart.pipeline import Warmstart

if TYPE_CHECKING:
    from warmstart.doors.web import ConfirmationServer


@click.group()
def confirm() -> None:
    """Ask a person before something dangerous is done: the daemon, and its desk on the terminal."""


for _command in (*ADMIN_COMMANDS, guard):
    confirm.add_command(_command)


@confirm.command()
@click.option("--host", help="Address to listen on (CONFIRMATION_HOST; 127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65_535), help="Of the API (CONFIRMATION_PORT; 6000). 0: any.")
@click.option("--ui-port", type=click.IntRange(0, 65_535), default=6080, show_default=True, help="Of the page. 0: any.")
@database_option
@click.option(
    "--rate-limit", type=click.IntRange(min=1), help="Of one action within an hour (CONFIRMATION_RATE_LIMIT; 10)."
)
@click.option("--policy", type=PATH, help="TOML file with rules; one that is not understood stops the start.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="Further name by which browsers reach the page.")
@click.option("--public-url", default="", help="The page's address where a proxy or tunnel stands before it.")
@json_option
@click.pass_obj
def serve(ws: Warmstart, /, db: str | None, as_json: bool, **options: Any) -> None:
    """Run the daemon until it is stopped. The first start prints a link that logs you in to the page."""
    check_parts()
    from warmstart.doors.web import ConfirmationServer

    said = config.load_confirmation()
    server = ConfirmationServer(
        database=find_path(ws, db),
        host=options["host"] or said.host or "127.0.0.1",
        port=options["port"] if options["port"] is not None else 6000 if said.port is None else said.port,
        ui_port=options["ui_port"],
        policy=options["policy"],
        rate_limit=options["rate_limit"] or said.rate_limit,
        allow_hosts=options["allow_host"],
        public_url=options["public_url"],
        secrets=ws.settings.secrets,
        notify=said.notify,
    )
    ending = catch_signals()
    with server:
        _greet(server, ws.settings.home, as_json)
        while not ending.wait(3600):
            pass


def check_parts(find: Callable[[str], Any] = util.find_spec) -> None:
    """The daemon is an extra; who has not got it is told what to install."""
    missing = [name for name in ("litestar", "uvicorn") if find(name) is None]
    if missing:
        raise Refused(f"the daemon needs {' and '.join(missing)}; install them with: pip install 'warmstart[confirm]'")


def catch_signals() -> threading.Event:
    """Set when we are told to end: first what is queued is written."""
    import signal

    ending = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ending.set())
    return ending


def _greet(server: ConfirmationServer, home: Path, as_json: bool) -> None:
    """Where it is, and at the first start how to come in."""
    from warmstart.doors.web.first_start import prepare_first_start

    first = prepare_first_start(server.desk, server.page_url, home)
    facts = {
        "api_url": server.api_url,
        "page_url": server.page_url,
        "login_url": first.login_url if first else None,
        "agent_token_file": str(first.agent_token_file) if first and first.agent_token_file else None,
    }
    if as_json:
        print_json(facts)
    else:
        click.echo(f"API for agents   {facts['api_url']}")
        click.echo(f"Page for people  {facts['page_url']}")
        click.echo(f"Log in once with {facts['login_url']}" if first else "Log in with      warmstart confirm login")
        if facts["agent_token_file"]:
            click.echo(f"Agents' token    {facts['agent_token_file']}")
    sys.stdout.flush()


# The desk on the terminal


def _ask(ws: Warmstart, method: str, path: str, body: Any = None) -> dict[str, Any]:
    return call(find_daemon(ws.settings.home, APPROVER_TOKEN), method, path, body)


def _find(ws: Warmstart, id: str) -> dict[str, Any]:
    """A request by its id, or by the beginning of its id while it fits only one among the latest."""
    if not id.isalnum():
        raise ConfigError(f"{id}: an id is made of letters and digits")
    if len(id) == 32:
        return _ask(ws, "GET", f"/confirm/{id}")
    found = [one for one in _ask(ws, "GET", "/confirm?limit=200")["requests"] if one["id"].startswith(id)]
    if len(found) != 1:
        raise NotFound(f"{id} fits {len(found) or 'no'} requests; give more of the id")
    return dict(found[0])


@confirm.command("list")
@click.option("--status", type=click.Choice(STATUSES), help="Only these.")
@click.option("--action", help="Only this action.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True)
@json_option
@click.pass_obj
def list_requests(ws: Warmstart, status: str | None, action: str | None, limit: int, as_json: bool) -> None:
    """Requests, the newest first."""
    from urllib.parse import urlencode

    wanted = {name: value for name, value in {"status": status, "action": action, "limit": limit}.items() if value}
    found = _ask(ws, "GET", f"/confirm?{urlencode(wanted)}")
    if as_json:
        print_json(found)
        return
    columns = ("id", "status", "action", "risk", "requester", "#left", "description")
    rows = [_row(one) for one in found["requests"]]
    print_table(columns, rows)
    if any(is_turned(str(cell)) for row in rows for cell in row):
        click.echo(f"{_TURNED}. `warmstart confirm show` writes them out.", err=True)


def _row(one: dict[str, Any]) -> tuple[Any, ...]:
    left = f"{one['seconds_left']:.0f} s" if one["status"] == "pending" else ""
    risk = "high" if one["high_risk"] else ""
    said = " ".join(one["description"].split())[:80]
    return one["id"][:12], one["status"], one["action"], risk, one["requester"], left, said


@confirm.command()
@click.argument("id")
@json_option
@click.pass_obj
def show(ws: Warmstart, id: str, as_json: bool) -> None:
    """One request with its exact arguments, secrets masked."""
    found = _find(ws, id)
    if as_json:
        print_json(found)
    else:
        _describe(found)


_TURNED = "There are letters that are written from right to left: a terminal may show their words in another order"
_MARK = "  | "  # before every line but the first of a text: an agent's line never passes for one of ours


def _describe(one: dict[str, Any], err: bool = False) -> None:
    by = one["requester"] + (f" (says it is {one['claimed_requester']})" if one["claimed_requester"] else "")
    decision = one["decision"]
    facts = {
        "id": one["id"],
        "action": one["action"] + ("  HIGH RISK" if one["high_risk"] else ""),
        "status": one["status"] + (f" by {decision['by']}: {decision['reason']}" if decision else ""),
        "requester": by,
        "session": one["session_key"],
        "time left": f"{one['seconds_left']:.0f} s" if one["status"] == "pending" else "",
        "approvals": f"{len(one['approvals'])} of {one['quorum']}",
        "not notified": "\n".join(
            _tell_failure(n) for n in one["notifications"] if n["state"] != "sent" and n["error"]
        ),
        "description": one["description"],
        "masked": _tell_masks(one["masked"]),
        "arguments": f"\n{one['details_text']}",
    }
    width = _find_width(err)
    for name, value in facts.items():
        if value:
            click.echo("\n".join(lay_out(name, clean(value), width)), err=err)
    turned = [line for value in facts.values() for line in clean(value).split("\n") if is_turned(line)]
    if turned:
        written = "\n".join(["", *map(write_turned, turned)])
        click.echo("\n".join(lay_out(f"{_TURNED}. As it is stored:", written, width)), err=err)


def _tell_failure(notice: dict[str, Any]) -> str:
    """Also while it is still tried: later may be too late."""
    tried = "once" if notice["attempts"] == 1 else f"{notice['attempts']} times"
    yet = "not delivered yet: " if notice["state"] == "queued" else ""
    return f"{notice['channel']}: {yet}{notice['error']}" + (f" (tried {tried})" if notice["attempts"] else "")


def _tell_masks(count: int) -> str:
    if not count:
        return ""
    what = "1 secret, which" if count == 1 else f"{count} secrets, which"
    return f"{what} nobody can see here; a mask covers no character that a shell, a URL or SQL acts on"


def _find_width(err: bool) -> int:
    """Of the terminal; 0 where there is none and nothing is folded."""
    return shutil.get_terminal_size().columns if (sys.stderr if err else sys.stdout).isatty() else 0


def lay_out(name: str, text: str, width: int) -> list[str]:
    """A name and its text as lines. Every line but the first is marked, and folded here where the terminal would fold
    it: otherwise an agent could write what looks like the arguments above the arguments."""
    lines = text.expandtabs().split("\n")
    lead = f"{name:<12} "
    room = width - len(lead)
    first = lines.pop(0) if not width or room >= _measure(lines[0]) else ""
    folded = [part for line in lines for part in (_fold(line, width - len(_MARK)) if width else [line])]
    return [f"{lead}{first}".rstrip(), *(f"{_MARK}{line}" for line in folded)]


def _fold(line: str, room: int) -> list[str]:
    parts, taken = [""], 0
    for character in line:
        taken += _measure(character)
        if taken > max(room, 2):
            parts.append("")
            taken = _measure(character)
        parts[-1] += character
    return parts


def _measure(text: str) -> int:
    """Columns at most: terminals differ on what is wide."""
    return len(text) if text.isascii() else sum(1 if character.isascii() else 2 for character in text)


@confirm.command()
@click.argument("id")
@click.option("--reason", default="", help="For the record and the agent.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@click.pass_obj
def approve(ws: Warmstart, id: str, reason: str, yes: bool, as_json: bool) -> None:
    """Say yes, to exactly what is shown."""
    found = _find(ws, id)
    if not yes:
        _describe(found, err=True)
        if not sys.stdin.isatty():
            raise Refused("approving without a terminal needs --yes")
        if found["high_risk"]:
            typed = click.prompt("high risk: type the action's name to approve it", err=True)
            if typed != found["action"]:
                raise Refused("not approved: that is not the action's name")
        else:
            click.confirm("approve?", abort=True, err=True)
    _decide(ws, found, "approve", {"reason": reason, "digest": found["digest"]}, as_json)


@confirm.command()
@click.argument("id")
@click.option("--reason", default="", help="For the record and the agent.")
@json_option
@click.pass_obj
def deny(ws: Warmstart, id: str, reason: str, as_json: bool) -> None:
    """Say no."""
    _decide(ws, _find(ws, id), "deny", {"reason": reason}, as_json)


def _decide(ws: Warmstart, found: dict[str, Any], answer: str, body: dict[str, Any], as_json: bool) -> None:
    decided = _ask(ws, "POST", f"/confirm/{found['id']}/{answer}", body)
    if as_json:
        print_json(decided)
    else:
        count = f" ({len(decided['approvals'])} of {decided['quorum']} approvals)" if decided["quorum"] > 1 else ""
        click.echo(f"{decided['id'][:12]} {clean(decided['action'])}: {decided['status']}{count}")


@confirm.command()
@click.option("--limit", type=click.IntRange(1, 1_000), default=50, show_default=True)
@click.option("--after", type=click.IntRange(min=0), help="Entries after this sequence number.  [default: the latest]")
@json_option
@click.pass_obj
def audit(ws: Warmstart, limit: int, after: int | None, as_json: bool) -> None:
    """Audit entries, the oldest first."""
    found = _ask(ws, "GET", f"/audit?limit={limit}{'' if after is None else f'&since={after}'}")
    if as_json:
        print_json(found)
        return
    rows = (
        (one["sequence"], one["at"][:19], one["event"], one["action"], one["actor"], one["request"][:12])
        for one in found["entries"]
    )
    print_table(("#sequence", "at", "event", "action", "actor", "request"), rows)
