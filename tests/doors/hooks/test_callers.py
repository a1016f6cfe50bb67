"""The same hooks called twice for one event, by the settings and by a plugin: one of them answers, whichever is first."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from doors.hooks.events import SESSION, answer_by_program, call, event, prompt, start
from notes.making import make_note, write_notes
from warmstart.doors.hooks.calls import CallHook
from warmstart.doors.hooks.run import HookCall, run
from warmstart.notes.session_state import SessionFile

CALLERS = (None, "plugin")


def ask(said: dict[str, Any], caller: str | None) -> bytes | None:
    return run(HookCall("claude-code", caller=caller), BytesIO(json.dumps(said).encode()))


def test_a_session_is_briefed_once_however_often_it_begins(taught):
    assert [ask(start(), caller) is not None for caller in CALLERS] == [True, False]
    resumed = start(source="resume")
    assert [ask(resumed, caller) is not None for caller in reversed(CALLERS)] == [False, True]
    assert [ask(prompt(), caller) is not None for caller in reversed(CALLERS)] == [False, True]


def test_the_program_tells_its_callers_apart_when_they_run_at_once(taught):
    said = json.dumps(start()).encode()
    with ThreadPoolExecutor(2) as pool:
        outputs = list(pool.map(lambda words: call(said, *words).stdout, ((), ("--caller", "plugin"))))
    assert sorted(map(bool, outputs)) == [False, True]
    assert answer_by_program(start(session="another")) is not None


def test_another_caller_takes_over_when_the_first_is_gone():
    with SessionFile(os.environ["WARMSTART_HOME"], SESSION) as state:
        assert state.claim("plugin", 1_000.0, renew=True)
        assert not state.claim("settings", 1_003.0, renew=True)
    with SessionFile(os.environ["WARMSTART_HOME"], SESSION) as state:
        assert not state.claim("settings", 2_000.0, renew=False)  # a call: its turn belongs to the plugin
        assert state.claim("settings", 2_000.0, renew=True)
        assert not state.claim("plugin", 2_001.0, renew=True)


@pytest.mark.parametrize("kind", ["PreToolUse", "PostToolUseFailure"])
def test_a_call_with_two_notes_is_answered_once(tmp_path: Path, kind: str):
    notes = [
        make_note(subject=name, fix=f"{name}.md", text=f"`{name}` is not here; `{name}.md` is")
        for name in ("guide.txt", "rules.txt")
    ]
    for name in ("guide.txt.md", "rules.txt.md"):
        (tmp_path / name).write_text("x\n")
    home = os.environ["WARMSTART_HOME"]
    write_notes(Path(home), *notes, folder=tmp_path)
    with SessionFile(home, SESSION) as state:
        state.start(advises=True, knows_files=True)
    said = event(
        kind, cwd=str(tmp_path), tool_name="Bash", tool_input={"command": "cat guide.txt rules.txt"}, tool_use_id="c1"
    )
    said["error"] = "Exit code 1\ncat: guide.txt: No such file or directory\ncat: rules.txt: No such file or directory"
    answers = [CallHook(home, "claude-code", caller=caller).answer(said) for caller in ("plugin", None)]
    assert [text is not None for text in answers] == [True, False]
