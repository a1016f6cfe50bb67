"""The one line of a failed result that names the cause.

The first line is often a heading and the last a summary ("Error 1"). Rows are ranked by their form: a failed assertion
or a finding with its place, then an error message, then the name of a failed test, then a row that reads like an error.
Headings, progress and stack frames never count. Where no row names a cause there is none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from warmstart.calls import tools
from warmstart.calls.shell import command_in, find_program, read_line, split_line
from warmstart.judging.findings import find_findings
from warmstart.judging.messages import read_rows
from warmstart.judging.row_forms import MESSAGE, NAMED, PLACED, PLAIN, SUMMARY, TELLING, is_noise, is_telling, rank_row
from warmstart.model import ToolCall

_LONGEST = 200
_FEW = 3  # rows of an output that is a message as a whole
_ABOVE, _BELOW = 15, 6  # rows around a failed test's name that belong to it
_PROGRAMS = frozenset((tools.TERMINAL, tools.CODE, tools.PROCESS))
_QUOTERS = frozenset((tools.READ, tools.SEARCH, tools.WEB_READ, tools.WEB_SEARCH, tools.SESSIONS, tools.BROWSE))
_LETTERS = re.compile(r"[^\W\d_]{2}")
_BOX = " \t│┃|╭╮╰╯─━═" + "".join(map(chr, range(0x2800, 0x2900)))  # box drawing and spinners
_BULLET = re.compile(r"(?:[*×✖✕✘●❯•!→] *|\^-*\^? (?=SC\d)|E {2,}(?=[^+\-?\s]))")
_SHELLS = ("(eval)", "zsh", "bash", "sh", "dash", "fish", "ksh", "/bin/sh", "/bin/bash", "/bin/zsh", "/usr/bin/bash")
_RAISED = re.compile(r"[A-Za-z_][\w.]*(?:: |$)")
_CHAINED = re.compile(r"\s*Caused by: \S")
_PANICKED = re.compile(r"\s*thread '.*' (?:\(\d+\) )?panicked at \S+:\d+:\d+:$")
_PYTEST = re.compile(r"E {2,}(?![+\-?\s])")
_RULED = re.compile(r"^\s*(?:at )?(?=\S+ (?:format|(?:lint|assist)/\S+)(?:\s|$))")
_REFUSED = re.compile(
    r"(?i:unknown|invalid|unrecogni[sz]ed|error|fatal|failed|could not|cannot|unable|no such|missing)\b"
)
_ANNOUNCES = re.compile(r"^(?!\s*Diff in ).*:$")
_HEADING = re.compile(r"\s*(?:● |\d+\) \[|FAIL\s+.* > )")  # jest, playwright, vitest: the reason stands below
_GO_LOG = re.compile(r"\s+\S+_test\.go:\d+: ")
_DEEPER = "        "  # below a Go test's log: the rest of its message
_TEST_RUN = re.compile(r"\s*\d+ pass(?:ed|ing)?$|Ran \d+ tests")
_SANDBOX = re.compile(r"failed in sandbox .*?stderr: (?=\S)")
_LIST = re.compile(r"\[[^\[\]]{60,}\]")
_COMPARED = re.compile(r"\s*(?:Expected|Received|expected|actual|received|left|right)(?: \w+)? ?:\s*\S")
_COMPARING = re.compile(r"expect\(|Not equal|assertion .*failed|toBe|toEqual")


def explain(call: ToolCall | None, text: str) -> tuple[str | None, tuple[str, ...]]:
    """Return the cause of a failed call, None where no line names one, and the findings that its result names."""
    base = tools.base_tool(call.tool) if call else None
    rows = read_rows(text)
    if base not in _PROGRAMS:
        return find_message(rows), () if base in _QUOTERS else find_findings(rows)
    command = command_in(call.arguments) if call else ""
    line = read_line(command)
    programs = _programs_in(command)
    if line.quotes and line.reach != "none":
        return _find_own_message(rows, programs, few=0 if line.matches else _FEW), ()
    return find_cause(rows, programs), find_findings(rows)


def find_message(rows: Sequence[str]) -> str | None:
    """Return the message of a tool's answer: its first row that is no heading."""
    at = next((at for at, row in enumerate(rows) if _LETTERS.search(row) and not is_noise(row)), None)
    return _finish(rows, at)


def find_cause(rows: Sequence[str], programs: Collection[str] = ()) -> str | None:
    """Return the row of a program's output that names the cause of its failure; None where only a summary is left."""
    exception = _find_exception(rows)
    if exception is not None and rank_row(rows[exception]) != SUMMARY:
        return _finish(rows, exception)
    ranked = _rank_rows(rows, programs)
    rank, at = min(ranked, default=(SUMMARY, 0))
    if rank >= SUMMARY and (telling := _find_telling(rows, ranked)) is not None:
        rank, at = TELLING, telling
        ranked = [(rank if place == at else other, place) for other, place in ranked]
    if rank >= SUMMARY and (exception is not None or rank == SUMMARY or len(ranked) > _FEW):
        return _finish(rows, exception)
    if rank == PLACED:
        return _finish(rows, _choose_log(rows, at))
    if rank == NAMED:
        return _finish(rows, _choose_test(rows, ranked))
    return _finish(rows, _choose_message(rows, ranked))


def _rank_rows(rows: Sequence[str], programs: Collection[str]) -> list[tuple[int, int]]:
    """Return the rank and the index of each row that can be a cause, up to the first of the best rank."""
    ranked: list[tuple[int, int]] = []
    for at, row in enumerate(rows):
        if _LETTERS.search(row) and not is_noise(row):
            rank = _rank(row, programs)
            ranked.append((rank, at))
            if rank == PLACED:
                break
    return ranked


def _find_telling(rows: Sequence[str], ranked: Sequence[tuple[int, int]]) -> int | None:
    """Return the first row of no known form that reads like an error."""
    return next((at for rank, at in ranked if rank == PLAIN and is_telling(rows[at])), None)


def _choose_test(rows: Sequence[str], ranked: Sequence[tuple[int, int]]) -> int:
    """Return the reason below a failed test's name, else the first failed test."""
    reasons = {at for rank, at in ranked if rank == PLAIN}
    tests = [at for rank, at in ranked if rank == NAMED]
    return next((at + 1 for at in tests if at + 1 in reasons and _HEADING.match(rows[at])), tests[0])


def _choose_log(rows: Sequence[str], at: int) -> int:
    """Return the last row that a Go test logged, where `at` is one: a test logs on until it fails."""
    last = at
    while at < len(rows) and (_GO_LOG.match(rows[at]) or (at > last and rows[at].startswith(_DEEPER))):
        if not rows[at].startswith(_DEEPER):
            last = at
        at += 1
    return last


def _choose_message(rows: Sequence[str], ranked: Sequence[tuple[int, int]]) -> int | None:
    """Return the first message, but the root of a chain of causes.

    Tests that pass print errors too: in a test run only the message beside the failed test or of the runner itself counts.
    """
    tests = [at for rank, at in ranked if rank == NAMED]
    if tests:
        return _find_beside(ranked, tests[0])
    if any(map(_TEST_RUN.match, rows)):
        start = next((at for at, row in enumerate(rows) if "Unhandled error" in row), len(rows))
        return next((at for rank, at in ranked if rank == MESSAGE and at > start), None)
    chained = [at for _rank, at in ranked if _CHAINED.match(rows[at])]
    return chained[-1] if chained else min(ranked)[1]


def _find_beside(ranked: Sequence[tuple[int, int]], test: int) -> int:
    """Return the message beside a failed test's name, else the name: tests that pass print errors too."""
    above = [at for rank, at in ranked if rank == MESSAGE and test - _ABOVE <= at < test]
    below = [at for rank, at in ranked if rank == MESSAGE and test < at <= test + _BELOW]
    return above[-1] if above else below[0] if below else test


def _find_own_message(rows: Sequence[str], programs: Collection[str], *, few: int) -> str | None:
    """Return what a program that prints other text (files, logs, listings) says under its own name or its shell's.

    An output of a few rows is a message as a whole.
    """
    own = (at for at, row in enumerate(rows) if _speaks_for(row, (*programs, *_SHELLS)))
    at = next(own, None)
    if at is None and rows and (len(rows) <= few or _REFUSED.match(rows[0])):
        return find_message(rows)
    return _finish(rows, at)


def _rank(row: str, programs: Collection[str]) -> int:
    rank = rank_row(row)
    return min(rank, MESSAGE) if rank != SUMMARY and _speaks_for(row, programs) else rank


def _speaks_for(row: str, programs: Collection[str]) -> bool:
    name, colon, _rest = row.strip().partition(": ")
    return bool(colon) and name.partition(":")[0].rpartition("/")[2] in programs


def _programs_in(command: str) -> frozenset[str]:
    stages = (stage for pipelines in split_line(command[:6_000]) for _operator, pipe in pipelines for stage in pipe)
    return frozenset(program for stage in stages if (program := find_program(stage)[0]))


def _find_exception(rows: Sequence[str]) -> int | None:
    """Return the index of the last exception's row: pytest's first, else the one below the last traceback."""
    raised = next((at for at, row in enumerate(rows) if row.startswith("E ") and _PYTEST.match(row)), None)
    if raised is not None:
        return raised
    starts = [at for at, row in enumerate(rows) if row.startswith("Traceback (most recent call last)")]
    if not starts:
        return None
    below = range(starts[-1] + 1, len(rows))
    return next((at for at in below if not rows[at][0].isspace() and _RAISED.match(rows[at])), None)


def _finish(rows: Sequence[str], at: int | None) -> str | None:
    """Return a row as one line of text, with the rows that it announces."""
    if at is None:
        return None
    parts = [rows[at]]
    below = rows[at + 1 : at + 8]
    if _PANICKED.match(rows[at]) and below:
        parts, below = [below[0]], below[1:]
    elif below and not is_noise(below[0]) and (_ANNOUNCES.search(rows[at]) or _RULED.match(rows[at])):
        parts.append(below[0])
    if _COMPARING.search(parts[0]):
        parts += [row for row in below if _COMPARED.match(row)][:2]
    parts[0] = _RULED.sub("", parts[0], count=1)
    line = " ".join(" ".join(map(_strip, parts)).split()).rstrip(":")
    return _cut(_LIST.sub("[...]", _SANDBOX.sub("", line)) if len(line) > _LONGEST else line)


def _strip(row: str) -> str:
    bare = row.strip(_BOX)
    bullet = _BULLET.match(bare)
    return bare[bullet.end() :] if bullet else bare


def _cut(line: str) -> str | None:
    if not _LETTERS.search(line):
        return None
    if len(line) <= _LONGEST:
        return line
    head, space, _rest = line[: _LONGEST - 3].rpartition(" ")
    return f"{head if space and len(head) > _LONGEST // 2 else line[: _LONGEST - 3]}..."
