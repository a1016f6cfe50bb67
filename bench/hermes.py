"""Measure what the plugin adds to every call that Hermes makes to a model.

    python bench/hermes.py [--json] [--calls N]

First with a request of real size (30 tools, 80 messages), around the plugin's own entry point: a call with the plugin
minus the same call without it. Then, if the tests have made a venv for it (.venv-hermes), inside the real Hermes: one
session of N calls (default 40) against a scripted provider on loopback, timed around Hermes' middleware chain and around
the provider's call inside it. The tokens are those that the plugin adds to every request: the seed and the schema of the
tool `warm_session`, counted as seeds are (`estimate`); small talk gets the schema only.

JSON keys: `added_p50_ms`, `added_p99_ms`, `first_ms` (a session's first call, which chooses and stores the seed),
`request_bytes`, `seed_tokens`, `tool_tokens`, `small_talk_tokens` (of a seed for a greeting), `budget` (most tokens of a
seed); `hermes` {calls, added_p50_ms, added_max_ms (without the first), first_ms, call_p50_ms, with_over_without,
request_tokens (of a request without the plugin's), added_tokens, added_share} or null.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

VENV = ROOT / ".venv-hermes"
DRIVER = """
import json, sys, time
import hermes_cli.middleware as middleware
from hermes_state import SessionDB
from run_agent import AIAgent

url, calls = sys.argv[1], int(sys.argv[2])
times, chain = [], middleware.run_llm_execution_middleware

def timed(request, next_call, **facts):
    inner = []
    def call(sent):
        start = time.perf_counter()
        try:
            return next_call(sent)
        finally:
            inner.append(time.perf_counter() - start)
    start = time.perf_counter()
    try:
        return chain(request, call, **facts)
    finally:
        times.append((time.perf_counter() - start, sum(inner)))

middleware.run_llm_execution_middleware = timed
agent = AIAgent(base_url=url + "/v1", api_key="none", provider="custom", model="scripted", quiet_mode=True,
                platform="library", skip_memory=True, skip_context_files=True, session_db=SessionDB(),
                enabled_toolsets=["terminal", "file", "skills"], max_iterations=calls + 5)
agent.run_conversation("Count the open orders in orders.csv")
print(json.dumps(times))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--calls", type=int, default=40)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="warmstart-bench-") as folder:
        report = measure_entry_point(Path(folder)) | {"hermes": measure_hermes(Path(folder), options.calls)}
    print(json.dumps(report)) if options.json else show(report)


def make_request() -> dict[str, Any]:
    """Return a request as large as those of a long session."""
    schema = {
        "type": "object",
        "properties": {f"option_{n}": {"type": "string", "description": "x" * 60} for n in range(8)},
    }
    names = ["terminal", "read_file", *(f"tool_{n}" for n in range(28))]
    tools = [
        {"type": "function", "function": {"name": name, "description": "y" * 200, "parameters": schema}}
        for name in names
    ]
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "z" * 16_000},
        {"role": "user", "content": "Count the open orders in orders.csv"},
    ]
    for n in range(39):
        call = {
            "id": f"call_{n}",
            "type": "function",
            "function": {"name": "terminal", "arguments": '{"command": "ls"}'},
        }
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{n}", "content": "a line of output\n" * 60})
    return {"model": "scripted", "messages": messages, "tools": tools, "stream": True}


def measure_entry_point(folder: Path) -> dict[str, Any]:
    from hermes.running import make_past

    os.environ |= {"HOME": str(folder), "WARMSTART_HOME": str(make_past(folder)), "WARMSTART_HOLDOUT": "0"}
    from warmstart.dialects.tokens import estimate
    from warmstart.doors.hermes import plugin as door
    from warmstart.doors.hermes.place import SessionPlace
    from warmstart.doors.hermes.tool import SCHEMA

    plugin = door.Plugin(
        find_ancestor=lambda call: None, find_place=lambda session, _platform: SessionPlace(session=session)
    )
    request = make_request()
    fresh = {**request, "messages": request["messages"][:2]}
    facts = {
        "session_id": "bench",
        "api_mode": "chat_completions",
        "platform": "cli",
        "model": "scripted",
        "turn_id": "t",
    }
    sent: list[dict[str, Any]] = []

    def timed(body: dict[str, Any], *, plugged: bool) -> float:
        start = time.perf_counter()
        plugin.call_model(request=body, next_call=sent.append, **facts) if plugged else sent.append(body)
        return (time.perf_counter() - start) * 1e3

    first = timed(fresh, plugged=True)
    seed = sent[-1]["messages"][1:-1]
    assert seed, "no seed"
    greeting = {**fresh, "messages": [fresh["messages"][0], {"role": "user", "content": "hi"}]}
    plugin.call_model(request=greeting, next_call=sent.append, **(facts | {"session_id": "greeting"}))
    said = sent[-1]["messages"][1:-1]
    added = [timed(request, plugged=True) - timed(request, plugged=False) for _ in range(2_000)]
    return {
        "added_p50_ms": round(statistics.median(added), 4),
        "added_p99_ms": round(statistics.quantiles(added, n=100)[98], 4),
        "first_ms": round(first, 1),
        "request_bytes": len(json.dumps(request)),
        "seed_tokens": count_tokens(seed),
        "tool_tokens": estimate(json.dumps({"type": "function", "function": SCHEMA})),
        "small_talk_tokens": count_tokens(said),
        "budget": plugin._open().settings.budget,
    }


def count_tokens(messages: list[dict[str, Any]]) -> int:
    """Count the tokens of messages as seeds are counted."""
    from warmstart.dialects.tokens import estimate

    return sum(estimate(json.dumps(message)) + 4 for message in messages)


def measure_hermes(folder: Path, calls: int) -> dict[str, Any] | None:
    if not (VENV / "bin" / "python").exists():
        return None
    from hermes.running import Hermes
    from hermes.scripted_server import Answer, Call, ScriptedServer

    server = ScriptedServer()
    driver = folder / "driver.py"
    driver.write_text(DRIVER)
    rest = iter(range(calls - 1))
    server.script = lambda body: (
        Answer("17")
        if next(rest, None) is None
        else Answer(calls=[Call("read_file", {"path": f"part-{len(server.requests)}"})])
    )
    (folder / "home").rename(folder / "warmstart")
    times = Hermes(VENV, folder, server).script(driver, server.url, str(calls))
    server.close()
    tokens = measure_request(server.asked()[0].body)
    added = sorted((whole - inner) * 1e3 for whole, inner in times[1:])
    return {
        "calls": len(times),
        "added_p50_ms": round(statistics.median(added), 3),
        "added_max_ms": round(added[-1], 3),
        "first_ms": round((times[0][0] - times[0][1]) * 1e3, 1),
        "call_p50_ms": round(statistics.median(inner for _whole, inner in times[1:]) * 1e3, 2),
        "with_over_without": round(statistics.median(whole / inner for whole, inner in times[1:]), 4),
    } | tokens


def measure_request(body: dict[str, Any]) -> dict[str, Any]:
    """Return the tokens of a session's first request, and those of them that the plugin added."""
    from warmstart.dialects.tokens import estimate

    seed = body["messages"][1:-1]
    tool = [tool for tool in body["tools"] if tool["function"]["name"] == "warm_session"]
    added = count_tokens(seed) + estimate(json.dumps(tool))
    rest = count_tokens(body["messages"]) + estimate(json.dumps(body["tools"])) - added
    return {"request_tokens": rest, "added_tokens": added, "added_share": round(added / rest, 4)}


def show(report: dict[str, Any]) -> None:
    print(
        f"added to a call of {report['request_bytes']:,} bytes: {report['added_p50_ms']} ms (p50), "
        f"{report['added_p99_ms']} ms (p99); to a session's first call: {report['first_ms']} ms"
    )
    print(
        f"tokens added to every request: {report['seed_tokens']} for the seed (budget {report['budget']}), "
        f"{report['tool_tokens']} for the tool; for a greeting {report['small_talk_tokens']} and the tool"
    )
    if inside := report["hermes"]:
        print(
            f"inside Hermes, {inside['calls']} calls: {inside['added_p50_ms']} ms (p50), {inside['added_max_ms']} ms "
            f"(max), next to {inside['call_p50_ms']} ms for the call itself: {inside['with_over_without']} times"
        )
        print(
            f"its first request: {inside['request_tokens']:,} tokens, and {inside['added_tokens']} of the plugin "
            f"({inside['added_share']:.1%})"
        )


if __name__ == "__main__":
    main()
