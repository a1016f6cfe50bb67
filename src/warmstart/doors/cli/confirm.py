"""`warmstart confirm`: serve the daemon, and decide from a terminal.

Commands that decide call the daemon with a token, like any other caller. Commands about the database itself (verify,
tokens, whitelist, login links) work on the database directly.
"""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import click

from warmstart import config
from warmstart.confirm.client.wire import call, find_daemon
from warmstart.confirm.masking.masker import is_turned, write_turned
from warmstart.confirm.model import STATUSES
from warmstart.confirm.tokens.files import APPROVER_TOKEN
from warmstart.doors.cli.confirm_database import ADMIN_COMMANDS, print_code
from warmstart.doors.cli.confirm_identity import database_option, find_path
from warmstart.doors.cli.confirm_passkeys import passkey
from warmstart.doors.cli.guard import guard
from warmstart.doors.cli.main import PATH, json_option
from warmstart.doors.render.terminal import clean, print_json, print_table
from warmstart.errors import ConfigError, NotFound, Refused
from warmstart.pipeline import Warmstart
from warmstart.plurals import format_count

if TYPE_CHECKING:
    from warmstart.doors.web import ConfirmationServer


@click.group()
def confirm() -> None:
    """Ask a person before something dangerous is done: run the daemon, decide from the terminal."""


for _command in (*ADMIN_COMMANDS, passkey, guard):
    confirm.add_command(_command)


@confirm.command()
@click.option("--host", help="Address to listen on (CONFIRMATION_HOST; 127.0.0.1).")
@click.option(
    "--port", type=click.IntRange(0, 65_535), help="Port of the API (CONFIRMATION_PORT; 6000). 0: any free port."
)
@click.option(
    "--ui-port",
    type=click.IntRange(0, 65_535),
    default=6080,
    show_default=True,
    help="Port of the page. 0: any free port.",
)
@database_option
@click.option(
    "--rate-limit",
    type=click.IntRange(min=1),
    help="Requests for one action per hour (CONFIRMATION_RATE_LIMIT; 10).",
)
@click.option("--policy", type=PATH, help="TOML file with rules; an error in it stops the start.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="Further host name by which browsers reach the page.")
@click.option(
    "--anchor-to",
    multiple=True,
    metavar="ADDRESS",
    help="Also anchor the audit elsewhere (CONFIRMATION_ANCHOR): git+ssh://..., s3://bucket/folder, file:///folder, "
    "mailto://...; `verify --anchor ADDRESS` compares.",
)
@click.option("--public-url", default="", help="The page's address, if a proxy or tunnel stands before it.")
@json_option
@click.pass_obj
def serve(ws: Warmstart, /, db: str | None, as_json: bool, **options: Any) -> None:
    """Run the daemon until it is stopped. The first start prints a link that logs you in on the page."""
    check_parts()
    from warmstart.doors.web import ConfirmationServer

    environment = config.load_confirmation()
    server = ConfirmationServer(
        database=find_path(ws, db),
        host=options["host"] or environment.host or "127.0.0.1",
        port=next(port for port in (options["port"], environment.port, 6000) if port is not None),
        ui_port=options["ui_port"],
        policy=options["policy"],
        rate_limit=options["rate_limit"] or environment.rate_limit,
        allow_hosts=options["allow_host"],
        public_url=options["public_url"],
        secrets=ws.settings.secrets,
        notify=environment.notify,
        anchors=(*environment.anchors, *options["anchor_to"]),
    )
    ending = catch_signals()
    sys.setswitchinterval(0.001)  # people who decide do not wait for threads that work for agents
    with server:
        threading.Thread(target=server.desk.outside_masker.warm, daemon=True).start()
        _greet(server, ws.settings.home, as_json)
        while not ending.wait(3600):
            pass


def check_parts(find: Callable[[str], Any] = util.find_spec) -> None:
    """Raise Refused with the install command if the daemon's extra is missing."""
    missing = [name for name in ("cryptography", "litestar", "uvicorn") if find(name) is None]
    if missing:
        raise Refused(f"the daemon needs {' and '.join(missing)}; install them with: pip install 'warmstart[confirm]'")


def catch_signals() -> threading.Event:
    """Return an event that SIGINT and SIGTERM set, so that queued changes are written before the end."""
    import signal

    ending = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ending.set())
    return ending


def _greet(server: ConfirmationServer, home: Path, as_json: bool) -> None:
    """Print the addresses, and at the first start the login link and the agents' token file."""
    from warmstart.doors.web.first_start import find_warnings, prepare_first_start

    first = prepare_first_start(server.desk, server.page_url, home, server.local_page_url)
    facts: dict[str, Any] = {
        "api_url": server.api_url,
        "page_url": server.page_url,
        "login_url": first.login_url if first else None,
        "agent_token_file": str(first.agent_token_file) if first else None,
        "daemon_key": server.desk.identity,
        "warnings": find_warnings(server.desk, server.settings.notify),
    }
    if as_json:
        print_json(facts)
    else:
        click.echo(f"API for agents   {facts['api_url']}")
        click.echo(f"Page for people  {facts['page_url']}")
        click.echo(f"Log in once with {facts['login_url']}" if first else "Log in with      warmstart confirm login")
        if first:
            click.echo(f"Agents' token    {facts['agent_token_file']}")
            print_code(first.login_url)
        click.echo(f"Daemon's key     {facts['daemon_key']}")
        for warning in facts["warnings"]:
            click.echo(f"Warning: {warning}", err=True)
    sys.stdout.flush()


# Decide from the terminal


def _call(ws: Warmstart, method: str, path: str, body: Any = None) -> dict[str, Any]:
    return call(find_daemon(ws.settings.home, APPROVER_TOKEN), method, path, body)


def _find(ws: Warmstart, id: str) -> dict[str, Any]:
    """Return a request by its id, or by the beginning of its id if that is unique among those that wait and the latest
    200."""
    if not id.isalnum():
        raise ConfigError(f"{id}: an id consists of letters and digits")
    if len(id) == 32:
        return _call(ws, "GET", f"/confirm/{id}")
    listed = [*_list_all(ws, {"status": "pending"}), *_call(ws, "GET", "/confirm?limit=200")["requests"]]
    matching = {request["id"] for request in listed if request["id"].startswith(id)}
    if len(matching) != 1:
        raise NotFound(f"{id} matches {len(matching) or 'no'} requests; give more of the id")
    return _call(ws, "GET", f"/confirm/{matching.pop()}")


def _list_all(ws: Warmstart, wanted: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every request that the daemon lists, page by page."""
    before = None
    while True:
        page = _call(
            ws, "GET", f"/confirm?{urlencode(wanted | {'limit': 200} | ({'before': before} if before else {}))}"
        )
        yield from page["requests"]
        before = page["next"]
        if before is None:
            return


@confirm.command("list")
@click.option("--status", type=click.Choice(STATUSES), help="Only requests with this status.")
@click.option("--action", help="Only requests for this action.")
@click.option("--requester", help="Only requests of this subject.")
@click.option("--high-risk", is_flag=True, help="Only high-risk requests.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True)
@click.option("--before", type=click.IntRange(min=1), help="Continue: the number that the list before ended with.")
@click.option("--all", "is_all", is_flag=True, help="All of them, page by page.")
@json_option
@click.pass_obj
def list_requests(ws: Warmstart, /, is_all: bool, as_json: bool, limit: int, high_risk: bool, **options: Any) -> None:
    """List requests without their arguments, newest first."""
    wanted = {name: value for name, value in options.items() if value} | ({"high_risk": "true"} if high_risk else {})
    if is_all:
        listing: dict[str, Any] = {"requests": list(_list_all(ws, wanted)), "next": None}
    else:
        listing = _call(ws, "GET", f"/confirm?{urlencode(wanted | {'limit': limit})}")
    if as_json:
        print_json(listing)
        return
    columns = ("id", "status", "action", "risk", "requester", "#left", "description")
    rows = [_make_row(request) for request in listing["requests"]]
    print_table(columns, rows)
    if listing["next"] is not None:
        click.echo(f"There are more: --before {listing['next']}, or --all.", err=True)
    if any(is_turned(str(cell)) for row in rows for cell in row):
        click.echo(f"{_TURNED}. `warmstart confirm show` writes them out.", err=True)


def _make_row(request: dict[str, Any]) -> tuple[Any, ...]:
    left = f"{request['seconds_left']:.0f} s" if request["status"] == "pending" else ""
    risk = "high" if request["high_risk"] else ""
    description = " ".join(request["description"].split())[:80]
    id, status, action = request["id"][:12], request["status"], request["action"]
    return id, status, action, risk, request["requester"], left, description


@confirm.command()
@click.argument("id")
@json_option
@click.pass_obj
def show(ws: Warmstart, id: str, as_json: bool) -> None:
    """Show one request with its exact arguments, secrets masked."""
    request = _find(ws, id)
    if as_json:
        print_json(request)
    else:
        _print_request(request)


_TURNED = "Some letters are written from right to left: a terminal may show their words in another order"
_MARK = "  | "  # starts every line of a text except the first, so that an agent's line cannot pass for one of ours


def _print_request(request: dict[str, Any], err: bool = False) -> None:
    claimed, decision = request["claimed_requester"], request["decision"]
    failures = [notice for notice in request["notifications"] if notice["state"] != "sent" and notice["error"]]
    facts = {
        "id": request["id"],
        "action": request["action"] + ("  HIGH RISK" if request["high_risk"] else ""),
        "status": request["status"] + (f" by {decision['by']}: {decision['reason']}" if decision else ""),
        "requester": request["requester"] + (f" (says it is {claimed})" if claimed else ""),
        "session": request["session_key"],
        "time left": f"{request['seconds_left']:.0f} s" if request["status"] == "pending" else "",
        "approvals": f"{len(request['approvals'])} of {request['quorum']}",
        "not notified": "\n".join(map(_describe_failure, failures)),
        "description": request["description"],
        "masked": _describe_masks(request),
        "look first": "\n".join(map(_describe_finding, request["findings"])),
        "arguments": f"\n{request['details_text']}",
    }
    width = _find_width(err)
    for name, value in facts.items():
        if value:
            click.echo("\n".join(lay_out(name, clean(value), width)), err=err)
    turned = [line for value in facts.values() for line in clean(value).split("\n") if is_turned(line)]
    if turned:
        written = "\n".join(["", *map(write_turned, turned)])
        click.echo("\n".join(lay_out(f"{_TURNED}. As stored:", written, width)), err=err)


def _describe_failure(notice: dict[str, Any]) -> str:
    """Describe a failed delivery, even while it is retried: the end of the retries may be too late."""
    tried = "once" if notice["attempts"] == 1 else f"{notice['attempts']} times"
    yet = "not delivered yet: " if notice["state"] == "queued" else ""
    return f"{notice['channel']}: {yet}{notice['error']}" + (f" (tried {tried})" if notice["attempts"] else "")


def _describe_masks(request: dict[str, Any]) -> str:
    if not request["masked"]:
        return ""
    what = format_count(request["masked"], "secret") + ", which"
    first = f"{what} nobody can see here; a mask covers no character that a shell, a URL or SQL acts on"
    return "\n".join([first, *map(_describe_value, request["masks"])])


def _describe_value(value: dict[str, Any]) -> str:
    if not value["seen"]:
        return f"{value['mask']}: first time seen"
    if not value["approved"]:
        return f"{value['mask']}: seen {value['seen']} times before, never approved"
    return f"{value['mask']}: approved {value['approved']} times before"


def _describe_finding(finding: dict[str, Any]) -> str:
    """Describe what to look at; the daemon found it in the arguments below."""
    line = f", line {finding['line']}" if finding["line"] > 1 else ""
    where = f" in {finding['where']}{line}" if finding["where"] else ""
    text = f": {finding['text']}" if finding["text"] else ""
    return " ".join(f"{finding['note']}{where}{text}".split())


def _find_width(err: bool) -> int:
    """Return the terminal's width, or 0 without a terminal: then nothing is folded."""
    return shutil.get_terminal_size().columns if (sys.stderr if err else sys.stdout).isatty() else 0


def lay_out(name: str, text: str, width: int) -> list[str]:
    """Return a name and its text as lines. Every line except the first is marked, and folded before the terminal does:
    otherwise an agent's description could imitate the arguments below it."""
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
    """Return an upper bound of a text's columns: terminals differ on which characters are wide."""
    return len(text) if text.isascii() else sum(1 if character.isascii() else 2 for character in text)


@confirm.command()
@click.argument("id")
@click.option("--reason", default="", help="Recorded in the audit and sent to the agent.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@click.pass_obj
def approve(ws: Warmstart, id: str, reason: str, yes: bool, as_json: bool) -> None:
    """Approve a request exactly as shown."""
    request = _find(ws, id)
    if not yes:
        _print_request(request, err=True)
        if not sys.stdin.isatty():
            raise Refused("approving without a terminal needs --yes")
        if request["high_risk"]:
            typed = click.prompt("high risk: type the action's name to approve it", err=True)
            if typed != request["action"]:
                raise Refused("not approved: that is not the action's name")
        else:
            click.confirm("approve?", abort=True, err=True)
    _decide(ws, request, "approve", {"reason": reason, "digest": request["digest"]}, as_json)


@confirm.command()
@click.argument("id", required=False)
@click.option("--reason", default="", help="Recorded in the audit and sent to the agent.")
@click.option("--all-from", metavar="NAME", help="Deny everything that this requester is waiting for.")
@json_option
@click.pass_obj
def deny(ws: Warmstart, id: str | None, reason: str, all_from: str | None, as_json: bool) -> None:
    """Deny a request, or all that wait of one requester."""
    if (id is None) == (all_from is None):
        raise ConfigError("give the id of a request, or --all-from NAME")
    if all_from is not None:
        done = _call(ws, "POST", "/deny-all", {"requester": all_from, "reason": reason})
        if as_json:
            print_json(done)
        else:
            rest = f"; you may not decide {done['refused']} others" if done["refused"] else ""
            click.echo(f"denied {format_count(done['denied'], 'request')} of {clean(all_from)}{rest}")
        return
    assert id is not None
    _decide(ws, _find(ws, id), "deny", {"reason": reason}, as_json)


def _decide(ws: Warmstart, request: dict[str, Any], answer: str, body: dict[str, Any], as_json: bool) -> None:
    decided = _call(ws, "POST", f"/confirm/{request['id']}/{answer}", body)
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
    """List audit entries, oldest first."""
    listing = _call(ws, "GET", f"/audit?limit={limit}{'' if after is None else f'&since={after}'}")
    if as_json:
        print_json(listing)
        return
    rows = (
        (entry["sequence"], entry["at"][:19], entry["event"], entry["action"], entry["actor"], entry["request"][:12])
        for entry in listing["entries"]
    )
    print_table(("#sequence", "at", "event", "action", "actor", "request"), rows)
