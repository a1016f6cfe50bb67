"""The table of what real agents have proven."""

from __future__ import annotations

from agents.proven import COLUMNS, YES, Finding, draw_table, make_table


def test_a_cell_is_yes_only_if_all_of_its_tests_passed():
    findings = [
        Finding("Acme 1.0", "seeded", "passed"),
        Finding("Acme 1.0", "advised", "passed"),
        Finding("Acme 1.0", "advised", "test_two failed"),
        Finding("Acme 1.0", "trial closed", "skipped: not installed"),
    ]
    head, row = make_table(findings)
    cells = dict(zip(head, row, strict=True))
    assert (cells["seeded"], cells["advised"], cells["trial closed"]) == (
        YES,
        "test_two failed",
        "skipped: not installed",
    )
    assert cells["transcript read"] == "no test ran"
    assert len(cells) == len(COLUMNS) + 1


def test_the_columns_are_aligned():
    lines = draw_table([["agent", "seeded"], ["Claude Code 2", "yes"], ["Pi", "yes"]])
    assert [line.find("yes") for line in lines[1:]] == [lines[0].find("seeded")] * 2
