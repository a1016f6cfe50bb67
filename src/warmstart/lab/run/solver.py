"""The solver: it runs the right calls of training tasks for real and writes the transcripts to learn from."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

from warmstart.endpoints.chat import AskedCall
from warmstart.errors import WarmstartError
from warmstart.lab.chores.make import TrainingSession
from warmstart.lab.chores.tasks import Finished
from warmstart.lab.models.tool_calls import write_turn
from warmstart.lab.run.agent import AGENT, CLOSING, SYSTEM, Transcript, put_time
from warmstart.lab.sandbox.workshop import Workshop

SOLVER = "solver"


class Unsolved(WarmstartError):
    """A task's own solution does not solve it: the lab is broken, and none of its results could be trusted."""


def solve(session: TrainingSession, began: float) -> Transcript:
    """Return the session with its right calls and their real results; raise Unsolved if a check fails.

    Recorded messages are one second apart, however busy the machine is: mining weighs age and would choose differently
    each time."""
    seconds = count(began)

    def stamp(message: dict[str, Any]) -> dict[str, Any]:
        return put_time(message, next(seconds))

    messages = [stamp({"role": "system", "content": SYSTEM})]
    for number, task in enumerate(session.tasks, 1):
        messages.append(stamp({"role": "user", "content": task.request}))
        with Workshop(task.files) as workshop:
            result = ""
            for step, call in enumerate(task.solution, 1):
                result = workshop.run(call)
                asked = AskedCall("", call.tool, json.dumps(call.arguments, ensure_ascii=False))
                messages += map(stamp, write_turn("", [f"call_{number}_{step}"], [asked], [result]))
            if not task.check(Finished(workshop.folder, result)):
                raise Unsolved(f"the solution of {task.id} does not solve it: {result[:200]}")
        messages.append(stamp({"role": "assistant", "content": CLOSING}))
    return Transcript(
        session_id=session.id, agent=AGENT, model=SOLVER, project="", label=True, usage=None, messages=messages
    )
