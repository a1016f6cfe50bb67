"""Past sessions in, template drafts out: the few calls that worked, are supported by others, and differ.

Each session is brought down to its best candidates as it passes by; only then are kinds of work told apart and
examples chosen. The order of the sessions changes nothing.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, structs

from warmstart.calls.shapes import signature
from warmstart.model import PastCall, PastSession, TaskType, Template
from warmstart.templates import topics as groups
from warmstart.templates.candidates import SessionDigest, keep
from warmstart.templates.drafts import Support, TemplateDraft

SEED_IDS = "warm_"  # how the call ids of a seed start
_TOOL_NAME = re.compile(r"[\w.:/-]{1,128}")

TRIVIAL = frozenset(
    """clarify memory fact_store todo todowrite todoread todo_write todo_read update_plan update_todo_list task_create
    taskcreate taskupdate tasklist taskget task_update exitplanmode enterplanmode exit_plan_mode askuserquestion
    ask_user_question ask_followup_question skill think thinking sequentialthinking sequential_thinking change_title
    process_thoughts attempt_completion finish submit toolsearch tool_search save_memory remember create_memory
    update_memory report_intent set_title write_todos manage_todo_list task_complete new_task switch_mode taskoutput
    taskstop bashoutput killshell killbash warm_session templates_list template_show request_confirmation""".split()
)


class LearnLimits(Struct, frozen=True, kw_only=True):
    """Limits that a caller may set for one `learn`. None keeps the default of MiningOptions."""

    min_calls: int | None = None  # calls that worked, which a session must have
    max_error_rate: float | None = None  # of a session's judged calls
    skip_end_reasons: tuple[str, ...] | None = None  # sessions that ended so are left out
    max_examples: int | None = None  # of a template


class MiningOptions(Struct, frozen=True, kw_only=True):
    """What is worth learning from."""

    min_calls: int = 2  # calls that worked, which a session must have
    max_error_rate: float = 0.5  # of its judged calls
    skip_end_reasons: tuple[str, ...] = ()
    trivial_tools: frozenset[str] = TRIVIAL  # lower case; never shown
    max_examples: int = 8  # of a template
    min_examples: int = 1
    max_kinds: int = 5  # of work told apart among the sessions of a project, agent and category
    min_support: int = 2  # sessions that must agree before a host is known or a lesson is a rule

    def is_trivial(self, tool: str) -> bool:
        """Also behind an MCP server's name: `mcp__journal__process_thoughts`."""
        name = tool.lower()
        if not _TOOL_NAME.fullmatch(name):
            return True  # no tool has such a name
        return name in self.trivial_tools or name.rpartition("__")[2] in self.trivial_tools


class MiningResult(Struct, frozen=True, kw_only=True):
    """What came of it."""

    considered: int
    refused: dict[str, int]  # sessions by the reason why not
    drafts: tuple[Template, ...]


Refuse = Callable[[PastSession], str | None]
Seeded = Mapping[str, Collection[tuple[str, str]]]  # session key -> signatures of the calls it was seeded with


def mine(
    sessions: Iterable[PastSession], options: MiningOptions, refuse: Refuse, seeded: Seeded | None = None
) -> MiningResult:
    """Drafts of templates, one a kind of work. `refuse` says why a session is not worth learning from, or None."""
    seen = Support()
    refused: Counter[str] = Counter()
    kept: list[SessionDigest] = []
    for session in sessions:
        calls = _own_calls(session, options, (seeded or {}).get(session.key, ()))
        seen.count(session, calls)
        reason = refuse(session) or _refuse(session, calls, options)
        if reason:
            refused[reason] += 1
        else:
            kept.append(keep(session, calls))
    kept.sort(key=lambda one: (one.started, one.key))
    seen.settle(kept, options.min_support)
    drafts = _draft_all(kept, seen, options)
    shown = {key for draft in drafts for key in draft.source_sessions}
    if barren := sum(one.key not in shown for one in kept):
        refused["no call of it works more often than it fails"] = barren
    return MiningResult(considered=seen.considered, refused=dict(sorted(refused.items())), drafts=tuple(drafts))


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
    """One session as a template because someone says so, or the reason why not. No gate but the calls themselves."""
    reason = _refuse_capture(session, options, seeded)
    if reason:
        return reason
    calls = _own_calls(session, options, seeded)
    seen = Support()
    seen.count(session, calls)
    kept = keep(session, calls)
    seen.settle([kept], options.min_support)
    most = options.max_examples if max_examples is None else max(1, max_examples)
    topics = groups.top_words([kept.task], Counter(), 0)
    draft = TemplateDraft([kept], seen, most, options.min_support).make(topics, "captured")
    draft = structs.replace(draft, name=_name(draft, kept, topics, set()))
    changes: dict[str, object] = {"name": name, "description": description, "task_type": task_type}
    changes["tags"] = tuple(tags) if tags else None
    return structs.replace(draft, **{field: value for field, value in changes.items() if value is not None})


def _refuse_capture(session: PastSession, options: MiningOptions, seeded: Collection[tuple[str, str]]) -> str | None:
    if not session.calls:
        return "no tool was called"
    if not any(call.outcome.status == "ok" for call in session.calls):
        return "no call is known to have worked"
    if all(options.is_trivial(call.tool) for call in session.calls if call.outcome.status == "ok"):
        return "only trivial tools worked: " + ", ".join(sorted({call.tool for call in session.calls})[:3])
    if not any(call.outcome.status == "ok" for call in _own_calls(session, options, seeded)):
        return "all that worked is what the session was seeded with"
    return None


def _own_calls(session: PastSession, options: MiningOptions, seeded: Collection[tuple[str, str]]) -> list[PastCall]:
    """Its calls in order, without trivial tools and without what it was seeded with."""
    return [
        call
        for call in sorted(session.calls, key=lambda call: call.ordinal)
        if not options.is_trivial(call.tool)
        and not call.call_id.startswith(SEED_IDS)
        and not (seeded and signature(call.tool, call.arguments) in seeded)
    ]


def _refuse(session: PastSession, calls: Sequence[PastCall], options: MiningOptions) -> str | None:
    if session.end_reason is not None and session.end_reason in options.skip_end_reasons:
        return f"it ended with {session.end_reason}"
    worked = sum(call.outcome.status == "ok" for call in calls)
    failed = sum(call.outcome.status == "error" for call in calls)
    if worked < options.min_calls:
        return f"fewer than {options.min_calls} calls worked"
    if failed > options.max_error_rate * (worked + failed):
        return f"more than {options.max_error_rate:.0%} of its calls failed"
    return None


def _draft_all(kept: Sequence[SessionDigest], seen: Support, options: MiningOptions) -> list[Template]:
    """The earliest work first: a template keeps its name when other work that would be called the same comes later."""
    drafts: list[Template] = []
    taken: set[str] = set()
    work = sorted(_kinds_of_work(kept, options.max_kinds), key=lambda found: (found[0][0].started, found[0][0].key))
    for members, topics in work:
        draft = TemplateDraft(members, seen, options.max_examples, options.min_support).make(topics, "learned")
        if len(draft.examples) >= max(1, options.min_examples):
            name = _name(draft, members[0], topics, taken)
            taken.add(name)
            drafts.append(structs.replace(draft, name=name))
    return drafts


def _kinds_of_work(kept: Sequence[SessionDigest], most: int) -> Iterator[tuple[list[SessionDigest], list[str]]]:
    """Sessions of one kind of work, with the words that tell it from its neighbours."""
    for group in _groups(kept):
        tasks = groups.drop_boilerplate([one.task for one in group])
        everywhere = Counter(word for task in tasks for word in set(groups.words(task)))
        for indices in groups.cluster(tasks, [one.tools for one in group], most):
            inside = [tasks[index] for index in indices]
            elsewhere = everywhere - Counter(word for task in inside for word in set(groups.words(task)))
            topics = groups.top_words(inside, elsewhere, len(group) - len(indices))
            yield [group[index] for index in indices], topics


def _groups(kept: Sequence[SessionDigest]) -> Iterator[list[SessionDigest]]:
    """By project, agent and kind. A session alone of its kind joins the others of its project and agent: what is seen
    once supports nothing, and one job is often now more reading, now more running."""
    kinds: defaultdict[tuple[str, ...], list[SessionDigest]] = defaultdict(list)
    alone: defaultdict[tuple[str, ...], list[SessionDigest]] = defaultdict(list)
    for one in kept:
        kinds[one.group].append(one)
    for key in [key for key, group in kinds.items() if len(group) == 1]:
        alone[key[:2]] += kinds.pop(key)
    for (project, agent), singles in alone.items():
        others = [group for key, group in kinds.items() if key[:2] == (project, agent)]
        home = max(others, key=len, default=None) if len(singles) == 1 else None
        if home is None:
            kinds[project, agent, "alone"] = singles
        else:
            home += singles
            home.sort(key=lambda one: (one.started, one.key))
    yield from kinds.values()


def _name(draft: Template, earliest: SessionDigest, topics: Sequence[str], taken: set[str]) -> str:
    project, agent, _category, _type = earliest.group
    category, task_type = draft.category, draft.task_type
    place = groups.place_name(project, agent)
    about = [*topics[:2], *draft.tags[len(topics[:3]) :]][:2]
    return groups.unique_name((place, category, *about), (agent, task_type, *topics[2:3], project), taken)
