"""Calls in plain text: written calls are read back, and other text is no call."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest

from warmstart.endpoints.chat import Reply, ScriptedLLM, write_body
from warmstart.lab.models.text_calls import (
    TextCalls,
    describe_tools,
    find_call,
    write_call,
    write_grammar,
    write_plainly,
)
from warmstart.lab.sandbox.workshop import TOOLS

OPENAI = [tool.as_openai() for tool in TOOLS]
CODE = "def f(a):\n    return {'a': {\"b\": [1, {}]}}\n\nprint(f'{{}}', \"</call>\")\t# ende"


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"path": "notes.txt"},
        {"command": "grep -c \"it's\" 'a b.txt' | wc -l"},
        {"content": "one\ntwo\r\n\tthree\\n\\"},
        {"content": "Grüße, 你好, 🙂, \u202e, \x00\x1f"},
        {"code": CODE},
        {"code": "x" * 20_000},
        {"deep": {"list": [1, None, True, {"a": "}"}]}},
        {"content": "<call>{}</call> <result>{}</result>"},
    ],
    ids=lambda arguments: repr(arguments)[:30],
)
@pytest.mark.parametrize("around", ["{}", "Sure!\n{}\nDone {{}}.", "{}{}"], ids=["alone", "in words", "twice"])
def test_what_is_written_is_read_again(arguments: dict[str, Any], around: str) -> None:
    for given in (arguments, json.dumps(arguments), json.dumps(arguments, ensure_ascii=False, indent=1)):
        written = write_call({"name": "tool", "arguments": given})
        found = find_call(around.replace("{}", written, 2) if around == "{}{}" else around.replace("{}", written, 1))
        assert found is not None
        assert found.name == "tool"
        assert json.loads(found.arguments) == arguments


def test_the_first_of_two_calls_is_taken() -> None:
    two = [write_call({"name": name, "arguments": {}}) for name in ("one", "two")]
    found = find_call("\n".join(two))
    assert found is not None
    assert found.name == "one"


def test_a_call_needs_no_tag_and_no_end() -> None:
    """Small models forget both, and generation stops at the closing tag."""
    bare = '{"name": "read_file", "arguments": {"path": "a.txt"}}'
    for text in (bare, f"<call>{bare}", f"<call> \n{bare} and so on", f"I call {bare}"):
        found = find_call(text)
        assert found is not None, text
        assert (found.name, json.loads(found.arguments)) == ("read_file", {"path": "a.txt"})


def test_a_tag_wins_over_braces_before_it() -> None:
    found = find_call('A set {1, 2} and {"name": "no", "arguments": {}}: <call>{"name": "yes", "arguments": {}}</call>')
    assert found is not None
    assert found.name == "yes"


def test_a_line_break_inside_a_text_is_forgiven() -> None:
    found = find_call('<call>{"name": "execute_code", "arguments": {"code": "a = 1\nprint(a)\t"}}</call>')
    assert found is not None
    assert json.loads(found.arguments) == {"code": "a = 1\nprint(a)\t"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Done.",
        "<call>",
        "<call></call>",
        "<call>{",
        '<call>{"name": "read_file", "arguments": {"path": "a.t',
        '<call>{"name": "read_file", "arguments": {"path": "a.txt"}',
        '<call>{"name": "read_file"}</call>',
        '<call>{"arguments": {}}</call>',
        '<call>{"name": 7, "arguments": {}}</call>',
        '<call>{"name": "read_file", "arguments": "a.txt"}</call>',
        '<call>{"name": "read_file", "arguments": ["a.txt"]}</call>',
        '<call>{"name": "read_file", "arguments": null}</call>',
        "<call>{'name': 'read_file', 'arguments': {}}</call>",
        "<call>read_file(path=a.txt)</call>",
        '{"a": 1}',
        "{not json}",
        '<call>{"name": "a", "arguments": {"n": ' + "9" * 5_000 + "}}",
    ],
    ids=lambda text: text[:60] or "nothing",
)
def test_what_is_no_call_is_none(text: str) -> None:
    assert find_call(text) is None


@pytest.mark.parametrize(
    "piece",
    ["{", "}", '{"a":', "[", '"', "<call>", "<call>{", '{"name": "a", "arguments": {', "\\", "é🙂", "\x00", "a{b}c "],
)
def test_garbage_is_passed_over_quickly(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    start = time.perf_counter()
    assert find_call(text) is None
    assert find_call(f'<call>{{"name": "a", "arguments": {{"x": {text}') is None
    assert time.perf_counter() - start < 20


def test_half_a_character_does_not_get_into_files() -> None:
    found = find_call(r'<call>{"name": "a\ud83d", "arguments": {"x\udc00": "y\ud800z"}}</call>')
    assert found is not None
    assert found.name.encode()
    assert list(json.loads(found.arguments.encode())) == ["x?"]


def test_arguments_that_are_no_json_are_shown_as_they_are() -> None:
    for arguments in ("{broken", "[" * 50_000):
        shown = write_call({"name": "tool", "arguments": arguments})
        assert json.loads(shown.removeprefix("<call>").removesuffix("</call>")) == {
            "name": "tool",
            "arguments": arguments,
        }


# Conversations

SEEDED = [
    {"role": "system", "content": "You do chores."},
    {"role": "user", "content": "Count the lines."},
    {
        "role": "assistant",
        "content": "Let me see.",
        "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "wc -l a"}'}},
            {"id": "2", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a"}'}},
        ],
    },
    {"role": "tool", "tool_call_id": "1", "content": '{"output": "3 a"}'},
    {"role": "tool", "tool_call_id": "2", "content": '{"content": "x"}'},
    {"role": "user", "content": "And of b?"},
    {"role": "assistant", "content": None},
    {"role": "user", "content": "Well?"},
]


def test_plain_turns_alternate_and_lose_nothing() -> None:
    plain = write_plainly(SEEDED, OPENAI)
    roles = [one["role"] for one in plain]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]
    assert all(set(one) == {"role", "content"} and isinstance(one["content"], str) for one in plain)
    assert plain[0]["content"] == f"You do chores.\n{describe_tools(OPENAI)}"
    assert plain[2]["content"] == (
        'Let me see.\n<call>{"name": "terminal", "arguments": {"command": "wc -l a"}}</call>\n'
        '<call>{"name": "read_file", "arguments": {"path": "a"}}</call>'
    )
    assert plain[3]["content"] == ('<result>{"output": "3 a"}</result>\n<result>{"content": "x"}</result>\nAnd of b?')


def test_the_conversation_itself_is_not_changed() -> None:
    before = write_body({"messages": SEEDED})
    write_plainly(SEEDED, OPENAI)
    assert write_body({"messages": SEEDED}) == before


def test_tools_are_told_once_also_without_a_system_message() -> None:
    plain = write_plainly(SEEDED[1:], OPENAI)
    assert plain[0] == {"role": "system", "content": describe_tools(OPENAI)}
    assert [one["role"] for one in plain].count("system") == 1
    assert write_plainly(SEEDED[:2], []) == SEEDED[:2]
    assert json.dumps(write_plainly([SEEDED[0], *SEEDED], OPENAI)).count("The tools, and how") == 1


def test_every_tool_is_told_with_its_arguments() -> None:
    lines = describe_tools(OPENAI).splitlines()[1:]
    assert len(lines) == len(TOOLS)
    for line, tool in zip(lines, TOOLS, strict=True):
        found = find_call(line)
        assert found is not None and found.name == tool.name and tool.description in line
        assert list(json.loads(found.arguments)) == list(tool.parameters["properties"])


def test_no_stand_in_could_be_taken_for_an_argument() -> None:
    """A model without an example copies words of the form: cold sessions, and only these, would suffer."""
    named = re.findall(r'"([^"]*)":', describe_tools(OPENAI))
    assert set(named) == {"name", "arguments", *(name for tool in TOOLS for name in tool.parameters["properties"])}


def test_a_call_that_the_model_is_shown_is_one_that_it_may_say() -> None:
    """Instructions, seeds and answers use the same form."""
    shown = write_plainly(SEEDED, OPENAI)[2]["content"]
    found = find_call(shown)
    assert found is not None
    assert found.name == "terminal"


def test_the_grammar_has_every_tool_and_argument() -> None:
    rules = dict(line.split(" ::= ", 1) for line in write_grammar(OPENAI).splitlines())
    assert set(rules) == {"root", "string", *(f"call{n}" for n in range(len(TOOLS)))}
    for n, tool in enumerate(TOOLS):
        rule = rules[f"call{n}"]
        assert f"call{n}" in rules["root"]
        assert json.dumps(f'{{"name": "{tool.name}", ')[:-1] in rule
        for name in tool.parameters["properties"]:
            field = json.dumps(f'"{name}": ')
            assert field in rule
            assert (f'(", " {field} string)?' in rule) == (name not in tool.parameters["required"])


def test_the_least_that_the_grammar_lets_through_is_a_call() -> None:
    """Read with every optional part left out and every text empty."""
    for n, tool in enumerate(TOOLS):
        rule = next(line for line in write_grammar(OPENAI).splitlines() if line.startswith(f"call{n} ::= "))
        required = rule.split(" ::= ", 1)[1].split(" (")[0] + ("" if " (" not in rule else ' "}}"')
        said, at = "", 0
        while at < len(required):
            if required[at] == '"':
                text, at = json.JSONDecoder().raw_decode(required, at)
                said += text
            elif required.startswith("string", at):
                said, at = said + '""', at + len("string")
            else:
                at += 1
        found = find_call(said)
        assert found is not None, said
        assert (found.name, list(json.loads(found.arguments))) == (tool.name, tool.parameters["required"])


def test_a_server_without_tool_calls_is_told_and_read_in_text() -> None:
    said = write_call({"name": "read_file", "arguments": {"path": "a.txt"}})
    server = ScriptedLLM([Reply(text=f"Sure: {said}", prompt_tokens=7), Reply(text="I cannot.")])
    model = TextCalls(server)
    body = write_body({"model": "m", "messages": [{"role": "user", "content": "Show a.txt"}], "tools": OPENAI})
    reply = model.ask(body)
    assert (reply.text, reply.prompt_tokens) == ("", 7)
    assert [(call.name, json.loads(call.arguments)) for call in reply.calls] == [("read_file", {"path": "a.txt"})]
    sent = json.loads(server.bodies[0])
    assert "tools" not in sent and sent["model"] == "m"
    assert sent["messages"][0]["content"] == describe_tools(OPENAI)
    assert model.ask(body) == Reply(text="I cannot.")
