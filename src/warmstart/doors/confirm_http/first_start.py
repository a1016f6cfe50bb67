"""The first start: a link for the person, a token for their agents."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from warmstart.confirm.access import create_login, create_token, list_tokens
from warmstart.confirm.desk import Desk
from warmstart.confirm.token_files import AGENT_TOKEN, save_token
from warmstart.confirm.turns import Turn

OWNER = "owner"
AGENT = "agent"


class FirstStart(NamedTuple):
    """How to come in."""

    login_url: str
    agent_token_file: Path | None  # None: there was one already, perhaps of another database


def prepare_first_start(desk: Desk, page_url: str, home: Path) -> FirstStart | None:
    """Make the link and the agents' token while nobody has any. None: somebody has.

    No token that decides is made: one that lies in a file is an agent's for the taking.
    """
    file = home / AGENT_TOKEN

    def make(turn: Turn) -> tuple[str, str] | None:
        if list_tokens(turn.store):
            return None
        code = create_login(turn, OWNER, by="daemon")
        return code, create_token(turn, AGENT, ["agent:submit"], by="daemon").secret

    made = desk.change(make).result()
    if made is None:
        return None
    code, secret = made
    kept = not file.exists()
    if kept:
        save_token(file, secret)
    return FirstStart(f"{page_url}/login#{code}", file if kept else None)
