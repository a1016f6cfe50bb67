"""Hermes' rows, from its database or its exports, added to a session builder by the same rules.

Compaction in place archives the rows of a session (`compacted`) and inserts the surviving ones again, so the same
calls, results and messages occur twice: each is added once. Summaries that Hermes wrote for itself are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from warmstart.formats.chat import ROLES, Chat
from warmstart.formats.fields import count_of, dollars_of, parse_time, string_of, text_of
from warmstart.formats.labels import label_beside
from warmstart.formats.lenient import DECODE_ERRORS, loose_values, scrub
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source
from warmstart.model import SessionOwner, Spent, Usage, name_job
from warmstart.ports import Judge
from warmstart.scopes import find_profile
from warmstart.usage.amounts import TOKENS, add_up, figures, make_usage

AGENT = "hermes"
CRON_RUN = re.compile(r"cron_([\w-]+)_\d{8}_\d{6}")  # the id of a scheduled job's run
_CRON_MARK = "[IMPORTANT: You are running as a scheduled cron job."  # Hermes' opening of every job's prompt
_JSON_MARK = "\x00json:"
_SUMMARIES = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:")
SUBAGENT = "subagent"  # the source of sessions that a session starts
_GATEWAYS = frozenset(  # sources for other people, even where a row names none of them
    """telegram discord whatsapp whatsapp_cloud slack signal mattermost matrix homeassistant email sms dingtalk api_server
    webhook msgraph_webhook feishu wecom wecom_callback weixin bluebubbles qqbot yuanbao relay irc teams line imessage
    unknown gateway""".split()
)
_DEFAULT_PROFILES = ("default", "custom")  # "custom": the only profile of a home in another place
_GENERATIONS = 50  # of sessions that continue or start each other
_LONG = 40  # a repeated text of so many characters is a copy, not a person repeating themselves


class HermesMessage(msgspec.Struct, gc=False):
    """A row of `messages`, or a message of an export."""

    role: Any = None
    content: Any = None
    tool_calls: Any = None  # JSON text in the database, a list in exports
    tool_call_id: Any = None
    timestamp: Any = None
    active: Any = None
    compacted: Any = None


class HermesSession(msgspec.Struct, gc=False):
    """A row of `sessions`. Snapshots of single sessions use other names for some fields."""

    id: Any = None
    session_id: Any = None
    model: Any = None
    parent_session_id: Any = None
    started_at: Any = None
    session_start: Any = None
    ended_at: Any = None
    last_updated: Any = None
    end_reason: Any = None
    cwd: Any = None
    git_repo_root: Any = None
    source: Any = None  # cli, cron, telegram, ...
    platform: Any = None  # the same in snapshots
    user_id: Any = None
    chat_id: Any = None
    profile_name: Any = None
    input_tokens: Any = None
    output_tokens: Any = None
    cache_read_tokens: Any = None
    cache_write_tokens: Any = None
    reasoning_tokens: Any = None
    actual_cost_usd: Any = None
    estimated_cost_usd: Any = None


class ModelRow(msgspec.Struct, gc=False):
    """A row of `session_model_usage`: the main loop's tokens of one model."""

    model: Any = None
    input_tokens: Any = None
    output_tokens: Any = None
    cache_read_tokens: Any = None
    cache_write_tokens: Any = None
    reasoning_tokens: Any = None
    actual_cost_usd: Any = None
    estimated_cost_usd: Any = None


class Rows:
    """Adds the rows of one session, in order, to its builder."""

    def __init__(self, source: Source, judge: Judge, name: str) -> None:
        self.draft = SessionBuilder(source, judge, format=name, agent=AGENT)
        self._source = source
        self._chat = Chat(self.draft, source.report)
        self._compacted = False
        self._calls: set[int] = set()  # hashes of added calls
        self._texts: set[int] = set()  # hashes of added messages
        self._asked: set[str] = set()
        self._answered: set[str] = set()

    def take(self, row: HermesMessage) -> None:
        """Add one row."""
        if row.active == 0 and not row.compacted:  # the user took it back
            return
        self._compacted = self._compacted or bool(row.compacted)
        at = parse_time(row.timestamp)
        if row.role == "tool":
            self._add_result(string_of(row.tool_call_id), _text(row.content), at)
        elif isinstance(row.role, str) and row.role in ROLES:
            text = _without_preamble(_text(row.content)) if row.role == "user" else _text(row.content)
            if not text.startswith(_SUMMARIES) and not self._is_copy(row.role, text, at):
                self.draft.message(ROLES[row.role], text, at)
            for call in self._tool_calls(row.tool_calls):
                self._add_call(call, at)
        # other roles (session_meta) hold no messages

    def _is_copy(self, role: str, text: str, at: float | None) -> bool:
        keys = {hash((role, text, at))}
        if len(text) >= _LONG:
            keys.add(hash((role, text)))
        copied = self._compacted and not keys.isdisjoint(self._texts)
        self._texts |= keys
        return copied

    def _add_call(self, call: Any, at: float | None) -> None:
        call_id = string_of(call.get("id")) if isinstance(call, dict) else ""
        if call_id:
            key = hash(msgspec.json.encode((call_id, call.get("function"))))
            if self._compacted and key in self._calls:
                return
            self._calls.add(key)
            self._asked.add(call_id)
        self._chat.call(call, at)

    def _add_result(self, call_id: str, text: str, at: float | None) -> None:
        if call_id:
            if self._compacted and call_id in self._answered and call_id not in self._asked:
                return
            self._asked.discard(call_id)
            self._answered.add(call_id)
        self._chat.result(call_id, text, at)

    def _tool_calls(self, calls: Any) -> list[Any]:
        if isinstance(calls, str) and calls:
            calls = _parse(calls)
            if calls is None:
                self._source.report(f"session {self.draft.id}: left out tool calls that are not JSON")
        return calls if isinstance(calls, list) else []


def _text(content: Any) -> str:
    if isinstance(content, str) and content.startswith(_JSON_MARK):
        parsed = _parse(content[len(_JSON_MARK) :])
        return text_of(parsed) if parsed is not None else content[len(_JSON_MARK) :]
    return text_of(content)


def _without_preamble(text: str) -> str:
    """Return a scheduled job's request without the text about schedules that Hermes puts before every job."""
    before, mark, rest = text.partition(_CRON_MARK)
    _preamble, end, request = rest.partition("]\n\n")
    return before + request if mark and end else text


def _parse(text: str) -> Any:
    try:
        return msgspec.json.decode(scrub(text))
    except DECODE_ERRORS:
        return next(iter(loose_values(text.encode("utf-8", "replace"))[0]), None)


def describe(draft: SessionBuilder, row: HermesSession, source: Source) -> None:
    """Set the facts of the session's own row, and its label from `labels.json`."""
    draft.id = string_of(row.id) or string_of(row.session_id)
    draft.model = string_of(row.model) or None
    draft.parent = string_of(row.parent_session_id) or None
    run = CRON_RUN.fullmatch(draft.id)
    draft.project = name_job(run[1]) if run else string_of(row.cwd) or string_of(row.git_repo_root) or None
    draft.end_reason = string_of(row.end_reason) or None
    draft.started = parse_time(row.started_at) or parse_time(row.session_start)
    draft.ended = parse_time(row.ended_at) or parse_time(row.last_updated)
    draft.usage = _usage(row)
    draft.label = label_beside(source, draft.id)
    draft.source = (string_of(row.source) or string_of(row.platform)).lower() or None
    draft.owner = find_owner(row, source.path.absolute().parent)


def find_owner(row: HermesSession, home: Path) -> SessionOwner:
    """Return whose session a row is. `home` is the folder of the database: that of a profile names the profile."""
    profile = find_profile(home) or string_of(row.profile_name)
    platform = string_of(row.source) or string_of(row.platform)
    chat, user = string_of(row.chat_id), string_of(row.user_id)
    is_personal = bool(chat or user) or platform.lower() in _GATEWAYS
    return SessionOwner(
        profile="" if profile in _DEFAULT_PROFILES else profile,
        platform=(platform or "unknown") if is_personal else "",
        chat=chat,
        user=user,
    )


def trace_owner(session: str, find_row: Callable[[str], HermesSession | None], home: Path) -> SessionOwner | None:
    """Return the owner of a session, which may have it from its own parent; None for an unknown session."""
    owner = None
    for _generation in range(_GENERATIONS):
        row = find_row(session)
        if row is None:
            return owner
        owner = find_owner(row, home)
        if owner.chat or owner.user or not (session := string_of(row.parent_session_id)):
            return owner
    return owner


def inherit_owner(row: HermesSession, owner: SessionOwner, find: Callable[[str], SessionOwner | None]) -> SessionOwner:
    """Return the parent's owner for a session that names nobody: one that another started, or a continuation.

    `find` returns the owner of a session. A subagent of an unknown session belongs to nobody known.
    """
    parent = string_of(row.parent_session_id)
    if not parent or owner.chat or owner.user:
        return owner
    known = find(parent)
    if known is not None:
        return structs.replace(known, profile=owner.profile)
    return structs.replace(owner, platform=SUBAGENT) if string_of(row.source) == SUBAGENT else owner


def spend_by_model(draft: SessionBuilder, rows: list[ModelRow]) -> None:
    """Add a session's tokens by model.

    The total in the session's own row is right: the rest that no model accounts for belongs to the session's model, and
    rows that add up to more than the total are ignored.
    """
    known = [(string_of(row.model), usage) for row in rows if (usage := _usage(row)) is not None]
    total, models = draft.usage, add_up(Spent(usage) for _model, usage in known)
    if total is None or models is None:
        return
    rest = [(a or 0) - (b or 0) for a, b in zip(figures(total), figures(models), strict=True)][: len(TOKENS)]
    if min(rest) < 0:
        return
    for model, usage in known:
        draft.spend(usage, "" if model == "unknown" else model)
    if any(rest):
        draft.spend(make_usage([*rest, None]))


def _usage(row: HermesSession | ModelRow) -> Usage | None:
    """Read the token columns. They default to zero, so a session of zeros is one whose tokens were not counted."""
    cost = dollars_of(row.actual_cost_usd) or dollars_of(row.estimated_cost_usd) or None
    usage = Usage(
        input=count_of(row.input_tokens),
        output=count_of(row.output_tokens),
        cache_read=count_of(row.cache_read_tokens),
        cache_write=count_of(row.cache_write_tokens),
        reasoning=count_of(row.reasoning_tokens),
        cost=cost,
    )
    if usage.input or usage.output or usage.cache_read or usage.cache_write:
        return usage
    return Usage(cost=cost) if cost is not None else None
