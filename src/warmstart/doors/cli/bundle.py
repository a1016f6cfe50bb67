"""`warmstart bundle`: share notes and templates with a team by signed text files in git, a folder or an archive."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from warmstart.doors.cli.main import json_option
from warmstart.doors.render.fitted import cut_at_word, flatten
from warmstart.doors.render.terminal import clean, coloured, print_json, print_table, progress_bar
from warmstart.errors import Refused
from warmstart.plurals import format_count

if TYPE_CHECKING:
    from warmstart.model import Problem
    from warmstart.pipeline import Warmstart

_address = click.argument("address", metavar="[GIT_OR_URL]", default="")
_branch = click.option("--branch", help="Branch of the repository.  [default: bundle.branch, else its main one]")
_QUIET = ("same", "known", "yours")  # changes that need no line of their own
_WIDE = 80


@click.group()
def bundle() -> None:
    """Share notes and templates with a team: signed text files in a git repository or a folder.

    Others' items wait for your decision. GIT_OR_URL is anything that git takes, a folder, or (to read) the address of a
    .zip or .tar.gz; without it, `bundle.url` of config.toml.
    """


@bundle.command("push")
@_address
@click.option("--project", "projects", multiple=True, help="A project to share.  [default: that of the current folder]")
@_branch
@click.option("--author", help='"Name <address>" on the commit.  [default: bundle.author, else nobody]')
@click.option("--hide", multiple=True, metavar="WORD", help="A name or word that must not leave, besides those found.")
@click.option("--dry-run", "dry", is_flag=True, help="Show what would be shared and what is left out; write nothing.")
@json_option
@click.pass_obj
def push_bundle(
    ws: Warmstart,
    address: str,
    projects: tuple[str, ...],
    branch: str | None,
    author: str | None,
    hide: tuple[str, ...],
    dry: bool,
    as_json: bool,
) -> None:
    """Write the active notes and templates of projects into a bundle, redacted and signed.

    One file each, so that the difference of a pull request shows what is shared. Secrets, e-mail addresses, home folders,
    hosts and people's names are replaced; what cannot be shared safely is left out and named. Files of others are never
    touched.
    """
    names = [ws.projects.find(name).name for name in projects] or [_find_here(ws)]
    with progress_bar("reading sessions for names", lines=not as_json) as advance:
        pushed = ws.bundles.push(address, names, branch=branch, author=author, hide=hide, dry=dry, progress=advance)
    if as_json:
        print_json(pushed)
        return
    changed = [item for item in pushed.items if item.change not in _QUIET]
    if changed:
        print_table(
            ("change", "type", "file", "says"),
            [(item.change, item.type, item.file, _shorten(item.title)) for item in changed],
        )
    for item in pushed.left_out:
        click.echo(f"left out: {item.type} {clean(item.id)} ({_shorten(item.title)}): {clean(item.reason)}")
    _print_problems(pushed.problems)
    quiet = sum(item.change in _QUIET for item in pushed.items)
    verb = "would be written" if dry else "written"
    where = f" to {clean(pushed.place)}" + (f" ({clean(pushed.where)})" if pushed.where else "")
    click.echo(f"{format_count(len(changed), 'file')} {verb}{where}; {quiet} of yours already there")
    if changed and not dry:
        click.echo(f"your key, for teammates: {pushed.signer}")


def _find_here(ws: Warmstart) -> str:
    name = ws.projects.find(str(Path.cwd())).name
    if not ws.notes.list(project=name) and not ws.count_sessions(project=name):
        raise Refused("nothing is known about the project of this folder; name one: --project NAME")
    return name


@bundle.command("pull")
@_address
@_branch
@click.option(
    "--approve", is_flag=True, help="Use everything new that trusted keys signed: your decision, on the record."
)
@json_option
@click.pass_obj
def pull_bundle(ws: Warmstart, address: str, branch: str | None, approve: bool, as_json: bool) -> None:
    """Receive the items that keys you trust have signed. They wait for your decision.

    Changed files and unknown signers are refused and named. An item that its signer retired is proposed for retirement;
    nothing is deleted. What differs from your own is kept beside it. Pulling again changes nothing.
    """
    pulled = ws.bundles.pull(address, branch=branch, approve=approve)
    if as_json:
        print_json(pulled)
    else:
        shown = [item for item in pulled.items if item.change not in (*_QUIET, "retired")]
        if shown:
            print_table(
                ("change", "type", "name here", "status", "signed by", "says", "measured by its signer"),
                [
                    (item.change, item.type, clean(item.name), coloured(item.status), clean(item.signer))
                    + (_shorten(item.title), clean(item.effect))
                    for item in shown
                ],
            )
        _print_problems(pulled.problems)
        _print_counts(pulled.place, (item.change for item in pulled.items))
        if waiting := len(ws.bundles.waiting()):
            click.echo(f"{format_count(waiting, 'item')} to decide about; see: warmstart bundle show")
    if pulled.problems and not pulled.items:
        sys.exit(1)


def _print_counts(place: str, changes: Iterable[str]) -> None:
    counts = Counter(changes)
    listed = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    click.echo(f"{clean(place)}: {listed or 'no items'}")


@bundle.command("check")
@_address
@_branch
@json_option
@click.pass_obj
def check_bundle(ws: Warmstart, address: str, branch: str | None, as_json: bool) -> None:
    """Check the files and signatures of a bundle; store nothing. Exit 1 if anything would be refused."""
    checked = ws.bundles.check(address, branch=branch)
    if as_json:
        print_json(checked)
    else:
        if checked.items:
            print_table(
                ("signature", "signed by", "type", "status", "project", "says", "measured"),
                [
                    (coloured(item.state), clean(item.signer), item.type, item.status, clean(item.project or "any"))
                    + (_shorten(item.title), clean(item.effect))
                    for item in checked.items
                ],
            )
        refused = [(item.file, item.reason) for item in checked.items if item.reason]
        _print_reasons([*refused, *((problem.path, problem.reason) for problem in checked.problems)])
        click.echo(f"{clean(checked.place)}: {format_count(len(checked.items), 'item')}")
    if checked.problems or any(item.state == "refused" for item in checked.items):
        sys.exit(1)


@bundle.command("show")
@json_option
@click.pass_obj
def show_waiting(ws: Warmstart, as_json: bool) -> None:
    """List what came from bundles and waits for your decision, with its source."""
    waiting = ws.bundles.waiting()
    if as_json:
        print_json(waiting)
        return
    if not waiting:
        click.echo("nothing from bundles waits for a decision")
        return
    print_table(
        ("waits for", "type", "name", "project", "says", "signed by", "measured by its signer", "why"),
        [
            (item.waits_for, item.type, clean(item.name), clean(item.project or "any"), _shorten(item.title))
            + (clean(item.signer), clean(item.effect), clean(item.reason))
            for item in waiting
        ],
    )
    click.echo("decide with: warmstart notes approve / retire ID, warmstart templates approve / retire NAME")


@bundle.command("key")
@click.option("--name", help="The name beside your signatures: a pseudonym will do.")
@json_option
@click.pass_obj
def show_key(ws: Warmstart, name: str | None, as_json: bool) -> None:
    """Print your public key, made on first use. Teammates trust it with `bundle trust`."""
    key = ws.bundles.key(name)
    print_json({"key": key.public, "name": key.name}) if as_json else click.echo(key.public)


@bundle.command("trust")
@click.argument("key", default="")
@click.option("--name", help="Your name for the key's owner.")
@click.option("--remove", metavar="NAME", help="Stop trusting this key. What was imported stays.")
@json_option
@click.pass_obj
def trust_key(ws: Warmstart, key: str, name: str | None, remove: str | None, as_json: bool) -> None:
    """Trust a teammate's public KEY, or list the keys that you trust.

    Get the key from its owner, not from the bundle: whoever can write there could have put another one.
    """
    trusted = ws.bundles.trusted
    if remove is not None:
        trusted.remove(remove)
    elif key:
        if not name:
            raise click.UsageError("give the key's owner a name: --name NAME")
        trusted.add(key, name)
    known = trusted.list()
    if as_json:
        print_json([{"name": own, "key": one} for one, own in sorted(known.items(), key=lambda pair: pair[1])])
    elif known:
        print_table(("name", "key"), sorted((clean(own), one) for one, own in known.items()))
    else:
        click.echo("no key is trusted; a teammate prints theirs with: warmstart bundle key")


def _shorten(text: str) -> str:
    return cut_at_word(flatten(text), _WIDE)


def _print_problems(problems: Iterable[Problem]) -> None:
    _print_reasons((problem.path, problem.reason) for problem in problems)


def _print_reasons(refused: Iterable[tuple[str, str]]) -> None:
    """Print each reason once, with the first file that it is about."""
    reasons: dict[str, list[str]] = {}
    for path, reason in refused:
        reasons.setdefault(reason, []).append(path)
    for reason, paths in reasons.items():
        more = f" and {format_count(len(paths) - 1, 'more file')}" if len(paths) > 1 else ""
        click.echo(f"{clean(paths[0])}{more}: {clean(reason)}", err=True)
