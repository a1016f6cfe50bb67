"""The table that `make agents` ends with: what the real agents have proven, each yes or the reason why not.

A test says by its mark what it proves: `@pytest.mark.proves("seeded", "advised")`. The test of something that an agent
has no way to do is skipped with the reason, which then stands in the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

COLUMNS = ("door installed", "seeded", "advised", "transcript read", "trial closed", "uninstalled clean")
YES = "yes"


class Finding(NamedTuple):
    """What one test says about one agent."""

    agent: str  # its title and version
    column: str
    outcome: str  # "passed", or why not


def make_table(findings: Iterable[Finding]) -> list[list[str]]:
    """Return the rows, the first with the names of the columns. A cell is yes only if all of its tests passed."""
    cells: dict[str, dict[str, list[str]]] = {}
    for finding in findings:
        cells.setdefault(finding.agent, {}).setdefault(finding.column, []).append(finding.outcome)
    rows = [["agent", *COLUMNS]]
    for agent, columns in sorted(cells.items()):
        rows.append([agent, *(_judge(columns.get(column, [])) for column in COLUMNS)])
    return rows


def _judge(outcomes: list[str]) -> str:
    if not outcomes:
        return "no test ran"
    reasons = [outcome for outcome in outcomes if outcome != "passed"]
    return reasons[0] if reasons else YES


def draw_table(rows: list[list[str]]) -> list[str]:
    """Return the lines of the table."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
