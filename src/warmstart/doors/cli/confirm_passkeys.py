"""`warmstart confirm passkey`: list and remove the devices that sign approvals."""

from __future__ import annotations

import click

from warmstart.confirm.model import Passkey
from warmstart.doors.cli.confirm_identity import database_option, find_path
from warmstart.doors.cli.main import json_option
from warmstart.doors.render.terminal import clean, format_iso, print_json, print_table
from warmstart.errors import NotFound
from warmstart.pipeline import Warmstart


@click.group()
def passkey() -> None:
    """List and remove the devices that sign approvals. Devices are set up on the page."""


def _describe(one: Passkey) -> dict[str, object]:
    from warmstart.confirm.passkeys.statements import fingerprint

    return {
        "id": one.id,
        "subject": one.subject,
        "name": one.name,
        "host": one.rp,
        "fingerprint": fingerprint(one.public_key),
        "created": format_iso(one.created / 1000),
        "trusted": one.vouched is not None,
    }


@passkey.command("list")
@database_option
@json_option
@click.pass_obj
def list_all(ws: Warmstart, db: str | None, as_json: bool) -> None:
    """List the devices."""
    from warmstart.confirm.desk.offline import find_database
    from warmstart.confirm.passkeys.records import list_passkeys
    from warmstart.confirm.store.open import open_store

    with open_store(find_database(find_path(ws, db))) as store:
        rows = [_describe(one) for one in list_passkeys(store)]
    if as_json:
        print_json(rows)
        return
    print_table(
        ("id", "subject", "name", "fingerprint", "created", "trusted"),
        (
            (
                str(row["id"])[:12],
                row["subject"],
                row["name"],
                row["fingerprint"],
                row["created"],
                "yes" if row["trusted"] else "no",
            )
            for row in rows
        ),
    )


@passkey.command(context_settings={"ignore_unknown_options": True})  # an id may begin with a hyphen
@click.argument("id")
@database_option
@json_option
@click.pass_obj
def remove(ws: Warmstart, id: str, db: str | None, as_json: bool) -> None:
    """Remove a device, effective at once. ID may be the beginning of one. Approvals stay signed: without any device
    nothing can be approved."""
    from warmstart.confirm.audit.transaction import Transaction
    from warmstart.confirm.desk.offline import find_database, name_local_user, shut_out
    from warmstart.confirm.passkeys.records import list_passkeys, remove_passkey

    def take(tx: Transaction) -> Passkey:
        matching = [one.id for one in list_passkeys(tx.store) if one.id.startswith(id)]
        if len(matching) != 1:
            raise NotFound(f"{id} matches {len(matching) or 'no'} passkeys; see: warmstart confirm passkey list")
        removed = remove_passkey(tx, matching[0], name_local_user())
        if isinstance(removed, Exception):
            raise removed
        return removed

    gone = shut_out(find_database(find_path(ws, db)), take)
    if as_json:
        print_json({"id": gone.id, "subject": gone.subject, "name": gone.name, "removed": True})
    else:
        click.echo(f"removed {clean(gone.name)} of {clean(gone.subject)}")
