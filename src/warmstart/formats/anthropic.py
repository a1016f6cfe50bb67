"""Anthropic API messages: a JSON list, `{messages: [...]}` or JSONL; also the task folders of Cline and Roo Code.

`is_error` counts where a result has it; a result without it is judged by its text. Older versions of Cline and Roo write
a call as XML at the end of the assistant's text and its result as the user text `[tool for '...'] Result:`; only the
two together count as a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from warmstart.formats.claude_code import Block, TokenUsage, usage_of
from warmstart.formats.fields import parse_time, text_of
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Session, Signal
from warmstart.ports import Judge

NAME = "anthropic"

_HISTORY = "api_conversation_history.json"
_AGENTS = {"saoudrizwan.claude-dev": "cline", "rooveterinaryinc.roo-cline": "roo-code"}
_OTHERS = frozenset(
    ("trajectory_format", "simulations", "traj", "conversations", "type", "uuid", "schema_version", "sessionId")
)
_NOISE = ("[ERROR] You did not use a tool", "[TASK RESUMPTION]", "# task_progress", "<system-reminder>")
_WRAPS = ("task", "user_message", "feedback")

_CLOSING = re.compile(r"</([a-z][a-z0-9_]{2,40})>\s*\Z")
_PARAMETER = re.compile(r"<([A-Za-z_][A-Za-z0-9_]{0,40})>")
_RESULT = re.compile(r"\A\s*\[([a-z][a-z0-9_]{2,40})(?:\]| .{0,4000}?\]) Result:[ \n]*", re.S)
_MAX_PARAMETERS = 32


class _Message(msgspec.Struct, gc=False):
    role: str | None = None
    content: str | list[Block] | None = None
    ts: float | None = None
    timestamp: str | float | None = None
    model: str | None = None
    usage: TokenUsage | None = None


class _Record(_Message, gc=False):
    """A line: one message or a whole conversation."""

    id: str | None = None
    session_id: str | None = None
    messages: list[_Message] | None = None


_message = msgspec.json.Decoder(_Message)
_record = msgspec.json.Decoder(_Record)
_str = msgspec.json.Decoder(str)


def sniff(head: SourceHead) -> bool:
    if head.path.name == _HISTORY and head.root == "list":
        return True
    if head.root == "list":
        messages = head.records
    elif head.root == "object" and isinstance(head.first.get("messages"), list):
        messages = [] if head.first.keys() & _OTHERS else head.first["messages"]
    elif head.root in ("lines", "object"):
        if any(r.keys() & _OTHERS - {"type"} for r in head.records):
            return False
        messages = [m for r in head.records for m in (r["messages"] if isinstance(r.get("messages"), list) else [r])]
    else:
        return False
    return any(_is_ours(message) for message in messages)


def _is_ours(message: Any) -> bool:
    """Return whether a message holds a tool block or a result as Cline writes it; plain text could be of any format."""
    if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
        return False
    content = message.get("content")
    return isinstance(content, list) and any(
        isinstance(block, dict)
        and (
            (block.get("type") == "tool_use" and "name" in block and "input" in block)
            or (block.get("type") == "tool_result" and "tool_use_id" in block)
            or (block.get("type") == "text" and _RESULT.match(str(block.get("text"))[:4200]) is not None)
        )
        for block in content
    )


def read(source: Source, judge: Judge) -> Iterator[Session]:
    root, first = source.head.root, source.head.first
    if root == "list" or (root == "object" and "messages" in first):
        yield from _read_document(source, judge)
        return
    reader = _Reader(source, judge)
    for number, record in source.records(_record):
        if record.messages is None:
            reader.take(record)
            continue
        own = _Reader(source, judge)
        own.draft.id = record.id or record.session_id or ""
        own.draft.model = record.model
        own.draft.fragment = str(number)
        for message in record.messages:
            own.take(message)
        yield from own.sessions()
    yield from reader.sessions()


def _read_document(source: Source, judge: Judge) -> Iterator[Session]:
    reader = _Reader(source, judge)
    if source.path.name == _HISTORY:
        reader.draft.id = source.path.absolute().parent.name
    for key, raw, number in source.walk("messages"):
        if key == "" or key == "messages":
            if message := source.decode(raw, _message, number):
                reader.take(message)
        elif key in ("id", "session_id", "model") and bytes(raw)[:1] == b'"':
            value = source.decode(raw, _str, number) or ""
            if key == "model":
                reader.draft.model = reader.draft.model or value
            else:
                reader.draft.id = reader.draft.id or value
    yield from reader.sessions()


class _Reader:
    def __init__(self, source: Source, judge: Judge) -> None:
        parts = source.path.absolute().parts
        agent = next((name for folder, name in _AGENTS.items() if folder in parts), NAME)
        self.draft = SessionBuilder(source, judge, format=NAME, agent=agent)
        self._held: tuple[str, float | None] | None = None  # an assistant's text that may end in a call

    def take(self, message: _Message) -> None:
        at = parse_time(message.ts if message.ts is not None else message.timestamp)
        blocks = [Block("text", text=message.content)] if isinstance(message.content, str) else message.content or []
        if message.role == "assistant":
            self._release()
            self.draft.model = message.model or self.draft.model
            if message.usage is not None:
                self.draft.spend(usage_of(message.usage), message.model, at)
            for block in blocks:
                self._add_assistant(block, at)
        elif message.role == "user":
            self._add_user(blocks, at)
            self._release()
        elif message.role == "system":
            self.draft.message("system", "\n".join(b.text or "" for b in blocks), at)

    def _add_assistant(self, block: Block, at: float | None) -> None:
        kind = block.type or ""
        if kind == "text" and block.text:
            self._release()
            self._held = (block.text, at)
        elif kind.endswith("tool_use"):
            self._release()
            arguments = block.input if isinstance(block.input, (dict, str)) else {}
            self.draft.call(block.id or "", block.name or "", arguments, at)
        elif kind.endswith("tool_result"):  # of a tool that the provider runs itself
            self._add_result(block, at)

    def _add_user(self, blocks: list[Block], at: float | None) -> None:
        answer: list[str] | None = None  # the result of the call in the assistant's text
        for block in blocks:
            if (block.type or "").endswith("tool_result"):
                self._add_result(block, at)
            elif block.type == "text" and block.text:
                text = _strip_details(block.text)
                header = _RESULT.match(text) if self._held or answer is not None else None
                if answer is None and header and self._call_held(header[1]):
                    answer = [text[header.end() :]]
                elif answer is not None:
                    answer.append(text)
                else:
                    self._add_text(text, at)
        if answer is not None:
            self.draft.result("", "\n".join(part for part in answer if part.strip()), at)

    def _add_text(self, text: str, at: float | None) -> None:
        text = _unwrap(text)
        if not text.startswith(_NOISE):
            self._release()
            self.draft.message("user", text, at)

    def _add_result(self, block: Block, at: float | None) -> None:
        self._release()
        signal = None if block.is_error is None else Signal(failed=block.is_error)
        self.draft.result(block.tool_use_id or "", text_of(block.content), at, signal)

    def _release(self) -> None:
        if self._held is not None:
            self.draft.message("assistant", *self._held)
            self._held = None

    def _call_held(self, tool: str) -> bool:
        """Add the assistant's last text and the call of `tool` at its end; return whether there is such a call."""
        if self._held is None:
            return False
        text, at = self._held
        closing = _CLOSING.search(text, max(0, len(text.rstrip()) - 64))
        if closing is None or closing[1] != tool:
            return False
        opening = f"<{tool}>"
        start = text.rfind("\n" + opening, 0, closing.start()) + 1 or text.find(opening, 0, closing.start())
        if start < 0:
            return False
        self._held = None
        self.draft.message("assistant", text[:start], at)
        self.draft.call("", tool, _parameters(text[start + len(opening) : closing.start()]), at)
        return True

    def sessions(self) -> Iterator[Session]:
        self._release()
        if not self.draft.empty:
            yield self.draft.close()


def _parameters(inner: str) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    at = 0
    for _ in range(_MAX_PARAMETERS):
        tag = _PARAMETER.search(inner, at)
        if tag is None:
            break
        closing = f"</{tag[1]}>"
        whole = tag[1] in ("content", "diff")  # a file's text may hold the closing tag itself
        end = inner.rfind(closing, tag.end()) if whole else inner.find(closing, tag.end())
        if end >= 0:
            parameters[tag[1]] = inner[tag.end() : end].strip("\n" if whole else None)
        at = tag.end() if end < 0 else end + len(closing)
    return parameters


def _strip_details(text: str) -> str:
    """Remove the descriptions of the editor that Cline adds to messages."""
    first, *rest = text.split("<environment_details>")
    return first + "".join(part.partition("</environment_details>")[2] for part in rest)


def _unwrap(text: str) -> str:
    text = text.strip()
    for tag in _WRAPS:
        opening, closing = f"<{tag}>", f"</{tag}>"
        if text.startswith(opening) and closing in text:
            inner, _, rest = text[len(opening) :].partition(closing)
            return f"{inner.strip()}\n{rest.strip()}".strip()
    return text
