"""Our hooks in the real Claude Code."""

from __future__ import annotations

import json
import subprocess
from typing import Self

import pytest

import warmstart
from agents.machine import Machine
from agents.programs.claude_code import CLAUDE_CODE
from agents.proof import BRIEF, OURS, PATH_LINE, PATH_NOTE, Proof, ReadBack, choose_level, read_note
from agents.server import ScriptedCall
from doors.hooks.events import wait_for_quiet
from warmstart.store import TrialStore

pytestmark = [pytest.mark.agents, pytest.mark.slow]

PROGRAM = CLAUDE_CODE


class Conversation:
    """A session with several prompts, as programs hold it: each is sent after the answer to the one before."""

    def __init__(self, machine: Machine) -> None:
        words = ("--allowedTools", "Bash,Read", "--verbose", "-p")
        words += ("--input-format", "stream-json", "--output-format", "stream-json")
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [machine.program.path, *words],
            cwd=machine.project,
            env=machine.variables(),
            stdin=pipe,
            stdout=pipe,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.communicate(timeout=60)

    def say(self, prompt: str) -> str:
        """Send a prompt and wait for the end of the answer; return the session's id by then."""
        assert self._process.stdin and self._process.stdout
        message = {"type": "user", "message": {"role": "user", "content": prompt}}
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            event = json.loads(line)
            if event["type"] == "result":
                return str(event["session_id"])
        raise AssertionError("the agent has ended")


class TestClaudeCode(Proof):
    @pytest.mark.parametrize(
        "rules", [{"deny": ["Bash(cat settings.yaml)"]}, {"ask": ["Bash(cat:*)"]}], ids=["deny", "ask"]
    )
    def test_a_correction_passes_no_rule_of_the_user(self, machine: Machine, rules: dict[str, list[str]]) -> None:
        choose_level(machine, "correct")
        machine.settings.write_text(json.dumps(json.loads(machine.settings.read_text()) | {"permissions": rules}))
        ran = machine.run(machine.program.make_shell("cat settings.yml"))
        assert ran.requests[-1].count("corrected the call") == 1 and ran.requests[-1].count("currency") == 0
        back = ReadBack(ran)
        assert (back.outcomes, back.measures["judged"]) == (["denied"], 0)

    def test_a_subagent_is_told_for_itself_and_counts_for_its_session(self, machine: Machine) -> None:
        mistake = machine.program.make_read(machine.project / "settings.yml")
        delegate = {"description": "look", "prompt": "zebra: look at the settings", "subagent_type": "general-purpose"}
        ran = machine.run(mistake, ScriptedCall("Agent", delegate), aside={"zebra:": [mistake, "seen"]})
        first, last = [request for request in ran.requests if "zebra:" in request.opening]
        assert (first.count(BRIEF), first.count(OURS), last.count(f"{OURS} {PATH_NOTE}")) == (0, 0, 1)
        own = [request for request in ran.requests if "zebra:" not in request.opening]
        assert own[-1].count(OURS) == 1
        assert ReadBack(ran).outcomes == ["error", "ok"]
        note = read_note("settings.yml")
        assert (note["support"], note["shown"], note["since"]["sessions"]) == (3, 1, 1)

    def test_a_cleared_session_is_a_new_one_with_a_brief_of_its_own(self, machine: Machine) -> None:
        mistake = machine.program.make_read(machine.project / "settings.yml")
        machine.model.play(mistake)
        with Conversation(machine) as talk:
            first = talk.say("show the settings")
            talk.say("/clear")
            machine.model.play(mistake)
            second = talk.say("show them again")
        start, end = machine.model.requests
        assert first != second and (start.results, start.count("show the settings")) == ([], 0)
        note = PATH_NOTE.partition(" (")[0]  # how many sessions: the first may have been read meanwhile
        assert (start.count(BRIEF), start.count(OURS), end.count(f"{OURS} {note}")) == (1, 0, 1)
        wait_for_quiet()
        with warmstart.open() as ws:
            trials = [TrialStore(ws.store).trial(session) for session in (first, second)]
        assert [(trial.arm, trial.closed is not None) for trial in trials if trial] == [("warm", True)] * 2
        assert sorted(read_note("settings.yml")["sessions"]) == sorted((first, second))

    def test_a_compacted_session_gets_its_brief_again(self, machine: Machine) -> None:
        began = machine.run(machine.program.make_read(machine.project / "settings.yml"))
        machine.ask("/compact", session=began.session)
        machine.model.play()
        (start,) = machine.ask("go on", session=began.session).requests
        assert (start.results, start.count(BRIEF), start.count(PATH_LINE)) == ([], 1, 1)
