"""Our hooks in the real Gemini CLI."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import warmstart
from agents.machine import Machine
from agents.programs import GEMINI_CLI
from agents.proof import BRIEF, OURS, PATH_LINE, PATH_NOTE, Proof, ReadBack, read_note
from agents.server import Received, ScriptedCall
from doors.hooks.events import read_log

pytestmark = [pytest.mark.agents, pytest.mark.slow]

PROGRAM = GEMINI_CLI


def count_told(request: Received) -> int:
    """Count our notes. A resumed Gemini CLI sends the result of each earlier call twice."""
    texts = {json.dumps(result["functionResponse"]["response"]) for result in request.results}
    return sum(text.count(OURS) for text in texts)


class TestGeminiCli(Proof):
    def test_a_resumed_session_keeps_its_brief_and_is_not_told_again(self, machine: Machine) -> None:
        read = machine.program.make_read
        began = machine.run(read(machine.project / "settings.yml"))
        (opening,) = [part for part in began.requests[0].messages[0]["parts"] if BRIEF in part["text"]]
        machine.model.play(read(machine.project / "settings.yaml"), machine.program.make_shell("cat settings.yml"))
        ran = machine.ask("and again", session=began.session)
        assert ran.session == began.session
        for request in ran.requests:
            assert opening in request.messages[0]["parts"], "byte for byte"
            assert (request.count(BRIEF), request.count("show the settings")) == (1, 1)
        assert [count_told(request) for request in ran.requests] == [1, 1, 2]  # the last: the fix, after the failure
        assert ReadBack(ran).outcomes == ["error", "ok", "error"]
        assert read_note("settings.yml")["shown"] == 1

    def test_two_sessions_at_once_are_told_and_read_back(self, machine: Machine) -> None:
        wait = machine.program.make_shell(
            "sleep 5"
        )  # Gemini CLI that starts may delete the log of one that just started
        machine.model.play(machine.program.make_read(machine.project / "settings.yml"), wait)
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(machine.ask, "show the settings")
            while not machine.model.requests:
                time.sleep(0.1)
            both = [pool.submit(machine.ask, "show them").result(), first.result()]
        assert [ReadBack(ran).outcomes for ran in both] == [["error", "ok"], ["error", "ok"]]
        assert sorted(read_note("settings.yml")["sessions"]) == sorted(ran.session for ran in both)
        assert read_log() == ""

    def test_a_compacted_session_gets_its_brief_again_with_the_next_prompt(self, machine: Machine) -> None:
        began = machine.run(*[machine.program.make_shell(f"seq 400{number}") for number in range(8)])
        settings = machine.settings.read_text()
        machine.settings.write_text(json.dumps(json.loads(settings) | {"model": {"compressionThreshold": 0.01}}))
        machine.model.play()
        (compacted,) = machine.ask("go on", session=began.session).requests
        assert (compacted.results, compacted.count(BRIEF)) == ([], 0)
        machine.settings.write_text(settings)
        for _prompt in range(2):
            machine.model.play()
            (start,) = machine.ask("and now", session=began.session).requests
            assert (start.count(BRIEF), start.count(PATH_LINE)) == (1, 1)

    def test_a_subagent_is_no_session_and_its_transcript_is_read(self, machine: Machine) -> None:
        mistake = machine.program.make_read(machine.project / "settings.yml")
        delegate = {"agent_name": "generalist", "prompt": "zebra: look at the settings"}
        complete = ScriptedCall("complete_task", {"result": {"response": "seen"}})
        ran = machine.run(ScriptedCall("invoke_agent", delegate), aside={"zebra:": [mistake, complete]})
        first, last = [request for request in ran.requests if "zebra:" in request.opening]
        assert (first.count(BRIEF), first.count(OURS), last.count(f"{OURS} {PATH_NOTE}")) == (0, 0, 1)
        assert ReadBack(ran).outcomes == ["ok"]
        note = read_note("settings.yml")
        assert (note["support"], note["shown"], note["since"]["sessions"]) == (3, 1, 1)
        with warmstart.open() as ws:
            assert [row.calls for row in ws.sessions(limit=None) if row.parent == ran.session] == [2]
