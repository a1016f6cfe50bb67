"""Every sample of the corpus is read; sessions, calls, results and failures agree with counts of plain scripts.

The scripts below use nothing of Warmstart: each loads the JSON and counts what the format calls a call and a failure.
"""

from __future__ import annotations

import json
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import zstandard

from places import CORPUS, NO_CORPUS
from warmstart import formats
from warmstart.formats.source import Source
from warmstart.model import UNKNOWN, Outcome, Signal, ToolCall, ToolResult


class Counted(NamedTuple):
    """Numbers of one file."""

    sessions: int
    calls: int
    results: int
    failures: int  # results that the format itself calls failed


def count_inspect(path: Path) -> Counted:
    if path.suffix == ".eval":
        with zipfile.ZipFile(path) as archive:
            samples = [json.loads(archive.read(name)) for name in archive.namelist() if name.startswith("samples/")]
    else:
        samples = json.loads(path.read_text())["samples"]
    messages = [message for sample in samples for message in sample["messages"]]
    errors = [message["error"]["type"] for message in messages if message.get("error")]
    return Counted(
        len(samples),
        sum(len(message.get("tool_calls") or ()) for message in messages),
        sum(message["role"] == "tool" for message in messages),
        sum(kind != "approval" for kind in errors),
    )


def count_openhands(path: Path) -> Counted:
    runs = [json.loads(line) for line in path.read_text().splitlines()]
    events = [event for run in runs for event in run["history"]]
    actions = [e for e in events if e.get("action") not in (None, "message", "system", "recall")]
    seen = [e for e in events if e.get("observation") not in (None, "recall")]
    failed = [e for e in seen if e["observation"] == "error" or e["extras"].get("metadata", {}).get("exit_code")]
    return Counted(len(runs), len(actions), len(seen), len(failed))


def count_swe_agent(path: Path) -> Counted:
    run = json.loads(path.read_text())
    if run.get("trajectory"):
        actions = [step for step in run["trajectory"] if step["action"].strip()]
        return Counted(1, len(actions), len(actions), 0)
    calls = sum(len(message.get("tool_calls") or ()) for message in run["history"])
    return Counted(1, calls, sum(message["role"] == "tool" for message in run["history"]), 0)


def walk(spans: list[Any], agents: int = 0) -> Iterator[tuple[Any, int]]:
    for span in spans:
        inside = agents + (span["span_attributes"].get("openinference.span.kind") == "AGENT")
        yield span, inside
        yield from walk(span.get("child_spans") or [], inside)


def count_spans(path: Path) -> Counted:
    """Count tool spans, written tool calls without one, and steps whose model wrote code."""
    found = walk(json.loads(path.read_text())["spans"])
    spans = list({span["span_id"]: (span, agents) for span, agents in found}.values())  # one file holds a span twice
    kinds = [(span["span_attributes"].get("openinference.span.kind"), span) for span, _agents in spans]
    tools = [span for kind, span in kinds if kind == "TOOL"]
    written = [
        (span["parent_span_id"], value)
        for kind, span in kinds
        if kind == "LLM"
        for key, value in span["span_attributes"].items()
        if key.startswith("llm.output_messages") and key.endswith("tool_call.function.name")
    ]
    for tool in tools:  # a call that a model wrote and a tool ran in the same step is one call
        ran_as = (tool["parent_span_id"], tool["span_attributes"]["tool.name"])
        if ran_as in written:
            written.remove(ran_as)
    steps = {span["span_id"]: span for _kind, span in kinds if span["span_name"].startswith("Step ")}
    texts = [
        (span["parent_span_id"], span["span_attributes"].get("llm.output_messages.0.message.content", ""))
        for kind, span in kinds
        if kind == "LLM"
    ]
    coded = [parent for parent, text in texts if parent in steps and "```py" in (text or "")]
    ran = [steps[parent] for parent in coded]
    failed = sum(span["status_code"] == "Error" for span in [*tools, *ran])
    sessions = 1 + sum(
        agents > 1 for span, agents in spans if span["span_attributes"].get("openinference.span.kind") == "AGENT"
    )
    return Counted(sessions, len(tools) + len(written) + len(coded), len(tools) + len(ran), failed)


PLAIN: dict[str, Callable[[Path], Counted]] = {
    "inspect": count_inspect,
    "openhands": count_openhands,
    "swe_agent": count_swe_agent,
    "otel": count_spans,
}


def count_read(path: Path) -> tuple[str, Counted]:
    """Count what Warmstart reads. Failures are those that the format itself marks."""
    failures = 0

    def judge(call: ToolCall | None, text: str, signal: Signal | None) -> Outcome:
        nonlocal failures
        failures += signal is not None and bool(signal.failed or signal.exit_code or signal.status == "error")
        return UNKNOWN

    source = Source(path)
    reader = formats.detect(source)
    sessions = list(reader.read(source, judge))
    assert source.problems == []
    steps = [step for session in sessions for step in session.steps]
    calls = sum(isinstance(step, ToolCall) for step in steps)
    results = sum(isinstance(step, ToolResult) for step in steps)
    return reader.NAME, Counted(len(sessions), calls, results, failures)


@pytest.fixture(scope="module")
def more_formats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the samples of further formats, unpacked."""
    packed = CORPUS / "projects" / "formats.tar.zst"
    if not packed.exists():
        pytest.skip(NO_CORPUS)
    folder = tmp_path_factory.mktemp("formats")
    with packed.open("rb") as file:
        reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(file)
        with tarfile.open(fileobj=reader, mode="r|") as archive:
            archive.extractall(folder, filter="data")
    return folder / "formats"


def check(folder: Path, name: str) -> Counted:
    totals = [Counted(0, 0, 0, 0)]
    files = [path for path in sorted(folder.iterdir()) if path.name != "LICENSE"]
    for path in files:
        found, counted = count_read(path)
        assert found == name, path.name
        assert counted == PLAIN[name](path), path.name
        totals.append(counted)
    return Counted(*map(sum, zip(*totals, strict=True)))


@pytest.mark.parametrize(
    ("folder", "name", "expected"),
    [("inspect", "inspect", Counted(34, 5, 16, 10)), ("swe_agent", "swe_agent", Counted(22, 232, 232, 0))],
)
def test_counts_of_the_corpus(folder: str, name: str, expected: Counted) -> None:
    if not CORPUS.is_dir():
        pytest.skip(NO_CORPUS)
    assert check(CORPUS / folder, name) == expected


@pytest.mark.parametrize(
    ("folder", "name", "expected"),
    [
        ("inspect", "inspect", Counted(216, 0, 0, 0)),
        ("openhands", "openhands", Counted(3, 105, 105, 21)),
        ("openinference", "otel", Counted(21, 94, 93, 9)),
    ],
)
def test_counts_of_further_formats(folder: str, name: str, expected: Counted, more_formats: Path) -> None:
    assert check(more_formats / folder, name) == expected
