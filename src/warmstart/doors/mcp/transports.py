"""The server's transports: standard input and output, or HTTP on this machine."""

from __future__ import annotations

import hmac
import ipaddress
import os
import socket
import sys
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Receive, Scope, Send

from warmstart.doors.mcp.unreadable import Incoming, mend_messages
from warmstart.errors import ConfigError, Refused

MAX_BODY = 1 << 20
MAX_CLIENTS = 100
_BACKLOG = 128
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


async def serve_stdio(server: Server[Any]) -> None:
    """Serve until the client closes our input. Anything printed meanwhile goes to standard error."""
    async with stdio_server() as (incoming, outgoing), anyio.create_task_group() as tasks:
        onward, readable = anyio.create_memory_object_stream[Incoming]()
        tasks.start_soon(mend_messages, incoming, onward, outgoing.send)
        await server.run(readable, outgoing, server.create_initialization_options())
        tasks.cancel_scope.cancel()


async def serve_http(server: Server[Any], listener: socket.socket, token: str | None) -> None:
    """Serve until a signal. The SDK refuses requests whose Host or Origin is not this machine (DNS rebinding)."""
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    hosts = [f"{name}:{port}" for name in (*_LOOPBACK, shown)]
    security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts])
    app: ASGIApp = server.streamable_http_app(
        transport_security=security, max_request_body_size=MAX_BODY, max_sessions=MAX_CLIENTS
    )
    if token is not None:
        app = TokenCheck(app, token)
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=5)
    sys.stderr.write(f"warmstart mcp: listening on http://{shown}:{port}/mcp\n")
    await uvicorn.Server(config).serve(sockets=[listener])


class TokenCheck:
    """Refuses callers without the token: on a shared machine every user can reach a local port."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self._wanted):
                headers = [(b"www-authenticate", b"Bearer"), (b"content-length", b"0")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": b""})
                return
        await self._app(scope, receive, send)


def open_listener(host: str, port: int) -> socket.socket:
    """Open a socket for this machine only: nothing but an optional token protects the templates."""
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host.strip("[]"))
    except ValueError as error:
        raise ConfigError(f"--host {host}: give an address like 127.0.0.1 or ::1") from error
    if not address.is_loopback:
        raise Refused(
            f"--host {host}: not a loopback address (127.0.0.1, ::1); to reach the server from elsewhere, use a tunnel"
        )
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    if os.name == "posix":  # on Windows it would share a port that is in use
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((str(address), port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise Refused(f"{host}:{port}: {(error.strerror or str(error)).lower()}; choose another --port") from error
    return listener


def read_token(path: Path | None) -> str | None:
    """Read the token from a file, so that it appears in no process list."""
    if path is None:
        return None
    try:
        token = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--token-file {path}: cannot be read: {error}") from error
    if len(token) < 16 or not token.isascii() or not token.isprintable():
        raise ConfigError(f"--token-file {path}: a token needs at least 16 printable ASCII characters")
    return token
