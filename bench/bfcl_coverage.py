"""The part of `bench/bfcl.py` that needs no model: which tools of a task's first turn does its seed show?"""

from __future__ import annotations

import json
import math
import random
import statistics
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import warmstart
from bfcl_data import BfclTask, BfclTurn, write_played_session, write_session
from warmstart.dialects.compose import Composed, compose
from warmstart.dialects.tokens import estimate
from warmstart.model import Example, ExampleCall, Pick, Task
from warmstart.pipeline import Warmstart
from warmstart.templates.search import search_words

FOLDS = 5
WHOLE_TURNS = 2  # of the baseline
BUDGET = 1_500
WAYS = ("ours", "own", "tfidf", "tfidf_same_tools", "tfidf_same_budget", "random")
_FILLING = 12  # turns that are offered to the composer, to fill the budget


Played = Mapping[int, dict[str, Any]]  # the notes of a model's sessions, by task: see bfcl_run.py


class Coverage(NamedTuple):
    """What one way of choosing showed for a task."""

    share: float  # of the needed tools
    whole: bool  # all of them
    nearest: bool  # the example nearest to the request, which is shown last, has exactly the needed tools
    other: int  # tools that are shown and not needed
    examples: int = 0
    tokens: int = 0


def fold_of(task: BfclTask) -> int:
    """Return the fold of a task; a task and its even neighbour are in one, so that no history is lost to the split."""
    return task.number // 2 % FOLDS


@contextmanager
def open_history(sessions: Iterable[dict[str, Any]], folder: Path, *, approve: bool) -> Iterator[Warmstart]:
    """Ingest and learn sessions of other tasks, as a user would; `approve`: and approve what waits for a person."""
    transcripts = folder / "transcripts"
    transcripts.mkdir(parents=True)
    for session in sessions:
        (transcripts / f"{session['id']}.json").write_text(json.dumps(session), encoding="utf-8")
    with warmstart.open(folder / "home") as ws:
        ws.ingest(transcripts)
        ws.learn()
        if approve:
            for row, _template in ws.templates.find("proposed"):
                ws.templates.approve(row.name)
        yield ws


def open_played(history: Sequence[BfclTask], played: Played, folder: Path) -> AbstractContextManager[Warmstart]:
    """Ingest and learn what a model did by itself in other tasks, solved or not."""
    own = [(task, played[task.number]) for task in history if task.number in played]
    sessions = (write_played_session(task, note["calls"], note["words"]) for task, note in own)
    return open_history(sessions, folder, approve=False)


def measure(
    tasks: Sequence[BfclTask], tested: Callable[[BfclTask], bool], *, approve: bool, played: Played | None = None
) -> dict[str, Any]:
    """Return the coverage of Warmstart's seeds and of the baselines over all folds.

    `played`: a model's own sessions by task; `own` is what seeds out of these alone show.
    """
    ways: dict[str, list[Coverage]] = {name: [] for name in WAYS}
    facts: Counter[str] = Counter()
    chance = random.Random(7)
    for fold in range(FOLDS):
        history = [task for task in tasks if fold_of(task) != fold]
        turns = [turn for task in history for turn in task.turns if turn.calls]
        rank = make_tfidf([turn.request for turn in turns])
        with (
            tempfile.TemporaryDirectory(prefix="warmstart-bench-") as folder,
            open_history(map(write_session, history), Path(folder) / "truth", approve=approve) as ws,
            open_played(history, played or {}, Path(folder) / "own") as own,
        ):
            facts["templates"] += len(ws.templates.find("active"))
            facts["waiting"] += len(ws.templates.find("proposed"))
            for task in (task for task in tasks if fold_of(task) == fold and tested(task)):
                first = task.turns[0]
                if not first.tools:
                    continue
                ways["ours"].append(look_at_seed(ws, task))
                if played:
                    ways["own"].append(look_at_seed(own, task))
                ranked = [turns[at] for at in rank(first.request)]
                ways["tfidf"].append(cover(first, ranked[:WHOLE_TURNS]))
                usable = [turn for turn in ranked if turn.tools <= set(task.tools)]
                ways["tfidf_same_tools"].append(cover(first, usable[:WHOLE_TURNS]))
                ways["tfidf_same_budget"].append(cover_budget(first, usable))
                ways["random"].append(cover(first, chance.sample(usable, WHOLE_TURNS)))
    return {
        "tasks": len(ways["ours"]),
        "templates": round(facts["templates"] / FOLDS, 1),
        "waiting": round(facts["waiting"] / FOLDS, 1),
        **{name: summarise(rows) for name, rows in ways.items() if rows},
        "minus_tfidf": interval([a.share - b.share for a, b in zip(ways["ours"], ways["tfidf"], strict=True)]),
    }


def look_at_seed(ws: Warmstart, task: BfclTask) -> Coverage:
    """Return what the seed at the default settings shows."""
    first = task.turns[0]
    seed = ws.provision(Task(text=first.request, tools=task.tools, examples=ws.settings.examples))
    shown: list[set[str]] = []
    for message in seed.messages:
        if message["role"] == "user":
            shown.append(set())
        for call in message.get("tool_calls") or ():
            shown[-1].add(call["function"]["name"])
    return _compare(first, shown[::-1], seed.tokens)


def cover(first: BfclTurn, turns: Sequence[BfclTurn]) -> Coverage:
    return _compare(first, [set(turn.tools) for turn in turns])


def cover_budget(first: BfclTurn, turns: Sequence[BfclTurn]) -> Coverage:
    """Return what the nearest turns show that fit into a seed's budget."""
    composed = compose_turns(turns[:_FILLING])
    return _compare(first, [{call.tool for call in pick.example.calls} for pick in composed.used], composed.tokens)


def _compare(first: BfclTurn, shown: Sequence[set[str]], tokens: int = 0) -> Coverage:
    """Return how the tools of examples, the nearest first, cover those of a turn."""
    every = set().union(*shown)
    return Coverage(
        share=len(first.tools & every) / len(first.tools),
        whole=first.tools <= every,
        nearest=bool(shown) and shown[0] == first.tools,
        other=len(every - first.tools),
        examples=len(shown),
        tokens=tokens,
    )


def compose_turns(turns: Sequence[BfclTurn]) -> Composed:
    """Return recorded turns as a seed, as they are."""
    picks = [Pick(template="turns", version=1, example=_make_example(turn)) for turn in turns]
    return compose(picks, dialect="openai", budget=BUDGET, count=estimate)


def _make_example(turn: BfclTurn) -> Example:
    calls = tuple(
        ExampleCall(tool=call.tool, arguments=call.arguments, result=result[:400])
        for call, result in zip(turn.calls, turn.results, strict=True)
    )
    return Example(tool=calls[0].tool, arguments=calls[0].arguments, result="", intent=turn.request, calls=calls)


def make_tfidf(texts: Sequence[str]) -> Callable[[str], list[int]]:
    """Return the baseline of ten lines: texts by the cosine of their TF-IDF vectors, nearest first."""
    counts = [Counter(search_words(text)) for text in texts]
    spread = Counter(word for count in counts for word in count)
    rarity = {word: math.log((1 + len(texts)) / (1 + seen)) + 1 for word, seen in spread.items()}
    vectors = [{word: n * rarity[word] for word, n in count.items()} for count in counts]
    lengths = [math.sqrt(sum(weight * weight for weight in vector.values())) or 1.0 for vector in vectors]

    def rank(text: str) -> list[int]:
        asked = {word: n * rarity[word] for word, n in Counter(search_words(text)).items() if word in rarity}
        near = [
            sum(weight * vector.get(word, 0.0) for word, weight in asked.items()) / length
            for vector, length in zip(vectors, lengths, strict=True)
        ]
        return sorted(range(len(texts)), key=lambda at: (-near[at], at))

    return rank


def summarise(rows: Sequence[Coverage]) -> dict[str, float]:
    return {
        "needed_tools": round(statistics.fmean(row.share for row in rows), 3),
        "all_tools": round(statistics.fmean(row.whole for row in rows), 3),
        "nearest_exact": round(statistics.fmean(row.nearest for row in rows), 3),
        "other_tools": round(statistics.fmean(row.other for row in rows), 2),
        "examples": round(statistics.fmean(row.examples for row in rows), 1),
        "tokens": round(statistics.fmean(row.tokens for row in rows)),
    }


def interval(differences: Sequence[float], rounds: int = 4_000) -> dict[str, float]:
    """Return the mean of paired differences with a 95 % bootstrap interval over tasks."""
    chance = random.Random(7)
    means = sorted(statistics.fmean(chance.choices(differences, k=len(differences))) for _ in range(rounds))
    low, high = means[int(rounds * 0.025)], means[int(rounds * 0.975)]
    return {"mean": round(statistics.fmean(differences), 3), "low": round(low, 3), "high": round(high, 3)}
