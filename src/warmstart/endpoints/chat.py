"""One client for OpenAI-compatible endpoints, and one that answers from a script.

Small on purpose: a chat completion goes out, an answer comes back. Plain HTTP of the standard library, so that the core
needs no SDK. The body is written as the official SDK writes it, byte for byte, because providers cache by prefix.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, field

from warmstart.dialects.providers import text_of_content
from warmstart.errors import ConfigError, WarmstartError

_LARGEST = 32_000_000  # bytes of an answer
_TRIES = 3
_PAUSES = (0.5, 2.0)  # seconds before the second and third try
_LONGEST_PAUSE = 10.0  # that an endpoint may ask for
_AGAIN = frozenset((408, 409, 429, 500, 502, 503, 504, 529))
_REFUSALS = frozenset((400, 413, 414, 422, 431))
_TOLD, _LOOKED_AT = 200, 4_000  # characters shown of an endpoint's own error, and those that secrets are looked for in
_ERROR = 1 << 16  # bytes of an error that are read
_SECRET = 4  # characters; what is shorter hides nothing


class EndpointError(WarmstartError):
    """The model's endpoint gave no usable answer."""


class RequestRefused(EndpointError):
    """The endpoint lives and takes this one request amiss: too long for the model, say. The next may be welcome."""


class Endpoint(Struct, frozen=True, kw_only=True):
    """Where a model is asked. The key appears in no error and in no repr."""

    url: str  # up to and with /v1
    key: str = ""
    headers: dict[str, str] = field(default_factory=dict)  # further ones
    timeout: float = 120.0  # seconds for one answer

    def __repr__(self) -> str:
        return f"Endpoint(url={self.url!r})"


class AskedCall(Struct, frozen=True):
    """A tool call that a model asks for."""

    id: str
    name: str
    arguments: str  # JSON, as far as the model can write it


class Reply(Struct, frozen=True, kw_only=True):
    """What a model answered."""

    text: str = ""
    calls: tuple[AskedCall, ...] = ()
    prompt_tokens: int | None = None  # None is not told, here and below
    cached_tokens: int | None = None  # part of the prompt's
    answer_tokens: int | None = None


class LLM(Protocol):
    """Answers one request, whose body is given as it goes out."""

    def ask(self, body: bytes) -> Reply: ...


class HttpLLM:
    """Asks an endpoint. Redirects are refused: the key belongs to the host that was configured and to no other."""

    def __init__(self, endpoint: Endpoint, sleep: Callable[[float], None] = time.sleep) -> None:
        parts = urlsplit(endpoint.url)
        try:
            port = parts.port
        except ValueError as error:
            raise ConfigError(f"the endpoint's address has no valid port: {parts.hostname}") from error
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise ConfigError("the endpoint's address must look like https://host/v1, without name, password or query")
        self._host, self._port, self._secure = parts.hostname, port, parts.scheme == "https"
        self._path = parts.path.rstrip("/") + "/chat/completions"
        self._endpoint = endpoint
        self._sleep = sleep

    def ask(self, body: bytes) -> Reply:
        for attempt in range(_TRIES):
            status, pause, data, trouble = self._try(body)
            if status == 200:
                return read_reply(data)
            if attempt + 1 == _TRIES or (status and status not in _AGAIN):
                raise self._complain(status, data, trouble)
            self._sleep(min(pause or _PAUSES[attempt], _LONGEST_PAUSE))
        raise AssertionError("unreachable")

    def _complain(self, status: int, data: bytes, trouble: str) -> EndpointError:
        """With the endpoint's own words, which alone tell what to do; a key that it repeats is not shown."""
        if not status:
            return EndpointError(f"{self._host} {trouble}")
        said = self._hide(_find_words(data[:_ERROR])[:_LOOKED_AT])
        kind: type[EndpointError] = RequestRefused if status in _REFUSALS else EndpointError
        return kind(f"{self._host} answered with status {status}{f': {said}' if said else ''}")

    def _hide(self, text: str) -> str:
        from warmstart.redact import Redactor  # heavy, and seldom needed

        for secret in (self._endpoint.key, *self._endpoint.headers.values()):
            text = text.replace(secret, "[hidden]") if len(secret) >= _SECRET else text
        line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
        shown = Redactor().scope().text(line)
        return shown if len(shown) <= _TOLD else f"{shown[:_TOLD]}..."

    def _try(self, body: bytes) -> tuple[int, float, bytes, str]:
        """Status (0: none came), pause asked for, answer, what went wrong."""
        connection = self._connect()
        try:
            connection.request("POST", self._path, body, self._headers())
            answer = connection.getresponse()
            if 300 <= answer.status < 400:
                raise EndpointError(f"{self._host} answered with a redirect, which is not followed")
            data = self._read(answer)
            return answer.status, _read_pause(answer.getheader("Retry-After")), data, ""
        except TimeoutError as error:
            raise EndpointError(f"{self._host} did not answer in {self._endpoint.timeout:g} seconds") from error
        except (OSError, http.client.HTTPException) as error:
            return 0, 0.0, b"", f"cannot be reached ({type(error).__name__})"
        finally:
            connection.close()

    def _read(self, answer: http.client.HTTPResponse) -> bytes:
        """All of it, in the time that an answer has: a timeout of sockets begins anew with every byte."""
        deadline = time.monotonic() + self._endpoint.timeout
        data = bytearray()
        while chunk := answer.read1(1 << 16):
            data += chunk
            if time.monotonic() > deadline:
                raise TimeoutError
            if len(data) > _LARGEST:
                raise EndpointError(f"{self._host} answered with more than {_LARGEST:,} bytes")
        return bytes(data)

    def _connect(self) -> http.client.HTTPConnection:
        timeout = self._endpoint.timeout
        if self._secure:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=context)
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout)

    def _headers(self) -> dict[str, str]:
        key = {"Authorization": f"Bearer {self._endpoint.key}"} if self._endpoint.key else {}
        return {"Content-Type": "application/json", "Accept": "application/json", **key, **self._endpoint.headers}


class ScriptedLLM:
    """Gives prepared answers in turn and keeps what it was asked; for tests and for trying things out.

    An answer may be a function of the request, or an exception to be raised. After the last one it says "Done.".
    """

    def __init__(self, replies: Iterable[Reply | Exception | Callable[[Any], Reply]] = ()) -> None:
        self._replies = iter(replies)
        self.bodies: list[bytes] = []

    def ask(self, body: bytes) -> Reply:
        self.bodies.append(body)
        reply = next(self._replies, Reply(text="Done."))
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, Reply) else reply(json.loads(body))


def write_body(request: Mapping[str, Any]) -> bytes:
    """As the official SDK writes it. Lone surrogates, which no UTF-8 has, become question marks."""
    return json.dumps(request, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")


def read_reply(data: bytes) -> Reply:
    """A chat completion's answer, read leniently: servers differ. Raises EndpointError where it is none."""
    try:
        return _read(_decode(data))
    except (ValueError, RecursionError) as error:  # those of msgspec are ValueErrors too
        raise EndpointError("the endpoint's answer is no chat completion") from error


def _read(answer: _Answer) -> Reply:
    if not answer.choices:
        raise EndpointError("the endpoint's answer holds no choice")
    message, usage = answer.choices[0].message or _Message(), answer.usage or _Usage()
    return Reply(
        text=text_of_content(message.content),
        calls=tuple(
            AskedCall(_write_id(call.id), call.function.name, _write_arguments(call.function.arguments))
            for call in message.tool_calls or ()
            if call.function is not None and call.function.name is not None
        ),
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else None,
        answer_tokens=usage.completion_tokens,
    )


def _decode(data: bytes) -> _Answer:
    """A model can escape half a character, which a strict reader refuses: that becomes a question mark."""
    try:
        return msgspec.json.decode(data, type=_Answer, strict=False)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        whole = json.dumps(json.loads(data), ensure_ascii=False).encode("utf-8", "replace")
        return msgspec.json.decode(whole, type=_Answer, strict=False)


def _write_id(id: Any) -> str:
    return "" if id is None else str(id)


def _write_arguments(arguments: Any) -> str:
    """As JSON text. Some servers give the object itself."""
    if isinstance(arguments, str):
        return arguments or "{}"
    return "{}" if arguments is None else json.dumps(arguments, ensure_ascii=False)


def _find_words(data: bytes) -> str:
    """What an error's body says: the message in it where it has one, else all of it."""
    text = data.decode("utf-8", "replace")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    for name in ("error", "message", "detail"):
        if isinstance(found, dict) and found.get(name):
            found = found[name]
    return found if isinstance(found, str) else text


def _read_pause(text: str | None) -> float:
    """Seconds; a date is not worth the reading."""
    return float(text) if text and text.strip().isdecimal() else 0.0


class _Function(Struct):
    name: str | None = ""
    arguments: Any = None


class _Call(Struct):
    id: Any = None
    function: _Function | None = None


class _Message(Struct):
    content: Any = None
    tool_calls: list[_Call] | None = None


class _Choice(Struct):
    message: _Message | None = None


class _Cached(Struct):
    cached_tokens: int | None = None


class _Usage(Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Cached | None = None


class _Answer(Struct):
    choices: list[_Choice] = field(default_factory=list)
    usage: _Usage | None = None
