"""Read and redact recorded sessions and split them into halves that share no task.

Templates of one half are tried on the other. Sessions of one task, as far as `ties` can see, are in the same half for every
random seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from warmstart.arms import draw
from warmstart.config import Settings
from warmstart.dialects.providers import clean
from warmstart.errors import SourceError
from warmstart.formats.source import Source
from warmstart.ingest.read import scan
from warmstart.ingest.records import TASK, Record, Recorder, session_key
from warmstart.ingest.sources import find_sources
from warmstart.lab.models.tool_calls import as_object, is_sayable
from warmstart.lab.replay.match import RecordedCall
from warmstart.lab.replay.ties import Traces, join, task_in_id, trace_values, trace_wording
from warmstart.model import PastSession, Problem, Session
from warmstart.ports import Progress
from warmstart.redact import Redactor
from warmstart.seeds.provision import task_digest
from warmstart.store.history import decode_session

NO_REQUEST = "no request of a user"
STARTED = "started by another session"
NO_SUCCESS = "no call that worked"
NO_NAME = "its tools have names that the endpoint's protocol does not allow"
UNREADABLE = "its record cannot be read"

_MOST_ARGUMENTS = 32  # per tool: more are data, not names
_MOST_TOOLS = 40  # offered: endpoints accept few more, and each costs tokens in every request
_JSON_TYPES = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)


class Recording(Struct, frozen=True, kw_only=True):
    """A recorded session with all that a replay needs, redacted."""

    name: str  # made from its key
    agent: str
    half: int  # 1 or 2; it is replayed with templates of the other half
    family: str  # the same for sessions of one task
    task: str  # the user's first request
    calls: tuple[RecordedCall, ...]
    project: str | None = None

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that it called."""
        return tuple(sorted({call.tool for call in self.calls}))


class RecordingSet(Struct, frozen=True, kw_only=True):
    """All sessions that were read."""

    records: dict[int, tuple[Record, ...]]  # by half, to learn from
    recordings: tuple[Recording, ...]  # to replay
    left_out: dict[str, int]  # reason -> sessions that are learned from if possible, but not replayed
    problems: tuple[Problem, ...]
    left_loose: int = 0  # rare things that both halves may share, because one task would have become too large


class _Read(Struct, frozen=True):
    """A session with its ties to others."""

    record: Record
    past: PastSession | None  # None: its record cannot be decoded
    request: str  # redacted
    traces: Traces


class Gatherer:
    """Reads transcripts for a replay."""

    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        self._tools = settings.tools
        self._recorder = Recorder(settings.secrets)
        self._redactor = Redactor(settings.secrets)
        self._clock = clock
        self._read: dict[str, _Read] = {}
        self._problems: list[Problem] = []

    def gather(self, paths: Iterable[Path | str], random_seed: int, progress: Progress | None = None) -> RecordingSet:
        """Read all sessions in these files and folders; unreadable ones become problems."""
        for done, source in enumerate(source for path in paths for source in self._sources(path)):
            if progress:
                progress(done, None, f"reading {self._recorder.name(source.path.name)}")
            for scored in scan(source, self._tools):
                self._take(scored.session, self._recorder.record(scored.session, scored.score, self._clock()))
            self._problems += [structs.replace(p, path=self._recorder.name(p.path)) for p in source.problems]
        joined = join({key: read.traces for key, read in self._read.items()})
        families = joined.families
        halves = split_families(families, random_seed)
        recordings: list[Recording] = []
        left_out: Counter[str] = Counter()
        for key, read in sorted(self._read.items()):
            recording = _make_recording(read, families[key], halves[families[key]])
            if isinstance(recording, str):
                left_out[recording] += 1
            else:
                recordings.append(recording)
        records = {
            half: tuple(read.record for key, read in sorted(self._read.items()) if halves[families[key]] == half)
            for half in (1, 2)
        }
        return RecordingSet(
            records=records,
            recordings=tuple(recordings),
            left_out=dict(left_out),
            problems=tuple(self._problems),
            left_loose=joined.left_loose,
        )

    def _sources(self, path: Path | str) -> Iterator[Source]:
        try:
            yield from find_sources(path, self._problems)
        except SourceError as error:
            self._problems.append(Problem(self._recorder.name(error.path), error.reason))

    def _take(self, session: Session, record: Record) -> None:
        """Keep a session; of a session in several files, keep the longest."""
        key = session_key(session)
        known = self._read.get(key)
        if known is None or known.record.session.length < record.session.length:
            past = decode_session(record.session, record.calls)
            request = self._request(session, record)
            traces = Traces(
                certain=tuple(_certain_ties(session)),
                values=trace_values(request, _calls_of(past) if past else ()),
                shingles=trace_wording(request),
            )
            self._read[key] = _Read(record, past, request, traces)

    def _request(self, session: Session, record: Record) -> str:
        """Return the whole request, redacted, even if the record keeps only its beginning."""
        task = session.task or ""
        kept = record.session.task or ""
        return clean(kept if len(task.strip()) <= TASK else self._redactor.scope().text(task)).strip()


def _certain_ties(session: Session) -> Iterator[str]:
    yield f"session {session.agent} {session.id}"
    if session.parent:
        yield f"session {session.agent} {session.parent}"
    if digest := task_digest(session.task or ""):
        yield f"task {digest}"
    if task := task_in_id(session.agent, session.id):
        yield f"task of {session.agent} {task}"


def split_families(families: Mapping[str, str], random_seed: int) -> dict[str, int]:
    """Return family -> half. In a random order, each family goes to the half with fewer sessions."""
    sizes = Counter(families.values())
    filled = {1: 0, 2: 0}
    halves: dict[str, int] = {}
    for family in sorted(sizes, key=lambda family: (draw(family, f"replay {random_seed}"), family)):
        half = min(filled, key=lambda half: (filled[half], half))
        halves[family] = half
        filled[half] += sizes[family]
    return halves


def _make_recording(read: _Read, family: str, half: int) -> Recording | str:
    """Return the session to replay, or the reason why it cannot be."""
    past = read.past
    if past is None:
        return UNREADABLE
    if past.parent:
        return STARTED
    if not read.request:
        return NO_REQUEST
    calls = _calls_of(past)
    if not any(call.status == "ok" for call in calls):
        return NO_SUCCESS
    sayable = tuple(call for call in calls if is_sayable(call.tool))
    if not any(call.status == "ok" for call in sayable):
        return NO_NAME
    return Recording(
        name=past.key[:16],
        agent=past.agent,
        half=half,
        family=family,
        task=read.request,
        calls=sayable,
        project=past.project,
    )


def _calls_of(past: PastSession) -> tuple[RecordedCall, ...]:
    return tuple(
        RecordedCall(
            tool=call.tool,
            arguments=as_object(call.arguments),
            result=clean(call.excerpt or ""),
            status=call.outcome.status,
        )
        for call in past.calls
    )


# The tools on offer

Schemas = Mapping[tuple[str, str], dict[str, Any]]  # (agent, tool) -> JSON schema of its arguments


def infer_schemas(recordings: Iterable[Recording]) -> Schemas:
    """Return argument names and JSON types of each agent's tools, from all recorded calls that did not fail.

    Failed calls serve only for tools that never worked: a wrong argument name is often why a call failed.
    """
    seen: dict[tuple[str, str], list[RecordedCall]] = {}
    for one in recordings:
        for call in one.calls:
            seen.setdefault((one.agent, call.tool), []).append(call)
    return {
        place: _infer([call.arguments for call in calls if call.status != "error"] or [c.arguments for c in calls])
        for place, calls in seen.items()
    }


class Toolbox:
    """The tools that sessions may call: all known tools of their agent, so that taking the right one is a choice."""

    def __init__(self, recordings: Sequence[Recording]) -> None:
        self._schemas = infer_schemas(recordings)
        self._used: dict[str, Counter[str]] = {}  # agent -> tool -> sessions
        for one in recordings:
            self._used.setdefault(one.agent, Counter()).update(one.tools)

    def names(self, recording: Recording) -> tuple[str, ...]:
        """Return the agent's tools, or if it has too many, the most used ones and the session's own. They are sorted by
        name: the order of use would give something away."""
        used = self._used[recording.agent]
        usual = sorted(used, key=lambda tool: (-used[tool], tool))[:_MOST_TOOLS]
        return tuple(sorted({*usual, *recording.tools}))

    def describe(self, recording: Recording) -> list[dict[str, Any]]:
        """Return the tools in the form endpoints take."""
        return [
            {"type": "function", "function": {"name": tool, "parameters": self._schemas[recording.agent, tool]}}
            for tool in self.names(recording)
        ]


def _infer(given: Sequence[dict[str, Any]]) -> dict[str, Any]:
    counts = Counter(name for arguments in given for name in arguments)
    names = sorted(sorted(counts), key=lambda name: -counts[name])[:_MOST_ARGUMENTS]
    properties: dict[str, Any] = {}
    for name in sorted(names):
        types = {_json_type(arguments[name]) for arguments in given if name in arguments} - {"null"}
        if types >= {"integer", "number"}:
            types -= {"integer"}
        properties[name] = {"type": types.pop()} if len(types) == 1 else {}
    required = [name for name in sorted(names) if counts[name] == len(given)]
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return schema | ({"required": required} if required else {})


def _json_type(value: Any) -> str:
    return next((name for kind, name in _JSON_TYPES if isinstance(value, kind)), "null")
