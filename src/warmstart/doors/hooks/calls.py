"""The hooks at tool calls, which an agent waits for at every call: no store, no settings, hardly an import.

| event | what happens |
|---|---|
| `PreToolUse` | a note that concerns the call is told with its result, or corrects or stops the call |
| `PostToolUse` | the file that was read or written is remembered; a failed command of Codex is a failure |
| `PostToolUseFailure` | the fix that worked in earlier sessions is told |

All other events go on to `run`. Everything needed is in small files that `learn` and the start of the session have
written (see notes.index and notes.session_state); a session of the cold arm gets nothing. It always exits with 0.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import allocate_lock, start_new_thread

from warmstart.notes.compact_json import dump_json, parse_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, BinaryIO

    from warmstart.notes.index import NoteIndex

EVENTS = frozenset(("PreToolUse", "PostToolUse", "PostToolUseFailure"))
_TIME = 3.0  # seconds until the hook gives up
_LARGEST_INPUT = 32_000_000  # bytes
_LONGEST_SESSION = 200  # characters
_NO = frozenset(("", "0", "false", "no", "off"))

_finishing = allocate_lock()  # held by the thread that ends the process


def main(words: Sequence[str]) -> None:
    """Run the hook: AGENT [--home PATH] [--store URL]."""
    options = dict(zip(words[1::2], words[2::2], strict=False))
    home = find_home(options.get("--home"))
    agent = words[0] if words else ""
    start_new_thread(_watch, (home, agent))
    answer = None
    try:
        data = _read(sys.stdin.buffer)
        event = _parse(data)
        if event is None or event.get("hook_event_name") not in EVENTS:
            from warmstart.doors.hooks.run import main as run_slowly

            with _finishing:  # it keeps its own time, and ends the process
                run_slowly(words, data)
        elif os.environ.get("WARMSTART_OFF", "").strip().lower() in _NO:
            answer = CallHook(home, agent, options.get("--store")).answer(event)
    except Exception as error:  # noqa: BLE001 - an agent's session must not suffer; the log reports it
        _log(home, agent, error)
    _finishing.acquire()
    if answer:
        _write(answer.encode() + b"\n")
    os._exit(0)


def find_home(home: str | None) -> str:
    """Return the home of Warmstart, as `config.find_homes` does."""
    user_home = os.environ.get("HOME") or os.environ.get("USERPROFILE") or "~"
    chosen = home or os.environ.get("WARMSTART_HOME") or os.path.join(user_home, ".warmstart")
    return os.path.expanduser(chosen)


class CallHook:
    """Answers one event of a tool call. `clock` gives the time of a showing."""

    def __init__(self, home: str, agent: str, store: str | None = None, clock: Callable[[], float] = time.time) -> None:
        self._home, self._agent, self._store, self._clock = home, agent, store, clock

    def answer(self, event: dict[str, Any]) -> str | None:
        """Return the answer as JSON; None is silence."""
        name, session = event.get("hook_event_name"), event.get("session_id")
        tool, arguments, folder = event.get("tool_name"), event.get("tool_input"), event.get("cwd")
        if not isinstance(session, str) or not session.strip() or len(session) > _LONGEST_SESSION:
            return None
        if not isinstance(tool, str) or not isinstance(arguments, (dict, str)) or not isinstance(folder, str):
            return None
        context, call_id = event.get("agent_id"), event.get("tool_use_id")
        call = {
            "tool": tool,
            "arguments": arguments,
            "cwd": folder,
            "agent": self._agent,
            "context": context[:64] if isinstance(context, str) else "",
            "call_id": call_id[:64] if isinstance(call_id, str) else "",
        }
        if name == "PostToolUse" and not self._is_worth_reading(event):
            return None
        from warmstart.notes.index import find_index, open_index

        known = find_index(self._home, folder)
        index = open_index(*known) if known else None
        if index is None:
            return None
        try:
            if name == "PreToolUse":
                return self._answer_before(event, call, index)
            if name == "PostToolUse" and not _looks_failed(event):
                self._remember(event, call, index)
                return None
            return self._answer_failure(event, call, index)
        finally:
            index.close()

    def _is_worth_reading(self, event: dict[str, Any]) -> bool:
        from warmstart.notes.marks import is_editor, is_reader

        return is_reader(event["tool_name"]) or is_editor(event["tool_name"]) or _looks_failed(event)

    def _answer_before(self, event: dict[str, Any], call: dict[str, Any], index: NoteIndex) -> str | None:
        from warmstart.notes.advise import advise_before, find_matches, make_place

        if not find_matches(call, index, make_place(call, index), set()):
            return None
        levels = self._read_levels()
        from warmstart.notes.session_state import SessionFile

        self._admit(event)
        with SessionFile(self._home, event["session_id"]) as state:
            advice = advise_before(call, index, levels, state)
            self._record(event, state.newly_wrong, "wrong")
        if advice is None:
            return None
        advice = _keep_permissions(advice, event)
        self._record(event, [advice["note"]], advice["action"])
        return _encode("PreToolUse", advice)

    def _remember(self, event: dict[str, Any], call: dict[str, Any], index: NoteIndex) -> None:
        """Remember a file that was read or written, where a note asks for it."""
        if not index.watches_files:
            return
        from warmstart.notes.advise import note_file
        from warmstart.notes.session_state import SessionFile

        with SessionFile(self._home, event["session_id"]) as state:
            if state.advises:
                note_file(call, index, state)

    def _answer_failure(self, event: dict[str, Any], call: dict[str, Any], index: NoteIndex) -> str | None:
        text = event.get("error") or event.get("tool_response")
        if event.get("is_interrupt") or text is None or not index.answers_failures:
            return None
        from warmstart.notes.session_state import SessionFile

        self._admit(event)
        with SessionFile(self._home, event["session_id"]) as state:
            if not state.advises:
                return None
        from warmstart.notes.advise import advise_after, make_place
        from warmstart.notes.after import find_causes

        failed = True if event["hook_event_name"] == "PostToolUseFailure" else None
        result = text if isinstance(text, str) else dump_json(text)
        causes = find_causes(call, result, make_place(call, index), failed=failed)
        if not causes:
            return None
        with SessionFile(self._home, event["session_id"]) as state:
            advice = advise_after(causes, call, index, self._read_levels(), state)
            self._record(event, state.newly_wrong, "wrong")
        if advice is None:
            return None
        self._record(event, [advice["note"]], "after")
        return _encode(event["hook_event_name"], advice)

    def _admit(self, event: dict[str, Any]) -> None:
        """Assign a session to an arm that was not there when it began: the hook was installed in the middle of it."""
        from warmstart.notes.session_state import SessionFile

        with SessionFile(self._home, event["session_id"]) as state:
            if state.advises is not None:
                return
        from warmstart.doors.hooks.run import HookCall, admit_session

        admit_session(HookCall(self._agent, self._home, self._store), event["session_id"], event["cwd"])

    def _read_levels(self) -> dict[str, str]:
        from warmstart.notes.index import read_levels

        levels = read_levels(self._home)
        if levels is not None:
            return levels
        from warmstart import config
        from warmstart.notes.index_files import write_levels

        settings = config.load(self._home, self._store)
        return write_levels(settings.home, settings.advice)

    def _record(self, event: dict[str, Any], notes: Sequence[str], how: str) -> None:
        from warmstart.notes.session_state import add_showing

        for note in notes:
            add_showing(self._home, note, event["session_id"], how, self._clock())


def _looks_failed(event: dict[str, Any]) -> bool:
    """Return whether a result is worth the judges' time: Codex reports failed commands as it reports others."""
    response = event.get("tool_response")
    if event["hook_event_name"] != "PostToolUse" or not isinstance(response, (str, dict)):
        return False
    if isinstance(response, dict):
        code = response.get("exit_code", response.get("exitCode", 0))
        return bool(response.get("is_error")) or (isinstance(code, int) and code != 0)
    head = response[:400].lower() + response[-400:].lower()
    return any(word in head for word in _FAILURES)


_FAILURES = ("exit code", "exited with", "error:", "not found", "no such file", "failed", "denied", "cannot ")


def _keep_permissions(advice: dict[str, Any], event: dict[str, Any]) -> dict[str, Any]:
    """Tell instead of correcting where the agent might have asked a person about the corrected call."""
    if advice["action"] != "correct" or event.get("permission_mode") == "bypassPermissions":
        return advice
    from warmstart.notes.rewrite import needs_trust

    if not needs_trust(advice["arguments"]):
        return advice
    return {"action": "tell", "text": advice["fallback"], "note": advice["note"]}


def _encode(name: str, advice: dict[str, Any]) -> str:
    """Return the answer in the protocol of both agents. "allow" never goes without a corrected call, which only reads."""
    output: dict[str, Any] = {"hookEventName": name}
    if advice["action"] == "stop":
        output |= {"permissionDecision": "deny", "permissionDecisionReason": advice["text"]}
    elif advice["action"] == "correct":
        output |= {
            "permissionDecision": "allow",
            "updatedInput": advice["arguments"],
            "additionalContext": advice["text"],
        }
    else:
        output |= {"additionalContext": advice["text"]}
    return dump_json({"hookSpecificOutput": output})


# Input and output


def _read(stdin: BinaryIO) -> bytes:
    """Read everything, so that the writer never meets a closed pipe, but keep only a limited size."""
    kept: list[bytes] = []
    size = 0
    while chunk := stdin.read(1_000_000):
        size += len(chunk)
        if size <= _LARGEST_INPUT:
            kept.append(chunk)
    return b"".join(kept) if size <= _LARGEST_INPUT else b""


def _parse(data: bytes) -> dict[str, Any] | None:
    try:
        event = parse_json(data)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def _write(answer: bytes) -> None:
    try:
        sys.stdout.buffer.write(answer)
        sys.stdout.buffer.flush()
    except OSError:
        pass  # the agent has gone


def _log(home: str, agent: str, trouble: str | BaseException) -> None:
    from pathlib import Path

    from warmstart.doors.hooks.log import log_trouble

    log_trouble(Path(home), agent, trouble)


def _watch(home: str, agent: str) -> None:
    """End the process when time is up, unless the answer is being written."""
    time.sleep(_TIME)
    if _finishing.acquire(blocking=False):
        _log(home, agent, f"gave up after {_TIME:g} seconds")
        os._exit(0)
