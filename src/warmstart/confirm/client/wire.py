"""One HTTP call to the confirmation daemon; an error answer becomes the matching exception."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from warmstart import config
from warmstart.confirm import errors
from warmstart.confirm.errors import ConfirmationError, Unreachable, UntrustedDaemon
from warmstart.confirm.model import HumanDecision
from warmstart.confirm.tokens.files import AGENT_TOKEN, need_token
from warmstart.confirm.tokens.identity import split_token
from warmstart.confirm.tokens.proof import NONCE, SIGNATURE, DaemonCheck, SignedAnswer, check_daemon
from warmstart.endpoints.http import HttpClient, HttpError, parse_url
from warmstart.errors import ConfigError, NotFound

DEFAULT_URL = "http://127.0.0.1:6000"
_LARGEST = 4 << 20  # bytes of an answer

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
    """The daemon's address, the caller's token, and the key by which the daemon is known."""

    url: str
    token: str
    key: str = ""  # pinned elsewhere, such as in a guard's command line; default: the one in the token

    def find_key(self) -> str:
        """Return the pinned key. Raise UntrustedDaemon if there is none, or two that differ."""
        carried = split_token(self.token).key
        if self.key and carried and self.key != carried:
            raise UntrustedDaemon(
                f"{self.url}: the token belongs to a daemon with another key ({carried}) than the one pinned here "
                f"({self.key}). If the daemon got a new key on purpose: warmstart confirm trust, then install the guard "
                "again"
            )
        if key := self.key or carried:
            return key
        raise UntrustedDaemon(
            f"{self.url}: no key says which daemon to believe, because the token was made by an older Warmstart. "
            "Restart the daemon, or pin its key with: warmstart confirm trust"
        )


def find_daemon(home: Path | None = None, file: str = AGENT_TOKEN) -> Daemon:
    """Find the daemon by WARMSTART_CONFIRM_URL and WARMSTART_CONFIRM_TOKEN; the token else by its file in the home."""
    settings = config.load_confirmation()
    token = settings.token or need_token((home or config.find_homes()[1]) / file)
    return Daemon(settings.url or DEFAULT_URL, token)


def call(
    daemon: Daemon,
    method: str,
    path: str,
    body: Any = None,
    *,
    headers: dict[str, str] | None = None,
    timeout: float = 30.0,
) -> dict[str, Any]:
    """Return the daemon's answer. Raises the matching ConfirmationError, and Unreachable for a senseless answer.

    The token is only sent to the daemon whose key is pinned, and only an answer that it signed is believed. Nothing is
    retried: only the caller knows whether a request may be repeated.
    """
    client = _make_client(daemon.url, timeout)
    check = DaemonCheck(name_authority(daemon.url), daemon.find_key())
    question = check.ask()
    sent = {"Accept": "application/json", NONCE: question} | (headers or {})
    if daemon.token:
        sent["Authorization"] = f"Bearer {split_token(daemon.token).secret}"
    data = None
    if body is not None:
        data = json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
        sent["Content-Type"] = "application/json"
    try:
        with client.open() as connection:
            check_daemon(connection, check, daemon.token)
            response = client.exchange(connection, method, path, data, sent)
            answer = SignedAnswer(question, method, path, response.status, response.body)
            check.verify(answer, response.headers.get(SIGNATURE, ""))
    except HttpError as error:
        raise Unreachable(f"the confirmation daemon at {error}") from error
    value = _parse(response.body) if response.body else {}
    if response.status in (200, 201, 202, 204):
        return value
    raise make_error(response.status, value, daemon.url)


def name_authority(url: str) -> str:
    """Return `host:port` of an address, as the daemon's signature names it."""
    _, host, port, _ = parse_url(url)
    return f"[{host}]:{port}" if ":" in host else f"{host.lower()}:{port}"


def _make_client(url: str, timeout: float) -> HttpClient:
    """Return a client that goes to the daemon directly: an agent's environment must not put a proxy in between, which
    could hand the proof on and then answer in the daemon's place."""
    try:
        return HttpClient(url, timeout=timeout, largest=_LARGEST, proxied=False)
    except ConfigError as error:
        raise ConfigError(f"WARMSTART_CONFIRM_URL: {error}; an example is {DEFAULT_URL}") from error


def _parse(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Unreachable("the answer is not a JSON object: is that the confirmation daemon?")
    return value


def make_error(status: int, value: dict[str, Any], url: str) -> Exception:
    """Return the exception for an error answer."""
    message, code = str(value.get("error", ""))[:500], str(value.get("code", ""))
    if status == 404:
        return NotFound(message)
    if status == 429:
        wait = value.get("retry_after_seconds")
        limit = value.get("limit")
        return errors.RateLimited(
            message,
            limit=limit if isinstance(limit, int) else 0,
            retry_after=wait if isinstance(wait, int) else 0,
            code=code,
        )
    if code == "denied_by_policy":
        return errors.Denied(message, code=code)
    kind = _KINDS.get(status)
    if kind is None or not message:
        return Unreachable(f"{url}: answered {status} {message}".strip())
    return kind(message, code=code, decision=_read_stored(value.get("decision")))


def _read_stored(stored: Any) -> HumanDecision | None:
    if not isinstance(stored, dict):
        return None
    return HumanDecision(
        status=stored.get("status", "denied"), by=str(stored.get("by", "")), reason=str(stored.get("reason", "")), at=0
    )
