"""`warmstart confirm` commands on the database itself: verify, tokens, the whitelist, login links."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from warmstart.confirm.model import SCOPES
from warmstart.confirm.tokens.files import AGENT_TOKEN, APPROVER_TOKEN, read_token_file, save_token
from warmstart.doors.cli.confirm_identity import database_option, find_page, find_path, identity, trust
from warmstart.doors.cli.main import PATH, json_option
from warmstart.doors.render.terminal import clean, format_iso, print_json, print_table
from warmstart.errors import ConfigError, Refused
from warmstart.pipeline import Warmstart

if TYPE_CHECKING:
    from warmstart.confirm.audit.verify import AuditVerdict

_MOST_FLAWS = 100  # flaws printed


@click.command()
@database_option
@click.option(
    "--anchor",
    "anchors",
    multiple=True,
    metavar="PLACE",
    help="An anchor kept elsewhere: a copied file (instead of the daemon's own), an address given to `serve --anchor-to`, "
    "or SEQUENCE:HASH from a message. Can be repeated.",
)
@click.option("--accept", is_flag=True, help="Accept the flaws found: record them and anchor the audit again.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@click.pass_obj
def verify(ws: Warmstart, db: str | None, anchors: tuple[str, ...], accept: bool, yes: bool, as_json: bool) -> None:
    """Verify the whole audit and the tables that it records. Finds edited, deleted or swapped entries, a cut end and rows
    that differ. Changes nothing and reads read-only copies. Exits with 1 on any flaw that was not accepted."""
    from warmstart.confirm.desk.offline import accept_audit, find_database, verify_database

    path = find_database(find_path(ws, db))
    anchor, sources = _sort_anchors(anchors)
    verdict = verify_database(path, anchor, sources)
    if as_json:
        print_json(verdict)
    else:
        _print_verdict(verdict)
    if accept and not verdict.ok:
        if not yes:
            click.confirm("accept these flaws?", abort=True, err=True)
        accept_audit(path, verdict, anchor)
        click.echo("the flaws were recorded and the audit was anchored again", err=True)
        if verdict.forgeries:
            proven = "a missing signature or an anchor elsewhere proves them"
            click.echo(f"{verdict.forgeries} of them cannot be accepted: {proven}", err=True)
            sys.exit(1)
    elif not verdict.ok:
        sys.exit(1)


def _sort_anchors(anchors: tuple[str, ...]) -> tuple[Path | None, list[str]]:
    """Separate a copied file from addresses and written-out anchors."""
    from warmstart.confirm.audit.elsewhere import read_literal

    sources = [anchor for anchor in anchors if "://" in anchor or read_literal(anchor)]
    files = [Path(anchor).expanduser() for anchor in anchors if anchor not in sources]
    for file in files:
        if (written := re.fullmatch(r"\d+:(\w*)", str(file))) and not file.exists():
            raise ConfigError(
                f"--anchor {file}: an anchor is SEQUENCE:HASH with 64 characters of 0-9 and a-f, and this hash has "
                f"{len(written[1])} characters, or others; copy it whole from the message"
            )
    if len(files) > 1:
        raise ConfigError(f"--anchor {files[1]}: only one copied file can be compared at a time")
    return (files[0] if files else None), sources


_ANCHORS = {True: "anchor", False: "anchors"}


def _print_verdict(verdict: AuditVerdict) -> None:
    sound = "NOT SOUND" if not verdict.ok else "no new flaws" if verdict.accepted else "all sound"
    elsewhere = (
        f"; {verdict.witnesses} {_ANCHORS[verdict.witnesses == 1]} from elsewhere compared" if verdict.witnesses else ""
    )
    click.echo(f"{verdict.entries} entries, {sound}; {verdict.lag} after the anchor{elsewhere}")
    for passkey in verdict.passkeys:
        state = " (removed)" if passkey.removed else "" if passkey.trusted else " (not trusted)"
        since = f"since entry {passkey.sequence}, fingerprint {passkey.fingerprint}"
        click.echo(f"  passkey: {clean(passkey.name)} of {clean(passkey.subject)}, {since}{state}")
    if verdict.accepted:
        acceptances = [acceptance for acceptance in verdict.acceptances if acceptance.flaws]
        who = ", ".join(f"by {clean(acceptance.by)} in entry {acceptance.sequence}" for acceptance in acceptances)
        click.echo(f"  {verdict.accepted} flaws were accepted {who}")
    for flaw in verdict.problems[:_MOST_FLAWS]:
        where = "" if flaw.sequence is None else f"entry {flaw.sequence}: "
        click.echo(f"  {where}{clean(flaw.problem)}")
    if verdict.flaws > _MOST_FLAWS:
        click.echo(f"  and {verdict.flaws - _MOST_FLAWS} more")


@click.command()
@database_option
@click.option("--subject", default="owner", show_default=True, help="The person who logs in with it.")
@click.option("--url", default="", help="The page's address (default: the one that the daemon started with).")
@click.option("--unchecked", is_flag=True, help="Print the link although no daemon of this database answers.")
@click.option("--qr/--no-qr", default=None, help="Also print a QR code to scan with a phone (default: on a terminal).")
@json_option
@click.pass_obj
def login(
    ws: Warmstart, db: str | None, subject: str, url: str, unchecked: bool, qr: bool | None, as_json: bool
) -> None:
    """Print a link that logs its opener in on the page, once, within 15 minutes. The program at the page's address must
    first prove that it is the daemon: another one would get the login."""
    from warmstart.confirm.desk.offline import change_database, find_database, name_local_user
    from warmstart.confirm.tokens.access import create_login

    path = find_database(find_path(ws, db))
    page = find_page(path, url, unchecked)
    code = change_database(path, lambda tx: create_login(tx, subject, by=name_local_user()))
    link = f"{page.rstrip('/')}/login#{code}"
    if as_json:
        print_json({"login_url": link, "subject": subject})
    else:
        click.echo(link)
        print_code(link, qr)


def print_code(link: str, wanted: bool | None = None) -> None:
    """Print a link's QR code. `wanted` None: on a terminal, if the code can be made and a phone could reach the link."""
    from importlib.util import find_spec
    from urllib.parse import urlsplit

    is_local = urlsplit(link).hostname in ("127.0.0.1", "localhost", "::1")
    if wanted is None:
        wanted = sys.stdout.isatty() and not is_local and find_spec("segno") is not None
    if not wanted:
        return
    from warmstart.doors.web.qr_code import print_qr

    click.echo(print_qr(link))
    if is_local:
        click.echo("Only this machine reaches that address; for a phone start the daemon with --public-url", err=True)


@click.command()
@click.argument("subject")
@database_option
@json_option
@click.pass_obj
def logout(ws: Warmstart, subject: str, db: str | None, as_json: bool) -> None:
    """End every login of a person on the page."""
    from warmstart.confirm.desk.offline import find_database, name_local_user, shut_out
    from warmstart.confirm.tokens.access import end_sessions

    path = find_database(find_path(ws, db))
    ended = shut_out(path, lambda tx: end_sessions(tx, subject, by=name_local_user()))
    if as_json:
        print_json({"ended": ended})
    else:
        click.echo(f"ended {ended} logins")


# Tokens


@click.group()
def token() -> None:
    """Create, list and revoke tokens: who may submit and who may decide."""


@token.command("create")
@click.option("--scope", "scopes", multiple=True, required=True, type=click.Choice(SCOPES), help="What it may do.")
@click.option("--subject", required=True, help="Its owner: the name in the audit.")
@click.option("--days", type=click.IntRange(min=1), help="How long it is valid (default: until revoked).")
@click.option("--save", is_flag=True, help="Save it in the private file under the home where commands look for it.")
@click.option("--replace", is_flag=True, help="With --save: overwrite the token in that file, which is then lost.")
@database_option
@json_option
@click.pass_obj
def create(ws: Warmstart, /, scopes: tuple[str, ...], db: str | None, as_json: bool, **options: Any) -> None:
    """Create a token. It is shown only once; only its hash is stored."""
    from warmstart.confirm.desk.offline import change_database, name_local_user
    from warmstart.confirm.tokens.access import create_token

    file = _find_file(ws.settings.home, scopes, options["replace"]) if options["save"] else None
    seconds = None if options["days"] is None else options["days"] * 86_400
    new = change_database(
        find_path(ws, db),
        lambda tx: create_token(tx, options["subject"], scopes, by=name_local_user(), seconds=seconds),
    )
    if file:
        save_token(file, new.secret)
    if as_json:
        print_json(
            {
                "id": new.record.id,
                "subject": new.record.subject,
                "scopes": new.record.scopes.split(),
                "token": None if file else new.secret,
                "file": file,
            }
        )
    else:
        click.echo(f"saved in {clean(file)}" if file else new.secret)


def _find_file(home: Path, scopes: tuple[str, ...], replace: bool) -> Path:
    """Return the file for a token of these scopes. Raise Refused if it holds another token, which nobody could show
    again."""
    file = home / (AGENT_TOKEN if set(scopes) == {"agent:submit"} else APPROVER_TOKEN)
    if not replace and read_token_file(file):
        raise Refused(f"{file} already holds a token; overwrite it with --replace, or omit --save to print the new one")
    return file


@token.command("list")
@database_option
@json_option
@click.pass_obj
def list_all(ws: Warmstart, db: str | None, as_json: bool) -> None:
    """List tokens, without their secrets."""
    from warmstart.confirm.desk.offline import find_database
    from warmstart.confirm.store.open import open_store
    from warmstart.confirm.tokens.access import list_tokens

    with open_store(find_database(find_path(ws, db))) as store:
        records = list_tokens(store)
    now = time.time() * 1000
    rows: list[dict[str, Any]] = [
        {
            "id": record.id,
            "subject": record.subject,
            "scopes": record.scopes.split(),
            "created": format_iso(record.created / 1000),
            "created_by": record.created_by,
            "expires": None if record.expires is None else format_iso(record.expires / 1000),
            "good": record.revoked is None and (record.expires is None or record.expires > now),
        }
        for record in records
    ]
    if as_json:
        print_json(rows)
    else:
        columns = ("id", "subject", "scopes", "created", "good")
        print_table(
            columns,
            (
                (row["id"], row["subject"], " ".join(row["scopes"]), row["created"], "yes" if row["good"] else "no")
                for row in rows
            ),
        )


@token.command()
@click.argument("id")
@database_option
@json_option
@click.pass_obj
def revoke(ws: Warmstart, id: str, db: str | None, as_json: bool) -> None:
    """Revoke a token, effective at once."""
    from warmstart.confirm.desk.offline import find_database, name_local_user, shut_out
    from warmstart.confirm.tokens.access import revoke_token

    path = find_database(find_path(ws, db))
    subject = shut_out(path, lambda tx: revoke_token(tx, id, by=name_local_user()))
    if as_json:
        print_json({"id": id, "subject": subject, "good": False})
    else:
        click.echo(f"revoked {id} of {clean(subject)}")


# The whitelist


@click.group()
def whitelist() -> None:
    """Allow one action in one session without asking, for a while. High-risk actions cannot be whitelisted."""


@whitelist.command()
@click.argument("action")
@click.option("--session", "session_key", required=True, help="The session in which it is allowed.")
@click.option("--minutes", type=click.IntRange(1, 7 * 24 * 60), default=60, show_default=True, help="How long.")
@click.option("--requester", default="", help="Only for this subject (default: any requester in that session).")
@click.option("--details", metavar="JSON", help="Only with exactly these details.")
@click.option("--policy", type=PATH, help="The daemon's policy: refuses at once what it makes high-risk.")
@database_option
@json_option
@click.pass_obj
def add(ws: Warmstart, /, action: str, db: str | None, as_json: bool, **options: Any) -> None:
    """Add a whitelist entry."""
    from warmstart.confirm.canonical import digest_deed, parse_json
    from warmstart.confirm.desk.offline import change_database, find_database, name_local_user
    from warmstart.confirm.masking.masker import Masker
    from warmstart.confirm.policy.actions import check_action, key_of
    from warmstart.confirm.policy.policy import load_policy
    from warmstart.confirm.tokens.access import NewAllowance, add_allowance

    details = options["details"]
    digest = digest_deed(check_action(action), parse_json(details.encode())) if details else ""
    session = Masker(ws.settings.secrets).mask_name(options["session_key"])
    new = NewAllowance(
        action, key_of(check_action(action)), session, options["minutes"] * 60, options["requester"], digest
    )
    policy = load_policy(options["policy"]) if options["policy"] else None
    path = find_database(find_path(ws, db))
    entry = change_database(path, lambda tx: add_allowance(tx, new, name_local_user()), policy)
    if as_json:
        print_json(_describe_entry(entry))
    else:
        click.echo(f"{entry.id[:12]}: {action} in session {clean(session)} for {options['minutes']} minutes")


@whitelist.command("list")
@database_option
@json_option
@click.pass_obj
def list_entries(ws: Warmstart, db: str | None, as_json: bool) -> None:
    """List the whitelist entries in force."""
    from warmstart.confirm.desk.offline import find_database
    from warmstart.confirm.store.open import open_store
    from warmstart.confirm.tokens.access import list_allowances

    with open_store(find_database(find_path(ws, db))) as store:
        entries = list_allowances(store, int(time.time() * 1000))
    if as_json:
        print_json([_describe_entry(entry) for entry in entries])
    else:
        rows = (
            (e.id[:12], e.action, e.session_key, e.requester_key, e.created_by, format_iso(e.expires / 1000))
            for e in entries
        )
        print_table(("id", "action", "session", "requester", "by", "until"), rows)


@whitelist.command()
@click.argument("id")
@database_option
@json_option
@click.pass_obj
def remove(ws: Warmstart, id: str, db: str | None, as_json: bool) -> None:
    """Remove a whitelist entry: the action needs a decision again. ID may be the beginning of one."""
    from warmstart.confirm.desk.offline import change_database, find_database, name_local_user
    from warmstart.confirm.tokens.access import list_allowances, remove_allowance

    def take(tx: Any) -> Any:
        matching = [entry.id for entry in list_allowances(tx.store, tx.now) if entry.id.startswith(id)]
        if len(matching) > 1:
            raise ConfigError(f"{id} matches {len(matching)} entries; give more of the id")
        return remove_allowance(tx, matching[0] if matching else id, name_local_user())

    action = change_database(find_database(find_path(ws, db)), take)
    if as_json:
        print_json({"id": id, "action": action, "removed": True})
    else:
        click.echo(f"{clean(action)} needs a decision again")


def _describe_entry(entry: Any) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.structs.asdict(entry)
    for name in ("created", "expires"):
        shown[name] = format_iso(shown[name] / 1000)
    return {name: value for name, value in shown.items() if name not in ("action_key", "removed")}


ADMIN_COMMANDS = (verify, login, logout, token, whitelist, identity, trust)
