"""`warmstart ui`: everything that Warmstart knows and asks, in the browser."""

from __future__ import annotations

import sys
import webbrowser
from importlib import util

import click

from warmstart.doors.cli.main import json_option
from warmstart.doors.render.terminal import print_json
from warmstart.errors import Refused
from warmstart.pipeline import Warmstart


@click.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), default=6090, show_default=True, help="The port; 0: any free one."
)
@click.option("--no-open", is_flag=True, help="Only print the link; do not open a browser.")
@click.option(
    "--share",
    metavar="ADDRESS",
    help="Also listen on this address of the machine, and print a link that lets others read errors, notes and "
    "effects. They see no transcript and change nothing.",
)
@json_option
@click.pass_obj
def ui(ws: Warmstart, port: int, no_open: bool, share: str | None, as_json: bool) -> None:
    """Look, search and decide in the browser, on this machine only.

    Opens a link that works once, within ten minutes. Ends with Ctrl-C; work started on the page ends with it.
    """
    missing = [part for part in ("litestar", "uvicorn") if util.find_spec(part) is None]
    if missing:
        raise Refused(f"the page needs {' and '.join(missing)}; install them: pip install 'warmstart[ui]'")
    from warmstart.doors.cli.confirm import catch_signals
    from warmstart.doors.ui.server import UiServer

    sys.setswitchinterval(0.0005)  # seconds: figures are computed beside the pages, which must not wait for them
    stopping = catch_signals()
    with UiServer(ws.settings, port=port, share=share) as server:
        link = server.make_link()
        guests = server.make_guest_link() if share else None
        if as_json:
            print_json({"link": link, "url": server.url, "share": guests})
        else:
            click.echo(f"Open {link}")
            click.echo("The link works once, within ten minutes. Ctrl-C ends the page.")
            if guests:
                click.echo(f"Others read errors, notes and effects, unencrypted, at {guests}")
        sys.stdout.flush()
        if not no_open and not as_json:
            webbrowser.open(link)
        stopping.wait()
