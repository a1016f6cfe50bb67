"""The daemon's settings: addresses to listen on, policy, host names and origins."""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from warmstart.config import find_homes
from warmstart.confirm.policy.policy import Policy, load_policy
from warmstart.confirm.store.open import locate
from warmstart.confirm.store.protocol import Database, ServerAddress
from warmstart.doors.web.views import Addresses
from warmstart.errors import ConfigError, Refused

_LOCAL = ("127.0.0.1", "localhost", "::1")


class ServerOptions(TypedDict, total=False):
    """The options of `ConfirmationServer`."""

    database: Database  # the SQLite file, or postgresql://...; default: confirm.db under the home
    host: str  # to listen on
    port: int  # of the API; 0: any
    ui_port: int  # of the page; 0: any
    policy: Policy | Path | str | None  # a policy or its file
    rate_limit: int | None  # requests for one action per hour, unless a rule sets it
    pending_limit: int | None  # requests of one token that may wait at a time, instead of the policy's
    cool_down: int | None  # seconds after a denial, instead of the policy's
    allow_hosts: Sequence[str]  # further host names of the daemon
    public_url: str  # of the page, if a proxy or tunnel stands before it
    secrets: Mapping[str, str]  # the user's own, to be masked
    notify: Sequence[str]  # apprise addresses, in addition to the policy's
    anchors: Sequence[str]  # places elsewhere for the audit's anchor; see confirm/audit/elsewhere.py


class ServerSettings(Struct, frozen=True, kw_only=True):
    """The options, checked."""

    database: Path | ServerAddress
    host: str
    port: int
    ui_port: int
    policy: Policy
    allow_hosts: tuple[str, ...]
    public_url: str
    secrets: dict[str, str]
    notify: tuple[str, ...]
    anchors: tuple[str, ...] = ()


def make_settings(options: ServerOptions) -> ServerSettings:
    """Check the options. Raise ConfigError for an invalid one."""
    unknown = set(options) - set(ServerOptions.__annotations__)
    if unknown:
        raise ConfigError(f"unknown option: {', '.join(sorted(unknown))}")
    policy = options.get("policy") or Policy()
    if not isinstance(policy, Policy):
        policy = load_policy(Path(policy))
    if (limit := options.get("rate_limit")) is not None:
        if limit < 1:
            raise ConfigError("rate limit: at least 1 an hour")
        policy = msgspec.structs.replace(policy, defaults=msgspec.structs.replace(policy.defaults, rate_limit=limit))
    for name, field in (("pending_limit", "pending_limit"), ("cool_down", "cool_down_seconds")):
        value = options.get(name)
        if isinstance(value, int):
            policy = msgspec.structs.replace(
                policy, defaults=msgspec.structs.replace(policy.defaults, **{field: value})
            )
    return ServerSettings(
        database=locate(options["database"]) if "database" in options else find_homes()[1] / "confirm.db",
        host=options.get("host", "127.0.0.1").strip("[]"),
        port=options.get("port", 6000),
        ui_port=options.get("ui_port", 6080),
        policy=policy,
        allow_hosts=tuple(options.get("allow_hosts", ())),
        public_url=_check_url(options.get("public_url", "")),
        secrets=dict(options.get("secrets", {})),
        notify=(*policy.notify, *options.get("notify", ())),
        anchors=tuple(options.get("anchors", ())),
    )


def _check_url(url: str) -> str:
    if not url:
        return ""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ConfigError(f"{url}: give the page's address as browsers see it, such as https://box.example.net")
    if parts.path.strip("/"):
        own = f"{parts.scheme}://{parts.netloc}"
        raise ConfigError(f"{url}: the page cannot be served under a path; give only {own}")
    return url.rstrip("/")


def open_listener(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise ConfigError(f"{host}: not an address of this machine: {error}") from error
    # IPPROTO_TCP is explicit because asyncio sets TCP_NODELAY only then; otherwise small answers take 40 ms longer
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(512)
    except OSError as error:
        listener.close()
        raise Refused(f"{host}:{port}: {_explain(error)}") from error
    listener.setblocking(False)
    return listener


def _explain(error: OSError) -> str:
    """Say why the address cannot be used, and what to do."""
    match error.errno:
        case errno.EADDRNOTAVAIL:
            return "this machine has no such address; choose one of its own, or 0.0.0.0 for all of them"
        case errno.EADDRINUSE:
            return "the port is in use, perhaps by another daemon; choose another port"
        case errno.EACCES:
            return "only root may listen on this port; choose one above 1023"
        case _:
            return (error.strerror or str(error)).lower()


def find_addresses(settings: ServerSettings, api: socket.socket, page: socket.socket) -> Addresses:
    host = "127.0.0.1" if _is_unspecified(settings.host) else settings.host
    shown = f"[{host}]" if ":" in host else host
    api_port, page_port = (listener.getsockname()[1] for listener in (api, page))
    return Addresses(f"http://{shown}:{api_port}", settings.public_url or f"http://{shown}:{page_port}")


def _is_unspecified(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


class ListeningPlace(Struct, frozen=True):
    """A port, and how clients may name it."""

    port: int
    hosts: frozenset[str]  # names that a Host header may carry
    origins: frozenset[str]  # of our own page on that port
    forwarded: frozenset[str]  # names and `name:port` at which a proxy or tunnel may lead here

    def leads_here(self, authority: str) -> bool:
        """Return whether clients that name this `host:port` reach us. Another port of this machine is another program's,
        unless it was named with --allow-host."""
        host, _, port = authority.lower().rpartition(":")
        host = host.strip("[]")
        if host not in self.hosts:
            return False
        return port == str(self.port) or host in self.forwarded or authority.lower() in self.forwarded


def find_place(settings: ServerSettings, listener: socket.socket) -> ListeningPlace:
    port = listener.getsockname()[1]
    return ListeningPlace(
        port, frozenset(find_hosts(settings)), frozenset(find_origins(settings, listener)), _find_forwarded(settings)
    )


def _find_forwarded(settings: ServerSettings) -> frozenset[str]:
    public = urlsplit(settings.public_url).hostname
    names = {host.lower() for host in settings.allow_hosts if host.lower() not in _LOCAL}
    return frozenset({*names, *([public] if public else [])})


def find_hosts(settings: ServerSettings) -> set[str]:
    """Return the names that a Host header may carry. The unspecified address (0.0.0.0) is not one of them."""
    own = {settings.host} if not _is_unspecified(settings.host) else set()
    public = urlsplit(settings.public_url).hostname
    allowed = {_drop_port(host) for host in settings.allow_hosts}
    return {host.lower() for host in {*_LOCAL, *own, *allowed, *([public] if public else [])}}


def _drop_port(host: str) -> str:
    """Return the name of `name:port` or `[v6]:port`; a bare IPv6 address has no port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0] if host.count(":") == 1 else host


def find_origins(settings: ServerSettings, listener: socket.socket) -> set[str]:
    """Return the origins of our own page on that port."""
    port = listener.getsockname()[1]
    hosts = (f"[{host}]" if ":" in host else host for host in find_hosts(settings))
    public = urlsplit(settings.public_url)
    origins = {f"http://{host}:{port}" for host in hosts} | {f"https://{host}" for host in settings.allow_hosts}
    origins |= {f"http://{host}" for host in settings.allow_hosts if host != _drop_port(host)}
    return origins | ({f"{public.scheme}://{public.netloc}"} if settings.public_url else set())
