"""Our plugin in the real OpenCode."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import warmstart
from agents.machine import Machine
from agents.plugin_proof import PluginProof, assert_they_only_grow
from agents.programs.opencode import OPENCODE
from agents.proof import BRIEF, OURS, PATH_LINE, PATH_NOTE, ReadBack, read_note
from agents.server import ScriptedCall

pytestmark = [pytest.mark.agents, pytest.mark.slow]

PROGRAM = OPENCODE


@contextmanager
def serving(machine: Machine) -> Iterator[str]:
    """Run OpenCode's own server, as its interface in the terminal does; give its address."""
    process = subprocess.Popen(
        [machine.program.path, "serve", "--port", "0"],
        cwd=machine.project,
        env=machine.variables(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield next(found[0] for line in process.stdout if (found := re.findall(r"http://\S+", line)))
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


def post(url: str, body: dict[str, object]) -> None:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        assert answer.status == 200


class TestOpenCode(PluginProof):
    def test_a_subagent_is_told_for_itself_and_counts_for_its_session(self, machine: Machine) -> None:
        mistake = machine.program.make_read(machine.project / "settings.yml")
        delegate = {"description": "look", "prompt": "zebra: look at the settings", "subagent_type": "general"}
        ran = machine.run(mistake, ScriptedCall("task", delegate), aside={"zebra:": [mistake, "seen"]})
        first, last = [request for request in ran.requests if "zebra:" in request.opening]
        assert (first.count(BRIEF), first.count(OURS), last.count(f"{OURS} {PATH_NOTE}")) == (0, 0, 1)
        own = [request for request in ran.requests if "zebra:" not in request.opening]
        assert own[-1].count(OURS) == 1
        assert ReadBack(ran).outcomes == ["error", "ok"]
        note = read_note("settings.yml")
        assert (note["support"], note["shown"], note["since"]["sessions"]) == (3, 1, 1)
        with warmstart.open() as ws:
            assert [row.calls for row in ws.sessions(limit=None) if row.parent == ran.session] == [1]

    def test_a_compacted_session_gets_its_brief_again_and_keeps_it(self, machine: Machine) -> None:
        read = machine.program.make_read
        began = machine.run(read(machine.project / "settings.yml"))
        settings = machine.home / ".config" / "opencode" / "opencode.json"
        settings.write_text(json.dumps(json.loads(settings.read_text()) | {"compaction": {"tail_turns": 0}}))
        with serving(machine) as url:
            post(f"{url}/session/{began.session}/summarize", {"providerID": "scripted", "modelID": "scripted"})
        machine.model.play(read(machine.project / "settings.yaml"))
        ran = machine.ask("go on", session=began.session)
        start, _end = ran.requests
        assert (start.results, start.count(BRIEF), start.count(PATH_LINE)) == ([], 1, 1)
        assert_they_only_grow(ran)
        machine.model.play()
        assert_they_only_grow(machine.ask("and on", session=began.session), before=ran)

    def test_a_fork_has_the_brief_of_its_parent_and_is_left_out(self, machine: Machine) -> None:
        began = machine.run(machine.program.make_read(machine.project / "settings.yml"))
        words = machine.program.make_resume(began.session)
        machine.model.play()
        done = subprocess.run(
            [machine.program.path, *words, "--fork", "go on"],
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
