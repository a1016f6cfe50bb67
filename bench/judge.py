"""How well tool results are judged, compared with the transcripts' own flags.

    python bench/judge.py [DIR] [--json] [--misses]

DIR (default: the shared corpus beside the project) is read with every reader. One row per format: precision, recall and
F1 for "this result is an error", with the flags visible, with the flags hidden (judged from the call and the text alone,
with error flags, exit-code prefixes and error tags stripped), and for a naive judge (keywords anywhere).

The truth is what a format's reader passes beside the text: Claude Code's `is_error`, the exit code for Codex, OpenHands and
mini-swe-agent, Gemini's status, tau2's and Inspect's `error`, the status of OpenInference spans. A format whose files carry
such a flag gets its row by itself: its samples need only be in DIR, or in one of the archives that PACKED names. TRUTHS holds
the formats whose truth is in the text: for tau-bench a result that starts with "Error" (hidden: that word is stripped). Calls
that a person rejected, that were cancelled, or that a failed sibling call ended are not errors of the agent and are left
out; so is a search that exits with 1 because nothing matched. F1 is null where there is no error.

Piped checks (`piped_checks.json`: ids and labels, written by someone who had not seen the rules): results that the agent
flagged as fine, of command lines whose exit code is not the check's. `failed` is the class of failing checks, `fine` the rest.
The rules were finished with these labels in view.

Where the judge overrules a flag on purpose (a failing check behind a pipe, a search without a match), `visible` compares
the flag it read, and `flipped` counts the results.

JSON keys: `formats` {name: {results, errors, excluded, flipped, visible {precision recall f1}, hidden {...}, naive {...},
microseconds}}, `piped` {cases, failing, failed {precision recall f1}, fine {...}, flipped}, `unflagged` {name: results} for
formats whose files here carry no flag to compare with, `seconds`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import zstandard

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from warmstart import formats
from warmstart.calls.shell import command_in, read_line
from warmstart.errors import SourceError
from warmstart.formats.source import Source
from warmstart.judging.outcome import judge_result
from warmstart.judging.stops import stopped_by
from warmstart.model import UNKNOWN, Outcome, Signal, ToolCall

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"
PIPED = Path(__file__).with_name("piped_checks.json")
KEYWORDS = ("error", "failed", "not found", "exception", "traceback", "permission denied", "invalid", "unable to")
STRIP = re.compile(
    r"\A\s*(?:Exit [Cc]ode:? -?\d+\n?|Process exited with code -?\d+\n?|<returncode>-?\d+</returncode>\n?)|</?tool_use_error>"
)


class Case(NamedTuple):
    call: ToolCall | None
    text: str
    signal: Signal | None
    truth: bool


UNFLAGGED = Case(None, "", None, False)
PACKED = ("formats",)  # archives in DIR/projects with samples of formats that DIR has no folder for
TRUTHS: dict[str, Callable[[str], bool]] = {"tau_bench": lambda text: text.startswith("Error")}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("dir", nargs="?", type=Path, default=CORPUS)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--misses", action="store_true", help="print the mistakes of the judge without flags")
    options = parser.parse_args()
    if not options.dir.exists():
        sys.exit(f"{options.dir}: no such folder; name a folder with transcripts")
    started = time.perf_counter()
    cases: dict[str, list[Case]] = {}
    excluded: dict[str, int] = {}
    unflagged: dict[str, int] = {}
    for name, case in read_cases(options.dir):
        if case is UNFLAGGED:
            unflagged[name] = unflagged.get(name, 0) + 1
        elif case is None:
            excluded[name] = excluded.get(name, 0) + 1
        else:
            cases.setdefault(name, []).append(case)
    rows = {name: measure(name, own, excluded.get(name, 0), options.misses) for name, own in sorted(cases.items())}
    without_flags = {name: results for name, results in sorted(unflagged.items()) if name not in rows}
    report = {
        "formats": rows,
        "piped": measure_piped(options.dir, options.misses),
        "unflagged": without_flags,
        "seconds": round(time.perf_counter() - started, 2),
    }
    print(json.dumps(report)) if options.json else show(report)


def measure_piped(corpus: Path, misses: bool) -> dict[str, Any] | None:
    """Compare the judge with the labels of piped checks; None where the corpus does not hold them."""
    labels: dict[str, str] = json.loads(PIPED.read_text())["labels"]
    failed, fine, flipped = Tally(), Tally(), 0
    seen: set[str] = set()
    for key, call, text, signal in read_labelled({name.partition(":")[0] for name in labels}, corpus):
        if key in seen or labels.get(key, "unsure") == "unsure":
            continue
        seen.add(key)
        truth = labels[key] == "failed"
        judged = judge_result(call, text, signal).status == "error"
        flipped += judged
        failed.add(judged, truth)
        fine.add(not judged, not truth)
        if misses and judged != truth:
            print(f"piped {key}: labelled {labels[key]}: {command_in(call.arguments)[-200:]!r}\n    {text[-200:]!r}")
    if not seen:
        return None
    failing = sum(labels[key] == "failed" for key in seen)
    return {
        "cases": len(seen),
        "failing": failing,
        "failed": failed.figures(),
        "fine": fine.figures(),
        "flipped": flipped,
    }


def read_labelled(names: set[str], corpus: Path) -> Iterator[tuple[str, ToolCall, str, Signal | None]]:
    """Yield `(corpus:call id, call, text, signal)` of the results in these parts of the corpus."""
    for name in sorted(names):
        archive = corpus / "projects" / f"{name}.tar.zst"
        if not archive.exists():
            yield from read_folder(name, corpus / name)
            continue
        with unpack(archive) as folder:
            yield from read_folder(name, folder)


@contextmanager
def unpack(archive: Path) -> Iterator[Path]:
    """Unpack an archive into a folder that lasts as long as the block."""
    with tempfile.TemporaryDirectory() as folder:
        with archive.open("rb") as packed:
            reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(packed)
            with tarfile.open(fileobj=reader, mode="r|") as tar:
                tar.extractall(folder, filter="data")
        yield Path(folder)


def read_folder(name: str, folder: Path) -> Iterator[tuple[str, ToolCall, str, Signal | None]]:
    results: list[tuple[ToolCall | None, str, Signal | None]] = []

    def record(call: ToolCall | None, text: str, signal: Signal | None = None) -> Outcome:
        results.append((call, text, signal))
        return UNKNOWN

    for file in formats.find_files(folder):
        try:
            for _session in formats.read(Source(file), record):
                yield from ((f"{name}:{call.call_id}", call, text, signal) for call, text, signal in results if call)
                results.clear()
        except SourceError:
            results.clear()


def read_cases(corpus: Path) -> Iterator[tuple[str, Case | None]]:
    """Yield the case of every result; None for a result that a person or a sibling call caused."""
    yield from read_samples(corpus)
    for name in PACKED:
        if (archive := corpus / "projects" / f"{name}.tar.zst").exists():
            with unpack(archive) as folder:
                yield from read_samples(folder)


def read_samples(folder: Path) -> Iterator[tuple[str, Case | None]]:
    for file in formats.find_files(folder):
        source = Source(file)
        seen: list[tuple[ToolCall | None, str, Signal | None]] = []

        def record(call: ToolCall | None, text: str, signal: Signal | None, into: Any = seen) -> Outcome:
            into.append((call, text, signal))
            return UNKNOWN

        try:
            reader = formats.detect(source)
            for session in reader.read(source, record):
                name = "tau_bench" if session.label is not None and reader.NAME == "openai_chat" else reader.NAME
                for call, text, signal in seen:
                    if name in TRUTHS:
                        yield name, Case(call, text, signal, TRUTHS[name](text))
                    else:
                        yield name, UNFLAGGED if signal is None else truth(call, text, signal)
                seen.clear()
        except SourceError:
            continue


def truth(call: ToolCall | None, text: str, signal: Signal) -> Case | None:
    """Return the case with its true verdict; None where the agent did not cause the result."""
    if stopped_by(text) or signal.status in ("rejected", "cancelled"):
        return None
    if signal.exit_code is not None and not signal.failed:
        nothing_matched = (
            signal.exit_code == 1
            and not bare(text)
            and call is not None
            and read_line(command_in(call.arguments)).matches
        )
        return None if nothing_matched else Case(call, text, signal, signal.exit_code != 0)
    return Case(call, text, signal, bool(signal.failed) or signal.status == "error")


def bare(text: str) -> str:
    return STRIP.sub("", text).replace("<output>", "").replace("</output>", "").strip()


def measure(name: str, cases: list[Case], excluded: int, misses: bool) -> dict[str, Any]:
    visible, hidden, naive = Tally(), Tally(), Tally()
    spent, flipped = 0.0, 0
    for case in cases:
        outcome = judge_result(case.call, case.text, case.signal)
        flipped += outcome.flagged is not None
        visible.add(outcome.flagged if outcome.flagged is not None else outcome.status == "error", case.truth)
        text = STRIP.sub("", case.text)
        if name == "tau_bench":
            text = re.sub(r"\AError:?\s*", "", text)
        begun = time.perf_counter()
        judged = judge_result(case.call, text, None).status == "error"
        spent += time.perf_counter() - begun
        if outcome.flagged is None:  # the pipe's own flag is no truth about the check behind it
            hidden.add(judged, case.truth)
        naive.add(any(word in text.lower() for word in KEYWORDS), case.truth)
        if misses and judged != case.truth:
            arguments = str(case.call.arguments if case.call else "")[-200:]
            kind = "false alarm" if judged else "missed"
            print(
                f"{name} {kind}: {case.call.tool if case.call else ''} {arguments!r}\n    {text[:200]!r} ... {text[-150:]!r}"
            )
    return {
        "results": len(cases),
        "errors": sum(case.truth for case in cases),
        "excluded": excluded,
        "flipped": flipped,
        "visible": visible.figures(),
        "hidden": hidden.figures(),
        "naive": naive.figures(),
        "microseconds": round(spent / len(cases) * 1e6, 1),
    }


class Tally:
    def __init__(self) -> None:
        self.hit = self.false = self.missed = 0

    def add(self, judged: bool, true: bool) -> None:
        self.hit += judged and true
        self.false += judged and not true
        self.missed += true and not judged

    def figures(self) -> dict[str, float | None]:
        judged, true = self.hit + self.false, self.hit + self.missed
        f1 = 2 * self.hit / (judged + true) if true else None
        return {
            "precision": round(self.hit / judged, 4) if judged else None,
            "recall": round(self.hit / true, 4) if true else None,
            "f1": None if f1 is None else round(f1, 4),
        }


def show(report: dict[str, Any]) -> None:
    print(
        f"{'format':16}{'results':>8}{'errors':>8}{'left out':>9}   {'flags visible':>13}   "
        f"{'flags hidden  P    R    F1':>27}   {'naive F1':>8}"
    )
    for name, row in report["formats"].items():
        hidden = row["hidden"]
        print(
            f"{name:16}{row['results']:>8}{row['errors']:>8}{row['excluded']:>9}   {number(row['visible']['f1']):>13}   "
            f"{number(hidden['precision']):>15}{number(hidden['recall']):>6}{number(hidden['f1']):>6}   "
            f"{number(row['naive']['f1']):>8}"
        )
    if piped := report["piped"]:
        print(
            f"piped checks: {piped['cases']} labelled results, {piped['failing']} failing; F1 failed "
            f"{number(piped['failed']['f1'])}, fine {number(piped['fine']['f1'])} (by the agent's flag: 0 found)"
        )
    for name, results in report["unflagged"].items():
        print(f"{name:16}{results:>8}   these files have no flags to compare with")


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    main()
