"""A client for OpenAI-compatible chat completions, and a fake one that answers from a script.

The body is written as the official SDK writes it, byte for byte, because providers cache by prefix.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import msgspec
from msgspec import Struct, field

from warmstart.dialects.providers import text_of_content
from warmstart.endpoints.http import HttpClient, HttpError, HttpResponse
from warmstart.errors import WarmstartError

_LARGEST = 32_000_000  # bytes of an answer
_REFUSALS = frozenset((400, 413, 414, 422, 431))
_ERROR_BYTES = 1 << 16  # of an error's body that are read
_SEARCHED = 4_000  # characters of an error's message that are searched for secrets
_SHOWN = 200  # characters of it that are shown
_SHORTEST_SECRET = 4  # characters


class EndpointError(WarmstartError):
    """The model's endpoint gave no usable answer."""


class RequestRefused(EndpointError):
    """The endpoint works but refuses this one request, for example as too long for the model."""


class Endpoint(Struct, frozen=True, kw_only=True):
    """The address of a model. The key appears in no error and in no repr."""

    url: str  # up to and with /v1
    key: str = ""
    headers: dict[str, str] = field(default_factory=dict)  # in addition to the usual ones
    timeout: float = 120.0  # seconds for one answer

    def __repr__(self) -> str:
        return f"Endpoint(url={self.url!r})"


class AskedCall(Struct, frozen=True):
    """A tool call that a model requests."""

    id: str
    name: str
    arguments: str  # JSON, if the model wrote it correctly


class Reply(Struct, frozen=True, kw_only=True):
    """A model's answer."""

    text: str = ""
    calls: tuple[AskedCall, ...] = ()
    thoughts: tuple[Any, ...] = ()  # parts of the answer that the provider wants back unchanged before its calls
    prompt_tokens: int | None = None  # None: not reported, here and below
    cached_tokens: int | None = None  # part of the prompt tokens
    answer_tokens: int | None = None


class LLM(Protocol):
    """Answers a request, which is the encoded body."""

    def ask(self, body: bytes) -> Reply: ...


class WireProtocol(Protocol):
    """What of a protocol a request needs: its path, its headers, and how its answer is read."""

    path: str

    def write_headers(self, key: str) -> dict[str, str]: ...
    def read_reply(self, data: bytes) -> Reply: ...


class HttpLLM:
    """Asks a model at an HTTP endpoint, by default in the protocol of chat completions."""

    def __init__(
        self, endpoint: Endpoint, sleep: Callable[[float], None] = time.sleep, form: WireProtocol | None = None
    ) -> None:
        self._client = HttpClient(endpoint.url, timeout=endpoint.timeout, largest=_LARGEST, sleep=sleep)
        self._endpoint = endpoint
        self._form = form

    def ask(self, body: bytes) -> Reply:
        """Send a request and return the model's answer. Raises EndpointError."""
        try:
            path = self._form.path if self._form else "/chat/completions"
            response = self._client.send("POST", f"{self._client.base_path}{path}", body, self._headers())
        except HttpError as error:
            raise EndpointError(str(error)) from error
        if response.status != 200:
            raise self._make_error(response)
        return self._form.read_reply(response.body) if self._form else read_reply(response.body)

    def _headers(self) -> dict[str, str]:
        key = {"Authorization": f"Bearer {self._endpoint.key}"} if self._endpoint.key else {}
        if self._form:
            key = self._form.write_headers(self._endpoint.key)
        return {"Content-Type": "application/json", "Accept": "application/json", **key, **self._endpoint.headers}

    def _make_error(self, response: HttpResponse) -> EndpointError:
        """Return the error for an answer, with the endpoint's own message: only that says what to do."""
        message = self._hide_secrets(_find_message(response.body[:_ERROR_BYTES])[:_SEARCHED])
        kind = RequestRefused if response.status in _REFUSALS else EndpointError
        reason = f": {message}" if message else ""
        return kind(f"{self._client.name} answered with status {response.status}{reason}")

    def _hide_secrets(self, text: str) -> str:
        """Return one short printable line in which no key is shown, even if the endpoint repeats it."""
        from warmstart.redact import Redactor  # heavy, and seldom needed

        for secret in (self._endpoint.key, *self._endpoint.headers.values()):
            text = text.replace(secret, "[hidden]") if len(secret) >= _SHORTEST_SECRET else text
        line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
        shown = Redactor().scope().text(line)
        return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."


class ScriptedLLM:
    """A fake model: gives prepared answers in turn and keeps the bodies of the requests.

    An answer may be a function of the request, or an exception to raise. After the last one it answers "Done.".
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
    """Encode a request as the official SDK does. Lone surrogates, which UTF-8 cannot hold, become question marks."""
    return json.dumps(request, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")


def read_reply(data: bytes) -> Reply:
    """Read a chat completion leniently, because servers differ. Raises EndpointError for anything else."""
    try:
        return _read(_decode(data))
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        raise EndpointError("the endpoint's answer is not a chat completion") from error


def _read(answer: _Answer) -> Reply:
    if not answer.choices:
        raise EndpointError("the endpoint's answer has no choices")
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
    """Decode an answer. A model can escape half a character, which msgspec refuses: replace it by a question mark."""
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
    """Return the arguments as JSON text. Some servers give the object itself."""
    if isinstance(arguments, str):
        return arguments or "{}"
    return "{}" if arguments is None else json.dumps(arguments, ensure_ascii=False)


def _find_message(data: bytes) -> str:
    """Return the message in an error's body, or the whole body if there is none."""
    text = data.decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    for name in ("error", "message", "detail"):
        if isinstance(value, dict) and value.get(name):
            value = value[name]
    return value if isinstance(value, str) else text


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
