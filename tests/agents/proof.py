"""What our hooks do in a real agent; the same for each, by what reached the model and what the agent wrote down."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import pytest

import warmstart
from agents.machine import AgentRun, Machine
from command_line import run, run_json
from doors.hooks.events import read_log, wait_for_quiet
from places import SRC
from warmstart.doors.hooks.agents import AGENTS
from warmstart.ingest.queue import Queue
from warmstart.store import TrialStore

BRIEF = "Known in this project from earlier sessions"
PATH_LINE = "Not here: `settings.yml`, use `settings.yaml` (2)"
PATH_NOTE = "`settings.yml` is not here; `settings.yaml` is (2 sessions)"
COMMAND_NOTE = "`list.sh --shrt` fails"
OURS = "[warmstart]"


# programs in the place of ours, as shell scripts; None: there is none
TROUBLES = {
    "removed": None,
    "fails": "echo Traceback >&2\nexit 3\n",
    "crashes": "kill -SEGV $$\n",
    "damaged": 'PYTHONPATH={package} exec {program} "$@"\n',
    "hangs": "exec sleep 60\n",
}
OWN_TROUBLES = ("fails", "crashes", "damaged")  # for every agent alike


def damage_package(folder: Path) -> Path:
    """Copy our package with modules cut short, as a broken update leaves them; return the folder to import from."""
    copy = shutil.copytree(SRC / "warmstart", folder / "warmstart", ignore=shutil.ignore_patterns("__pycache__"))
    for module in ("calls.py", "run.py"):
        path = copy / "doors" / "hooks" / module
        path.write_text(path.read_text()[:1_500])
    return folder


def wait_for_processes(machine: Machine, seconds: float = 30) -> None:
    """Wait until nothing runs any more that was started on the machine."""
    until = time.monotonic() + seconds
    while left := machine.list_processes():
        assert time.monotonic() < until, left
        time.sleep(0.1)


class ReadBack:
    """What our program knows of a session after it has read the agent's transcript."""

    def __init__(self, ran: AgentRun) -> None:
        wait_for_quiet()
        with warmstart.open() as ws:
            trial = TrialStore(ws.store).trial(ran.session)
        assert trial is not None and trial.closed is not None and trial.measures is not None
        self.arm, self.experiment = trial.arm, trial.experiment
        self.measures = json.loads(trial.measures)
        self.calls: list[dict[str, Any]] = run_json("sessions", "show", ran.session)["tool_calls"]

    @property
    def outcomes(self) -> list[str]:
        return [call["outcome"] for call in self.calls]


def choose_level(machine: Machine, level: str) -> None:
    (machine.home / ".warmstart" / "config.toml").write_text(f'[advice]\nlevel = "{level}"\n')


def read_note(subject: str) -> dict[str, Any]:
    """Return a note of the machine with its effect."""
    notes = [json.loads(line) for line in run("notes", "list", "--json").stdout.splitlines()]
    (known,) = (note["id"] for note in notes if note["subject"] == subject)
    return dict(run_json("notes", "show", known))


def show(result: dict[str, Any]) -> str:
    """Return the text of a tool's result as the model got it."""
    content = result.get("content", result.get("output", result.get("functionResponse")))
    return content if isinstance(content, str) else json.dumps(content)


class Proof:
    """One session each in a machine that has learned; the agent's module names the program."""

    replays_notes = True  # a resumed session still has what was said after a failed call

    @pytest.mark.proves("door installed", "seeded", "advised", "transcript read", "trial closed")
    def test_a_note_is_told_with_the_result_and_read_back(self, machine: Machine) -> None:
        read, shell, project = machine.program.make_read, machine.program.make_shell, machine.project
        ran = machine.run(
            read(project / "settings.yml"),
            read(project / "settings.yaml"),
            shell("./list.sh --shrt"),
            shell("cat settings.yml"),
            shell("head settings.yml"),
        )
        start, failed, worked, option, again, end = ran.requests
        assert (start.count(BRIEF), start.count(PATH_LINE), start.count(OURS)) == (1, 1, 0)
        assert "currency" not in show(failed.results[-1])
        assert failed.count(f"{OURS} {PATH_NOTE}") == 1
        assert "currency: EUR" in show(worked.results[-1]) and worked.count(OURS) == 1
        assert "unknown option" in show(option.results[-1]) and option.count(f"{OURS} {COMMAND_NOTE}") == 1
        assert again.count(OURS) == 3  # the failure came in spite of the note: the fix is named once more
        assert end.count(OURS) == 3
        assert PATH_NOTE in machine.program.read_transcript(ran.transcript)

        back = ReadBack(ran)
        assert (back.arm, back.outcomes) == ("warm", ["error", "ok", "error", "error", "error"])
        assert (back.measures["errors"], back.measures["judged"]) == (4, 5)
        note = read_note("settings.yml")
        assert (note["shown"], note["sessions"], note["status"]) == (1, [ran.session], "active")
        assert (note["since"]["met"], note["since"]["sessions"]) == (1, 1)
        assert read_log() == "", read_log()

    @pytest.mark.usefixtures("first_agent")
    def test_two_sessions_at_once_are_told_and_read_back(self, machine: Machine) -> None:
        machine.model.play(machine.program.make_read(machine.project / "settings.yml"))
        with ThreadPoolExecutor(2) as pool:
            both = list(pool.map(machine.ask, ("show the settings", "show them")))
        assert sum(request.count(f"{OURS} {PATH_NOTE}") for request in machine.model.requests) == 2
        assert [ReadBack(ran).outcomes for ran in both] == [["error"], ["error"]]
        assert sorted(read_note("settings.yml")["sessions"]) == sorted(ran.session for ran in both)
        assert read_log() == "", read_log()

    def test_a_resumed_session_keeps_its_brief_and_is_not_told_again(self, machine: Machine) -> None:
        read = machine.program.make_read
        began = machine.run(read(machine.project / "settings.yml"))
        machine.model.play(read(machine.project / "settings.yaml"), read(machine.project / "settings.yml"))
        ran = machine.ask("and again", session=began.session)
        assert ran.session == began.session
        assert [request.count(BRIEF) for request in ran.requests] == [1, 1, 1]
        told = int(self.replays_notes)  # and in the last the fix, after the failure
        assert [request.count(OURS) for request in ran.requests] == [told, told, told + 1]
        assert ReadBack(ran).outcomes == ["error", "ok", "error"]
        assert read_note("settings.yml")["shown"] == 1

    def test_a_corrected_call_works_and_the_note_stays(self, machine: Machine) -> None:
        choose_level(machine, "correct")
        ran = machine.run(machine.program.make_read(machine.project / "settings.yml"))
        _start, end = ran.requests
        assert "currency: EUR" in show(end.results[-1]) and not end.results[-1].get("is_error")
        assert end.count(f"{OURS} corrected the call: {PATH_NOTE}") == 1

        back = ReadBack(ran)
        assert (back.arm, back.outcomes) == ("warm", ["ok"])
        assert "settings.yaml" in json.dumps(back.calls[0]["arguments"])  # what ran, not what the model wrote
        note = read_note("settings.yml")
        assert (note["status"], note["against"], note["shown"]) == ("active", 0, 1)
        assert (note["since"]["met"], note["since"]["sessions"]) == (0, 1)

    def test_a_call_is_stopped_once_and_the_second_try_goes_through(self, machine: Machine) -> None:
        choose_level(machine, "stop")
        mistake = machine.program.make_read(machine.project / "settings.yml")
        ran = machine.run(mistake, mistake, machine.program.make_read(machine.project / "settings.yaml"))
        _start, stopped, tried_again, end = ran.requests
        assert f"stopped: {PATH_NOTE}" in show(stopped.results[-1])
        again = show(tried_again.results[-1])
        assert "stopped: " not in again and "currency" not in again
        assert "currency: EUR" in show(end.results[-1]) and end.count(PATH_NOTE) == 2

        back = ReadBack(ran)
        assert (back.arm, back.outcomes) == ("warm", ["denied", "error", "ok"])
        measures = back.measures
        assert (measures["errors"], measures["judged"], measures["calls"], measures["turns"]) == (1, 2, 3, 4)
        assert read_note("settings.yml")["shown"] == 1

    @pytest.mark.usefixtures("first_agent")
    def test_a_cold_session_gets_nothing(self, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
        choose_level(machine, "stop")
        monkeypatch.setenv("WARMSTART_HOLDOUT", "0.9")
        for _attempt in range(20):
            ran = machine.run(machine.program.make_read(machine.project / "settings.yml"))
            back = ReadBack(ran)
            if back.arm == "cold":
                break
        assert (back.arm, back.outcomes) == ("cold", ["error"])
        assert [request.count(BRIEF) + request.count(OURS) for request in ran.requests] == [0, 0]
        assert ran.session not in read_note("settings.yml")["sessions"]

    @pytest.mark.usefixtures("first_agent")
    @pytest.mark.parametrize(("arm", "advised"), [("brief", 0), ("brief+advice", 1)])
    def test_an_experiment_compares_levels(self, machine: Machine, arm: str, advised: int) -> None:
        run("experiment", "start", "levels", "--arms", f"cold=.02,{arm}=.98")
        for _attempt in range(20):
            ran = machine.run(machine.program.make_read(machine.project / "settings.yml"))
            back = ReadBack(ran)
            if back.arm == arm:
                break
        assert (back.arm, back.experiment, back.outcomes) == (arm, "levels", ["error"])
        start, end = ran.requests
        assert (start.count(BRIEF), end.count(BRIEF), end.count(OURS)) == (1, 1, advised)

    @pytest.mark.usefixtures("first_agent")
    def test_the_agent_goes_on_while_the_store_is_locked(self, machine: Machine) -> None:
        store = apsw.Connection(str(machine.home / ".warmstart" / "warmstart.db"))
        store.execute("BEGIN EXCLUSIVE")
        try:
            ran = self.make_the_mistake(machine)
        finally:
            store.execute("ROLLBACK")
            store.close()
        assert [request.count(OURS) + request.count(BRIEF) for request in ran.requests] == [0, 0, 0]
        assert "kept the database busy" in read_log()

    @pytest.mark.usefixtures("first_agent")
    def test_the_agent_goes_on_with_a_damaged_store(self, machine: Machine) -> None:
        (machine.home / ".warmstart" / "warmstart.db").write_bytes(b"rubbish" * 1_000)
        ran = self.make_the_mistake(machine)
        assert [request.count(OURS) + request.count(BRIEF) for request in ran.requests] == [0, 0, 0]
        assert "StoreError" in read_log()
        Queue(machine.home / ".warmstart").forget(Queue(machine.home / ".warmstart").take())  # it waits for a person

    @pytest.mark.parametrize("trouble", TROUBLES)
    def test_the_agent_goes_on_without_our_program(
        self, machine: Machine, tmp_path: Path, trouble: str, request: pytest.FixtureRequest
    ) -> None:
        if trouble in OWN_TROUBLES:
            request.getfixturevalue("first_agent")
        other = tmp_path / "warmstart"
        ours = self.replace_program(machine, other)
        if (script := TROUBLES[trouble]) is not None:
            damaged = damage_package(tmp_path / "package") if trouble == "damaged" else ""
            script = script.format(package=damaged, program=ours)
            other.write_text(f"#!/bin/sh\necho called >>{tmp_path}/calls\n{script}")
            other.chmod(0o755)
        ran = self.make_the_mistake(machine)
        assert [request.count(OURS) + request.count(BRIEF) for request in ran.requests] == [0, 0, 0]
        assert not any(request.count("Traceback") + request.count(str(other)) for request in ran.requests)
        if script is not None:
            assert len((tmp_path / "calls").read_text().splitlines()) >= 6  # start, prompt, calls, stop, end
        wait_for_processes(machine)

    def replace_program(self, machine: Machine, other: Path) -> str:
        """Let our hooks call another program, for at most a second; return the program that they called."""
        settings = machine.settings.read_text()
        if AGENTS[machine.program.name].plugin:
            ours = str(json.loads(re.findall(r"COMMAND\b.* = (\[.*\])", settings)[0])[0])
            machine.settings.write_text(re.sub(r'(?<=": )\d+000\b', "1000", settings).replace(ours, str(other)))
            return ours
        handler = json.loads(settings)["hooks"]["SessionStart"][0]["hooks"][0]
        ours = shlex.split(handler["command"])[0]
        limit = AGENTS[machine.program.name].unit
        settings = re.sub(r'("timeout": ?)\d+', rf"\g<1>{limit}", settings)
        machine.settings.write_text(settings.replace(ours, str(other)))
        return ours

    @staticmethod
    def make_the_mistake(machine: Machine) -> AgentRun:
        """Run a session that fails and recovers as if our hooks were not there."""
        read = machine.program.make_read
        ran = machine.run(read(machine.project / "settings.yml"), read(machine.project / "settings.yaml"))
        _start, failed, end = ran.requests
        assert "currency" not in show(failed.results[-1])
        assert "currency: EUR" in show(end.results[-1])
        return ran

    @pytest.mark.proves("door installed", "seeded", "advised", "transcript read", "trial closed", "uninstalled clean")
    def test_it_learns_by_itself_and_leaves_nothing_behind(self, untaught: Machine) -> None:
        machine = untaught
        self.make_the_mistake(machine)
        before = machine.list_files()
        machine.warmstart("hook", "install", machine.program.name)
        for _session in range(3):
            self.make_the_mistake(machine)
            wait_for_quiet()  # a person pauses between sessions, too
        ran = machine.run(machine.program.make_read(machine.project / "settings.yml"))
        start, end = ran.requests
        line, note = PATH_LINE.replace("2", "3"), PATH_NOTE.replace("2", "3")
        assert (start.count(BRIEF), start.count(line), end.count(f"{OURS} {note}")) == (1, 1, 1)
        back = ReadBack(ran)
        assert (back.arm, back.outcomes) == ("warm", ["error"])
        warm = run_json("report")["report"]["arms"]["warm"]
        assert (warm["assigned"], warm["expected"], warm["missing"]) == (4, 4.0, 0)
        assert "`settings.yml` is not here" in run("report").stdout
        usage = run_json("usage")["totals"]
        assert usage["sessions"] == 4 and usage["input"] > 0 and usage["output"] > 0
        assert read_log() == "", read_log()

        machine.warmstart("hook", "uninstall", machine.program.name)
        wait_for_processes(machine)
        own = machine.program.own_settings
        assert (machine.settings.read_text() if machine.settings.exists() else "") == own
        assert machine.list_files() == before
        assert not [path for path in machine.settings.parent.rglob("*warmstart*") if path.is_file()]

    @pytest.mark.proves("uninstalled clean")
    def test_uninstalling_leaves_the_settings_byte_for_byte(self, machine: Machine) -> None:
        own = machine.program.own_settings
        assert machine.settings.read_text() != own
        run("hook", "uninstall", machine.program.name)
        assert (machine.settings.read_text() if machine.settings.exists() else "") == own
        ran = self.make_the_mistake(machine)
        assert [request.count(OURS) + request.count(BRIEF) for request in ran.requests] == [0, 0, 0]
