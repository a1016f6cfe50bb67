"""Prepare a start: save the page's address for login links and pin the daemon's key in the token files; at the first start
also make a login link for the person and a token for their agents."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

from warmstart.confirm.audit.transaction import Transaction
from warmstart.confirm.desk.desk import Desk
from warmstart.confirm.notify.push import list_subscriptions
from warmstart.confirm.store.page_address import remember_page
from warmstart.confirm.tokens.access import create_login, create_token, list_tokens
from warmstart.confirm.tokens.files import AGENT_TOKEN, APPROVER_TOKEN, pin_token_file, read_token_file, save_token
from warmstart.confirm.tokens.identity import split_token
from warmstart.errors import WarmstartError

OWNER = "owner"
AGENT = "agent"

log = logging.getLogger("warmstart.confirm")


class FirstStart(NamedTuple):
    """The login link and the agents' token file of a first start."""

    login_url: str
    agent_token_file: Path


def prepare_first_start(desk: Desk, page_url: str, home: Path, local_page: str = "") -> FirstStart | None:
    """Make the link and the agents' token. Return None if there are tokens already.

    No token that decides is made: an agent could read it from its file.
    """
    remember_page(desk.store, page_url, local_page)
    pin_known_tokens(desk, home)

    def make(tx: Transaction) -> tuple[str, str] | None:
        if list_tokens(tx.store):
            return None
        code = create_login(tx, OWNER, by="daemon")
        return code, create_token(tx, AGENT, ["agent:submit"], by="daemon").secret

    made = desk.change(make).result()
    if made is None:
        return None
    code, secret = made
    return FirstStart(f"{page_url}/login#{code}", _save(home / AGENT_TOKEN, secret))


def pin_known_tokens(desk: Desk, home: Path) -> None:
    """Pin our key in token files of this database that name no key, made by a Warmstart whose daemon had none. A file that
    names another key is left alone: changing it takes `warmstart confirm trust`."""
    for name in (AGENT_TOKEN, APPROVER_TOKEN):
        try:
            token = split_token(read_token_file(home / name))
            if token.secret and not token.key and desk.find_identity(token.secret) is not None:
                pin_token_file(home / name, desk.identity)
                log.warning("%s: this daemon's key was pinned in it", home / name)
        except WarmstartError as error:
            log.warning("%s", error)


def find_warnings(desk: Desk, notify: Sequence[str]) -> list[str]:
    """Return what a person should know at the start: that nobody will be notified of requests."""
    if notify or list_subscriptions(desk.store, desk.now()):
        return []
    return [
        "nobody will be notified of requests: they are seen only on an open page. Set CONFIRMATION_NOTIFY "
        "(such as ntfys://ntfy.sh/TOPIC), or turn on notifications on the page under Devices"
    ]


def _save(wanted: Path, secret: str) -> Path:
    """Save the token without overwriting an existing file: that token is of another database, and agents may use it."""
    numbered = (wanted.with_stem(f"{wanted.stem}-{number}") for number in count(2))
    file = wanted if not wanted.exists() else next(path for path in numbered if not path.exists())
    save_token(file, secret)
    if file != wanted:
        log.warning(
            "%s holds a token of another database, which this daemon refuses. The token of this database is in %s; "
            "to let agents use it from now on: %s",
            wanted,
            file,
            shlex.join(["mv", str(file), str(wanted)]),
        )
    return file
