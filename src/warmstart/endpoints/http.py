"""The one HTTP client, on the standard library.

- Proxies: as urllib finds them (HTTP_PROXY, HTTPS_PROXY, NO_PROXY, the system's settings). Loopback is always direct.
- Redirects: never followed. Credentials are for the configured server and no other.
- Retries: lost connections and the statuses in `RETRIED`, up to `tries` attempts, with a growing pause or the one that
  `Retry-After` gives in seconds. A timeout is not retried: the caller has waited long enough.
- Limits: every answer has a largest size and a time in which it must be complete.
"""

from __future__ import annotations

import http.client
import ipaddress
import re
import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from warmstart.errors import ConfigError, WarmstartError

TRIES = 3
RETRIED = frozenset((408, 409, 429, 500, 502, 503, 504, 529))
_FIRST_PAUSE, _GROWTH = 0.5, 4  # seconds before the second attempt, and the factor for every further one
_LONGEST_PAUSE = 10.0  # seconds, whatever the server asks for
_CHUNK = 1 << 16
_PORTS = {"http": 80, "https": 443}
_LOGIN = re.compile(r"//[^/?#]*@")


class HttpError(WarmstartError):
    """The server gave no usable answer."""


class NoAnswer(HttpError):
    """The server cannot be reached, or the connection broke."""


class TimedOut(HttpError):
    """The server did not answer in time."""


class Redirected(HttpError):
    """The server answered with a redirect."""


class TooLarge(HttpError):
    """The answer is larger than the caller takes."""


class HttpResponse(NamedTuple):
    """An answer of any status but a redirect."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes


class Proxy(NamedTuple):
    """An HTTP proxy and the headers it wants."""

    host: str
    port: int
    headers: dict[str, str]


class HttpClient:
    """Talks to one server.

    `proxied=False` ignores all proxy settings, for servers that no environment variable may put somebody in front of.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float,
        largest: int,
        tries: int = TRIES,
        proxied: bool = True,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._scheme, self._host, self._port, self.base_path = parse_url(url)
        self._timeout, self._largest, self._tries, self._sleep = timeout, largest, tries, sleep
        self._proxy = find_proxy(self._scheme, self._host, self._port) if proxied else None

    def send(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> HttpResponse:
        """Send a request, again where that may help, and return the answer. Raises HttpError."""
        for attempt in range(self._tries):
            is_last = attempt + 1 == self._tries
            pause = 0.0
            try:
                with self.open() as connection:
                    response = self.exchange(connection, method, path, body, headers)
                if is_last or response.status not in RETRIED:
                    return response
                pause = _read_pause(response.headers.get("Retry-After"))
            except NoAnswer:
                if is_last:
                    raise
            self._sleep(min(pause or _FIRST_PAUSE * _GROWTH**attempt, _LONGEST_PAUSE))
        raise AssertionError("unreachable")

    @contextmanager
    def open(self) -> Iterator[http.client.HTTPConnection]:
        """Yield a connection for one or more exchanges. Trouble inside the block leaves it as an HttpError."""
        connection = self._connect()
        try:
            yield connection
        except TimeoutError as error:
            raise TimedOut(f"{self.name} did not answer in {self._timeout:g} seconds") from error
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) if isinstance(error, OSError) else type(error).__name__
            raise NoAnswer(f"{self.name} cannot be reached: {reason}") from error
        except ValueError as error:  # its text may show the header, which may be a key
            raise HttpError(f"{self.name}: a header of the request holds characters that HTTP forbids") from error
        finally:
            connection.close()

    def exchange(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> HttpResponse:
        """Send one request over an open connection and read the whole answer."""
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        if 300 <= answer.status < 400:
            raise Redirected(
                f"{self.name} answered with a redirect, which is not followed; configure the final address"
            )
        return HttpResponse(answer.status, answer.headers, self._read(answer))

    def _read(self, answer: http.client.HTTPResponse) -> bytes:
        """Read the body within the timeout; a socket's own timeout would start again with every byte."""
        deadline = time.monotonic() + self._timeout
        data = bytearray()
        while chunk := answer.read1(_CHUNK):
            data += chunk
            if len(data) > self._largest:
                raise TooLarge(f"{self.name} answered with more than {self._largest:,} bytes")
            if time.monotonic() > deadline:
                raise TimeoutError
        if answer.length:
            raise NoAnswer(f"{self.name} closed the connection before its answer was complete")
        return bytes(data)

    def _connect(self) -> http.client.HTTPConnection:
        proxy, timeout = self._proxy, self._timeout
        if self._scheme == "http":
            if proxy:
                return _ForwardedConnection(proxy, _join(self._host, self._port), timeout)
            return http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        context = ssl.create_default_context()
        if proxy is None:
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=context)
        connection = http.client.HTTPSConnection(proxy.host, proxy.port, timeout=timeout, context=context)
        connection.set_tunnel(self._host, self._port, proxy.headers)
        return connection

    @property
    def name(self) -> str:
        """The server's host and port, for messages."""
        through = f" (through the proxy {_join(self._proxy.host, self._proxy.port)})" if self._proxy else ""
        return _join(self._host, self._port) + through


class _ForwardedConnection(http.client.HTTPConnection):
    """Plain HTTP through a proxy, which wants the whole URL in the request line."""

    def __init__(self, proxy: Proxy, target: str, timeout: float) -> None:
        super().__init__(proxy.host, proxy.port, timeout=timeout)
        self._origin, self._proxy_headers = f"http://{target}", proxy.headers

    def putrequest(self, method: str, url: str, *args: Any, **kwargs: Any) -> None:
        super().putrequest(method, self._origin + url, *args, **kwargs)
        for name, value in self._proxy_headers.items():
            self.putheader(name, value)


def find_proxy(scheme: str, host: str, port: int) -> Proxy | None:
    """Return the proxy that the environment or the system names for a server."""
    if is_loopback(host):
        return None
    from urllib.request import getproxies, proxy_bypass  # 25 ms, which guards of a local daemon need not wait for

    url = getproxies().get(scheme)
    if not url or proxy_bypass(_join(host, port)):
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    try:
        proxy_host, proxy_port = parts.hostname, parts.port
    except ValueError:
        proxy_host = proxy_port = None
    if parts.scheme not in _PORTS or not proxy_host:
        raise ConfigError(f"{scheme.upper()}_PROXY={_hide_login(url)}: give an address such as http://proxy:3128")
    headers = {}
    if parts.username:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Proxy-Authorization"] = f"Basic {b64encode(login.encode()).decode()}"
    return Proxy(proxy_host, proxy_port or 80, headers)


def is_loopback(host: str) -> bool:
    """Say whether a host name or address can only be this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def parse_url(url: str) -> tuple[str, str, int, str]:
    """Return scheme, host, port and path without a trailing slash."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ConfigError(f"{_hide_login(url)}: no valid address: check host and port") from None
    if parts.scheme not in _PORTS or not host or "@" in parts.netloc or parts.query:
        raise ConfigError(
            f"{_hide_login(url)}: an address must look like https://host/path, without name, password or query"
        )
    return parts.scheme, host, port or _PORTS[parts.scheme], parts.path.rstrip("/")


def _hide_login(url: str) -> str:
    return _LOGIN.sub("//***@", url.partition("?")[0])


def _join(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _read_pause(text: str | None) -> float:
    """Return the seconds of a `Retry-After`; 0 for a date, which servers of this kind do not send."""
    return float(text) if text and text.strip().isdecimal() else 0.0
