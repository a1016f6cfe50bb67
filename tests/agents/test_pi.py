"""Our extension in the real Pi."""

from __future__ import annotations

import json
import subprocess

import pytest

from agents.machine import Machine
from agents.plugin_proof import PluginProof, assert_they_only_grow
from agents.programs.pi import PI
from agents.proof import BRIEF, PATH_LINE
from skips import AGENT_LACKS

pytestmark = [pytest.mark.agents, pytest.mark.slow]

PROGRAM = PI


def compact(machine: Machine, session: str) -> None:
    """Compact a session as a person does by `/compact`, in Pi's mode for programs."""
    settings = machine.home / ".pi" / "agent" / "settings.json"
    settings.write_text(json.dumps({"compaction": {"keepRecentTokens": 1}}))
    words = ("--mode", "rpc", "--provider", "scripted", "--model", "scripted", "--session", session)
    with subprocess.Popen(
        [machine.program.path, *words],
        cwd=machine.project,
        env=machine.variables(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write('{"type": "compact"}\n')
        process.stdin.flush()
        for line in process.stdout:
            event = json.loads(line)
            if event["type"] == "response":
                assert event["success"], line
                break
        process.stdin.close()
        process.wait(30)


class TestPi(PluginProof):
    def test_a_compacted_session_gets_its_brief_again_and_keeps_it(self, machine: Machine) -> None:
        read = machine.program.make_read
        began = machine.run(read(machine.project / "settings.yml"))
        compact(machine, began.session)
        machine.model.play(read(machine.project / "settings.yaml"))
        ran = machine.ask("go on", session=began.session)
        start, _end = ran.requests
        assert (start.count(BRIEF), start.count(PATH_LINE)) == (1, 1)
        assert_they_only_grow(ran)
        machine.model.play()
        assert_they_only_grow(machine.ask("and on", session=began.session), before=ran)

    def test_a_fork_has_the_brief_of_its_parent_and_is_left_out(self, machine: Machine) -> None:
        began = machine.run(machine.program.make_read(machine.project / "settings.yml"))
        machine.model.play()
        done = subprocess.run(
            [machine.program.path, "--fork", began.session, *machine.program.words, "go on"],
            cwd=machine.project,
            env=machine.variables(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        fork = machine.program.find_session(done.stdout)
        (start,) = machine.model.requests
        assert fork != began.session and (start.count(BRIEF), len(start.results)) == (1, 1)
        self.assert_left_out(fork)

    def test_a_subagent_is_told_for_itself(self) -> None:
        pytest.skip(f"{AGENT_LACKS}: Pi has no subagents of its own")
