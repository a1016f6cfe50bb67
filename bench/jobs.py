"""Compare the classification of scheduled runs' answers with a labelled list, and time it.

    python bench/jobs.py [FILE] [--json] [--misses]

FILE (default: tests/data/jobs/outputs.jsonl) has one answer per line: `{"set", "expected", "tricky", "text"}`. A naive
classifier ("failed", "error" or "exit code" anywhere) runs beside it, to show what tricky means.

All answers are classified correctly today because the rules were corrected with this list. FIRST_SIGHT has the results on
each set before that: they show what to expect of new phrasings. Sets: `rules` (the rules were written from it), `seen`
(written before the rules, but seen), `fresh-1` to `fresh-3` (each written after the rules of its time).

JSON keys: `outputs` (number), `right`, `false_alarms` (wrongly called failed), `missed` (failures not recognised), `sets`
{name: {outputs, right, false_alarms, missed, first_sight {outputs, right, false_alarms, missed}}}, `naive` {right,
false_alarms, missed}, `tricky`, `microseconds` (mean per answer), `table` [{set, expected, found, tricky, text}].
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
    parser.add_argument("--misses", action="store_true", help="print only wrong classifications")
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
    pairs = [(row["expected"], classify(row)) for row in rows]
    return {
        "right": sum(expected == status for expected, status in pairs),
        "false_alarms": sum(status == "failed" != expected for expected, status in pairs),
        "missed": sum(expected == "failed" != status for expected, status in pairs),
    }


def classify_naively(row: Row) -> str:
    if "[SILENT]" in row["text"].upper():
        return "silent"
    return "failed" if NAIVE.search(row["text"]) else "delivered"


def describe_set(rows: Sequence[Row], name: str) -> dict[str, Any]:
    own = [row for row in rows if row["set"] == name]
    at_first = FIRST_SIGHT.get(name)
    keys = ("outputs", "right", "false_alarms", "missed")
    first_sight = {"first_sight": dict(zip(keys, at_first, strict=True))} if at_first else {}
    return {"outputs": len(own), **count(own, lambda row: row["found"]), **first_sight}


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
    for name, result in figures["sets"].items():
        if at_first := result.get("first_sight"):
            print(
                f"{name:10} at first sight {at_first['right']} of {at_first['outputs']} right,"
                f" {at_first['false_alarms']} false alarms, {at_first['missed']} failures missed"
            )


if __name__ == "__main__":
    main()
