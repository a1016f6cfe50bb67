"""Mine past sessions for templates: the few calls that worked, have support, and differ.

Each session is reduced to its best calls as it streams by. Kinds of work are separated and examples chosen afterwards,
so the order of the sessions changes nothing.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, structs

from warmstart.calls.shapes import signature
from warmstart.judging.gate import GateLimits, Refusal, check_session
from warmstart.model import PastCall, PastSession, TaskType, Template
from warmstart.projects.examples import make_call_relative
from warmstart.templates import topics
from warmstart.templates.candidates import SessionDigest, digest_session
from warmstart.templates.drafts import Support, TemplateDraft
from warmstart.templates.naming import WorkNames
from warmstart.templates.stand_ins import put_stand_ins

SEED_IDS = "warm_"  # prefix of the call ids in a seed
_COMMONPLACE_ONLY = (
    "all its calls that worked are plain reads, edits and searches, which every coding agent makes by itself"
)
_FAILS_MOSTLY = "no call works more often than it fails"
_TOOL_NAME = re.compile(r"[\w.:/-]{1,128}")

TRIVIAL = frozenset(
    """clarify memory fact_store fact_feedback todo todowrite todoread todo_write todo_read update_plan update_todo_list
    task_create taskcreate taskupdate tasklist taskget task_update exitplanmode enterplanmode exit_plan_mode askuserquestion
    ask_user_question ask_followup_question skill think thinking sequentialthinking sequential_thinking change_title
    process_thoughts attempt_completion finish submit toolsearch tool_search save_memory remember create_memory
    update_memory report_intent set_title write_todos manage_todo_list task_complete new_task switch_mode taskoutput
    taskstop bashoutput killshell killbash warm_session templates_list template_show request_confirmation""".split()
)


class LearnLimits(Struct, frozen=True, kw_only=True):
    """Limits for one `learn`. None keeps the default."""

    min_calls: int | None = None  # minimum calls of a session that worked, unless one corrects a failure (default 1)
    max_error_rate: float | None = None  # maximum share of a session's judged calls that failed (default 0.5)
    skip_end_reasons: tuple[str, ...] | None = None  # further end reasons to leave out, besides errors and crashes
    max_examples: int | None = None  # maximum examples per template (default 8)


class MiningOptions(Struct, frozen=True, kw_only=True):
    """What mining accepts and how much it keeps."""

    gate: GateLimits = GateLimits()  # which sessions are worth learning from
    trivial_tools: frozenset[str] = TRIVIAL  # in lower case; their calls are never shown
    max_examples: int = 8  # per template
    max_kinds: int = 5  # kinds of work per project, agent and category
    min_support: int = 2  # sessions that must agree before a host is known or a lesson becomes a rule
    stand_ins: bool = True  # show stand-ins for the values of people and cases

    def is_trivial(self, tool: str) -> bool:
        """Return whether a tool teaches nothing, also behind the name of an MCP server (`mcp__journal__think`)."""
        name = tool.lower()
        if not _TOOL_NAME.fullmatch(name):
            return True  # not the name of a tool
        return name in self.trivial_tools or name.rpartition("__")[2] in self.trivial_tools


class RefusedSession(Struct, frozen=True):
    """A session that was not learned from."""

    key: str
    session: str  # the agent's own id
    reason: str  # as counted
    detail: str  # the reason with this session's numbers


class MiningResult(Struct, frozen=True, kw_only=True):
    """The drafts, and the sessions that gave none."""

    refused: dict[str, int]  # number of sessions by reason
    drafts: tuple[Template, ...]
    refusals: tuple[RefusedSession, ...] = ()  # one session of each reason, with its numbers


Seeded = Mapping[str, Collection[tuple[str, str]]]  # session key -> signatures of the calls in its seed


def mine(sessions: Iterable[PastSession], options: MiningOptions, seeded: Seeded | None = None) -> MiningResult:
    """Draft one template per kind of work."""
    supports: defaultdict[str, Support] = defaultdict(Support)  # by scope: nothing learned in one counts in another
    refused: Counter[str] = Counter()
    refusals: dict[str, RefusedSession] = {}
    kept: list[SessionDigest] = []
    for session in sessions:
        calls = _own_calls(session, options, (seeded or {}).get(session.key, ()))
        if options.stand_ins:
            session, calls = put_stand_ins(session, calls)
        supports[session.scope].count(session, calls)
        refusal = check_session(session, calls, options.gate)
        if refusal:
            refused[refusal.reason] += 1
            sample = RefusedSession(session.key, session.id, refusal.reason, refusal.detail)
            refusals[refusal.reason] = min(refusals.get(refusal.reason, sample), sample, key=lambda one: one.key)
        else:
            kept.append(digest_session(session, calls))
    kept.sort(key=lambda digest: (digest.started, digest.key))
    _drop_boilerplate(kept)
    drafts: list[Template] = []
    shown: set[str] = set()
    for scope, support in sorted(supports.items()):
        own = [digest for digest in kept if digest.scope == scope]
        support.settle(own, options.min_support)
        for draft, members in _draft_all(own, support, options):
            drafts.append(draft)
            shown |= {digest.key for digest in members}
    barren = [digest for digest in kept if digest.key not in shown]
    reasons = Counter(_FAILS_MOSTLY if digest.candidates else _COMMONPLACE_ONLY for digest in barren)
    refused.update(reasons)
    samples = tuple(refusals[reason] for reason in sorted(refusals))
    return MiningResult(refused=dict(sorted(refused.items())), drafts=tuple(drafts), refusals=samples)


def capture(
    session: PastSession,
    options: MiningOptions,
    *,
    name: str | None = None,
    description: str | None = None,
    tags: Sequence[str] | None = None,
    task_type: TaskType | None = None,
    max_examples: int | None = None,
    seeded: Collection[tuple[str, str]] = (),
) -> Template | str:
    """Draft a template of one session, or return why that is impossible. `check_capture` says whether it is wise."""
    reason = _refuse_capture(session, options, seeded)
    if reason:
        return reason
    session, calls = put_stand_ins(session, _own_calls(session, options, seeded))
    support = Support()
    support.count(session, calls)
    digest = digest_session(session, calls)
    if not digest.candidates:  # somebody named the session: its plain calls are what it can show
        digest = digest_session(session, calls, everything=True)
    support.settle([digest], options.min_support)
    limit = options.max_examples if max_examples is None else max(1, max_examples)
    names = WorkNames([digest])
    topic_words = names.find_topics([digest])
    draft = TemplateDraft([digest], support, limit, options.min_support).make(topic_words, "captured")
    draft = structs.replace(draft, name=names.name([digest], draft.category, ()))
    changes: dict[str, object] = {"name": name, "description": description, "task_type": task_type}
    changes["tags"] = tuple(tags) if tags else None
    return structs.replace(draft, **{field: value for field, value in changes.items() if value is not None})


def check_capture(
    session: PastSession, options: MiningOptions, seeded: Collection[tuple[str, str]] = ()
) -> Refusal | None:
    """Return why a session is not worth a template of its own; None if it is."""
    return check_session(session, _own_calls(session, options, seeded), options.gate)


def _refuse_capture(session: PastSession, options: MiningOptions, seeded: Collection[tuple[str, str]]) -> str | None:
    if not session.calls:
        return "no tool was called"
    if not any(call.outcome.status == "ok" for call in session.calls):
        return "no call is known to have worked"
    if all(options.is_trivial(call.tool) for call in session.calls if call.outcome.status == "ok"):
        return "only trivial tools worked: " + ", ".join(sorted({call.tool for call in session.calls})[:3])
    if not any(call.outcome.status == "ok" for call in _own_calls(session, options, seeded)):
        return "all calls that worked come from its seed"
    return None


def _own_calls(session: PastSession, options: MiningOptions, seeded: Collection[tuple[str, str]]) -> list[PastCall]:
    """Return the session's calls in order, without trivial tools and without the calls of its seed.

    Their paths are relative to the project's root: the root differs between clones and worktrees.
    """
    own: list[PastCall] = []
    for call in sorted(session.calls, key=lambda call: call.ordinal):
        if options.is_trivial(call.tool) or call.call_id.startswith(SEED_IDS):
            continue
        relative = make_call_relative(call, session.root)
        given = {signature(call.tool, call.arguments), signature(call.tool, relative.arguments)} if seeded else set()
        if given.isdisjoint(seeded):
            own.append(relative)
    return own


def _drop_boilerplate(kept: Sequence[SessionDigest]) -> None:
    """Remove from the tasks what an agent's program adds to every request of a project."""
    groups: defaultdict[tuple[str, str, str], list[SessionDigest]] = defaultdict(list)
    for digest in kept:
        groups[digest.scope, digest.group[0], digest.group[1]].append(digest)
    for group in groups.values():
        for digest, task in zip(group, topics.drop_boilerplate([digest.task for digest in group]), strict=True):
            digest.task = task


def _draft_all(
    kept: Sequence[SessionDigest], support: Support, options: MiningOptions
) -> Iterator[tuple[Template, list[SessionDigest]]]:
    """Yield drafts with their sessions, the earliest work first."""
    names, taken = WorkNames(kept), set[str]()
    work = sorted(_kinds_of_work(kept, options.max_kinds), key=lambda kind: (kind[0].started, kind[0].key))
    for members in work:
        topic_words = names.find_topics(members)
        draft = TemplateDraft(members, support, options.max_examples, options.min_support).make(topic_words, "learned")
        if draft.examples:
            name = names.name(members, draft.category, taken)
            taken.add(name)
            yield structs.replace(draft, name=name), members


def _kinds_of_work(kept: Sequence[SessionDigest], max_kinds: int) -> Iterator[list[SessionDigest]]:
    """Yield the sessions of each kind of work."""
    for group in _groups(kept):
        for indices in topics.cluster([digest.task for digest in group], [digest.tools for digest in group], max_kinds):
            yield [group[index] for index in indices]


def _groups(kept: Sequence[SessionDigest]) -> Iterator[list[SessionDigest]]:
    """Group sessions by project, agent and kind.

    A session alone of its kind joins the others of its project and agent: by itself it supports nothing, and the same
    job is sometimes more reading, sometimes more running.
    """
    kinds: defaultdict[tuple[str, ...], list[SessionDigest]] = defaultdict(list)
    alone: defaultdict[tuple[str, ...], list[SessionDigest]] = defaultdict(list)
    for digest in kept:
        kinds[digest.group].append(digest)
    for key in [key for key, group in kinds.items() if len(group) == 1]:
        alone[key[:2]] += kinds.pop(key)
    for (project, agent), singles in alone.items():
        others = [group for key, group in kinds.items() if key[:2] == (project, agent)]
        home = max(others, key=len, default=None) if len(singles) == 1 else None
        if home is None:
            kinds[project, agent, "alone"] = singles
        else:
            home += singles
            home.sort(key=lambda digest: (digest.started, digest.key))
    yield from kinds.values()
