"""`warmstart mcp`: the MCP server, and its entry in clients' settings."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import click

from warmstart.config import Settings
from warmstart.doors.cli.main import PATH, json_option
from warmstart.doors.cli.options import project_settings_option
from warmstart.doors.install.mcp import CLIENTS, McpEntry
from warmstart.doors.render.terminal import clean, print_json
from warmstart.errors import Refused
from warmstart.pipeline import Warmstart
from warmstart.scopes import Border, find_profile, name_profile

_SDK = 2  # major version


@click.group(invoke_without_command=True)
@click.option("--http", is_flag=True, help="Serve streamable HTTP instead of standard input and output.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --http: address to listen on.")
@click.option(
    "--port",
    default=8765,
    show_default=True,
    type=click.IntRange(0, 65_535),
    help="With --http; 0: a free one.",
)
@click.option("--token-file", type=PATH, help="With --http: callers must send the token in this file (Bearer).")
@click.option(
    "--transcripts",
    multiple=True,
    type=PATH,
    metavar="FOLDER",
    help="Let `record` read from this folder too, besides the agents' usual places and the current folder.",
)
@click.option("--scope", help="The agent's profile and person.  [default: the profile of HERMES_HOME]")
@click.option(
    "--project",
    help="The project of the sessions that are served; '*': every project.  [default: the folder it is started in]",
)
@click.option("--hooked", is_flag=True, help="Our hooks brief the sessions: do not ask agents to fetch the brief.")
@click.pass_context
def mcp(
    ctx: click.Context,
    http: bool,
    host: str,
    port: int,
    token_file: Path | None,
    transcripts: tuple[Path, ...],
    scope: str | None,
    project: str | None,
    hooked: bool,
) -> None:
    """Serve MCP clients over standard input and output, or over HTTP on this machine."""
    if ctx.invoked_subcommand is not None:
        return
    check_sdk()
    import anyio

    from warmstart.doors.mcp import transports
    from warmstart.doors.mcp.server import McpDoor, build_server

    ws: Warmstart = ctx.obj
    _open_once(ws)
    door = McpDoor(ws.settings, transcripts, border=find_border(ws.settings, scope, project))
    server = build_server(door, hooked=hooked)
    if not http:
        anyio.run(transports.serve_stdio, server)
        return
    token = transports.read_token(token_file)
    with transports.open_listener(host, port) as listener:
        anyio.run(transports.serve_http, server, listener, token)


def find_border(settings: Settings, scope: str | None, project: str | None) -> Border:
    """Return what the server's callers may see."""
    from warmstart.doors.mcp.transcripts import find_project

    home = settings.places.get("HERMES_HOME")
    own = name_profile(find_profile(home)) if home else ""
    return Border(own if scope is None else scope, project or find_project(settings.user_home, Path.cwd()))


def check_sdk(find_version: Callable[[str], str] = metadata.version) -> None:
    """Refuse, with what to install, if the MCP SDK is missing or too old."""
    try:
        version = find_version("mcp")
    except metadata.PackageNotFoundError:
        raise Refused(
            "the MCP server needs the MCP SDK; install it with: pip install -e '.[mcp]' in your clone of Warmstart"
        ) from None
    if int(version.partition(".")[0]) < _SDK:
        raise Refused(
            f"the MCP server needs version {_SDK} of the MCP SDK, but {version} is installed; "
            "install Warmstart in an environment of its own: pipx install '.[mcp]' in your clone of Warmstart"
        )


def _open_once(ws: Warmstart) -> None:
    """Fail now, not at the first call, if the store cannot be used."""
    _ = ws.store
    ws.close()


_client_argument = click.argument("client", type=click.Choice(list(CLIENTS)))


@mcp.command("install")
@_client_argument
@project_settings_option
@json_option
@click.pass_obj
def install_entry(ws: Warmstart, client: str, project: bool, as_json: bool) -> None:
    """Add the server to a client's settings. Everything else in them stays; doing it again changes nothing."""
    check_sdk()
    entry = McpEntry(CLIENTS[client], ws.settings, Path.cwd() if project else None)
    changed = entry.install()
    _report(entry.path, changed, "added; the client's next session has it" if changed else "already added", as_json)
    if project and shutil.which("warmstart") is None:
        click.echo("the entry calls `warmstart`, which is not on the PATH here", err=True)


@mcp.command("uninstall")
@_client_argument
@project_settings_option
@json_option
@click.pass_obj
def uninstall_entry(ws: Warmstart, client: str, project: bool, as_json: bool) -> None:
    """Remove the server from a client's settings."""
    entry = McpEntry(CLIENTS[client], ws.settings, Path.cwd() if project else None)
    changed = entry.uninstall()
    _report(entry.path, changed, "removed" if changed else "there was no entry", as_json)


def _report(path: Path, changed: bool, state: str, as_json: bool) -> None:
    if as_json:
        print_json({"path": str(path), "changed": changed})
    else:
        click.echo(f"{clean(path)}: {state}")
