"""Runs inside Hermes' venv: `python library_runs.py URL`. Plays every scenario in one process: Hermes starts slowly.

Each scenario has its own address on the scripted server, so that the server knows whose request it answers even if a
thread of Hermes sends it after the scenario is over. The output is one line of JSON: what each scenario returned.
"""

from __future__ import annotations

import contextvars
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cron.jobs import create_job  # type: ignore[import-not-found]
from cron.scheduler import run_job  # type: ignore[import-not-found]
from gateway.config import GatewayConfig, Platform  # type: ignore[import-not-found]
from gateway.session import SessionSource, SessionStore  # type: ignore[import-not-found]
from gateway.session_context import set_session_vars  # type: ignore[import-not-found]
from hermes_cli.middleware import run_llm_execution_middleware  # type: ignore[import-not-found]
from hermes_cli.plugins import (  # type: ignore[import-not-found]
    discover_plugins,
    get_plugin_command_handler,
    invoke_hook,
)
from hermes_state import SessionDB  # type: ignore[import-not-found]
from run_agent import AIAgent  # type: ignore[import-not-found]
from tools.memory_tool import MemoryStore  # type: ignore[import-not-found]
from tools.registry import registry  # type: ignore[import-not-found]

import warmstart
from warmstart.doors.hermes.place import find_place
from warmstart.errors import Refused
from warmstart.review.memory import MemoryFolder

SERVER = sys.argv[1]
TASK = "Count the open orders in orders.csv"


scene = ""  # that is being played


def scene_url() -> str:
    return f"{SERVER}/scene/{scene}"


def make_agent(**changes: Any) -> Any:
    options = {
        "base_url": f"{scene_url()}/v1",
        "api_key": "none",
        "provider": "custom",
        "model": "scripted",
        "quiet_mode": True,
        "platform": "library",
        "skip_memory": True,
        "skip_context_files": True,
        "enabled_toolsets": ["terminal", "file", "skills", "delegation"],
        "session_db": SessionDB(),
        "max_iterations": 12,
    }
    return AIAgent(**(options | changes))


def run(agent: Any, text: str = TASK, **more: Any) -> dict[str, Any]:
    result = agent.run_conversation(text, **more)
    return {"session": agent.session_id, "answer": result.get("final_response"), "messages": result["messages"]}


def short(*results: dict[str, Any]) -> list[dict[str, Any]]:
    return [{key: result[key] for key in ("session", "answer")} for result in results]


def wait(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120  # only rules out endless waiting
    while time.monotonic() < deadline and not is_done():
        time.sleep(0.05)


def arms() -> Any:
    """Two sessions of an experiment, one of each arm."""
    with warmstart.open() as ws:
        ws.experiments.start("orders", "cold=.5,warm=.5")
    told = short(*(run(make_agent(session_id=f"drawn-{n}")) for n in range(2)))
    with warmstart.open() as ws:
        ws.experiments.stop()
    return told


def responses() -> Any:
    return short(run(make_agent(api_mode="codex_responses")))


def anthropic(key: str = "none") -> Any:
    base = {"api_mode": "anthropic_messages", "provider": "anthropic", "base_url": scene_url(), "api_key": key}
    return short(run(make_agent(**base, model="claude-sonnet-4-5")))


def subscription() -> Any:
    return anthropic("sk-ant-oat01-a-subscription")


def unknown_mode() -> Any:
    """A call in an API mode that nobody knows, through Hermes' own chain."""
    request = {"messages": [{"role": "user", "content": TASK}], "tools": []}
    got: list[Any] = []
    told = {"session_id": "s-unknown", "api_mode": "bedrock_converse", "platform": "cli", "model": "m"}
    for _ in range(2):
        run_llm_execution_middleware(request, got.append, **told)
    return got == [request, request]


def rotation() -> Any:
    """A session that is compressed into a new one."""
    agent = make_agent()
    agent.compression_in_place = False
    first = run(agent)
    history = first["messages"]
    for _ in range(4):
        history = run(agent, "Count again", conversation_history=history)["messages"]
    compressed, _prompt = agent._compress_context(history, None, approx_tokens=100_000, force=True)
    return short(first, run(agent, TASK, conversation_history=compressed))


def begun() -> Any:
    """A session that was there before the plugin."""
    history = [{"role": "user", "content": "Count the sheep"}, {"role": "assistant", "content": "Eight."}]
    return short(run(make_agent(), TASK, conversation_history=history))


def delegation() -> Any:
    """Play a session with a child, which may outlive its parent's turn."""
    result = run(make_agent())
    wait(lambda: any(row["message_count"] >= 2 for row in SessionDB().search_sessions(source="subagent")))
    return short(result)


def review() -> Any:
    """Hermes looks back at a session in a thread of its own."""
    agent = make_agent()
    result = run(agent)
    agent._spawn_background_review(result["messages"], review_memory=True)
    wait(lambda: all(thread.name != "bg-review" for thread in threading.enumerate()))
    return short(result)


def gateway() -> Any:
    """A chat's session, in a context of its own, as every message in Hermes' gateway."""
    return contextvars.copy_context().run(_play_chat)


def _play_chat() -> Any:
    """`/warm` finds the session by the chat, and the gateway tells when it is over."""
    store = SessionStore(Path(os.environ["HERMES_HOME"]) / "sessions", GatewayConfig())
    source = SessionSource(platform=Platform.TELEGRAM, chat_id="7", user_id="7")
    session = store.get_or_create_session(source).session_id
    result = run(make_agent(platform="telegram", session_id=session))
    invoke_hook("pre_gateway_dispatch", event=SimpleNamespace(source=source), gateway=None, session_store=store)
    warm = get_plugin_command_handler("warm")
    why = warm("status")
    shown = {"templates": warm("templates"), "other": warm("why someone-else")}
    shown["tool"] = json.loads(registry.dispatch("warm_session", {"action": "list"}, session_id=session))
    invoke_hook("on_session_finalize", session_id=session, platform="telegram", reason="session_expired")
    return [{**short(result)[0], **shown, "status": why}]


def bad_arguments() -> Any:
    return short(run(make_agent()))


def refusal() -> Any:
    """A provider that takes no seeds. Nobody sends anything twice."""
    agent = make_agent()
    first = run(agent)
    return short(first, run(agent, "Count again", conversation_history=first["messages"]))


def refusal_gateway() -> Any:
    return contextvars.copy_context().run(_play_refused_chat)


def _play_refused_chat() -> Any:
    source = SessionSource(platform=Platform.TELEGRAM, chat_id="8", user_id="8")
    store = SessionStore(Path(os.environ["HERMES_HOME"]) / "sessions", GatewayConfig())
    session = store.get_or_create_session(source).session_id
    set_session_vars(platform="telegram", chat_id="8", user_id="8", session_id=session, cwd=str(Path.cwd()))
    _share(TASK)  # otherwise a chat gets nothing of the machine's own user
    return short(run(make_agent(platform="telegram", session_id=session)))


def _share(text: str) -> None:
    """Share the template that fits a request with everyone."""
    with warmstart.open() as ws:
        for name in ws.provision(warmstart.Task(text=text)).templates:
            ws.templates.share(name.partition("@")[0])


def refusal_cron() -> Any:
    """A scheduled run, as Hermes' scheduler starts it: with the settings' model."""
    settings = Path(os.environ["HERMES_HOME"]) / "config.yaml"
    text = settings.read_text()
    settings.write_text(text.replace(f"{SERVER}/v1", f"{scene_url()}/v1"))
    try:
        job = create_job(prompt=TASK, schedule="every 1h", name="orders", deliver="local")
        is_done, _output, answer, error = run_job(job)
    finally:
        settings.write_text(text)
    return {"job": job["id"], "done": is_done, "answer": answer, "error": error}


def places() -> Any:
    """Whose a scheduled run is, and where it works: a chat created the job; a continuation and a child belong to the same."""
    origin = {"platform": "telegram", "chat_id": "9", "user_id": "9"}
    job = create_job(prompt=TASK, schedule="every 1h", name="of a chat", deliver="local", origin=origin)
    runs = [f"cron_{job['id']}_20261117_030000", "20261117_031000_abcdef", "20261117_032000_abcdef"]
    for session, source, parent in zip(runs, ("cron", "cron", "subagent"), (None, *runs), strict=False):
        SessionDB().create_session(session_id=session, source=source, parent_session_id=parent)
    found = [find_place(session, "cron") for session in runs]
    return [[place.owner.platform, place.owner.chat, place.owner.user, place.project] for place in found]


def overflow() -> Any:
    """A provider whose context is full as soon as there is a result beside the seed."""
    return short(run(make_agent()))


def small_talk() -> Any:
    """A greeting, and then a task; and a session that stays at greetings."""
    agent, other = make_agent(), make_agent()
    first = run(agent, "hi")
    return short(first, run(agent, TASK, conversation_history=first["messages"]), run(other, "Hello, how are you?"))


def topics() -> Any:
    """A session whose topic changes: before it is compacted in place, and after."""
    agent = make_agent()
    agent.compression_in_place = True
    played = [run(agent)]
    for _ in range(4):
        played.append(run(agent, "Count again", conversation_history=played[-1]["messages"]))
    other = "Please paint the garden shed in a friendly green"
    played.append(run(agent, other, conversation_history=played[-1]["messages"]))
    history, _prompt = agent._compress_context(played[-1]["messages"], None, approx_tokens=100_000, force=True)
    played.append(run(agent, other, conversation_history=history))
    return short(*played)


def memories() -> Any:
    """Notes of ours in Hermes' own files, as Hermes' tool sees them afterwards."""
    folder = MemoryFolder(Path(os.environ["HERMES_HOME"]) / "memories")
    for note in ("The tests need a database.", "Tags are signed."):
        folder.add("memory", note)
    store = MemoryStore()
    store.load_from_disk()
    seen = list(store.memory_entries)
    removed = store.remove("memory", "The tests")
    left = folder.notes("memory")
    full = ""
    while not full and len(folder.notes("memory")) < 50:
        try:
            folder.add("memory", f"Note {len(folder.notes('memory'))} " + "x" * 100)
        except Refused as error:
            full = str(error)
    replaced = store.replace("memory", "Tags are", "Tags are never signed.")
    return {"seen": seen, "removed": removed, "left": left, "full": full, "replaced": replaced}


def commands() -> Any:
    """What a person can ask in a session, and then a session that is to be cold."""
    warm = get_plugin_command_handler("warm")
    agent = make_agent()
    first = run(agent)
    told = {word: warm(word) for word in ("templates", "nonsense")}
    told |= {word: warm(f"{word} {agent.session_id}") for word in ("why", "cold")}
    told["status"] = warm("")
    second = run(agent, "Count again", conversation_history=first["messages"])
    return told | {"session": second["session"], "after": warm(f"why {agent.session_id}")}


def tool() -> Any:
    """Every action of warm_session, as Hermes calls it."""
    asked: list[dict[str, Any]] = [
        {"action": "list"},
        {"action": "build", "name": "orders", "description": "Counting orders", "tags": ["orders"], "min_messages": 2},
        {"action": "list"},
        {"action": "load", "name": "orders"},
        {"action": "delete", "name": "orders"},
        {"action": "load", "name": "orders"},
        {"action": "build"},
        {"action": "explode"},
        {"action": "build", "name": "by source", "source_filter": "telegram", "min_messages": 1},
        {"action": "build", "name": "by nobody", "source_filter": "fax"},
    ]
    return [json.loads(registry.dispatch("warm_session", one)) for one in asked]


def broken_store() -> Any:
    home = Path(os.environ["WARMSTART_HOME"] + "-broken-store")
    home.mkdir()
    (home / "warmstart.db").write_bytes(b"no database at all" * 100)
    return _with_home(home)


def broken_settings() -> Any:
    home = Path(os.environ["WARMSTART_HOME"] + "-broken-settings")
    home.mkdir()
    (home / "config.toml").write_text("budget = 'much'")
    return _with_home(home)


def _with_home(home: Path) -> Any:
    good = os.environ["WARMSTART_HOME"]
    os.environ["WARMSTART_HOME"] = str(home)
    discover_plugins(force=True)  # a new plugin, as in a new process
    told = short(run(make_agent()), run(make_agent()))
    os.environ["WARMSTART_HOME"] = good
    discover_plugins(force=True)
    return told


SCENARIOS = (
    *(arms, responses, anthropic, subscription, unknown_mode, rotation, begun, delegation, review, gateway),
    *(bad_arguments, overflow, small_talk, topics, memories, refusal, commands, tool, broken_store, broken_settings),
    *(places, refusal_cron, refusal_gateway),
)

if __name__ == "__main__":
    discover_plugins()
    answers = {}
    for scenario in SCENARIOS:
        scene = scenario.__name__
        answers[scene] = scenario()
    print(json.dumps(answers))
