"""The hooks at tool calls, which an agent waits for at every call: no store, no settings, hardly an import.

| event | what happens |
|---|---|
| `PreToolUse` | a note that concerns the call is added to its result, or corrects or stops the call |
| `PostToolUse` | the file that was read or written is remembered; a failed command of Codex is a failure |
| `PostToolUseFailure` | the fix that worked in earlier sessions is shown |

All other events go on to `run`. Everything needed is in small files that `learn` and the start of the session have
written (see notes.index and notes.session_state); a session of the cold arm gets nothing. It always exits with 0.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import allocate_lock, start_new_thread

from warmstart.doors.hooks.pipes import read_input, write_answer
from warmstart.doors.hooks.protocols import find_words
from warmstart.notes.compact_json import dump_json, parse_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from warmstart.notes.index import NoteIndex
    from warmstart.notes.session_state import SessionFile

EVENTS = frozenset(("PreToolUse", "PostToolUse", "PostToolUseFailure"))
SETTINGS = "settings"  # the caller that names none
_TIME = 3.0  # seconds until the hook gives up
_LONGEST_SESSION = 200  # characters
_NO = frozenset(("", "0", "false", "no", "off"))

_finishing = allocate_lock()  # held by the thread that ends the process


def main(words: Sequence[str]) -> None:
    """Run the hook: AGENT [--home PATH] [--store URL] [--caller NAME]."""
    options = dict(zip(words[1::2], words[2::2], strict=False))
    home = find_home(options.get("--home"))
    agent = words[0] if words else ""
    start_new_thread(_watch, (home, agent))
    answer = None
    try:
        data = read_input(sys.stdin.buffer)
        event = _parse(data)
        name = find_words(agent).translate(event).get("hook_event_name") if event is not None else None
        if event is not None and name == "":
            pass  # nothing to answer
        elif event is None or name not in EVENTS:
            from warmstart.doors.hooks.run import main as run_slowly

            with _finishing:  # it keeps its own time, and ends the process
                run_slowly(words, data)
        elif os.environ.get("WARMSTART_OFF", "").strip().lower() in _NO:
            answer = CallHook(home, agent, options.get("--store"), options.get("--caller")).answer(event)
    except Exception as error:  # noqa: BLE001 - an agent's session must not suffer; the log reports it
        _log(home, agent, error)
    _finishing.acquire()
    if answer:
        write_answer(answer.encode() + b"\n")
    os._exit(0)


def find_home(home: str | None) -> str:
    """Return the home of Warmstart, as `config.find_homes` does."""
    user_home = os.environ.get("HOME") or os.environ.get("USERPROFILE") or "~"
    chosen = home or os.environ.get("WARMSTART_HOME") or os.path.join(user_home, ".warmstart")
    return os.path.expanduser(chosen)


class CallHook:
    """Answers one event of a tool call. `caller`: who runs us, besides the agent's settings. `clock`: of showings."""

    def __init__(
        self,
        home: str,
        agent: str,
        store: str | None = None,
        caller: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._home, self._agent, self._store, self._clock = home, agent, store, clock
        self._words = find_words(agent)
        self._caller = caller or SETTINGS

    def answer(self, event: dict[str, Any]) -> str | None:
        """Return the answer to an event, both in the agent's own words; None is silence."""
        own = self._words.translate(event)
        if self._words.DELIVERS_LATE and not own.get("tool_use_id"):
            own = self._identify(own)
        output = self._answer(own)
        if self._words.DELIVERS_LATE:
            output = self._deliver_late(own, output)
        answer = self._words.encode(output, event) if output else None
        return dump_json(answer) if answer else None

    def _identify(self, event: dict[str, Any]) -> dict[str, Any]:
        """Return the event with an id of its call, where the agent has none and a note is kept for the call's result.

        The failure of that call then repeats no note; when the same call is made again later, its failure may.
        """
        from warmstart.notes.session_state import SessionFile, has_state

        session, key = event.get("session_id"), _name_call(event.get("tool_name"), event.get("tool_input"))
        if event["hook_event_name"] != "PreToolUse":
            if not isinstance(session, str) or not session.strip() or not has_state(self._home, session):
                return event
            with SessionFile(self._home, session) as state:
                if not state.keeps(key):
                    return event
        return event | {"tool_use_id": key}

    def _deliver_late(self, event: dict[str, Any], output: dict[str, Any] | None) -> dict[str, Any] | None:
        """Keep a note that was meant to come before a call, and give it with that call's result."""
        session, tool, arguments = event.get("session_id"), event.get("tool_name"), event.get("tool_input")
        if not isinstance(session, str) or not session.strip() or len(session) > _LONGEST_SESSION:
            return output
        from warmstart.notes.session_state import SessionFile, has_state

        key = _name_call(tool, arguments)
        if event["hook_event_name"] == "PreToolUse":
            if output is None or "additionalContext" not in output:
                return output
            with SessionFile(self._home, session) as state:
                state.keep(key, output["additionalContext"])
                if "updatedInput" in output:  # agents differ in which input they report afterwards
                    state.keep(_name_call(tool, output["updatedInput"]), output["additionalContext"])
            return output if "updatedInput" in output else None
        if not has_state(self._home, session):
            return output
        with SessionFile(self._home, session) as state:
            kept = state.take_kept(key)
        if not kept:
            return output
        texts = [kept, *([output["additionalContext"]] if output else [])]
        return {"hookEventName": event["hook_event_name"], "additionalContext": "\n".join(texts)}

    def _answer(self, event: dict[str, Any]) -> dict[str, Any] | None:
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

    def _answer_before(self, event: dict[str, Any], call: dict[str, Any], index: NoteIndex) -> dict[str, Any] | None:
        from warmstart.notes.advise import advise_before, find_matches, make_place

        if not find_matches(call, index, make_place(call, index), set()):
            return None
        levels = self._read_levels()
        from warmstart.notes.session_state import SessionFile

        self._admit(event)
        with SessionFile(self._home, event["session_id"]) as state:
            if not state.claim(self._caller, self._clock(), renew=False):
                return None
            self._record_draws(state)
            advice = advise_before(call, index, levels, state)
            self._record(event, state.newly_wrong, "wrong")
        if advice is None:
            return None
        if not getattr(self._words, "CORRECTS", True) or not _may_correct(advice, event):
            advice = _show_instead(advice)
        self._record(event, [advice["note"]], advice["action"])
        return _make_output("PreToolUse", advice)

    def _remember(self, event: dict[str, Any], call: dict[str, Any], index: NoteIndex) -> None:
        """Remember a file that was read or written, where a note asks for it."""
        if not index.watches_files:
            return
        from warmstart.notes.advise import note_file
        from warmstart.notes.session_state import SessionFile

        with SessionFile(self._home, event["session_id"]) as state:
            if state.advises:
                note_file(call, index, state)

    def _answer_failure(self, event: dict[str, Any], call: dict[str, Any], index: NoteIndex) -> dict[str, Any] | None:
        text = event.get("error") or event.get("tool_response")
        if event.get("is_interrupt") or text is None or not index.answers_failures:
            return None
        from warmstart.notes.session_state import SessionFile

        self._admit(event)
        with SessionFile(self._home, event["session_id"]) as state:
            if not state.advises or not state.claim(self._caller, self._clock(), renew=False):
                return None
        from warmstart.notes.advise import advise_after, make_place
        from warmstart.notes.after import find_causes

        failed = True if event["hook_event_name"] == "PostToolUseFailure" else None
        result = text if isinstance(text, str) else dump_json(text)
        causes = find_causes(call, result, make_place(call, index), failed=failed)
        if not causes:
            return None
        with SessionFile(self._home, event["session_id"]) as state:
            self._record_draws(state)
            advice = advise_after(causes, call, index, self._read_levels(), state)
            self._record(event, state.newly_wrong, "wrong")
        if advice is None:
            return None
        self._record(event, [advice["note"]], "after")
        return _make_output(event["hook_event_name"], advice)

    def _admit(self, event: dict[str, Any]) -> None:
        """Assign a session to an arm in mid-session: the hook was installed after it began."""
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

    def _record_draws(self, state: SessionFile) -> None:
        from warmstart.notes.session_state import add_draw

        state.recorder = lambda draw: add_draw(self._home, state.session, self._clock(), draw)

    def _record(self, event: dict[str, Any], notes: Sequence[str], how: str) -> None:
        from warmstart.notes.session_state import add_showing

        for note in notes:
            add_showing(self._home, note, event["session_id"], how, self._clock())


def _name_call(tool: Any, arguments: Any) -> str:
    """Return a name for a call, which is the same before and after it."""
    from warmstart.notes.session_state import hash_text

    return hash_text(dump_json([tool, arguments]))


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


def _may_correct(advice: dict[str, Any], event: dict[str, Any]) -> bool:
    """Return False where the agent might ask a person about the corrected call."""
    if advice["action"] != "correct" or event.get("permission_mode") == "bypassPermissions":
        return True
    from warmstart.notes.rewrite import needs_trust

    return not needs_trust(advice["arguments"])


def _show_instead(advice: dict[str, Any]) -> dict[str, Any]:
    """Return advice that shows the note instead of correcting the call."""
    if advice["action"] != "correct":
        return advice
    return {"action": "tell", "text": advice["fallback"], "note": advice["note"]}


def _make_output(name: str, advice: dict[str, Any]) -> dict[str, Any]:
    """Return what the agent is to do. "allow" never goes without a corrected call, which only reads."""
    output: dict[str, Any] = {"hookEventName": name}
    if advice["action"] == "stop":
        return output | {"permissionDecision": "deny", "permissionDecisionReason": advice["text"]}
    if advice["action"] == "correct":
        corrected = {"permissionDecision": "allow", "updatedInput": advice["arguments"]}
        return output | corrected | {"additionalContext": advice["text"]}
    return output | {"additionalContext": advice["text"]}


# Input and output


def _parse(data: bytes) -> dict[str, Any] | None:
    try:
        event = parse_json(data)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


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
