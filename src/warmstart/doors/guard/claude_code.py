"""The guard as Claude Code's `PreToolUse` hook: `warmstart confirm guard claude-code`. One JSON object in, one or none out.

| what becomes of the call | standard output | exit code |
|---|---|---|
| no rule names it, or the whitelist allows it | nothing: Claude Code's own permissions decide | 0 |
| a person approved it | `permissionDecision: allow` | 0 |
| denied, too late, any trouble | `permissionDecision: deny`, with the reason | 0 |
| not even that can be said | nothing; the reason on standard error | 2, which blocks |

Claude Code lets a call through when its hook is killed for taking too long or ends with any other code. So we are told
how long that is (`--within`) and answer before, and the installed command turns every other code into 2. It also names
the home and the daemon (`--home`, `--url`), and then no variable does.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, BinaryIO, NamedTuple, NoReturn

from warmstart.doors.guard.guard import Guard, GuardVerdict, block
from warmstart.doors.guard.rules import GuardedCall

NAME, TITLE, EVENT = "claude-code", "Claude Code", "PreToolUse"
UNTOLD = 60  # seconds that older versions give a hook whose settings do not say
ASK_UNTIL, ANSWER_UNTIL = 20, 5  # seconds before the end: no more asking, and the last moment for an answer
_LARGEST_INPUT = 64_000_000  # bytes

_finishing = threading.Lock()  # held by whoever ends the process: the answer, or the time


class _Options(NamedTuple):
    home: str | None
    url: str  # empty in hooks of an older version: there the environment says
    within: float


def main(words: Sequence[str]) -> NoReturn:
    """The hook's process: [--home PATH] [--url ADDRESS] [--within SECONDS]."""
    began = time.monotonic()
    try:
        options = _read_words(words)
        watch = threading.Timer(max(1.0, options.within - ANSWER_UNTIL), _give_up)
        watch.daemon = True
        watch.start()
        verdict = _check(options, sys.stdin.buffer, began)
    except BaseException as error:  # noqa: BLE001 - an exit code of 1 would let the call through
        _finish(block(f"the guard failed: {type(error).__name__}: {error}"))
    _finish(verdict)


def _check(options: _Options, stdin: BinaryIO, began: float) -> GuardVerdict:
    from warmstart import config

    call = read_call(stdin.read(_LARGEST_INPUT + 1))
    home = config.find_homes(options.home)[1]
    longest = options.within - ASK_UNTIL - (time.monotonic() - began)
    return Guard(home, TITLE, url=options.url, longest=longest).check(call)


def read_call(said: bytes) -> GuardedCall:
    """What is about to be called. Raises ValueError for what is no such event: it is blocked."""
    if len(said) > _LARGEST_INPUT:
        raise ValueError("the event is too large")
    event = json.loads(said)
    if not isinstance(event, dict) or event.get("hook_event_name", EVENT) != EVENT:
        raise ValueError(f"an event that is no {EVENT}")
    tool, arguments = event.get("tool_name"), event.get("tool_input")
    if not isinstance(tool, str) or not tool or not isinstance(arguments, dict):
        raise ValueError("an event without a tool and its input")
    return GuardedCall(NAME, tool, arguments, _text(event.get("session_id")), _text(event.get("cwd")))


def write_answer(verdict: GuardVerdict) -> bytes:
    """In Claude Code's words. Only what a person has seen skips its own questions."""
    if verdict.kind == "blocked":
        decision = "deny"
    elif verdict.kind == "allowed" and verdict.by_person:
        decision = "allow"
    else:
        return b""
    answer = {"hookEventName": EVENT, "permissionDecision": decision, "permissionDecisionReason": verdict.reason}
    return json.dumps({"hookSpecificOutput": answer}).encode() + b"\n"


def _read_words(words: Sequence[str]) -> _Options:
    options = dict(zip(words[::2], words[1::2], strict=True))
    if unknown := set(options) - {"--home", "--url", "--within"}:
        raise ValueError(f"unknown option {min(unknown)}")
    return _Options(options.get("--home"), options.get("--url", ""), float(options.get("--within", UNTOLD)))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _give_up() -> None:
    _finish(block("nobody decided before the hook's own time was over"))


def _finish(verdict: GuardVerdict) -> NoReturn:
    """Say it and end, whatever else still runs. Only the first to come here gets to."""
    _finishing.acquire()
    try:
        sys.stdout.buffer.write(write_answer(verdict))
        sys.stdout.buffer.flush()
    except BaseException:  # noqa: BLE001 - nobody reads it: the exit code must say it
        if verdict.kind == "blocked":
            _refuse(verdict.reason)
    os._exit(0)


def _refuse(why: str) -> NoReturn:
    with suppress(OSError):
        os.write(2, f"{why}\n".encode("utf-8", "replace"))
    os._exit(2)
