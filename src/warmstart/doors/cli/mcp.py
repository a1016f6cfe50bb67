"""`warmstart mcp`: the MCP server, and its entry in the clients' settings."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import click

from warmstart.doors.cli.main import PATH, json_option
from warmstart.doors.install.mcp import CLIENTS, install, uninstall
from warmstart.doors.render.terminal import clean, print_json
from warmstart.errors import Refused
from warmstart.pipeline import Warmstart

_WANTED = 2  # major version of the SDK


@click.group(invoke_without_command=True)
@click.option("--http", is_flag=True, help="Streamable HTTP instead of standard input and output.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --http: an address of this machine.")
@click.option("--port", default=8765, show_default=True, type=click.IntRange(0, 65_535), help="With --http; 0: any.")
@click.option("--token-file", type=PATH, help="With --http: callers must send the token in this file (Bearer).")
@click.option(
    "--transcripts",
    multiple=True,
    type=PATH,
    metavar="FOLDER",
    help="`record` may read from here too, beside the agents' usual places and the folder this is started in.",
)
@click.pass_context
def mcp(
    ctx: click.Context, http: bool, host: str, port: int, token_file: Path | None, transcripts: tuple[Path, ...]
) -> None:
    """Serve MCP clients: over standard input and output, or over HTTP on this machine."""
    if ctx.invoked_subcommand is not None:
        return
    check_sdk()
    import anyio

    from warmstart.doors.mcp import transports
    from warmstart.doors.mcp.server import McpDoor, build_server

    ws: Warmstart = ctx.obj
    _open_once(ws)
    server = build_server(McpDoor(ws.settings, transcripts))
    if not http:
        anyio.run(transports.serve_stdio, server)
        return
    token = transports.read_token(token_file)
    with transports.open_listener(host, port) as listener:
        anyio.run(transports.serve_http, server, listener, token)


def check_sdk(find_version: Callable[[str], str] = metadata.version) -> None:
    """The server is an extra; who has not got it is told what to install."""
    try:
        found = find_version("mcp")
    except metadata.PackageNotFoundError:
        raise Refused("the MCP server needs the MCP SDK; install it with: pip install 'warmstart[mcp]'") from None
    if int(found.partition(".")[0]) < _WANTED:
        raise Refused(
            f"the MCP server needs version {_WANTED} of the MCP SDK, here is {found}; "
            "install Warmstart in an environment of its own: pipx install 'warmstart[mcp]'"
        )


def _open_once(ws: Warmstart) -> None:
    """A store that cannot be used is told now, not at the first call."""
    _ = ws.store
    ws.close()


_client = click.argument("client", type=click.Choice(list(CLIENTS)))
_project = click.option("--project", is_flag=True, help="In the project's settings, here, instead of your own.")


@mcp.command("install")
@_client
@_project
@json_option
@click.pass_obj
def install_entry(ws: Warmstart, client: str, project: bool, as_json: bool) -> None:
    """Tell a client about the server. All else in its settings stays as it is; doing it again changes nothing."""
    check_sdk()
    path, changed = install(CLIENTS[client], ws.settings, Path.cwd() if project else None)
    _tell(path, changed, "added; it is there from the next session on" if changed else "is there already", as_json)
    if project and shutil.which("warmstart") is None:
        click.echo("the entry calls `warmstart`, which is not on the PATH here", err=True)


@mcp.command("uninstall")
@_client
@_project
@json_option
@click.pass_obj
def uninstall_entry(ws: Warmstart, client: str, project: bool, as_json: bool) -> None:
    """Take the entry out again."""
    path, changed = uninstall(CLIENTS[client], ws.settings, Path.cwd() if project else None)
    _tell(path, changed, "taken out" if changed else "there was no entry", as_json)


def _tell(path: Path, changed: bool, said: str, as_json: bool) -> None:
    if as_json:
        print_json({"path": str(path), "changed": changed})
    else:
        click.echo(f"{clean(path)}: {said}")
