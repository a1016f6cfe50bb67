"""How scheduled runs' answers are classified, against a labelled list; and how long that takes.

    python bench/jobs.py [FILE] [--json] [--misses]

FILE (default: tests/data/jobs/outputs.jsonl) has a line an answer: `{"set", "expected", "tricky", "text"}`. The naive
classifier (the word "failed", "error" or "exit code" anywhere) runs beside, to show what tricky means.

All of the list is right today because the rules were mended with it. What the rules got of each set at first sight, before
they were mended with it, is in FIRST_SIGHT: that is what to expect of phrasings that nobody has thought of. Sets: `rules`
(the rules were written with it in view), `seen` (written before the rules, but seen), `fresh-1` to `fresh-3` (each
written after the rules of its time).

JSON keys: `outputs` (how many), `right`, `false_alarms` (called failed, and was not), `missed` (failed, and not called so),
`sets` {name: {outputs, right, false_alarms, missed, first_sight {outputs, right, false_alarms, missed}}}, `naive` {right,
false_alarms, missed}, `tricky`, `microseconds` (one answer, on average), `table` [{set, expected, found, tricky, text}].
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from warmstart.jobs import classify_job_output

OUTPUTS = Path(__file__).resolve().parents[1] / "tests" / "data" / "jobs" / "outputs.jsonl"
NAIVE = re.compile(r"fail|error|exit(?:ed with)? (?:code|status)|timed out|unable|could not", re.I)
FIRST_SIGHT = {  # outputs, right, false alarms, missed
    "fresh-1": (40, 25, 2, 13),
    "fresh-2": (30, 18, 1, 11),
    "fresh-3": (30, 22, 2, 6),
}

Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("file", nargs="?", type=Path, default=OUTPUTS)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--misses", action="store_true", help="print only what is wrong")
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.file.read_text(encoding="utf-8").splitlines()]
    started = time.perf_counter()
    for row in rows:
        row["found"] = classify_job_output(row["text"]).status
    seconds = time.perf_counter() - started
    figures = {
        "outputs": len(rows),
        "tricky": sum(row["tricky"] for row in rows),
        **count(rows, lambda row: row["found"]),
        "sets": {name: describe_set(rows, name) for name in dict.fromkeys(row["set"] for row in rows)},
        "naive": count(rows, classify_naively),
        "microseconds": round(seconds / max(1, len(rows)) * 1e6),
        "table": rows,
    }
    if options.json:
        print(json.dumps(figures))
        return
    show_table([row for row in rows if not options.misses or row["found"] != row["expected"]])
    show_figures(figures)


def count(rows: Sequence[Row], classify: Callable[[Row], str]) -> dict[str, int]:
    found = [(row["expected"], classify(row)) for row in rows]
    return {
        "right": sum(expected == got for expected, got in found),
        "false_alarms": sum(got == "failed" != expected for expected, got in found),
        "missed": sum(expected == "failed" != got for expected, got in found),
    }


def classify_naively(row: Row) -> str:
    if "[SILENT]" in row["text"].upper():
        return "silent"
    return "failed" if NAIVE.search(row["text"]) else "delivered"


def describe_set(rows: Sequence[Row], name: str) -> dict[str, Any]:
    own = [row for row in rows if row["set"] == name]
    at_first = FIRST_SIGHT.get(name)
    keys = ("outputs", "right", "false_alarms", "missed")
    told = {"first_sight": dict(zip(keys, at_first, strict=True))} if at_first else {}
    return {"outputs": len(own), **count(own, lambda row: row["found"]), **told}


def show_table(rows: Sequence[Row]) -> None:
    for row in rows:
        mark = " " if row["found"] == row["expected"] else "!"
        text = " ".join(row["text"].split())
        tricky = "tricky" if row["tricky"] else ""
        print(f"{mark} {row['expected']:9}  {row['found']:9}  {tricky:6}  {row['set']:7}  {text[:100]}")


def show_figures(figures: dict[str, Any]) -> None:
    print(f"\n{figures['outputs']} outputs, {figures['tricky']} of them tricky; {figures['microseconds']} µs each")
    for name, found in (("Warmstart", figures), ("naive", figures["naive"])):
        print(
            f"{name:10} {found['right']:4} right, {found['false_alarms']} false alarms, {found['missed']} failures missed"
        )
    for name, one in figures["sets"].items():
        if at_first := one.get("first_sight"):
            print(
                f"{name:10} at first sight {at_first['right']} of {at_first['outputs']} right,"
                f" {at_first['false_alarms']} false alarms, {at_first['missed']} failures missed"
            )


if __name__ == "__main__":
    main()
