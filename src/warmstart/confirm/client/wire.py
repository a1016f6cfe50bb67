"""One call to the daemon: HTTP by the standard library, errors as the exceptions they stand for."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from warmstart import config
from warmstart.confirm import errors
from warmstart.confirm.errors import ConfirmationError, Unreachable
from warmstart.confirm.model import HumanDecision
from warmstart.confirm.tokens.files import AGENT_TOKEN, need_token
from warmstart.confirm.tokens.proof import check_daemon
from warmstart.errors import ConfigError, NotFound

DEFAULT_URL = "http://127.0.0.1:6000"
_MOST = 4 << 20  # bytes of an answer

_KINDS: dict[int, type[ConfirmationError]] = {
    400: errors.BadRequest,
    401: errors.Unauthorized,
    403: errors.NotAllowed,
    409: errors.Conflict,
    410: errors.Expired,
    413: errors.BadRequest,
    415: errors.BadRequest,
    422: errors.KeyReused,
}


class Daemon(NamedTuple):
    """Where to ask, and as whom."""

    url: str
    token: str


def find_daemon(home: Path | None = None, file: str = AGENT_TOKEN) -> Daemon:
    """From WARMSTART_CONFIRM_URL and WARMSTART_CONFIRM_TOKEN, else the token file under the home."""
    said = config.load_confirmation()
    token = said.token or need_token((home or config.find_homes()[1]) / file)
    return Daemon(said.url or DEFAULT_URL, token)


def call(
    daemon: Daemon,
    method: str,
    path: str,
    body: Any = None,
    *,
    headers: dict[str, str] | None = None,
    timeout: float = 30.0,
) -> dict[str, Any]:
    """What the daemon answers. Raises the exception that an error stands for, Unreachable where there is no sense."""
    connection = _connect(daemon.url, timeout)
    sent = {"Authorization": f"Bearer {daemon.token}", "Accept": "application/json"} | (headers or {})
    data = None
    if body is not None:
        data = json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
        sent["Content-Type"] = "application/json"
    try:
        if daemon.token:
            check_daemon(connection, daemon.token)
        connection.request(method, path, data, sent)
        answer = connection.getresponse()
        status, text = answer.status, answer.read(_MOST)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unreachable(f"{daemon.url}: the confirmation daemon cannot be reached: {error}") from error
    finally:
        connection.close()
    value = _parse(text) if text else {}
    if status in (200, 201, 202, 204):
        return value
    raise make_error(status, value, daemon.url)


def _connect(url: str, timeout: float) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError(f"WARMSTART_CONFIRM_URL={url}: give an address such as {DEFAULT_URL}")
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return kind(host, port, timeout=timeout)


def _parse(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Unreachable("an answer that is no JSON object: is that the confirmation daemon?")
    return value


def make_error(status: int, value: dict[str, Any], url: str) -> Exception:
    """The exception that an answer stands for."""
    said, code = str(value.get("error", ""))[:500], str(value.get("code", ""))
    if status == 404:
        return NotFound(said)
    if status == 429:
        wait = value.get("retry_after_seconds")
        limit = value.get("limit")
        return errors.RateLimited(
            said, limit=limit if isinstance(limit, int) else 0, retry_after=wait if isinstance(wait, int) else 0
        )
    if code == "denied_by_policy":
        return errors.Denied(said, code=code)
    kind = _KINDS.get(status)
    if kind is None or not said:
        return Unreachable(f"{url}: answered {status} {said}".strip())
    return kind(said, code=code, decision=_read_stored(value.get("decision")))


def _read_stored(found: Any) -> HumanDecision | None:
    if not isinstance(found, dict):
        return None
    return HumanDecision(
        status=found.get("status", "denied"), by=str(found.get("by", "")), reason=str(found.get("reason", "")), at=0
    )
