"""SWE-agent: `<instance>.traj`, one JSON document per run: executed actions in `trajectory`, messages in `history`.

An action of SWE-agent's own interface (`open`, `edit`, `search_dir` ...) is a call of the tool with that name, every other
action one of `bash`. The format has no error flag. Without a `trajectory` (a demonstration) the `history` is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import msgspec

from warmstart.formats.chat import ROLES, Chat, ChatMessage
from warmstart.formats.fields import count_of, dict_of, dollars_of, parse_arguments, string_of, text_of
from warmstart.formats.labels import as_label, label_beside
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Session, Usage
from warmstart.ports import Judge

NAME = "swe_agent"

_SHELL = "bash"
_ON_FILES = frozenset(("open", "goto", "scroll_up", "scroll_down", "create", "edit", "insert"))
_OWN = _ON_FILES | {"search_dir", "search_file", "find_file", "filemap", "submit", "str_replace_editor", "view_image"}
_BEGINNING = 3  # steps that go into the id
_MAX_OPENING = 64  # messages in front of the first answer
_PARTS = frozenset(("action", "observation"))


class _Step(msgspec.Struct, gc=False):
    action: Any = None
    observation: Any = None
    response: Any = None
    thought: Any = None
    state: Any = None


class _Message(ChatMessage, gc=False):
    action: Any = None
    is_demo: Any = None
    message_type: Any = None
    tool_call_ids: Any = None


_step = msgspec.json.Decoder(_Step)
_message = msgspec.json.Decoder(_Message)
_any = msgspec.json.Decoder(Any)


def sniff(head: SourceHead) -> bool:
    if head.root != "object":
        return False
    steps, history = head.first.get("trajectory"), head.first.get("history")
    if isinstance(steps, list) and steps:
        return (
            isinstance(steps[0], dict)
            and steps[0].keys() >= _PARTS
            and ("thought" in steps[0] or "response" in steps[0])
        )
    if not isinstance(history, list) or not history or "trajectory_format" in head.first:
        return False
    return isinstance(history[0], dict) and history[0].keys() >= {"role", "content", "agent"}


def read(source: Source, judge: Judge) -> Iterator[Session]:
    reader = _Reader(source, judge)
    reader.open(source)
    facts: dict[str, Any] = {}
    beginning = blake2b(digest_size=4)
    steps = 0
    for key, raw, line in source.walk("trajectory", "history"):
        if key == "trajectory":
            if steps < _BEGINNING:
                beginning.update(raw)
            steps += 1
            if step := source.decode(raw, _step, line):
                reader.take(step)
        elif key in ("info", "replay_config"):
            facts[key] = source.decode(raw, _any, line)
    if not steps:
        reader.read_history(source)
        beginning.update(str(reader.draft.task).encode("utf-8", "replace"))
    if reader.draft.empty:
        return
    stem = source.path.name.removesuffix(".traj")
    _describe(reader.draft, dict_of(facts.get("info")), parse_arguments(facts.get("replay_config")))
    problem = dict_of(dict_of(parse_arguments(facts.get("replay_config"))).get("problem_statement"))
    reader.draft.id = f"{string_of(problem.get('id')) or stem}-{beginning.hexdigest()}"
    if reader.draft.label is None:
        reader.draft.label = label_beside(source, source.path.name, stem)
    yield reader.draft.close()


class _Reader:
    def __init__(self, source: Source, judge: Judge) -> None:
        self.draft = SessionBuilder(source, judge, format=NAME, agent="swe-agent")
        self._chat = Chat(self.draft, source.report)
        self._waiting = False  # an action of the history has no observation yet

    def open(self, source: Source) -> None:
        """Add the messages in front of the first answer, from a first reading whose problems are not reported.

        They stand in `history`, which follows the `trajectory`.
        """
        again = source.reopen()
        seen = 0
        for key, raw, _line in again.walk("trajectory", "history"):
            if key != "history":
                continue
            message = again.decode(raw, _message)
            seen += 1
            if message is None or seen > _MAX_OPENING or message.role == "assistant":
                return
            if not message.is_demo and isinstance(message.role, str) and message.role in ROLES:
                self.draft.message(ROLES[message.role], text_of(message.content))

    def take(self, step: _Step) -> None:
        """Add the agent's thought, its action and the observation."""
        action, observed = text_of(step.action).strip(), text_of(step.observation)
        state = dict_of(parse_arguments(step.state))
        folder = state.get("working_dir")
        if self.draft.project is None and isinstance(folder, str) and folder:
            self.draft.project = folder
        self.draft.message("assistant", text_of(step.thought) or text_of(step.response))
        if not action:  # an answer without an action: the program explains the rules again
            self.draft.message("system", observed)
            return
        self._call(action, state)
        self.draft.result("", observed)

    def _call(self, action: str, state: dict[str, Any]) -> None:
        word = action.split(None, 1)[0]
        arguments: dict[str, Any] = {"command": action}
        opened = state.get("open_file")
        if word in _ON_FILES and isinstance(opened, str) and opened not in ("", "n/a"):
            arguments["path"] = opened
        self.draft.call("", word if word in _OWN else _SHELL, arguments)

    def read_history(self, source: Source) -> None:
        """Add the messages of a file without a trajectory, after those in front of the first answer."""
        answered = False
        for key, raw, line in source.walk("history"):
            message = source.decode(raw, _message, line) if key == "history" else None
            if message is None:
                continue
            answered = answered or message.role == "assistant"
            if answered:
                self._take_message(message)

    def _take_message(self, message: _Message) -> None:
        if message.role == "tool":
            ids = message.tool_call_ids
            self._chat.result(ids[0] if isinstance(ids, list) and ids else None, text_of(message.content), None)
        elif message.role == "user" and self._waiting:
            self._waiting = False
            self.draft.result("", text_of(message.content))
        else:
            self._chat.take(message)
            if message.role == "assistant" and not message.tool_calls and (action := text_of(message.action).strip()):
                self._waiting = True
                self._call(action, {})


def _describe(draft: SessionBuilder, info: dict[str, Any], config: Any) -> None:
    draft.end_reason = string_of(info.get("exit_status")) or None
    draft.label = as_label(info.get("resolved"))
    agent = dict_of(dict_of(config).get("agent"))
    model = dict_of(agent.get("model"))
    names = (model.get("name"), model.get("model_name"))
    draft.model = next((name for name in names if isinstance(name, str) and name), None)
    stats = dict_of(info.get("model_stats"))
    sent, received = count_of(stats.get("tokens_sent")), count_of(stats.get("tokens_received"))
    if sent or received:
        draft.usage = Usage(input=sent, output=received, cost=dollars_of(stats.get("instance_cost")))
