"""Reduce a session to its best calls, as candidates for examples, and a few facts about it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct, structs

from warmstart.calls import tools
from warmstart.calls.commonplace import teaches_nothing
from warmstart.calls.fixes import Fix, find_fixes
from warmstart.calls.intents import restate_intent
from warmstart.calls.origins import find_origin
from warmstart.calls.prose import opening, plain, shorten
from warmstart.calls.shapes import COMMONPLACE, canonical, command_of, heads, kind, operands, shape, values_of
from warmstart.excerpt import first
from warmstart.model import Arguments, Category, Example, PastCall, PastSession, TaskType
from warmstart.projects.paths import mask_root
from warmstart.templates.exchanges import MinedExchange, find_exchanges, name_made_up, take_call
from warmstart.templates.secret_stand_ins import put_secret_stand_ins
from warmstart.templates.suspicion import gives_orders, hosts_in, without_reminders

TASK = 300  # maximum characters of a task, which is searched and not shown
_PER_SHAPE, _PER_SESSION = 2, 40  # maximum candidates

_NOTHING = frozenset(("", "[]", "{}", "null", "none", "no matches found", "no files found", "(no output)", "[image]"))
_REDIRECTED = re.compile(r">\s*([\w./-]+\.\w+)")
_DATA = re.compile(r"^\W*[\[{]|[{,]\s*[\"']\w+[\"']\s*:|<text>|<n>")  # JSON, or a masked message
_CORRECTION = 220  # maximum characters
_SCRIPTS = (".py", ".sh", ".js", ".ts", ".rb", ".pl", ".mjs")
_MARKUP = re.compile(r"<returncode>\d+</returncode>|</?output>")
_BROKEN = re.compile(  # output of a failed command whose exit code a pipe hid
    r"Traceback \(most recent|No module named|command not found|No such file or directory|Permission denied|SyntaxError:"
    r"|^(?:error|fatal|usage):|\bnot recognized as|no tests (?:found|ran)|collected 0 items",
    re.M | re.I,
)


class Candidate(Struct):
    """A call that may become an example."""

    example: Example
    shape: str
    kind: str
    worth: float  # without the support of other sessions
    at: float
    exact: str  # its arguments as canonical JSON
    fix: Fix | None = None
    commonplace: bool = False  # every coding agent makes such calls; only its correction is worth showing


class SessionDigest(Struct):
    """The candidates and facts of one session."""

    key: str
    origin: str  # the same for sessions that share a history: a fork or subagent is no second opinion
    scope: str  # whose session it is
    group: tuple[str, str, Category, TaskType]  # project, agent, category, task type
    task: str
    started: float
    tools: Counter[str]
    worked: Counter[str]  # calls that worked, by shape
    failed: Counter[str]  # calls that failed, by shape
    candidates: list[Candidate]
    exchanges: list[Example]  # whole exchanges, in order
    hosts: set[str]
    has_orders: bool


def digest_session(session: PastSession, calls: Sequence[PastCall], *, everything: bool = False) -> SessionDigest:
    """Reduce a session to its best calls.

    A call that every coding agent makes by itself is a candidate only if it corrects a failure, or if `everything` is.
    """
    session = structs.replace(session, task=mask_root(session.task, session.root))
    fixes = find_fixes(calls)
    exchanges = find_exchanges(session, calls, {at: _state_correction(fix) for at, fix in fixes.items()})
    orders = {at for at, call in enumerate(calls) if gives_orders(call.excerpt or "")}
    candidates: list[Candidate] = []
    hosts: set[str] = set()
    written: set[str] = set()
    asked = {call.request: mask_root(call.asked, session.root) for call in reversed(session.calls) if call.asked}
    for at, call in enumerate(calls):
        hosts |= hosts_in(call.excerpt or "") | hosts_in(canonical(call.arguments).decode("utf-8", "replace"))
        if call.outcome.status != "ok":
            continue
        commonplace = teaches_nothing(session.agent, session.category, call.tool, call.arguments)
        if everything or at in fixes or not commonplace:
            intent = restate_intent(call, asked.get(call.request, ""), session.task)
            candidate = _make_candidate(session, call, intent, fixes.get(at))
            candidate.commonplace = commonplace
            candidate.worth -= 3.0 * (at in orders) + 1.0 * bool(orders)
            candidate.worth -= 1.2 * (not written.isdisjoint(_files_run(call)))
            if (example := _complete(candidate.example, exchanges.get(at), session.stand_ins)) is not None:
                candidate.example = example
                candidates.append(candidate)
        written |= _files_written(call)
    candidates.sort(key=lambda candidate: (-candidate.worth, candidate.example.step or 0))
    taken: Counter[str] = Counter()
    best: list[Candidate] = []
    for candidate in candidates:
        taken[candidate.shape] += 1
        if taken[candidate.shape] <= _PER_SHAPE and len(best) < _PER_SESSION:
            best.append(candidate)
    return SessionDigest(
        key=session.key,
        origin=find_origin(session),
        scope=session.scope,
        group=(session.project or "", session.agent, session.category, session.task_type),
        task=first(plain(session.task), 2 * TASK),
        started=session.started or 0.0,
        tools=Counter(kind(call.tool, call.arguments) for call in calls),
        worked=Counter(shape(call.tool, call.arguments) for call in calls if call.outcome.status == "ok"),
        failed=Counter(shape(call.tool, call.arguments) for call in calls if call.outcome.status == "error"),
        candidates=best,
        exchanges=[exchange.example for exchange in exchanges.values() if exchange.place == 0] if not orders else [],
        hosts=hosts,
        has_orders=bool(orders),
    )


def _complete(example: Example, exchange: MinedExchange | None, stand_ins: Sequence[str]) -> Example | None:
    """Return an example with the exchange around it and without placeholders; None if nobody could say what belongs there."""
    if exchange is not None:
        return take_call(exchange, example)
    return put_secret_stand_ins(name_made_up(example, stand_ins))


def _files_written(call: PastCall) -> set[str]:
    line = command_of(call.tool, call.arguments)
    if line is not None:
        return {path.rpartition("/")[2] for path in _REDIRECTED.findall(line[:2_000])}
    if tools.base_tool(call.tool) != tools.WRITE:
        return set()
    return {str(v).rpartition("/")[2] for form, v in values_of(call.arguments).values() if "path" in form}


def _files_run(call: PastCall) -> set[str]:
    """Return the scripts that a command runs. A script that the session wrote itself is of no use to others."""
    line = command_of(call.tool, call.arguments) or ""
    return {name for word in operands(line) if (name := word.rpartition("/")[2]).endswith(_SCRIPTS)}


def _make_candidate(session: PastSession, call: PastCall, intent: str, fix: Fix | None) -> Candidate:
    result = without_reminders(call.excerpt or "")
    exact = canonical(call.arguments).decode("utf-8", "replace")
    example = Example(
        tool=call.tool,
        arguments=call.arguments,
        result=result,
        intent=intent,
        task=opening(session.task, TASK),
        correction=_state_correction(fix) if fix else None,
        session=session.key,
        step=call.ordinal,
    )
    worth = 0.3 * (session.verdict == "success") + 0.3 * session.quality + 0.2 * bool(example.intent)
    worth += (fix.weight if fix else 0.0) - min(1.5, (len(exact) + len(result) / 2) / 900)
    worth -= 2.0 * ("characters left out ...]" in exact) + _blandness(call.tool, call.arguments, result)
    at = call.at if call.at is not None else session.started or 0.0
    return Candidate(example, shape(call.tool, call.arguments), kind(call.tool, call.arguments), worth, at, exact, fix)


def _state_correction(fix: Fix) -> str | None:
    """Return a fix as a sentence: the error and what changed; what changed alone where the error is data."""
    said = fix.words if _DATA.search(fix.said.removesuffix(f" ({fix.words})")) else fix.said
    return shorten(" ".join(said.split()), _CORRECTION) or None


def _blandness(tool: str, arguments: Arguments, result: str) -> float:
    """Return how little a call teaches: calls that every agent makes anyway, and searches without a result."""
    line = command_of(tool, arguments)
    base = tools.base_tool(tool)
    output = _MARKUP.sub("", result).strip()
    commonplace = line is not None and all(head.split(" ")[0] in COMMONPLACE for head in heads(line))
    bland = 1.3 * commonplace + 0.3 * ("://" in result)
    if line is not None and not commonplace and _BROKEN.search(output):
        bland += 3.0
    if output.lower() in _NOTHING:
        bland += 0.9 if base in (tools.SEARCH, tools.READ, None) or commonplace else 0.2
    return bland
