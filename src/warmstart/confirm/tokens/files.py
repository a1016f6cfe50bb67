"""Tokens in files under the home, readable by their owner only: the agents' own, and that of the terminal's desk."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from warmstart.atomic_files import write_whole
from warmstart.confirm.errors import Unauthorized
from warmstart.errors import ConfigError, Refused

AGENT_TOKEN = "confirm-agent.token"
APPROVER_TOKEN = "confirm.token"
_SCOPES = {AGENT_TOKEN: "agent:submit", APPROVER_TOKEN: "approver:decide"}  # that each of them needs
UNKNOWN_TOKEN = (  # to agents
    "the daemon does not know this token: it was made for another database, was revoked or is too old; make another: "
    "warmstart confirm token create --scope agent:submit --subject NAME --save --replace"
)


def read_token_file(path: Path) -> str:
    """Empty where there is none."""
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
    """Raises Unauthorized where there is none, and says how to come by one."""
    if token := read_token_file(path):
        return token
    scope = _SCOPES.get(path.name, "...")
    raise Unauthorized(
        f"no token in {path}; save one: warmstart confirm token create --scope {scope} --subject NAME --save"
    )


def save_token(path: Path, secret: str) -> None:
    """For its owner only, from the first moment on."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, f"{secret}\n".encode())
    except OSError as error:
        raise Refused(f"{path}: cannot be written: {error}") from error
