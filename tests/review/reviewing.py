"""Reviews by a scripted model, run by tests in many processes."""

from __future__ import annotations

import json

from review.conversations import conversation, settings
from warmstart.endpoints.chat import AskedCall, Reply, ScriptedLLM
from warmstart.review import Reviewed, ReviewRuntime, spawn_review
from warmstart.store import ProposalRow


def of_model(done: Reviewed) -> list[ProposalRow]:
    """Return the proposals that the model made by a call."""
    return [row for row in done.proposals if row.tool_call]


def review_one(number: int) -> None:
    """Review a conversation of its own and apply one note and one skill."""
    messages = conversation()
    messages[-2]["content"] = f"Please remember: team{number} ships parcel{number} from depot{number}."
    content = f"team{number} ships parcel{number} from depot{number}"
    made = AskedCall(
        "n", "memory", json.dumps({"action": "add", "target": "memory", "content": content, "steps": [10]})
    )
    head = f"---\nname: ship-{number}\ndescription: How team{number} ships\n---\n"
    text = f"{head}Build with `python3 -m build`, then ship parcel{number} from depot{number}.\n"
    other = AskedCall(
        "m",
        "skill_manage",
        json.dumps({"action": "create", "name": f"ship-{number}", "content": text, "steps": [3, 4, 5, 10]}),
    )
    runtime = ReviewRuntime(
        llm=ScriptedLLM([Reply(calls=(made, other))]), request={"model": "m"}, session=f"s-{number}"
    )
    done = spawn_review(messages, runtime, settings=settings(apply=["memory", "skill"])).wait(120)
    assert done is not None and done.warning == "" and len(of_model(done)) == 2, done
    assert [row.status for row in of_model(done)] == ["applied", "applied"], done
