"""Check that the guard could ask: the daemon proves to be the pinned one and knows a token that may submit. No request is
made."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from warmstart.confirm.client.wire import Daemon, call
from warmstart.confirm.errors import BadRequest, NotAllowed, Unauthorized
from warmstart.confirm.tokens.files import AGENT_TOKEN, UNKNOWN_TOKEN, need_token, read_token_file
from warmstart.errors import WarmstartError

_SECONDS = 5.0


class CheckResult(NamedTuple):
    """What was checked, and what is wrong with it; empty if nothing is."""

    what: str
    trouble: str = ""


def check_asking(url: str, home: Path, key: str = "") -> tuple[CheckResult, CheckResult]:
    """Check the daemon and the agents' token under the home. `key`: pinned in the installed guard."""
    file = home / AGENT_TOKEN
    trouble = _check_file(file)
    with suppress(WarmstartError):
        key = key or Daemon(url, read_token_file(file)).find_key()
    try:
        call(Daemon(url, "", key), "GET", "/health", timeout=_SECONDS)
    except WarmstartError as error:
        return CheckResult(url, str(error)), CheckResult(str(file), trouble or "not tried")
    return CheckResult(url), CheckResult(str(file), trouble or _try_token(Daemon(url, need_token(file), key)))


def _check_file(file: Path) -> str:
    try:
        need_token(file)
    except WarmstartError as error:
        return str(error)
    return ""


def _try_token(daemon: Daemon) -> str:
    """Send an empty request: the daemon refuses it as malformed, but checks the token first."""
    try:
        with suppress(BadRequest):
            call(daemon, "POST", "/confirm", {}, timeout=_SECONDS)
    except Unauthorized:
        return UNKNOWN_TOKEN
    except NotAllowed as error:
        return f"it may not submit requests: {error}"
    except WarmstartError as error:
        return str(error)
    return ""
