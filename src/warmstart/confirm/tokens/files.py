"""Token files under the home, readable by their owner only: one for agents, one for commands that decide. Each holds a
token with the key of the daemon that made it: see identity.py."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from warmstart.atomic_files import write_whole
from warmstart.confirm.errors import Unauthorized
from warmstart.confirm.tokens.identity import pin_token, split_token
from warmstart.errors import ConfigError, Refused

AGENT_TOKEN = "confirm-agent.token"
APPROVER_TOKEN = "confirm.token"
_SCOPES = {AGENT_TOKEN: "agent:submit", APPROVER_TOKEN: "approver:decide"}  # the scope that each file needs
UNKNOWN_TOKEN = (  # shown to agents
    "the daemon does not know this token: it was made for another database, was revoked or has expired; make another: "
    "warmstart confirm token create --scope agent:submit --subject NAME --save --replace"
)


def read_token_file(path: Path) -> str:
    """Return the token, empty if there is no file. Raise ConfigError if others can read it."""
    try:
        mode = path.stat().st_mode
        token = path.read_text("utf-8").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise ConfigError(f"{path}: others can read it; make it private: chmod 600 {path}")
    return token


def need_token(path: Path) -> str:
    """Return the token. The Unauthorized for a missing one says how to make it."""
    if token := read_token_file(path):
        return token
    scope = _SCOPES.get(path.name, "...")
    raise Unauthorized(
        f"no token in {path}; save one: warmstart confirm token create --scope {scope} --subject NAME --save"
    )


def pin_token_file(path: Path, key: str) -> str:
    """Write the daemon's key into a token file. Return the key that was there before, empty if there was none."""
    token = need_token(path)
    before = split_token(token).key
    if before != key:
        save_token(path, pin_token(token, key))
    return before


def save_token(path: Path, secret: str) -> None:
    """Write a token file that only its owner can read, from the first moment on."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, f"{secret}\n".encode())
    except OSError as error:
        raise Refused(f"{path}: cannot be written: {error}") from error
