"""Codex rollouts: `$CODEX_HOME/sessions/YYYY/MM/DD/rollout-*.jsonl`, also packed as `.jsonl.zst`.

Lines are `{timestamp, type, payload}`; in the oldest files a line is the item itself. `event_msg` lines repeat the
messages of `response_item` lines and are used only where there are none. No flag marks a failure: the exit code is in
the output, as JSON or as a header line. A forked rollout also holds the `session_meta` of its parent; the first one is
its own. Where our hook has corrected a command, the call has the command that really ran.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from warmstart.excerpt import MESSAGE, cut
from warmstart.formats.fields import COUNT_LIMIT, parse_arguments, parse_time, text_of
from warmstart.formats.replaced import CORRECTED, find_command_run, replace_command
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Role, Session, Signal, Usage
from warmstart.ports import Judge
from warmstart.projects.remotes import normalise_remote
from warmstart.usage.amounts import FIGURES, Figure, count_tokens, figures, make_usage

NAME = "codex"

_ENVELOPES = ("session_meta", "turn_context", "response_item", "event_msg", "world_state", "compacted")
_NOISE = (  # openings of user messages that the program wrote, not the person
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<turn_aborted>",
    "<user_shell_command>",
    "<skill>",
    "<subagent_notification>",
    "Another language model started to solve this problem",
)
_PROGRAM = ("<recommended_plugins>", "<permissions instructions>", "<apps_instructions>", "<collaboration_mode>")
_IDE, _REQUEST = "# Context from my IDE setup:", "## My request for Codex:"
_WAITING = 1_000  # event messages held back until it is clear that no item repeats them

_OPENING = re.compile(  # of a first line that may be longer than the head
    r'\{"timestamp":"[^"]{1,40}",(?:"ordinal":\d+,)?"type":"session_meta","payload":\{'
)
_HEADER = re.compile(  # the lines before the output of a command
    r"\A(?:Chunk ID: [^\n]*\n)?(?:Exit code: (-?\d+)\n)?Wall time: [^\n]*\n(?:Process exited with code (-?\d+)\n)?"
    r"(?:Original token count: [^\n]*\n)?(?:Total output lines: [^\n]*\n)?Output:(?:\n|\Z)"
)
_CODE = re.compile(
    r"\A(?:Exit code: (-?\d+)(?:\n|\Z)|Process exited with code (-?\d+)"
    r"|failed in sandbox [^\n]{0,200}?exit code: (-?\d+))"
)
_HEADINGS = ("Chunk ID: ", "Exit code: ", "Wall time: ", "Process exited", "failed in sandbox")  # of both
_REJECTED = re.compile(r"\A\s*(?:(?:patch|exec command|command) )?rejected by user\.?\s*\Z", re.I)
_ABORTED = re.compile(
    r"\A\s*(?:Wall time: [^\n]*\n)?(?:command )?aborted(?: by user)?(?: after [\d.]+ ?s)?\.?\s*\Z", re.I
)


class _Tokens(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_output_tokens: int | None = None


_NOTHING = _Tokens()


class _Info(msgspec.Struct, gc=False):
    total_token_usage: _Tokens | None = None


class _Item(msgspec.Struct, gc=False):
    """A payload of any kind. Fields whose type differs between kinds are untyped."""

    type: str | None = None
    id: str | None = None
    role: str | None = None
    content: Any = None
    message: Any = None
    name: str | None = None
    function: Any = None
    call_id: str | None = None
    arguments: Any = None
    input: Any = None
    action: Any = None
    output: Any = None
    result: Any = None
    tools: Any = None
    cwd: str | None = None
    model: str | None = None
    parent_thread_id: str | None = None
    reason: str | None = None
    info: _Info | None = None
    git: Any = None
    item: msgspec.Raw = msgspec.Raw()


class _Line(_Item, gc=False):
    timestamp: str | float | None = None
    created_at: str | float | None = None
    payload: _Item | None = None

    @property
    def at(self) -> float | None:
        return parse_time(self.timestamp if self.timestamp is not None else self.created_at)


_decoder = msgspec.json.Decoder(_Line)
_json = msgspec.json.Decoder()


def _find_remote(item: _Item) -> str | None:
    """Return the repository that a header records: `git.repository_url`."""
    address = item.git.get("repository_url") if isinstance(item.git, dict) else None
    return normalise_remote(address) if isinstance(address, str) else None


def sniff(head: SourceHead) -> bool:
    if head.root not in ("lines", "object"):
        return False
    first = head.first
    if head.root == "object" and _OPENING.match(head.text):
        return True
    if "instructions" in first and "timestamp" in first and "id" in first and "type" not in first:
        return head.root == "lines"  # the header of the oldest rollouts
    return any(
        (r.get("type") in _ENVELOPES and isinstance(r.get("payload"), dict)) or r.get("record_type") == "state"
        for r in head.records
    )


def read(source: Source, judge: Judge) -> Iterator[Session]:
    reader = _Reader(SessionBuilder(source, judge, format=NAME, agent="codex"))
    for _number, line in source.records(_decoder):
        reader.take(line)
    yield from reader.sessions()


class _Reader:
    def __init__(self, draft: SessionBuilder) -> None:
        self._draft = draft
        self._total: _Tokens | None = None  # the last running total of tokens
        self._spent: list[Figure] = [None] * len(
            FIGURES
        )  # tokens of one model and day that the draft does not have yet
        self._spent_key: tuple[str | None, str] = (None, "")
        self._spent_line: _Line | None = None  # the first of them
        self._corrects = False  # our hook has corrected a call
        self._waiting: list[tuple[Role, str, float | None]] = []
        self._messages_in = ""  # "items" or "events", once it is clear which of them hold the messages
        self._unnamed = 0

    def take(self, line: _Line) -> None:
        kind, payload = line.type, line.payload
        item: _Item = line if payload is None else payload
        if kind == "response_item":
            self._take_item(item, line)
        elif kind == "event_msg":
            self._take_event(item, line)
        elif kind == "session_meta" or (payload is None and kind is None and line.role is None):
            self._take_meta(item, line.at)
        elif kind == "turn_context":
            self._take_context(item)
        elif payload is None:
            self._take_item(item, line)

    def _take_meta(self, item: _Item, at: float | None) -> None:
        draft = self._draft
        if item.id and not draft.id:
            draft.id, draft.parent, draft.started = item.id, item.parent_thread_id, at
            draft.project = item.cwd or draft.project
            draft.remote = _find_remote(item)

    def _take_context(self, item: _Item) -> None:
        self._draft.model = item.model or self._draft.model
        self._draft.project = self._draft.project or item.cwd

    def _take_item(self, item: _Item, line: _Line) -> None:
        kind = item.type or ("message" if item.role else "")
        if item.model:
            self._draft.model = item.model
        if kind == "message":
            self._add_message(item, line.at)
        elif kind.endswith("_call"):
            self._add_call(item, kind, line.at)
        elif kind.endswith(("_output", "_result")):
            output = item.output
            if output is None:
                output = item.result if item.result is not None else item.tools
            text, signal = _read_output(output)
            self._draft.result(item.call_id or "", text, line.at, signal)

    def _add_message(self, item: _Item, at: float | None) -> None:
        if self._messages_in == "events":
            return
        self._messages_in = "items"
        self._waiting.clear()
        content = item.message if item.content is None else item.content
        if item.role in ("user", "assistant"):
            self._add_text("user" if item.role == "user" else "assistant", content, at)
        elif item.role == "developer" and _texts(content).startswith(CORRECTED):
            self._corrects = True

    def _add_text(self, role: Role, content: Any, at: float | None) -> None:
        text = _texts(content, of_person=role == "user")
        if role == "user" and text.lstrip().startswith(_PROGRAM):  # earlier versions took it for the request
            self._draft.opening = self._draft.opening or (cut(text, MESSAGE) if self._draft.task is None else None)
            return
        if text:
            self._draft.end_reason = None
            self._draft.message(role, text, at)

    def _add_call(self, item: _Item, kind: str, at: float | None) -> None:
        if not self._messages_in:
            self._use_events()
        self._draft.end_reason = None
        named = item.function.get("name") if isinstance(item.function, dict) else None
        tool = item.name or (named if isinstance(named, str) else None) or kind.removesuffix("_call")
        call_id = item.call_id or item.id or ""
        if not call_id and kind in (
            "web_search_call",
            "image_generation_call",
        ):  # the provider runs it: no result follows
            self._unnamed += 1
            call_id = f"{tool}_{self._unnamed}"
        arguments = item.arguments
        if arguments is None:
            arguments = item.input if item.input is not None else item.action
        self._draft.call(call_id, tool, parse_arguments(arguments), at)

    def _take_event(self, item: _Item, line: _Line) -> None:
        kind = item.type
        if kind == "token_count":
            self._count_tokens(item.info, line)
        elif kind == "turn_aborted":
            self._draft.end_reason = f"aborted:{item.reason or 'unknown'}"
        elif kind == "error":
            self._draft.end_reason = "error"
        elif kind == "task_started":
            self._draft.end_reason = None
        elif kind == "item_completed" and self._corrects:
            self._take_command(item)
        elif kind in ("user_message", "agent_message") and self._messages_in != "items":
            self._draft.end_reason = None
            self._waiting.append(("user" if kind == "user_message" else "assistant", _texts(item.message), line.at))
            if self._messages_in == "events" or len(self._waiting) > _WAITING:
                self._use_events()

    def _take_command(self, item: _Item) -> None:
        call_id, command = find_command_run(item.item) or ("", "")
        if call := self._draft.find_open(call_id):
            self._draft.replace(call_id, replace_command(call.arguments, command))

    def _use_events(self) -> None:
        self._messages_in = "events" if self._waiting else ""
        for role, text, at in self._waiting:
            self._add_text(role, text, at)
        self._waiting.clear()

    def _count_tokens(self, info: _Info | None, line: _Line) -> None:
        """Add the growth of the running total to the model and the day of this turn.

        A total smaller than the one before started from zero: after a full context window or in another process.
        """
        total = info.total_token_usage if info else None
        if total is None or total == self._total:
            return
        before = self._total or _NOTHING
        new = _difference(total, _NOTHING if _is_smaller(total, before) else before)
        if self._total is None:
            self._draft.spend(new, self._draft.model, line.at)
        elif count_tokens(new):
            self._gather(new, line)
        self._total = total

    def _gather(self, usage: Usage, line: _Line) -> None:
        """Add up the tokens of one model and day: a rollout reports them after every call."""
        stamp = line.timestamp
        day = stamp[:10] if isinstance(stamp, str) and stamp.endswith("Z") else ""
        if not day:
            self._draft.spend(usage, self._draft.model, line.at)
            return
        key = (self._draft.model, day)
        if key != self._spent_key:
            self._spend_gathered()
            self._spent_key, self._spent_line = key, line
        for place, value in enumerate(figures(usage)):
            if value is not None:
                self._spent[place] = value + (self._spent[place] or 0)

    def _spend_gathered(self) -> None:
        if self._spent_line is not None:
            self._draft.spend(make_usage(self._spent), self._spent_key[0], self._spent_line.at)
        self._spent, self._spent_line = [None] * len(FIGURES), None

    def sessions(self) -> Iterator[Session]:
        draft = self._draft
        self._spend_gathered()
        if self._waiting:
            ended = draft.end_reason
            self._use_events()
            draft.end_reason = ended
        if draft.id or not draft.empty:
            yield draft.close()


def _texts(content: Any, *, of_person: bool = False) -> str:
    """Return the text of a message. `of_person`: only the words that the person wrote."""
    blocks = [{"text": content}] if isinstance(content, str) else content if isinstance(content, list) else []
    parts = [b["text"] for b in blocks if isinstance(b, dict) and isinstance(b.get("text"), str)]
    return "\n".join(_request(part) for part in parts) if of_person else "\n".join(parts)


def _request(text: str) -> str:
    """Return the person's own words in a user message of Codex or its IDE extension; "" where there are none."""
    start = text.lstrip()
    if start.startswith(_NOISE):
        return ""
    if start.startswith(_IDE) and _REQUEST in start:
        return start.partition(_REQUEST)[2].strip()
    return text


def _read_output(output: Any) -> tuple[str, Signal | None]:
    """Return a tool's text without its wrapper, and the signal that the wrapper gives."""
    if isinstance(output, str) and output.startswith("{"):
        try:
            decoded = _json.decode(output)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            decoded = None
        if isinstance(decoded, dict) and "output" in decoded and "metadata" in decoded:
            output = decoded
    return _read_wrapped(output) if isinstance(output, dict) else _unwrap_header(text_of(output))


def _read_wrapped(output: dict[str, Any]) -> tuple[str, Signal | None]:
    inner = next((output[k] for k in ("output", "content", "text", "stdout") if output.get(k) is not None), None)
    text = text_of(inner) if inner is not None else msgspec.json.encode(output).decode()
    if isinstance(stderr := output.get("stderr"), str) and stderr:
        text = f"{text}\n{stderr}" if text else stderr
    metadata = output.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, dict) else output.get("exitCode", output.get("exit_code"))
    if isinstance(code, int) and not isinstance(code, bool):
        return text, _stopped(text) or Signal(exit_code=code)
    if isinstance(success := output.get("success"), bool):
        return text, _stopped(text) or Signal(failed=not success)
    return _unwrap_header(text)


def _unwrap_header(text: str) -> tuple[str, Signal | None]:
    if stopped := _stopped(text):
        return text, stopped
    if not text.startswith(_HEADINGS):
        return text, None
    header = _HEADER.match(text)
    match = header or _CODE.match(text)
    code = next((group for group in match.groups() if group is not None), None) if match else None
    if code is None or len(code) > 11:
        return text, None
    return text[header.end() :] if header else text, Signal(exit_code=int(code))


def _stopped(text: str) -> Signal | None:
    if len(text) > 200:
        return None
    if _REJECTED.match(text):
        return Signal(status="rejected", basis="text")
    return Signal(status="cancelled", basis="text") if _ABORTED.match(text) else None


def _is_smaller(total: _Tokens, before: _Tokens) -> bool:
    return (total.input_tokens or 0) < (before.input_tokens or 0) or (
        (total.output_tokens or 0) < (before.output_tokens or 0)
    )


def _difference(total: _Tokens, before: _Tokens) -> Usage:
    """Return the growth of a total. Codex's input count includes tokens read from and written to the cache."""
    prompt = _minus(total.input_tokens, before.input_tokens)
    cached = _minus(total.cached_input_tokens, before.cached_input_tokens)
    written = _minus(total.cache_write_input_tokens, before.cache_write_input_tokens)
    return Usage(
        input=None if prompt is None else prompt - (cached or 0) - (written or 0),
        output=_minus(total.output_tokens, before.output_tokens),
        cache_read=cached,
        cache_write=written,
        reasoning=_minus(total.reasoning_output_tokens, before.reasoning_output_tokens),
    )


def _minus(total: int | None, before: int | None) -> int | None:
    return total - (before or 0) if total is not None and 0 <= total < COUNT_LIMIT else None
