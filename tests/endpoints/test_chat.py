"""The client for chat completions."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from review.endpoint import Endpoint as Server
from review.endpoint import say
from warmstart.endpoints.chat import (
    Endpoint,
    EndpointError,
    HttpLLM,
    RequestRefused,
    ScriptedLLM,
    read_reply,
    write_body,
)
from warmstart.errors import ConfigError


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def test_an_answer_of_the_model(server: Server) -> None:
    server.answer({"status": 429}, say("second"))
    llm = HttpLLM(Endpoint(url=server.url, key="sk-1", headers={"X-More": "1"}), sleep=lambda _seconds: None)
    assert llm.ask(b"{}").text == "second"
    assert [(sent["Authorization"], sent["X-More"]) for sent in server.headers] == 2 * [("Bearer sk-1", "1")]


def test_trouble_on_the_way_is_an_error_of_the_endpoint(server: Server) -> None:
    server.answer({"status": 302, "redirect": "http://127.0.0.1:9/"})
    with pytest.raises(EndpointError, match="redirect"):
        HttpLLM(Endpoint(url=server.url)).ask(b"{}")
    with pytest.raises(ConfigError):
        HttpLLM(Endpoint(url="nonsense"))


def test_answers_of_many_kinds() -> None:
    parts = {
        "choices": [
            {
                "message": {
                    "content": [{"type": "text", "text": "a"}, {"type": "x"}],
                    "tool_calls": [{"function": {"name": "f"}}, {"id": "c"}],
                }
            }
        ]
    }
    reply = read_reply(json.dumps(parts).encode())
    assert reply.text == "a" and [call.name for call in reply.calls] == ["f"] and reply.prompt_tokens is None
    for data in (b"", b"[]", b'{"choices": 3}', b"\xff", b'{"choices": [{"message": {"tool_calls": "x"}}]}'):
        with pytest.raises(EndpointError):
            read_reply(data)


@pytest.mark.parametrize(
    ("status", "refused"), [(400, True), (413, True), (422, True), (401, False), (403, False), (404, False)]
)
def test_an_error_shows_the_servers_message_and_no_key(server: Server, status: int, refused: bool) -> None:
    said = {"error": {"message": f"too long:\n\x1b[31m 9,000\ttokens; you sent sk-123-secret {'x ' * 300}"}}
    server.answer({"status": status, "bytes": json.dumps(said).encode()})
    with pytest.raises(EndpointError) as raised:
        HttpLLM(Endpoint(url=server.url, key="sk-123-secret")).ask(b"{}")
    text = str(raised.value)
    assert isinstance(raised.value, RequestRefused) == refused
    assert f" answered with status {status}: too long: [31m 9,000 tokens; you sent [hidden] x" in text
    assert text.isprintable() and len(text) < 250


def test_a_key_is_never_shown() -> None:
    assert "sk-123" not in repr(Endpoint(url="http://x/v1", key="sk-123"))


def test_bodies_and_scripts() -> None:
    assert write_body({"a": "ü\ud800"}) == '{"a":"ü?"}'.encode()
    assert ScriptedLLM().ask(b"{}").text == "Done."
