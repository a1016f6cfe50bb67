"""The second measure of `bench/choose.py`: do seeds show the forms of a coding session's own calls?

The sessions of each of the corpus' projects are taken in order of time. Templates are learned from the first 70 %. Of each
later session those calls count that worked, that no earlier session made (forks copy calls), that are not commonplace
(`calls.commonplace`: plain reads, edits and searches, everyday Unix and git commands, the agent's own housekeeping), and
whose form the request does not name. The form of a command is its program with its subcommands (`bun run lint:fix`,
`gh pr view`); of another tool it is the tool with the names of its arguments. The figure of a session is the share of its
different forms that the seed for its first request shows, within the budget and the number of examples of the other measure.
Beside it: the same templates and choice without the rule that commonplace calls teach nothing ("old"), and random examples
of the templates that were learned with the rule ("random"). Briefs are left out: this measures examples.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from unittest import mock

from corpus_projects import open_project
from warmstart import config
from warmstart.calls import commonplace
from warmstart.calls.commonplace import find_called, find_own_commands, is_commonplace
from warmstart.calls.shapes import command_of, split_stages
from warmstart.dialects.compose import compose
from warmstart.dialects.tokens import estimate
from warmstart.model import Arguments, Example, PastSession, Pick, Task
from warmstart.pipeline import Warmstart
from warmstart.seeds.choose import ExampleChooser
from warmstart.store import TemplateStore
from warmstart.templates.mine import MiningOptions

SHARE = 0.7  # of the sessions, which only teach
_SCRIPTS = (".py", ".sh", ".js", ".ts", ".mjs", ".rb", ".pl")


class LaterSession(NamedTuple):
    """A session to be measured."""

    session: PastSession
    forms: frozenset[str]


class Shown(NamedTuple):
    """What the seeds of one way of choosing showed."""

    shares: list[float]  # per session
    examples: int
    plain: int  # examples of commonplace calls that correct nothing
    empty: int  # sessions without any example
    tokens: list[int]


def measure_project(folder: Path, name: str, budget: int, examples: int) -> dict[str, Shown]:
    """Return what each way of choosing shows to the later sessions of a project."""
    with open_project(folder, name) as (transcripts, sessions):
        later = find_later(sessions)
        with learn_from(transcripts, sessions) as ws:
            chooser = ExampleChooser(TemplateStore(ws.store))
            ours = _show(later, lambda task: chooser.choose(task).picks, budget, examples)
            drawn = _show(later, Lottery(ws).draw, budget, examples)
        with without_rule(), learn_from(transcripts, sessions) as ws:
            old_chooser = ExampleChooser(TemplateStore(ws.store))
            old = _show(later, lambda task: old_chooser.choose(task).picks, budget, examples)
    return {"ours": ours, "old": old, "random": drawn}


def find_later(sessions: Sequence[PastSession]) -> list[LaterSession]:
    """Return the later sessions that have forms of their own."""
    cut = int(len(sessions) * SHARE)
    copied = {call.call_id for session in sessions[:cut] for call in session.calls if len(call.call_id) > 15}
    trivial = MiningOptions().is_trivial
    later = []
    for session in sessions[cut:]:
        forms: set[str] = set()
        for call in session.calls:
            if call.outcome.status == "ok" and call.call_id not in copied and not trivial(call.tool):
                forms |= find_forms(call.tool, call.arguments)
        copied |= {call.call_id for call in session.calls if len(call.call_id) > 15}
        asked = " ".join(session.task.lower().split())
        own = frozenset(form for form in forms if form.partition("(")[0].lower() not in asked)
        if own and session.task.strip():
            later.append(LaterSession(session, own))
    return later


def find_forms(tool: str, arguments: Arguments) -> set[str]:
    """Return the forms of a call that are not commonplace."""
    line = command_of(tool, arguments)
    if line is None:
        names = sorted(arguments) if isinstance(arguments, dict) else []
        return set() if is_commonplace(tool, arguments) else {f"{tool}({', '.join(names)})"}
    called = find_called(line)
    if called is not None:
        return {name for name in called if not is_commonplace(name, {})}
    return {form for words in find_own_commands(line) for form in (_name_form(words),)}


def _name_form(words: Sequence[str]) -> str:
    """Return a command's program with its subcommands; the file of a script."""
    (stage,) = split_stages(" ".join(words))[:1] or (None,)
    if stage is None:
        return words[0]
    operand = next((word.strip("'\"") for word in stage.words if not word.startswith("-")), "")
    if " " in stage.head or not operand:
        return stage.head
    if operand.endswith(_SCRIPTS):
        return f"{stage.head} {operand.rpartition('/')[2]}"
    return f"{stage.head} {operand}" if operand.isidentifier() else stage.head


@contextmanager
def learn_from(transcripts: Path, sessions: Sequence[PastSession]) -> Iterator[Warmstart]:
    """Yield a store with templates of the earlier sessions alone."""
    with (
        TemporaryDirectory() as scratch,
        Warmstart(config.load(Path(scratch) / "home", environ={"HOME": scratch})) as ws,
    ):
        ws.ingest(transcripts)
        for session in sessions[int(len(sessions) * SHARE) :]:
            ws.store.run("delete_session", (session.key,))
        ws.templates.learn()
        yield ws


def without_rule() -> AbstractContextManager[object]:
    """Let commonplace calls be mined and chosen, as before."""
    return mock.patch.object(commonplace, "is_commonplace", return_value=False)


class Lottery:
    """Draws random examples of a store's active templates, of the task's project."""

    def __init__(self, ws: Warmstart) -> None:
        self._pool = [(row.project, t, e) for row, t in ws.templates.find("active") for e in t.examples]
        self._chance = random.Random(7)

    def draw(self, task: Task) -> list[Pick]:
        fitting = [(t, e) for project, t, e in self._pool if project in ("", task.project)]
        drawn = self._chance.sample(fitting, min(task.examples, len(fitting)))
        return [Pick(template=t.name, version=t.version, example=e) for t, e in drawn]


def _show(later: Sequence[LaterSession], pick: Callable[[Task], Sequence[Pick]], budget: int, examples: int) -> Shown:
    shares: list[float] = []
    tokens: list[int] = []
    used: list[Example] = []
    empty = 0
    for session, forms in later:
        task = Task(text=session.task, agent=session.agent, project=session.project, budget=budget, examples=examples)
        composed = compose(pick(task), dialect="openai", budget=budget, count=estimate)
        seen = {form for p in composed.used for form in find_forms(p.example.tool, p.example.arguments)}
        shares.append(len(seen & forms) / len(forms))
        tokens.append(composed.tokens)
        used += [p.example for p in composed.used]
        empty += not composed.used
    plain = sum(is_commonplace(e.tool, e.arguments) and not e.correction for e in used)
    return Shown(shares, len(used), plain, empty, tokens)


def summarise(shown: dict[str, Shown], interval: Callable[[list[float]], dict[str, float]]) -> dict[str, object]:
    """Return the named figures of one project, or of several together."""
    ours, old, drawn = (shown[way] for way in ("ours", "old", "random"))
    return {
        "sessions": len(ours.shares),
        **{way: round(statistics.fmean(result.shares), 3) if result.shares else None for way, result in shown.items()},
        "minus_old": interval([a - b for a, b in zip(ours.shares, old.shares, strict=True)]),
        "minus_random": interval([a - b for a, b in zip(ours.shares, drawn.shares, strict=True)]),
        "plain": {way: [result.plain, result.examples] for way, result in shown.items()},
        "empty": {way: result.empty for way, result in shown.items()},
        "tokens": {
            way: round(statistics.fmean(result.tokens)) if result.tokens else 0 for way, result in shown.items()
        },
    }


def join(several: Sequence[dict[str, Shown]]) -> dict[str, Shown]:
    """Return the results of several projects as one."""
    return {
        way: Shown(
            [share for shown in several for share in shown[way].shares],
            sum(shown[way].examples for shown in several),
            sum(shown[way].plain for shown in several),
            sum(shown[way].empty for shown in several),
            [tokens for shown in several for tokens in shown[way].tokens],
        )
        for way in ("ours", "old", "random")
    }
