"""Past sessions in, template drafts out: the few calls that worked, are supported by others, and differ.

Each session is brought down to its best candidates as it passes by; only then are kinds of work told apart and
examples chosen. The order of the sessions changes nothing.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain

from msgspec import Struct, structs

from warmstart import grouping, tools
from warmstart.corrections import Fix, find_fixes
from warmstart.excerpt import first
from warmstart.model import Arguments, Example, PastCall, PastSession, Provenance, TaskType, Template
from warmstart.patterns import COMMONPLACE, Pattern, alike, canonical, command_of, kind, shape, signature, tokens
from warmstart.suspicion import gives_orders, hosts_in, suspicions, without_reminders

INTENT, TASK = 200, 300  # characters shown of what was wanted, searched of what was asked
SEED_IDS = "warm_"  # how the call ids of a seed start
_PER_SHAPE, _PER_SESSION = 2, 40  # candidates kept of a session
_MOST_CLUSTERS, _MOST_LESSONS, _MOST_TAGS = 5, 3, 6
_ALIKE = 0.6  # share of common words from which two calls of one shape are one

TRIVIAL = frozenset(
    """clarify memory fact_store todo todowrite todoread todo_write todo_read update_plan update_todo_list task_create
    taskcreate taskupdate tasklist taskget task_update exitplanmode enterplanmode exit_plan_mode askuserquestion
    ask_user_question ask_followup_question skill think thinking sequentialthinking sequential_thinking change_title
    process_thoughts attempt_completion finish submit toolsearch tool_search save_memory remember create_memory
    update_memory report_intent set_title write_todos manage_todo_list task_complete new_task switch_mode""".split()
)


class Mining(Struct, frozen=True, kw_only=True):
    """What is worth learning from."""

    min_calls: int = 2  # calls that worked, which a session must have
    max_error_rate: float = 0.5  # of its judged calls
    skip_end_reasons: tuple[str, ...] = ()
    trivial_tools: frozenset[str] = TRIVIAL  # lower case; never shown
    max_examples: int = 8  # of a template
    min_examples: int = 1
    min_support: int = 2  # sessions that must agree before a host is known or a lesson is a rule

    def is_trivial(self, tool: str) -> bool:
        """Also behind an MCP server's name: `mcp__journal__process_thoughts`."""
        name = tool.lower()
        return name in self.trivial_tools or name.rpartition("__")[2] in self.trivial_tools


class Mined(Struct, frozen=True, kw_only=True):
    """What came of it."""

    considered: int
    refused: dict[str, int]  # sessions by the reason why not
    drafts: tuple[Template, ...]


Refuse = Callable[[PastSession], str | None]
Seeded = Mapping[str, Collection[tuple[str, str]]]  # session key -> signatures of the calls it was seeded with


class _Candidate(Struct):
    example: Example
    shape: str
    kind: str
    worth: float  # of its own, without what others did
    at: float
    exact: str  # its arguments, to be compared with others'
    fix: Fix | None = None


class _Kept(Struct):
    """What is kept of a session."""

    key: str
    origin: str  # whom it shares its history with: a fork and a subagent are no second opinion
    group: tuple[str, str, str, str]  # project, agent, category, task type
    task: str
    started: float
    tools: Counter[str]
    candidates: list[_Candidate]
    hosts: set[str]
    has_orders: bool


def mine(sessions: Iterable[PastSession], options: Mining, refuse: Refuse, seeded: Seeded | None = None) -> Mined:
    """Drafts of templates, one a kind of work. `refuse` says why a session is not worth learning from, or None."""
    seen = _Evidence()
    refused: Counter[str] = Counter()
    kept: list[_Kept] = []
    for session in sessions:
        calls = _own_calls(session, options, (seeded or {}).get(session.key, ()))
        seen.count(session, calls)
        reason = refuse(session) or _refuse(session, calls, options)
        if reason:
            refused[reason] += 1
        else:
            kept.append(_keep(session, calls))
    kept.sort(key=lambda one: (one.started, one.key))
    seen.settle(kept, options.min_support)
    drafts = _draft_all(kept, seen, options)
    return Mined(considered=seen.considered, refused=dict(sorted(refused.items())), drafts=tuple(drafts))


def capture(
    session: PastSession,
    options: Mining,
    *,
    name: str | None = None,
    description: str | None = None,
    tags: Sequence[str] | None = None,
    task_type: TaskType | None = None,
    max_examples: int | None = None,
    seeded: Collection[tuple[str, str]] = (),
) -> Template | str:
    """One session as a template because someone says so, or the reason why not. No gate but the calls themselves."""
    reason = _refuse_capture(session, options, seeded)
    if reason:
        return reason
    calls = _own_calls(session, options, seeded)
    seen = _Evidence()
    seen.count(session, calls)
    kept = _keep(session, calls)
    seen.settle([kept], options.min_support)
    wanted = options if max_examples is None else structs.replace(options, max_examples=max(1, max_examples))
    draft = _Draft([kept], seen, wanted).make(grouping.Counter(), 1, set(), origin="captured")
    if draft is None:
        return "none of its calls is fit to be shown"
    changes: dict[str, object] = {"name": name, "description": description, "task_type": task_type}
    changes["tags"] = None if tags is None else tuple(tags)
    return structs.replace(draft, **{field: value for field, value in changes.items() if value is not None})


def _refuse_capture(session: PastSession, options: Mining, seeded: Collection[tuple[str, str]]) -> str | None:
    if not session.calls:
        return "no tool was called"
    if not any(call.outcome.status == "ok" for call in session.calls):
        return "no call is known to have worked"
    if all(options.is_trivial(call.tool) for call in session.calls if call.outcome.status == "ok"):
        return "only trivial tools worked: " + ", ".join(sorted({call.tool for call in session.calls})[:3])
    if not any(call.outcome.status == "ok" for call in _own_calls(session, options, seeded)):
        return "all that worked is what the session was seeded with"
    return None


def _own_calls(session: PastSession, options: Mining, seeded: Collection[tuple[str, str]]) -> list[PastCall]:
    """Its calls in order, without trivial tools and without what it was seeded with."""
    return [
        call
        for call in sorted(session.calls, key=lambda call: call.ordinal)
        if not options.is_trivial(call.tool)
        and not call.call_id.startswith(SEED_IDS)
        and not (seeded and signature(call.tool, call.arguments) in seeded)
    ]


def _refuse(session: PastSession, calls: Sequence[PastCall], options: Mining) -> str | None:
    if session.end_reason is not None and session.end_reason in options.skip_end_reasons:
        return f"it ended with {session.end_reason}"
    worked = sum(call.outcome.status == "ok" for call in calls)
    failed = sum(call.outcome.status == "error" for call in calls)
    if worked < options.min_calls:
        return f"fewer than {options.min_calls} calls worked"
    if failed > options.max_error_rate * (worked + failed):
        return f"more than {options.max_error_rate:.0%} of its calls failed"
    return None


class _Evidence:
    """What all sessions say about shapes, corrections and hosts; the refused ones too, they show how often a shape fails."""

    def __init__(self) -> None:
        self.considered = 0
        self.patterns: dict[str, Pattern] = {}
        self.fixes: defaultdict[str, set[str]] = defaultdict(set)
        self.lessons: defaultdict[str, set[str]] = defaultdict(set)
        self.hosts: set[str] = set()
        self._origins: dict[str, str] = {}  # session id -> origin

    def count(self, session: PastSession, calls: Sequence[PastCall]) -> None:
        self.considered += 1
        origin = _origin(session)
        self._origins[session.id] = origin
        for call in calls:
            if call.outcome.counts:
                name = shape(call.tool, call.arguments)
                pattern = self.patterns.get(name)
                if pattern is None:
                    pattern = self.patterns[name] = Pattern(set())
                pattern.sessions.add(session.parent or origin)
                pattern.successes += call.outcome.status == "ok"
                pattern.failures += call.outcome.status == "error"

    def settle(self, kept: Sequence[_Kept], min_support: int) -> None:
        for pattern in self.patterns.values():  # a subagent's calls count for the session that sent it
            pattern.sessions = {self._origins.get(origin, origin) for origin in pattern.sessions}
        hosts: defaultdict[str, set[str]] = defaultdict(set)
        for one in kept:
            for host in one.hosts:
                hosts[host].add(one.origin)
            for fix in filter(None, (candidate.fix for candidate in one.candidates)):
                self.fixes[fix.pair].add(one.origin)
                if fix.lesson:
                    self.lessons[fix.lesson].add(one.origin)
        self.hosts = {host for host, origins in hosts.items() if len(origins) >= min_support}


def _origin(session: PastSession) -> str:
    """A forked session repeats its parent's calls from the first on: the same first call is the same origin."""
    start = session.calls[0] if session.calls else None
    if start and start.at is not None and start.call_id:
        return f"{start.call_id} {start.at}"
    return session.parent or session.key


def _keep(session: PastSession, calls: Sequence[PastCall]) -> _Kept:
    fixes = find_fixes(calls)
    orders = {at for at, call in enumerate(calls) if gives_orders(call.excerpt or "")}
    found: list[_Candidate] = []
    hosts: set[str] = set()
    for at, call in enumerate(calls):
        hosts |= hosts_in(call.excerpt or "") | hosts_in(str(call.arguments))
        if call.outcome.status == "ok":
            candidate = _candidate(session, call, fixes.get(at))
            candidate.worth -= 3.0 * (at in orders) + 1.0 * bool(orders)
            found.append(candidate)
    found.sort(key=lambda one: (-one.worth, one.example.step or 0))
    taken: Counter[str] = Counter()
    best = []
    for candidate in found:
        taken[candidate.shape] += 1
        if taken[candidate.shape] <= _PER_SHAPE and len(best) < _PER_SESSION:
            best.append(candidate)
    return _Kept(
        key=session.key,
        origin=_origin(session),
        group=(session.project or "", session.agent, session.category, session.task_type),
        task=first(grouping.plain(session.task), 2 * TASK),
        started=session.started or 0.0,
        tools=Counter(kind(call.tool, call.arguments) for call in calls),
        candidates=best,
        hosts=hosts,
        has_orders=bool(orders),
    )


def _candidate(session: PastSession, call: PastCall, fix: Fix | None) -> _Candidate:
    result = without_reminders(call.excerpt or "")
    exact = canonical(call.arguments).decode("utf-8", "replace")
    note = call.arguments.get("description") if isinstance(call.arguments, dict) else None
    example = Example(
        tool=call.tool,
        arguments=call.arguments,
        result=result,
        intent=grouping.state_intent(call.intent, note, session.task, INTENT),
        task=grouping.opening(session.task, TASK),
        correction=fix.said if fix else None,
        session=session.key,
        step=call.ordinal,
    )
    worth = 0.3 * (session.verdict == "success") + 0.3 * session.quality + 0.2 * bool(example.intent)
    worth += (fix.weight if fix else 0.0) - min(1.5, (len(exact) + len(result) / 2) / 900)
    worth -= 2.0 * ("characters left out ...]" in exact) + _blandness(call.tool, call.arguments, result)
    at = call.at if call.at is not None else session.started or 0.0
    return _Candidate(example, shape(call.tool, call.arguments), kind(call.tool, call.arguments), worth, at, exact, fix)
