"""GitHub Copilot CLI: `~/.copilot/session-state/<id>/events.jsonl`; VS Code writes the same events.

A call is `tool.execution_start`, its result `tool.execution_complete`. A command that fails has `success: true`: its exit
code is in `shellExecution`, in older files only in the last line of the text. Events with an `agentId` (older:
`parentToolCallId`) belong to a subagent, which becomes a session of its own. Where our hook has corrected a call, the call
has the arguments that really ran.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from warmstart.formats.fields import Count, dict_of, parse_arguments, parse_time, string_of, text_of
from warmstart.formats.replaced import CORRECTED
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Arguments, Session, Signal, Status, Usage
from warmstart.ports import Judge
from warmstart.projects.remotes import normalise_remote

NAME = "copilot_cli"
AGENT = "copilot-cli"

_KNOWN = frozenset(
    (
        *("session.start", "session.resume", "session.shutdown", "session.model_change", "session.info"),
        *("user.message", "assistant.message", "assistant.turn_start", "system.message"),
        *("tool.execution_start", "tool.execution_complete", "hook.start", "hook.end"),
    )
)
_SHELLS = ("bash", "powershell", "shell", "run_in_terminal")  # ends of tool names whose results may have an exit code
_ENDED = re.compile(
    r"\n?<(?:shellId: [^<>\n]{1,200} completed|exited|command exited) with exit code (-?\d{1,10})>\s*\Z"
)
_UNENDED = re.compile(
    r"<command (?:with (?:shellId|id): [^<>\n]{1,200} (?:is still running|stopped)|started in background)"
)
_GUIDANCE = re.compile(r'\n\nTool "[^"\n]{1,200}" succeeded\. Additional guidance from postToolUse hooks:\n')
_AFTER_CALLS = ("postToolUse", "postToolUseFailure")
_STATUSES: dict[str, Status] = {
    "denied": "denied",
    "rejected": "rejected",
    "cancelled": "cancelled",
    "aborted": "cancelled",
}


class _Tokens(msgspec.Struct, gc=False):
    inputTokens: Count | None = None  # noqa: N815
    outputTokens: Count | None = None  # noqa: N815
    cacheReadTokens: Count | None = None  # noqa: N815
    cacheWriteTokens: Count | None = None  # noqa: N815
    reasoningTokens: Count | None = None  # noqa: N815
    model: str | None = None


class _Data(msgspec.Struct, gc=False):
    """The data of any event. Kinds of events share names of fields, but not always their types."""

    sessionId: Any = None  # noqa: N815
    selectedModel: Any = None  # noqa: N815
    newModel: Any = None  # noqa: N815
    model: Any = None
    context: Any = None
    content: Any = None
    source: Any = None
    isAutopilotContinuation: Any = None  # noqa: N815
    toolCallId: Any = None  # noqa: N815
    toolName: Any = None  # noqa: N815
    arguments: Any = None
    parentToolCallId: Any = None  # noqa: N815
    success: Any = None
    result: Any = None
    error: Any = None
    shellExecution: Any = None  # noqa: N815
    hookInvocationId: Any = None  # noqa: N815
    hookType: Any = None  # noqa: N815
    input: Any = None
    output: Any = None
    usage: Any = None
    modelMetrics: Any = None  # noqa: N815
    shutdownType: Any = None  # noqa: N815
    reason: Any = None


class _Event(msgspec.Struct, gc=False):
    type: str | None = None
    timestamp: Any = None
    agentId: Any = None  # noqa: N815
    data: _Data | None = None


_event = msgspec.json.Decoder(_Event)


def sniff(head: SourceHead) -> bool:
    return head.root in ("lines", "object") and any(
        str(record.get("type")) in _KNOWN
        and isinstance(record.get("data"), dict)
        and "id" in record
        and "parentId" in record
        for record in head.records
    )


def read(source: Source, judge: Judge) -> Iterator[Session]:
    reader = _Reader(source, judge)
    for _line, event in source.records(_event):
        take, data = _TAKERS.get(event.type or ""), event.data
        if take is not None and data is not None:
            agent = string_of(event.agentId) or string_of(data.parentToolCallId)
            take(reader, data, agent, parse_time(event.timestamp))
    yield from reader.sessions()


class _Reader:
    """The sessions of one file: the session itself and its subagents."""

    def __init__(self, source: Source, judge: Judge) -> None:
        self._source, self._judge = source, judge
        self._main = self._make_draft()
        self._subagents: dict[str, SessionBuilder] = {}
        self._hooks: dict[str, dict[str, Any]] = {}  # input of the hooks after calls that have not answered yet
        self._ran: dict[str, tuple[str, Arguments]] = {}  # by subagent: tool and arguments of a corrected call
        self._reports_answers = False  # tokens are reported for every answer, not only at the end
        self._total: dict[str, _Tokens] = {}  # by model, as the last end of the session gave it

    def _make_draft(self) -> SessionBuilder:
        return SessionBuilder(self._source, self._judge, format=NAME, agent=AGENT)

    def _find_draft(self, agent: str) -> SessionBuilder:
        if not agent:
            return self._main
        draft = self._subagents.get(agent)
        if draft is None:
            draft = self._subagents[agent] = self._make_draft()
            own = self._main.id
            draft.id, draft.parent, draft.fragment = f"{own}/{agent}" if own else agent, own or None, agent
            draft.project, draft.remote, draft.model = self._main.project, self._main.remote, self._main.model
        return draft

    # What the events say

    def start(self, data: _Data, agent: str, at: float | None) -> None:
        draft = self._find_draft(agent)
        if not draft.id:
            draft.id, draft.started = string_of(data.sessionId), at
        draft.model = string_of(data.selectedModel) or draft.model
        context = dict_of(data.context)
        if draft.project is None:
            draft.project = string_of(context.get("cwd")) or None
        if draft.remote is None and (name := string_of(context.get("repository"))):
            host = string_of(context.get("repositoryHost")) or "github.com"
            draft.remote = normalise_remote(f"https://{host}/{name}")

    def change_model(self, data: _Data, agent: str, _at: float | None) -> None:
        draft = self._find_draft(agent)
        draft.model = string_of(data.newModel) or string_of(data.model) or draft.model

    def hear(self, data: _Data, agent: str, at: float | None) -> None:
        if data.source == "system" or data.isAutopilotContinuation:  # the program wrote it, not the person
            return
        draft = self._find_draft(agent)
        draft.end_reason = None
        draft.message("user", text_of(data.content), at)

    def say(self, data: _Data, agent: str, at: float | None) -> None:
        draft = self._find_draft(agent)
        draft.end_reason = None
        draft.model = string_of(data.model) or draft.model
        draft.message("assistant", text_of(data.content), at)

    def call(self, data: _Data, agent: str, at: float | None) -> None:
        arguments = parse_arguments(data.arguments)
        self._find_draft(agent).call(string_of(data.toolCallId), string_of(data.toolName) or "unknown", arguments, at)

    def end_call(self, data: _Data, agent: str, at: float | None) -> None:
        draft, call_id = self._find_draft(agent), string_of(data.toolCallId)
        call = draft.find_open(call_id)
        tool = call.tool if call else ""
        if call and agent in self._ran and self._ran[agent][0] == tool:
            draft.replace(call_id, self._ran.pop(agent)[1])
        text, signal = _read_result(data, tool)
        draft.result(call_id, text, at, signal)

    def begin_hook(self, data: _Data, _agent: str, _at: float | None) -> None:
        if data.hookType in _AFTER_CALLS:
            self._hooks[string_of(data.hookInvocationId)] = dict_of(data.input)

    def end_hook(self, data: _Data, agent: str, _at: float | None) -> None:
        """Note the arguments that really ran, if the hook after the call says that ours had corrected it."""
        given = self._hooks.pop(string_of(data.hookInvocationId), {})
        context = dict_of(data.output).get("additionalContext")
        if given and isinstance(context, str) and CORRECTED in context and isinstance(given.get("toolArgs"), dict):
            self._ran[agent] = string_of(given.get("toolName")), given["toolArgs"]

    def count_answer(self, data: _Data, agent: str, at: float | None) -> None:
        if tokens := self._read_tokens(data.usage):
            self._reports_answers = True
            self._find_draft(agent).spend(_make_usage(tokens, _NOTHING), tokens.model, at)

    def abort(self, data: _Data, agent: str, _at: float | None) -> None:
        self._find_draft(agent).end_reason = f"aborted:{string_of(data.reason) or 'unknown'}"

    def fail(self, _data: _Data, agent: str, _at: float | None) -> None:
        self._find_draft(agent).end_reason = "error"

    def shut_down(self, data: _Data, agent: str, at: float | None) -> None:
        if data.shutdownType == "error":
            self._find_draft(agent).end_reason = "error"
        if not self._reports_answers:
            self._count_session(data.modelMetrics, at)

    def _count_session(self, metrics: Any, at: float | None) -> None:
        """Add the growth of the totals that stand at the end. A smaller total started from zero in another process."""
        for model, figures in dict_of(metrics).items():
            total = self._read_tokens(dict_of(figures).get("usage"))
            if total is None:
                continue
            before = self._total.get(model, _NOTHING)
            if (total.inputTokens or 0) < (before.inputTokens or 0):
                before = _NOTHING
            if total.inputTokens or total.outputTokens:
                self._main.spend(_make_usage(total, before), model, at)
            self._total[model] = total

    def _read_tokens(self, usage: Any) -> _Tokens | None:
        if not isinstance(usage, dict):
            return None
        try:
            return msgspec.convert(usage, _Tokens)
        except msgspec.ValidationError as error:
            self._source.report(f"tokens that are no numbers: {error}")
            return None

    def sessions(self) -> Iterator[Session]:
        for draft in (self._main, *self._subagents.values()):
            if not draft.empty:
                yield draft.close()


_NOTHING = _Tokens()
_TAKERS = {
    "session.start": _Reader.start,
    "session.resume": _Reader.start,
    "session.model_change": _Reader.change_model,
    "subagent.started": _Reader.change_model,
    "user.message": _Reader.hear,
    "assistant.message": _Reader.say,
    "tool.execution_start": _Reader.call,
    "tool.execution_complete": _Reader.end_call,
    "hook.start": _Reader.begin_hook,
    "hook.end": _Reader.end_hook,
    "session.usage_record": _Reader.count_answer,
    "abort": _Reader.abort,
    "session.error": _Reader.fail,
    "session.shutdown": _Reader.shut_down,
}


def _read_result(data: _Data, tool: str) -> tuple[str, Signal | None]:
    """Return a result's own text, without what hooks added, and what the event says about it."""
    error = dict_of(data.error)
    text = text_of(error.get("message") or dict_of(data.result).get("content"))
    if data.success is False:
        status = _STATUSES.get(string_of(error.get("code")))
        return text, Signal(status=status) if status else Signal(failed=True)
    if guidance := _GUIDANCE.search(text):
        text = text[: guidance.start()]
    code = dict_of(data.shellExecution).get("exitCode")
    if tool.endswith(_SHELLS):
        if ended := _ENDED.search(text[-500:]):
            code = int(ended[1]) if code is None else code
            text = text[: len(text) - len(ended[0])]
        elif code is None and _UNENDED.search(text[-500:]):
            return text, None  # it still runs
    if isinstance(code, int) and not isinstance(code, bool):
        return text, Signal(exit_code=code)
    return text, None if data.success is None else Signal(failed=False)


def _make_usage(total: _Tokens, before: _Tokens) -> Usage:
    """Return the growth of a total. Its input includes tokens read from and written to the cache."""
    prompt = _minus(total.inputTokens, before.inputTokens)
    cached = _minus(total.cacheReadTokens, before.cacheReadTokens)
    written = _minus(total.cacheWriteTokens, before.cacheWriteTokens)
    return Usage(
        input=None if prompt is None else max(0, prompt - (cached or 0) - (written or 0)),
        output=_minus(total.outputTokens, before.outputTokens),
        cache_read=cached,
        cache_write=written,
        reasoning=_minus(total.reasoningTokens, before.reasoningTokens),
    )


def _minus(total: int | None, before: int | None) -> int | None:
    return None if total is None else max(0, total - (before or 0))
