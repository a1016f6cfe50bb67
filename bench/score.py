"""How well the quality score separates success from failure, with the labels hidden.

    python bench/score.py [DIR] [--json]

DIR (default: the shared corpus beside the project) is read with every reader; labelled sessions are scored as if they
had no label. One row per format: the AUC of quality against the label, the AUC of a naive score (length + tool
diversity + keyword error rate), and the success rate among the sessions that the gate accepts beside the base rate.
`small` marks a format with fewer than 30 labelled sessions or only one outcome, where an AUC says little.

JSON keys: `formats` {name: {sessions, succeeded, auc, naive_auc, passed, passed_rate, base_rate, verdicts, small}}.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import msgspec

from warmstart import formats
from warmstart.errors import SourceError
from warmstart.formats.source import Source
from warmstart.judging.gate import check_verdict
from warmstart.judging.outcome import judge_result
from warmstart.judging.score import score
from warmstart.model import Session, ToolCall, ToolResult

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"
KEYWORDS = ("error", "failed", "not found", "exception", "traceback", "permission denied", "invalid", "unable to")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("dir", nargs="?", type=Path, default=CORPUS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.dir.exists():
        sys.exit(f"{options.dir}: no such folder; name a folder with transcripts")
    labelled: dict[str, list[tuple[Session, bool]]] = {}
    for file in formats.find_files(options.dir):
        try:
            for session in formats.read(Source(file), judge_result):
                if session.label is not None:
                    name = "tau_bench" if session.format == "openai_chat" else session.format
                    hidden = msgspec.structs.replace(session, label=None)
                    labelled.setdefault(name, []).append((hidden, session.label))
        except SourceError:
            continue
    report = {"formats": {name: measure(sessions) for name, sessions in sorted(labelled.items())}}
    print(json.dumps(report)) if options.json else show(report)


def measure(sessions: list[tuple[Session, bool]]) -> dict[str, Any]:
    labels = [label for _session, label in sessions]
    scores = [score(session) for session, _label in sessions]
    passed = [
        label
        for one, label in zip(scores, labels, strict=True)
        if one.counts.tool_results and check_verdict(one.verdict, one.quality) is None
    ]
    return {
        "sessions": len(sessions),
        "succeeded": sum(labels),
        "auc": auc([one.quality for one in scores], labels),
        "naive_auc": auc([naive(session) for session, _label in sessions], labels),
        "passed": len(passed),
        "passed_rate": round(sum(passed) / len(passed), 3) if passed else None,
        "base_rate": round(sum(labels) / len(labels), 3),
        "verdicts": dict(Counter(one.verdict for one in scores)),
        "small": len(sessions) < 30 or len(set(labels)) < 2,
    }


def naive(session: Session) -> float:
    """Return the naive score: high for long sessions with many tools and few error words."""
    results = [step for step in session.steps if isinstance(step, ToolResult)]
    tools = {step.tool for step in session.steps if isinstance(step, ToolCall)}
    errors = sum(any(word in step.text.lower() for word in KEYWORDS) for step in results)
    rate = errors / len(results) if results else 0.0
    return min(len(session.steps) / 100, 1.0) * 0.4 + min(len(tools) / 8, 1.0) * 0.3 + (1 - rate) * 0.3


def auc(values: list[float], labels: list[bool]) -> float | None:
    good = [v for v, label in zip(values, labels, strict=True) if label]
    bad = [v for v, label in zip(values, labels, strict=True) if not label]
    if not good or not bad:
        return None
    return round(sum((g > b) + 0.5 * (g == b) for g in good for b in bad) / (len(good) * len(bad)), 3)


def show(report: dict[str, Any]) -> None:
    print(
        f"{'format':16}{'sessions':>9}{'AUC':>7}{'naive':>7}{'passed':>8}{'of them good':>14}{'base rate':>11}  verdicts"
    )
    for name, row in report["formats"].items():
        note = "  (too few for a verdict)" if row["small"] else ""
        print(
            f"{name:16}{row['sessions']:>9}{row['auc'] or '-':>7}{row['naive_auc'] or '-':>7}{row['passed']:>8}"
            f"{row['passed_rate'] if row['passed_rate'] is not None else '-':>14}{row['base_rate']:>11}  {row['verdicts']}{note}"
        )


if __name__ == "__main__":
    main()
