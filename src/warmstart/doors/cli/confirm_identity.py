"""`warmstart confirm identity` and `trust`: the daemon's key, and which key this machine believes. Also: find the page of
a daemon that has proven to be ours."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import click

from warmstart import config
from warmstart.confirm.client.wire import DEFAULT_URL
from warmstart.confirm.errors import ConfirmationError
from warmstart.confirm.store.open import locate
from warmstart.confirm.store.protocol import Database
from warmstart.confirm.tokens.files import AGENT_TOKEN, APPROVER_TOKEN, pin_token_file, read_token_file
from warmstart.confirm.tokens.identity import read_key, split_token
from warmstart.doors.cli.main import json_option
from warmstart.doors.render.terminal import clean, print_json
from warmstart.errors import NotFound, Refused
from warmstart.pipeline import Warmstart

database_option = click.option(
    "--db",
    "--db-path",
    "db",
    metavar="PATH",
    help="The daemon's database, or postgresql://... (default: confirm.db under the home).",
)


def find_path(ws: Warmstart, db: str | None) -> Database:
    """Return the database's file, or the address of its server."""
    return locate(db, ws.settings.home) if db else ws.settings.home / "confirm.db"


@click.command()
@database_option
@click.option("--renew", is_flag=True, help="Make a new key; whoever believes the old one must be told.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@click.pass_obj
def identity(ws: Warmstart, db: str | None, renew: bool, yes: bool, as_json: bool) -> None:
    """Print the daemon's public key, by which guards and clients recognise it. Works on the database itself."""
    from warmstart.confirm.desk.offline import change_database, find_database, name_local_user
    from warmstart.confirm.tokens.keys import read_identity, renew_identity

    path = find_database(find_path(ws, db))
    if renew:
        if not yes:
            click.echo("Every guard and client refuses the daemon until its key is pinned again.", err=True)
            click.confirm("make a new key?", abort=True, err=True)
        key = change_database(path, lambda tx: renew_identity(tx, name_local_user()))
        click.echo("Restart the daemon. Then, on every machine that asks it: warmstart confirm trust", err=True)
    else:
        key = change_database(path, read_identity)
    if as_json:
        print_json({"daemon_key": key, "renewed": renew})
    else:
        click.echo(key)


@click.command()
@database_option
@click.option("--url", default="", help="The daemon's address (WARMSTART_CONFIRM_URL; http://127.0.0.1:6000).")
@click.option("--key", default="", help="The key that `warmstart confirm identity` prints on the daemon's machine.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@click.pass_obj
def trust(ws: Warmstart, db: str | None, url: str, key: str, yes: bool, as_json: bool) -> None:
    """Believe the daemon with a certain key from now on: pin it in the token files under the home.

    The key is the one given, else that of the daemon's database if it is on this machine, else the one that the program
    at the address shows; compare that one with `warmstart confirm identity` on the daemon's machine.
    """
    from warmstart.confirm.client.reach import fetch_key, reach_daemon

    address = url or config.load_confirmation().url or DEFAULT_URL
    source, known = _find_known_key(ws, db, key)
    found = known or fetch_key(address)
    if known:
        reach_daemon(address, known)
    home = ws.settings.home
    files = [home / name for name in (AGENT_TOKEN, APPROVER_TOKEN) if read_token_file(home / name)]
    if not files:
        raise NotFound(
            f"there is no token under {home} to pin the key in; save one: warmstart confirm token create --save"
        )
    before = {file: split_token(read_token_file(file)).key for file in files}
    changed = sorted({old for old in before.values() if old and old != found})
    if changed:
        click.echo(
            f"WARNING: the daemon's key has changed.\n  before: {', '.join(changed)}\n  now:    {found}", err=True
        )
        click.echo("If nobody renewed it on purpose, another program has taken the daemon's place.", err=True)
    if (changed or not known) and not yes:
        click.echo(f"{address} shows the key {found} ({source})", err=True)
        if not sys.stdin.isatty():
            raise Refused("believing a key without a terminal needs --yes, or --key with a key that you know")
        click.confirm("believe it?", abort=True, err=True)
    for file in files:
        pin_token_file(file, found)
    outdated = _list_outdated_guards(ws, found)
    if as_json:
        facts = {"daemon_key": found, "source": source, "files": files, "changed": bool(changed)}
        print_json(facts | {"outdated_guards": [{"agent": agent, "path": path} for agent, path, _ in outdated]})
        return
    for file in files:
        click.echo(f"{clean(file)}: believes the daemon {found}")
    for agent, path, option in outdated:
        again = f"warmstart confirm guard install {agent}{option}"
        click.echo(f"{clean(path)}: the guard there believes another key, and blocks until you run: {again}")


def _list_outdated_guards(ws: Warmstart, key: str) -> list[tuple[str, Path, str]]:
    """Return the agents whose guard, for the user or this folder, pins another key: name, settings, option of install."""
    from warmstart.doors.guard.agent_hook import TITLES
    from warmstart.doors.hooks.agents import AGENTS
    from warmstart.doors.install.guard import GuardHook

    outdated = []
    for agent in TITLES:
        for project, option in ((None, ""), (Path.cwd(), " --project")):
            hook = GuardHook(AGENTS[agent], ws.settings, project)
            with suppress(Refused):
                found = hook.find()
                if found is not None and hook.read_options(found).get("--key") != key:
                    outdated.append((agent, hook.path, option))
    return outdated


def _find_known_key(ws: Warmstart, db: str | None, key: str) -> tuple[str, str]:
    """Return where the key comes from, and the key; empty if only the daemon itself can show it."""
    from warmstart.confirm.desk.offline import change_database, find_database
    from warmstart.confirm.tokens.keys import read_identity

    if key:
        read_key(key)
        return "given", key
    try:
        path = find_database(find_path(ws, db))
    except NotFound:
        if db:
            raise
        return "shown by the program there", ""
    return "of the daemon's database", change_database(path, read_identity)


def find_page(path: Database, url: str, unchecked: bool) -> str:
    """Return the page's address for a login link, after a daemon of this database has proven that it serves it."""
    from warmstart.confirm.client.reach import reach_daemon
    from warmstart.confirm.desk.offline import change_database
    from warmstart.confirm.store.page_address import DEFAULT_PAGE, PageAddress, recall_pages
    from warmstart.confirm.tokens.keys import read_identity

    key, pages = change_database(path, lambda tx: (read_identity(tx), recall_pages(tx.store)))
    if url:
        pages = [PageAddress(url, url), *(PageAddress(url, page.local) for page in pages)]
    problems = []
    for page in pages or [PageAddress(DEFAULT_PAGE, DEFAULT_PAGE)]:
        try:
            stated = reach_daemon(page.local, key)
        except ConfirmationError as error:
            problems.append(str(error))
        else:
            if _is_same_page(page.page, page.local) or _is_same_page(page.page, stated):
                return page.page
            problems.append(f"the daemon at {page.local} serves {stated or 'no page'}, not {page.page}")
    if unchecked:
        click.echo(f"unchecked: {clean(problems[0])}", err=True)
        return pages[0].page if pages else DEFAULT_PAGE
    raise Refused(
        f"no login link was made, because no daemon of this database proved to serve the page: {problems[0]}. Start it "
        "with: warmstart confirm serve. To print a link all the same: --unchecked"
    )


def _is_same_page(stated: str, url: str) -> bool:
    """Return whether an address is the proven one: itself, or the public address that the proven daemon states."""
    return stated.rstrip("/").lower() == url.rstrip("/").lower()
