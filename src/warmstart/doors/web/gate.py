"""The outermost layer, before any route: checks host, origin and kind of body, and adds security headers to every answer.
It stops DNS rebinding, cross-site requests and forms."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from warmstart.confirm.canonical import MAX_BODY
from warmstart.doors.web.views import ErrorView

_LATE = 5.0  # seconds
_SAFE = ("GET", "HEAD", "OPTIONS")
_HOST = re.compile(rb"(?:\[([0-9a-f.%]*:[0-9a-z:.%]*)\]|([a-z0-9._-]+))(?::[0-9]{1,5})?", re.IGNORECASE)
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; manifest-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]


class _Refusal(Exception):
    def __init__(self, status: int, code: str, error: str) -> None:
        self.status = status
        self.body = msgspec.json.encode(ErrorView(error, code))


class Gate:
    """Wraps an application. `hosts` are names without ports, `origins` are complete (http://127.0.0.1:6080), `methods`
    are those of each path."""

    def __init__(
        self,
        app: ASGIApp,
        hosts: Iterable[str],
        origins: Iterable[str],
        methods: Mapping[str, Sequence[str]],
        is_crowded: Callable[[], bool] = lambda: False,
    ) -> None:
        """While it is crowded, refusals are answered late: programs that ask for them again and again wait."""
        self._app = app
        self._is_crowded = is_crowded
        self._methods = methods
        self._hosts = {host.lower() for host in hosts}
        self._origins = {origin.lower() for origin in origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            return  # only HTTP is served

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                if 400 <= message["status"] < 500 and self._is_crowded():
                    await asyncio.sleep(_LATE)
                present = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(pair for pair in HEADERS if pair[0] not in present)]
                if scope["method"] == "OPTIONS":
                    self._set_allow(scope, message)
            await send(message)

        try:
            self._check(scope)
        except _Refusal as refusal:
            await _refuse(refusal, send_with_headers)
            return
        await self._app(scope, _limit(receive), send_with_headers)

    def _set_allow(self, scope: Any, message: Any) -> None:
        """Name all methods of a path: Litestar names only those of its first route."""
        known = self._methods.get(scope.get("path_template", ""))
        if known:
            rest = [pair for pair in message["headers"] if pair[0].lower() != b"allow"]
            message["headers"] = [*rest, (b"allow", ", ".join(known).encode())]

    def _check(self, scope: Any) -> None:
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        self._check_host(headers.get(b"host", []))
        if scope["method"] not in _SAFE:
            self._check_origin(headers)
            _check_body(headers)

    def _check_host(self, given: list[bytes]) -> None:
        """Refuse names that are not ours: an attacker's DNS may point one at this machine."""
        if len(given) != 1 or _read_host(given[0]) not in self._hosts:
            raise _Refusal(
                403,
                "bad_host",
                "this server does not know the host name; use the address that it printed (confirm serve: --allow-host NAME)",
            )

    def _check_origin(self, headers: dict[bytes, list[bytes]]) -> None:
        origins = headers.get(b"origin", [])
        if any(origin.decode("latin-1").lower() not in self._origins for origin in origins):
            raise _Refusal(403, "bad_origin", "requests from other pages are refused")
        if any(site != b"same-origin" for site in headers.get(b"sec-fetch-site", [])):
            raise _Refusal(403, "bad_origin", "requests from other pages are refused")


def _check_body(headers: dict[bytes, list[bytes]]) -> None:
    kinds = headers.get(b"content-type", [])
    lengths = headers.get(b"content-length", [b"0"])
    has_body = b"transfer-encoding" in headers or any(length.strip() != b"0" for length in lengths)
    if (kinds or has_body) and (len(kinds) != 1 or kinds[0].split(b";")[0].strip().lower() != b"application/json"):
        raise _Refusal(415, "not_json", "send JSON, with Content-Type: application/json")
    if any(length.isdigit() and int(length) > MAX_BODY for length in lengths):
        raise _Refusal(413, "too_large", f"the body is larger than {MAX_BODY >> 10} KiB")


def _read_host(header: bytes) -> str:
    """Return the host of a Host header, without port and brackets; empty for anything but `name:port` and `[v6]:port`,
    which another parser might read differently."""
    match = _HOST.fullmatch(header)
    return (match[1] or match[2]).decode().lower() if match else ""


def _limit(receive: Receive) -> Receive:
    """Cut off a body that did not announce its length, and one whose sender has gone."""
    taken = 0
    is_whole = False

    async def receive_some() -> Any:
        nonlocal taken, is_whole
        message = await receive()
        if message["type"] == "http.request":
            taken += len(message["body"])
            is_whole = not message.get("more_body", False)
            if taken > MAX_BODY:
                raise BodyTooLarge
        elif not is_whole:
            raise SenderGone
        return message

    return receive_some


class BodyTooLarge(Exception):
    """The body is larger than allowed."""


class SenderGone(Exception):
    """The sender went away before the whole body had arrived; nobody reads the answer."""


async def _refuse(refusal: _Refusal, send: Send) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(refusal.body)).encode())]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": refusal.body, "more_body": False})
