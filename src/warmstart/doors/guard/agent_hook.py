"""The guard as the `PreToolUse` hook of Claude Code and Codex: `warmstart confirm guard AGENT`. Reads one JSON object from
standard input and prints one or none.

| outcome | standard output | exit code |
|---|---|---|
| no rule matches, or the whitelist allows the call | nothing: the agent's own permissions decide | 0 |
| a person approved the call | `permissionDecision: allow`; nothing for Codex, whose own approvals decide | 0 |
| denied, too late, any failure | `permissionDecision: deny`, with the reason | 0 |
| the answer cannot be written | nothing; the reason on standard error | 2, which blocks |

Both agents let a call through if its hook is killed for taking too long or ends with any other code. So the installed
command names that limit (`--within`), the hook answers before it, and the command turns every other code into 2. The
command also names the home, the daemon and its key (`--home`, `--url`, `--key`), so that no environment variable can.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

from warmstart.doors.guard.guard import Guard, GuardVerdict, block
from warmstart.doors.guard.rules import GuardedCall

EVENT = "PreToolUse"
TITLES = {"claude-code": "Claude Code", "codex": "Codex"}  # the agents that run it
ASK_UNTIL, ANSWER_UNTIL = 20, 5  # seconds before the limit: stop asking, and give an answer at the latest
_LARGEST_INPUT = 64_000_000  # bytes

_finishing = threading.Lock()  # taken by the thread that ends the process: with the answer, or at the time limit


class _Options(NamedTuple):
    agent: str
    home: Path
    url: str
    within: float
    key: str = ""


def main(words: Sequence[str]) -> NoReturn:
    """Run the hook: AGENT --home PATH --url ADDRESS --within SECONDS [--key KEY]."""
    began = time.monotonic()
    agent = words[0] if words else ""
    try:
        options = _read_words(words)
        watch = threading.Timer(max(1.0, options.within - ANSWER_UNTIL), _give_up)
        watch.daemon = True
        watch.start()
        verdict = _check(options, sys.stdin.buffer, began)
    except BaseException as error:  # noqa: BLE001 - exit code 1 would let the call through
        _finish(block(f"the guard failed: {type(error).__name__}: {error}"), agent)
    _finish(verdict, agent)


def _check(options: _Options, stdin: BinaryIO, began: float) -> GuardVerdict:
    call = read_call(stdin.read(_LARGEST_INPUT + 1), options.agent)
    longest = options.within - ASK_UNTIL - (time.monotonic() - began)
    guard = Guard(options.home, TITLES[options.agent], url=options.url, key=options.key, longest=longest)
    return guard.check(call)


def read_call(text: bytes, agent: str) -> GuardedCall:
    """Read the call that is about to run. Raise ValueError for any other event, which blocks it."""
    if len(text) > _LARGEST_INPUT:
        raise ValueError("the event is too large")
    event = json.loads(text)
    if not isinstance(event, dict) or event.get("hook_event_name", EVENT) != EVENT:
        raise ValueError(f"the event is not a {EVENT} event")
    tool, arguments = event.get("tool_name"), event.get("tool_input")
    if not isinstance(tool, str) or not tool or not isinstance(arguments, dict):
        raise ValueError("the event names no tool or has no input for it")
    return GuardedCall(agent, tool, arguments, _text(event.get("session_id")), _text(event.get("cwd")))


def write_answer(verdict: GuardVerdict, agent: str) -> bytes:
    """Write the verdict in the agent's format. Only an approval by a person skips Claude Code's own permission prompt."""
    if verdict.kind == "blocked":
        decision = "deny"
    elif verdict.kind == "allowed" and verdict.by_person and agent == "claude-code":
        decision = "allow"
    else:
        return b""
    answer = {"hookEventName": EVENT, "permissionDecision": decision, "permissionDecisionReason": verdict.reason}
    return json.dumps({"hookSpecificOutput": answer}).encode() + b"\n"


def _read_words(words: Sequence[str]) -> _Options:
    agent, *rest = words
    if agent not in TITLES:
        raise ValueError(f"the guard does not know the agent {agent}")
    options = dict(zip(rest[::2], rest[1::2], strict=True))
    if set(options) - {"--key"} != {"--home", "--url", "--within"}:
        raise ValueError("the options are --home, --url, --within and --key; install the guard again")
    within, key = float(options["--within"]), options.get("--key", "")
    return _Options(agent, Path(options["--home"]), options["--url"], within, key)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _give_up() -> None:
    _finish(block("nobody decided before the hook's time limit"))


def _finish(verdict: GuardVerdict, agent: str = "") -> NoReturn:
    """Print the verdict and end the process. Only the first thread that comes here does."""
    _finishing.acquire()
    try:
        sys.stdout.buffer.write(write_answer(verdict, agent))
        sys.stdout.buffer.flush()
    except BaseException:  # noqa: BLE001 - nobody reads the output, so the exit code must block
        if verdict.kind == "blocked":
            _refuse(verdict.reason)
    os._exit(0)


def _refuse(why: str) -> NoReturn:
    with suppress(OSError):
        os.write(2, f"{why}\n".encode("utf-8", "replace"))
    os._exit(2)
