"""OpenHands: `output.jsonl` of an evaluation (a run per line), an exported list of events, or a stored conversation.

Events of V0 and V1 are read. A failed command has `exit_code` other than 0; an edit that failed says so only in its text.
A conversation of the V1 command line is the folder of `base_state.json`: its `events/*.json` are read with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from warmstart.errors import SourceError
from warmstart.formats.chat import decode_whole, digest, split_records
from warmstart.formats.fields import dict_of, parse_time, string_of
from warmstart.formats.labels import as_label
from warmstart.formats.openhands_events import EventReader, OpenHandsEvent, is_event, read_metrics
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source, SourceHead, is_list
from warmstart.model import Session
from warmstart.ports import Judge

NAME = "openhands"

_MAX_EVENTS = 100_000  # files of one conversation
_MAX_REASON = 200
_NONE = msgspec.Raw()


class _Run(msgspec.Struct, gc=False):
    """A line of `output.jsonl`, or the facts of a stored conversation."""

    instance_id: Any = None
    id: Any = None
    metadata: Any = None
    metrics: Any = None
    stats: Any = None
    error: Any = None
    test_result: Any = None
    report: Any = None
    agent: Any = None
    workspace: Any = None
    execution_status: Any = None
    start_time: Any = None
    history: msgspec.Raw = _NONE


_run = msgspec.json.Decoder(_Run)
_event = msgspec.json.Decoder(OpenHandsEvent)
_raw_list = msgspec.json.Decoder(list[msgspec.Raw])
_any = msgspec.json.Decoder(Any)
_FACTS = frozenset(_Run.__struct_fields__) - {"history"}


def sniff(head: SourceHead) -> bool:
    first = head.first
    if is_event(first):
        return head.root in ("list", "lines")
    return _is_run(first) or (head.root == "object" and _is_state(first))


def _is_run(record: dict[str, Any]) -> bool:
    history = record.get("history")
    if "instance_id" not in record or not isinstance(history, list) or not history:
        return False
    first = history[0][0] if isinstance(history[0], list) and history[0] else history[0]
    return is_event(first)


def _is_state(record: dict[str, Any]) -> bool:
    return "usage_to_metrics" in dict_of(record.get("stats")) and "workspace" in record and "agent" in record


def read(source: Source, judge: Judge) -> Iterator[Session]:
    if source.head.root == "object" and _is_state(source.head.first):
        yield from _read_conversation(source, judge)
        return
    records = split_records(source)
    if records is None:
        yield from _read_document(source, judge)
        return
    exported = _RunReader(source, judge)
    for raw, fragment, line in records:
        for run in decode_whole(source, raw, _run, line):
            if not is_list(run.history):
                exported.take(raw, line)
                continue
            reader = _RunReader(source, judge)
            for piece in source.decode(run.history, _raw_list, line) or ():
                reader.take(piece, line)
            reader.draft.fragment = fragment
            yield from reader.sessions(run, digest(raw)[1:9])
    yield from exported.sessions(_Run(), "")


def _read_document(source: Source, judge: Judge) -> Iterator[Session]:
    """Read one run that is the whole file, an event at a time."""
    reader = _RunReader(source, judge)
    facts: dict[str, Any] = {}
    beginning = b""
    for key, raw, line in source.walk("history"):
        if key == "history":
            beginning = beginning or bytes(raw)
            reader.take(raw, line)
        elif key in _FACTS:
            facts[key] = source.decode(raw, _any, line)
    yield from reader.sessions(msgspec.convert(facts, _Run), digest(beginning)[1:9])


def _read_conversation(source: Source, judge: Judge) -> Iterator[Session]:
    """Read a stored conversation: its state, and the events beside it."""
    reader = _RunReader(source, judge)
    try:
        files = sorted(path for path in (source.path.parent / "events").glob("*.json") if path.is_file())
    except OSError as error:
        source.report(f"the events of the conversation cannot be listed: {error}")
        files = []
    if len(files) > _MAX_EVENTS:
        source.report(f"{len(files) - _MAX_EVENTS} events of the conversation were left out")
    for path in files[:_MAX_EVENTS]:
        event = Source(path)
        try:
            with event.open() as stream:
                reader.take(stream.read(), None)
        except (SourceError, OSError) as error:
            source.report(f"an event of the conversation cannot be read: {error}")
    facts = {key: source.decode(raw, _any, line) for key, raw, line in source.walk() if key in _FACTS}
    yield from reader.sessions(msgspec.convert(facts, _Run), "")


class _RunReader:
    def __init__(self, source: Source, judge: Judge) -> None:
        self.draft = SessionBuilder(source, judge, format=NAME, agent="openhands")
        self._source = source
        self._events = EventReader(self.draft)
        self._model: str | None = None

    def take(self, raw: bytes | msgspec.Raw, line: int | None) -> None:
        """Add an event; old versions kept them in pairs of action and observation."""
        if bytes(memoryview(raw)[:64]).lstrip().startswith(b"["):
            for piece in self._source.decode(raw, _raw_list, line) or ():
                self.take(piece, line) if not is_list(piece) else None
        elif event := self._source.decode(raw, _event, line):
            self._events.take(event)

    def sessions(self, run: _Run, mark: str) -> Iterator[Session]:
        """Yield the session with the facts of its run. `mark` tells runs of the same task apart."""
        draft = self.draft
        if draft.empty:
            return
        name = string_of(run.instance_id)
        draft.id = f"{name}-{mark}" if name and mark else name or string_of(run.id)
        metadata, agent = dict_of(run.metadata), dict_of(run.agent)
        model = dict_of(metadata.get("llm_config", metadata.get("llm"))).get("model") or dict_of(agent.get("llm")).get(
            "model"
        )
        draft.model = model if isinstance(model, str) else draft.model
        folder = dict_of(run.workspace).get("working_dir")
        draft.project = folder if isinstance(folder, str) and folder else draft.project
        draft.usage = read_metrics(dict_of(run.metrics))
        for spent in dict_of(dict_of(run.stats).get("usage_to_metrics")).values():
            if usage := read_metrics(dict_of(spent)):
                draft.spend(usage, string_of(dict_of(spent).get("model_name")) or None, draft.ended)
        tested = dict_of(run.test_result)
        verdicts = (holder.get("resolved") for holder in (tested, dict_of(tested.get("report")), dict_of(run.report)))
        draft.label = next((label for value in verdicts if (label := as_label(value)) is not None), None)
        draft.end_reason = (string_of(run.error) or string_of(run.execution_status))[:_MAX_REASON] or None
        if draft.started is None:
            draft.started = parse_time(run.start_time)
        yield draft.close()
