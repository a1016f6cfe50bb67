"""Tool calls in plain text, for models whose chat format has none.

Many small models' templates silently drop `tools` and `tool_calls`, and some cannot even write their own call tokens. So
calls are written as `<call>{...}</call>` and results as `<result>...</result>`, in the seed and in the conversation, and
the model's own template does the rest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from warmstart.endpoints.chat import LLM, AskedCall, Reply, write_body

OPEN, CLOSE = "<call>", "</call>"
_RESULT = "<result>{}</result>"
_NAMES = ("name", "arguments")


def describe_tools(tools: Sequence[Mapping[str, Any]]) -> str:
    """Return the tools' description for the model, each with its own call. With one common form that has `ARGUMENT` in it,
    models without an example copied that word."""
    lines = [_describe(tool["function"]) for tool in tools]
    return "\n".join(["Answer with one tool call and nothing else. The tools, and how each is called:", *lines])


def _describe(function: Mapping[str, Any]) -> str:
    arguments = dict.fromkeys(function["parameters"].get("properties", {}), "...")
    form = write_call({"name": function["name"], "arguments": arguments})
    return f"- {function.get('description', '')} {form}"


def write_plainly(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return the conversation without the tool calls and roles that a plain template would drop."""
    description = describe_tools(tools) if tools else ""
    plain: list[dict[str, str]] = []
    for message in messages:
        role, text = _write(message)
        if role == "system" and description:
            text, description = f"{text}\n{description}", ""
        if plain and plain[-1]["role"] == role:  # many templates need turns to alternate
            plain[-1]["content"] += f"\n{text}"
        else:
            plain.append({"role": role, "content": text})
    return plain if not description else [{"role": "system", "content": description}, *plain]


def _write(message: Mapping[str, Any]) -> tuple[str, str]:
    text = message.get("content") or ""
    if message["role"] == "tool":
        return "user", _RESULT.format(text)
    calls = [write_call(call["function"]) for call in message.get("tool_calls") or ()]
    return message["role"], "\n".join(filter(None, (text, *calls)))


def write_call(function: Mapping[str, Any]) -> str:
    arguments = function["arguments"]
    try:
        written = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        written = arguments
    shown = json.dumps({"name": function["name"], "arguments": written}, ensure_ascii=False)
    return f"{OPEN}{shown}{CLOSE}"


class TextCalls:
    """A model behind a server without tool calls: writes and reads them as text."""

    def __init__(self, llm: LLM) -> None:
        self._llm = llm

    def ask(self, body: bytes) -> Reply:
        request = json.loads(body)
        request["messages"] = write_plainly(request["messages"], request.pop("tools", ()))
        reply = self._llm.ask(write_body(request))
        return read_answer(reply)


def read_answer(reply: Reply) -> Reply:
    """Return an answer with the call that its text contains."""
    call = find_call(reply.text)
    return structs.replace(reply, text="", calls=(call,)) if call else reply


def find_call(text: str) -> AskedCall | None:
    """Return the first call in a model's answer, or None if there is none that can be read."""
    at = text.find(OPEN)
    start = text.find("{", 0 if at < 0 else at)
    if start < 0:
        return None
    try:
        call, _end = json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    if not isinstance(call, dict) or any(name not in call for name in _NAMES):
        return None
    name, arguments = call["name"], call["arguments"]
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return None
    return AskedCall("", _whole(name), _whole(json.dumps(arguments, ensure_ascii=False)))


def _whole(text: str) -> str:
    """Replace half characters, which a model can escape and no file accepts."""
    return text.encode("utf-8", "replace").decode()


def write_grammar(tools: Sequence[Mapping[str, Any]]) -> str:
    """Return a GBNF grammar that allows only a call of one of the tools with its own arguments."""
    rules = [f"root ::= {json.dumps(OPEN)} ({' | '.join(f'call{n}' for n in range(len(tools)))}) {json.dumps(CLOSE)}"]
    for number, tool in enumerate(tools):
        function = tool["function"]
        needed = function["parameters"].get("required", [])
        optional = [name for name in function["parameters"].get("properties", {}) if name not in needed]
        fields = ' ", " '.join(_field(name) for name in needed)
        fields += "".join(f' (", " {_field(name)})?' for name in optional)
        head = json.dumps(f'{{"name": "{function["name"]}", "arguments": {{')
        rules.append(f'call{number} ::= {head} {fields} "}}}}"')
    rules.append(r'string ::= "\"" ([^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""')
    return "\n".join(rules)


def _field(name: str) -> str:
    return json.dumps(f'"{name}": ') + " string"
