"""The part of `bench/bfcl.py` that asks a model: first turns of BFCL's tasks, each in every arm, judged by BFCL's checker.

A session ends when the model answers without a call, repeats its last call, or has answered `ANSWERS` times. It never ends
because the checker would be content: running on may cost. Then all its calls are judged together, from the beginning.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bfcl_coverage import FOLDS, WHOLE_TURNS, compose_turns, fold_of, make_tfidf, open_history
from bfcl_data import BfclTask, BfclTurn, execute
from warmstart.dialects.compose import inject
from warmstart.dialects.tokens import estimate
from warmstart.endpoints.chat import LLM, write_body
from warmstart.lab.models.tool_calls import make_harmless, read_arguments, write_turn
from warmstart.model import Task
from warmstart.pipeline import Warmstart

ARMS = ("cold", "warm", "nearest", "random")
ANSWERS = 8  # maximum answers of a session
ANSWER_TOKENS = 160
SYSTEM = "You meet the user's request by calling tools, one after the other. When it is met, say so in a few words."
_RESULT = 600  # characters of a result that the model sees

Note = dict[str, Any]


def run(
    tasks: Sequence[BfclTask], tested: Sequence[BfclTask], llm: LLM, folder: Path, progress: Callable[[str], None]
) -> None:
    """Run every task that has no result yet in every arm; each result is appended as one line to `results.jsonl`."""
    file = folder / "results.jsonl"
    done = {(note["task"], note["arm"]) for note in read_results(folder)}
    for fold in range(FOLDS):
        left = [
            task for task in tested if fold_of(task) == fold and any((task.number, arm) not in done for arm in ARMS)
        ]
        if not left:
            continue
        history = [task for task in tasks if fold_of(task) != fold]
        turns = [turn for task in history for turn in task.turns if turn.calls]
        rank = make_tfidf([turn.request for turn in turns])
        with (
            tempfile.TemporaryDirectory(prefix="warmstart-bench-") as home,
            open_history(history, Path(home), approve=False) as ws,
        ):
            for task in left:
                ranked = [turns[at] for at in rank(task.turns[0].request)]
                usable = [turn for turn in ranked if turn.tools <= set(task.tools)]
                for arm, seed in make_seeds(ws, task, usable):
                    if (task.number, arm) in done:
                        continue
                    note = {"task": task.number, "arm": arm, **play(task, seed, llm)}
                    with file.open("a", encoding="utf-8") as out:
                        out.write(json.dumps(note) + "\n")
                    progress(f"task {task.number} {arm}: {'solved' if note['solved'] else note['why']}")


def read_results(folder: Path) -> list[Note]:
    file = folder / "results.jsonl"
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def make_seeds(ws: Warmstart, task: BfclTask, usable: Sequence[BfclTurn]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield each arm with its seed. The baselines show recorded turns as they are, composed like any seed."""
    seed = ws.provision(Task(text=task.turns[0].request, tools=task.tools, examples=ws.settings.examples))
    chance = random.Random(task.number)
    yield "cold", ()
    yield "warm", seed.messages
    yield "nearest", compose_turns(usable[:WHOLE_TURNS]).messages
    yield "random", compose_turns(chance.sample(list(usable), min(4, len(usable)))).messages


def play(task: BfclTask, seed: Sequence[Any], llm: LLM) -> Note:
    """Run one session and judge it."""
    who = f"run{uuid.uuid4().hex}"
    opening = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": task.turns[0].request}]
    messages = inject(seed, opening)
    tools = [_describe(doc) for doc in task.docs]
    calls: list[str] = []
    invalid, words, why = 0, "", "limit"
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
    return {
        "solved": judge(task, calls),
        "why": why,
        "words": words[:300],
        "parroted": bool(words.strip()) and len(words.strip()) > 3 and json.dumps(words.strip())[1:-1] in shown,
        "placeholders": sum("SECRET:" in call or "EXAMPLE-" in call for call in calls),
        "calls": calls,
        "invalid": invalid,
        "seed": estimate(shown) if seed else 0,
        "needed": len(task.turns[0].calls),
    }


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
