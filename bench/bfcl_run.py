"""The part of `bench/bfcl.py` that asks a model: first turns of BFCL's tasks, each in every arm, judged by BFCL's checker.

A session ends when the model answers without a call, repeats its last call, or has answered `ANSWERS` times. It never ends
because the checker would be content: running on may cost. Then all its calls are judged together, from the beginning.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import re
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bfcl_coverage import FOLDS, WHOLE_TURNS, compose_turns, fold_of, make_tfidf, open_history, open_played
from bfcl_data import BfclTask, execute, write_session
from warmstart.dialects.compose import inject
from warmstart.dialects.tokens import estimate
from warmstart.endpoints.chat import LLM, write_body
from warmstart.lab.models.tool_calls import make_harmless, read_arguments, write_turn
from warmstart.model import Task

ARMS = ("cold", "warm", "nearest", "random", "own")
ANSWERS = 8  # maximum answers of a session
ANSWER_TOKENS = 160
SYSTEM = "You meet the user's request by calling tools, one after the other. When it is met, say so in a few words."
_RESULT = 600  # characters of a result that the model sees

_MADE_UP = re.compile(r"\(Made up here: (.*?)\. Take yours")
_ORDER = 18  # of the shuffle that decides which tasks a small run has

Note = dict[str, Any]
Messages = Sequence[Any]


class RunOptions(NamedTuple):
    """Which arms to play, and where to report progress."""

    arms: Sequence[str]
    progress: Callable[[str], None]


def order_tasks(tested: Sequence[BfclTask], most: int) -> list[BfclTask]:
    """Return the first `most` tasks of a fixed shuffle, those with the same tools side by side: a prefix that is cached."""
    shuffled = sorted(tested, key=lambda task: task.number)
    random.Random(_ORDER).shuffle(shuffled)
    return sorted(shuffled[:most], key=lambda task: (task.entry["involved_classes"], task.tools, task.number))


def run(tasks: Sequence[BfclTask], tested: Sequence[BfclTask], llm: LLM, folder: Path, options: RunOptions) -> None:
    """Play every task in every arm that has no result yet; each result is appended as one line to `results.jsonl`."""
    file = folder / "results.jsonl"
    done = {(note["task"], note["arm"]) for note in read_results(folder)}
    left = [task for task in tested if any((task.number, arm) not in done for arm in options.arms)]
    seeds = make_seeds(tasks, left, played(folder, "cold")) if left else {}
    for place, task in enumerate(left, 1):
        for arm in options.arms:
            if (task.number, arm) in done:
                continue
            started = time.time()
            note = {"task": task.number, "arm": arm, **play(task, seeds[task.number][arm], llm)}
            with file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(note) + "\n")
            how = "solved" if note["solved"] else explain(note)
            options.progress(f"{place}/{len(left)} task {task.number} {arm}: {how} ({time.time() - started:.0f} s)")


def read_results(folder: Path) -> list[Note]:
    file = folder / "results.jsonl"
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def played(folder: Path, arm: str) -> dict[int, Note]:
    """Return the results of one arm by task."""
    return {note["task"]: note for note in read_results(folder) if note["arm"] == arm}


def make_seeds(
    tasks: Sequence[BfclTask], tested: Sequence[BfclTask], cold: Mapping[int, Note]
) -> dict[int, dict[str, Messages]]:
    """Return the seed of each arm by task, each from the history of the other folds.

    The baselines show recorded turns as they are, composed like any seed. `own` knows only the model's cold sessions.
    """
    seeds: dict[int, dict[str, Messages]] = {}
    for fold in range(FOLDS):
        own = [task for task in tested if fold_of(task) == fold]
        if not own:
            continue
        history = [task for task in tasks if fold_of(task) != fold]
        turns = [turn for task in history for turn in task.turns if turn.calls]
        rank = make_tfidf([turn.request for turn in turns])
        with (
            tempfile.TemporaryDirectory(prefix="warmstart-bench-") as home,
            open_history(map(write_session, history), Path(home) / "truth", approve=False) as ws,
            open_played(history, cold, Path(home) / "own") as own_ws,
        ):
            for task in own:
                request = task.turns[0].request
                usable = [turn for turn in (turns[at] for at in rank(request)) if turn.tools <= set(task.tools)]
                chance = random.Random(task.number)
                asked = Task(text=request, tools=task.tools, examples=ws.settings.examples)
                seeds[task.number] = {
                    "cold": (),
                    "warm": ws.provision(asked).messages,
                    "nearest": compose_turns(usable[:WHOLE_TURNS]).messages,
                    "own": own_ws.provision(asked).messages,
                    "random": compose_turns(chance.sample(usable, min(4, len(usable)))).messages,
                }
    return seeds


def play(task: BfclTask, seed: Sequence[Any], llm: LLM) -> Note:
    """Run one session and judge it."""
    who = f"run{uuid.uuid4().hex}"
    opening = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": task.turns[0].request}]
    messages = inject(seed, opening)
    tools = [_describe(doc) for doc in task.docs]
    calls: list[str] = []
    invalid, words, why, result = 0, "", "limit", ""
    for number in range(ANSWERS):
        request = {"messages": messages, "tools": tools, "temperature": 0.0, "max_tokens": ANSWER_TOKENS}
        reply = llm.ask(write_body(request))
        if not reply.calls:
            words, why = reply.text, "words"
            break
        asked = make_harmless(reply.calls[0])
        arguments = read_arguments(asked.arguments)
        if asked.name not in task.tools or arguments is None or not all(name.isidentifier() for name in arguments):
            invalid += 1
            result = json.dumps({"error": f"there is no such call: {asked.name}"})
        else:
            call = f"{asked.name}({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"
            if calls and call == calls[-1]:
                why = "repeated"
                break
            calls.append(call)
            result = execute(task.entry, [call], who)[0]
            invalid += result.startswith("Error during execution")
        messages = [*messages, *write_turn("", [f"call_{number}"], [asked], [result[:_RESULT]])]
    shown = json.dumps(list(seed))
    made_up = _match_made_up(seed, task.turns[0].request)
    return {
        "solved": judge(task, calls),
        "why": why,
        "words": words[:300],
        "parroted": _is_parroted(words.strip(), shown, result),
        "placeholders": sum(made_up.search(call) is not None for call in calls),
        "calls": calls,
        "invalid": invalid,
        "seed": estimate(shown) if seed else 0,
        "needed": list(task.truth[0]),
        "tools": sorted(task.turns[0].tools),
        "shown": sorted(task.turns[0].tools & _list_tools(seed)),
    }


def _is_parroted(words: str, seed: str, result: str) -> bool:
    """Return whether a session's last words are out of its seed; naming its own last result in the seed's form is not."""
    if len(words) <= 3 or json.dumps(words)[1:-1] not in seed:
        return False
    echo = words.removeprefix("[result: ").removesuffix("]").removesuffix(" [...]")
    return echo not in " ".join(result.split()).translate(str.maketrans("", "", '"{}'))


def _match_made_up(seed: Messages, request: str) -> re.Pattern[str]:
    """Return a pattern of the values that a seed says are made up and the request does not give, as text or number."""
    texts = [message["content"] for message in seed if message["role"] == "user"]
    values = {value for text in texts for listed in _MADE_UP.findall(text) for value in listed.split(", ")}
    given = "|".join(rf"={re.escape(value)}\b|{re.escape(repr(value))}" for value in values if value not in request)
    return re.compile(f"SECRET:|EXAMPLE-|{given}" if given else "SECRET:|EXAMPLE-")


def _list_tools(seed: Messages) -> set[str]:
    return {call["function"]["name"] for message in seed for call in message.get("tool_calls") or ()}


def explain(note: Note) -> str:
    """Return why a session did not solve its task, by its calls beside those of the ground truth."""
    called = {call.partition("(")[0] for call in note["calls"]}
    needed = set(note["tools"])
    if not note["calls"]:
        return "no call" if note["why"] == "words" else "no valid call"
    if not called & needed:
        return "other tools"
    if needed - called:
        return "some tools not called"
    if called - needed:
        return "needed tools and others"
    return "other arguments" if len(note["calls"]) >= len(note["needed"]) else "too few calls"


def judge(task: BfclTask, calls: Sequence[str]) -> bool:
    """Return whether BFCL's own checker finds the first turn solved."""
    from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import multi_turn_checker

    who = f"check{uuid.uuid4().hex}"
    steps = [[[call] for call in calls]]
    if not calls:
        return False
    with contextlib.redirect_stdout(io.StringIO()):
        verdict = multi_turn_checker(steps, [list(task.truth[0])], task.entry, "multi_turn_base", who)
    return bool(verdict["valid"])


def _describe(doc: dict[str, Any]) -> dict[str, Any]:
    """Return a tool's description without the paragraph about its class, which every tool of BFCL repeats."""
    said = doc["description"].rpartition("Tool description:")[2].strip()
    parameters = {
        "type": "object",
        "properties": doc["parameters"]["properties"],
        "required": doc["parameters"]["required"],
    }
    function = {"name": doc["name"], "description": said.partition(". ")[0].rstrip(".") + ".", "parameters": parameters}
    return {"type": "function", "function": function}
