"""Find out whether the daemon with a certain key answers at an address. Nothing secret is sent."""

from __future__ import annotations

from warmstart.confirm.client.wire import Daemon, call, name_authority
from warmstart.confirm.errors import UntrustedDaemon
from warmstart.confirm.tokens.identity import write_key
from warmstart.confirm.tokens.proof import KEY, NONCE, SIGNATURE, DaemonCheck, SignedAnswer
from warmstart.endpoints.http import HttpClient, HttpError

_SECONDS = 5.0
_MOST = 1 << 16  # bytes of the answer


def reach_daemon(url: str, key: str) -> str:
    """Return the address of the page that the daemon states. Raise Unreachable if nobody answers there, UntrustedDaemon if
    it is another program."""
    health = call(Daemon(url, "", key), "GET", "/health", timeout=_SECONDS)
    return str(health.get("page_url", ""))


def fetch_key(url: str) -> str:
    """Return the key that the program at an address shows and proves to hold. Whether it is the right one, only a person
    who has seen it elsewhere can say. Raise UntrustedDaemon if it proves none."""
    client = HttpClient(url, timeout=_SECONDS, largest=_MOST, proxied=False)
    authority = name_authority(url)
    question = DaemonCheck(authority, write_key(bytes(32))).ask()
    try:
        with client.open() as connection:
            response = client.exchange(connection, "GET", "/health", None, {NONCE: question})
    except HttpError as error:
        raise UntrustedDaemon(f"no confirmation daemon answers: {error}") from error
    key = response.headers.get(KEY, "")
    if not key:
        raise UntrustedDaemon(f"{authority}: the program there shows no key; is it a confirmation daemon of today?")
    answer = SignedAnswer(question, "GET", "/health", response.status, response.body)
    DaemonCheck(authority, key).verify(answer, response.headers.get(SIGNATURE, ""))
    return key
