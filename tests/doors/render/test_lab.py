"""The lab's report on a terminal: what it shows, what it holds back, and that no text from outside does harm."""

from __future__ import annotations

import re

import pytest

from lab_reports import REPORTS
from warmstart.doors.render.lab import show_lab
from warmstart.doors.render.lab_findings import SOLVED, TURNS, count_families, describe_finding, list_harmed
from warmstart.lab.run.summary import LabReport


@pytest.fixture(scope="module")
def reports() -> dict[str, LabReport]:
    return {name: make() for name, make in REPORTS.items()}


def printed(report: LabReport, capsys: pytest.CaptureFixture[str]) -> str:
    show_lab(report)
    return capsys.readouterr().out


def test_a_finished_run_tells_everything(reports, capsys):
    report = reports["finished"]
    out = printed(report, capsys)
    assert "smollm2 (sha256 9c1a9c1a9c1a, xllamacpp 2026.10)" in out
    assert "random seed 1; 375 of 375 sessions" in out
    assert "walls: a folder of its own; no network" in out
    cold, warm = report.arms[0].solved, report.arms[1].solved
    assert f"warm beats cold: {warm} of 75 tasks solved instead of {cold}" in out
    crossing = report.report.crossings["warm"]
    row = next(line for line in out.splitlines() if line.startswith(" warm") and "0.001" in line)
    assert row.split()[:3] == ["warm", str(crossing.helped), str(crossing.harmed)] and row.split()[-1] == "better"
    assert "no difference shown" in out, "the other arms are shown too"
    assert "censored" in out and "not your agent" in out and "lab's authors" in out and "15 families" in out
    assert "widened so that all 4 hold together" in out


@pytest.mark.parametrize("name", REPORTS)
def test_every_report_can_be_shown(name, reports, capsys):
    out = printed(reports[name], capsys)
    assert describe_finding(reports[name]).headline in out
    assert not any(code in out for code in "\x1b\x00\x07\x9b\u202e\ud800")
    assert max(map(len, out.splitlines())) < 700


def test_a_terminal_of_eighty_columns_keeps_whiskers_whole(reports, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes this for a terminal
    monkeypatch.setenv("COLUMNS", "80")
    out = printed(reports["finished"], capsys)
    assert "--o-" in out and "less    0    more" in out
    plain = re.sub(r"\x1b\[[\d;]*m", "", out)
    assert re.search(r"arm +solved +errors +turns +tokens +tools +seed +shown +sec", plain), "no heading is folded"
    assert re.search(r"mismatched .*no difference shown", plain)


@pytest.mark.parametrize("name", ["unfinished", "blocked", "nothing done", "no arm"])
def test_nothing_is_concluded_too_early(name, reports, capsys):
    """The paired interval is for one look: before it, neither interval nor verdict nor p is shown."""
    finding = describe_finding(reports[name])
    out = printed(reports[name], capsys)
    assert finding.tone == "open"
    assert "better" not in out and "worse" not in out and "beats" not in out
    assert " to +" not in out and "-o" not in out, "no interval"
    assert "p =" not in out.replace("p = 1e-10", "") and "p <" not in out
    if name != "blocked":
        assert f"no verdict before all {reports[name].planned} sessions are done" in out


@pytest.mark.parametrize(
    ("name", "tone", "told"),
    [
        ("one arm", "open", "Nothing to compare: cold ran alone"),
        ("no interval", "open", "No verdict on warm, too few tasks to tell"),
        ("nothing solved", "open", "No difference shown between warm and cold: 0 of 75 tasks solved against 0"),
        ("everything solved", "open", "No difference shown between warm and cold: 75 of 75 tasks solved against 75"),
        ("warm harms", "worse", "warm does worse than cold: "),
        ("blocked", "open", "No verdict: the arms cannot be compared"),
    ],
)
def test_the_headline(name, tone, told, reports):
    finding = describe_finding(reports[name])
    assert finding.tone == tone
    assert finding.headline.startswith(told)


def test_floor_and_ceiling_are_told(reports):
    assert "too hard" in describe_finding(reports["nothing solved"]).details[-1]
    assert "too easy" in describe_finding(reports["everything solved"]).details[-1]


def test_families_are_sorted_by_gain_and_add_up(reports):
    report = reports["finished"]
    families = count_families(report)
    gains = [family.arms["warm"][0] / family.arms["warm"][1] - family.arms["cold"][0] / 5 for family in families]
    assert gains == sorted(gains, reverse=True)
    for line in report.arms:
        assert sum(family.arms[line.arm][0] for family in families) == line.solved


def test_harmed_tasks_are_those_of_the_crossing(reports):
    report = reports["finished"]
    for arm, crossing in report.report.crossings.items():
        assert len(list_harmed(report, arm)) == crossing.harmed


@pytest.mark.parametrize(
    ("shown", "value", "told", "signed"),
    [
        (SOLVED, 0.613, "61%", "+61"),
        (SOLVED, 0.0, "0%", "0"),
        (SOLVED, 0.054, "5.4%", "+5.4"),
        (TURNS, -1.812, "-1.81", "-1.81"),
        (TURNS, None, "-", "-"),
    ],
)
def test_numbers(shown, value, told, signed):
    assert shown.write(value) == told
    assert shown.sign(value) == signed
