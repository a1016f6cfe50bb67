"""The proofs for agents that load a file of ours: they keep what we add in their own record of the conversation."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

import warmstart
from agents.machine import AgentRun, Machine
from agents.proof import BRIEF, OURS, PATH_NOTE, Proof, ReadBack, choose_level, read_note
from command_line import run, run_json
from doors.hooks.events import read_log
from warmstart.store import TrialStore


def assert_they_only_grow(ran: AgentRun, before: AgentRun | None = None) -> None:
    """Every request begins with the one before it, byte for byte: prompt caches stay valid."""
    requests = [*(before.requests[-1:] if before else []), *ran.requests]
    for earlier, later in pairwise(requests):
        assert later.messages[: len(earlier.messages)] == earlier.messages


class PluginProof(Proof):
    """One session each in a machine that has learned."""

    @pytest.mark.parametrize("level", ["tell", "correct", "stop"])
    def test_requests_only_grow_also_after_a_resume(self, machine: Machine, level: str) -> None:
        choose_level(machine, level)
        read, shell = machine.program.make_read, machine.program.make_shell
        began = machine.run(read(machine.project / "settings.yml"), shell("cat settings.yml"))
        assert_they_only_grow(began)
        assert began.requests[-1].count(OURS) >= 1
        machine.model.play(read(machine.project / "settings.yaml"))
        assert_they_only_grow(machine.ask("go on", session=began.session), before=began)

    def test_the_agent_goes_on_when_our_program_talks_rubbish(self, machine: Machine, tmp_path: Path) -> None:
        other = tmp_path / "warmstart"
        self.replace_program(machine, other)
        other.write_text('#!/bin/sh\ncat >/dev/null\necho \'{"hookSpecificOutput": [{"additionalContext"\'\n')
        other.chmod(0o755)
        ran = self.make_the_mistake(machine)
        assert [request.count("hookSpecificOutput") + request.count(OURS) for request in ran.requests] == [0, 0, 0]

    def test_beside_a_plugin_of_the_project_nothing_is_said_twice(self, machine: Machine) -> None:
        installed = run_json("hook", "install", machine.program.name, "--project")
        assert Path(installed["path"]).is_relative_to(machine.project)
        ran = machine.run(machine.program.make_read(machine.project / "settings.yml"))
        start, end = ran.requests
        assert (start.count(BRIEF), end.count(BRIEF), end.count(PATH_NOTE)) == (1, 1, 1)
        assert (ReadBack(ran).arm, ReadBack(ran).outcomes) == ("warm", ["error"])
        assert read_note("settings.yml")["shown"] == 1
        assert read_log() == ""
        run("hook", "uninstall", machine.program.name, "--project")
        assert not list(machine.project.rglob("*warmstart*"))

    @staticmethod
    def assert_left_out(fork: str) -> None:
        """A fork gets nothing of its own and is no part of the comparison."""
        with warmstart.open() as ws:
            trial = TrialStore(ws.store).trial(fork)
        assert trial is not None and trial.given == "cold"
