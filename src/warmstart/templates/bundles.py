"""Templates as files: our own bundle, and the JSON that earlier tools of this kind left.

What is read is foreign until a person says otherwise: every field is looked at before it is used, every text is
bounded, nothing arrives active. One bad entry is a Problem; the others are read.

A bundle reads back the same: every field of a template and of its examples but `status`, `used` and the provenance's
`origin` and `source`, which say how it stands in a store and not what it is. What is read is "proposed", unused and
"imported". Only texts of more than twice the length that learning keeps are shortened on the way.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, get_args

import msgspec
from msgspec import Struct, structs

from warmstart.errors import BadName, SourceError, UnknownFormat
from warmstart.excerpt import ARGUMENT, MESSAGE, RESULT, cut, cut_value
from warmstart.formats import Source, find_files
from warmstart.formats.fields import count_of, parse_arguments, parse_time, string_of, text_of
from warmstart.formats.lenient import DECODE_ERRORS, Scanner, loose_values, scrub
from warmstart.formats.openai_chat import from_messages
from warmstart.model import Arguments, Category, Example, Message, Problem, Provenance, TaskType, Template, ToolCall
from warmstart.names import check_name, name_key
from warmstart.ports import Judge

__all__ = ["MAX_BYTES", "VERSION", "Bundle", "clean_value", "read_bundle", "read_bundles"]

VERSION = 1
MAX_BYTES = 64 << 20  # of one file
_MAX_ENTRY = 8 << 20  # bytes of one template: what is decoded at once
_MAX_TEMPLATES, _MAX_EXAMPLES, _MAX_PROBLEMS = 10_000, 50, 1_000
_MAX_PIECES = 50_000  # of a file that is taken apart
_INTENT, _TASK, _DESCRIPTION, _ADDENDUM, _NOTE = 300, 1_200, 500, MESSAGE, 400  # characters
_TAG, _TAGS, _ID, _IDS, _NOTES = 40, 20, 200, 1_000, 20
_MAX_ARGUMENTS = 256 << 10  # bytes; a call that large is no example
_GAP = 60  # characters by which a cut may exceed its limit: it tells how much was left out
_DEEPEST = 16
_SUFFIXES = frozenset((".json", ".jsonl", ".ndjson", ".zst"))
_CONTENTS = ("examples", "seed_messages", "system_prompt_addendum", "addendum")  # one of them makes a template
_ARRAYS = frozenset(("templates", "examples", "seed_messages"))
_FLAGS = {"true": True, "false": False, "1": True, "0": False}


class Bundle(Struct, frozen=True):
    """The templates of one or several files, and what could not be read of them."""

    templates: tuple[Template, ...]
    problems: tuple[Problem, ...]


class _Entry(NamedTuple):
    value: Any
    name: str = ""  # what the file calls it, where it is a mapping of names
    line: int | None = None


def read_bundle(data: bytes, source: str, judge: Judge) -> Bundle:
    """The templates of a file's bytes, in any known layout. `source` is the file's name, kept as provenance.

    Raises SourceError for what cannot be read at all and UnknownFormat where there is no template in it."""
    reading = _Reading(judge)
    reading.take(data, source)
    return reading.bundle()


def read_bundles(path: Path, judge: Judge) -> Bundle:
    """The templates of a file or of every JSON file below a folder, where files of other kinds are passed over."""
    reading = _Reading(judge)
    named = not path.is_dir()
    for file in find_files(path):
        if not named and file.suffix.lower() not in _SUFFIXES:
            continue
        source = Source(file)
        try:
            reading.take(_read(source), source.shown)
        except SourceError as error:
            if named:
                raise
            if not isinstance(error, UnknownFormat):
                reading.problems.append(Problem(source.shown, error.reason, error.line))
        reading.problems += source.problems
    return reading.bundle()


def _read(source: Source) -> bytes:
    with source.open() as stream:
        try:
            return stream.read(MAX_BYTES + 1)
        except OSError as error:
            raise SourceError(source.shown, (error.strerror or str(error)).lower()) from error


class _Reading:
    """Gathers templates of one file or many; no two of them have names that could be taken for each other."""

    def __init__(self, judge: Judge) -> None:
        self.problems: list[Problem] = []
        self._templates: list[Template] = []
        self._judge = judge
        self._source = ""
        self._known = False  # the file, or an entry in it, is of a kind we know
        self._spelled: dict[str, str] = {}
        self._seen: set[tuple[str, int]] = set()

    def bundle(self) -> Bundle:
        if len(self.problems) > _MAX_PROBLEMS:
            more = Problem(self._source, f"more than {_MAX_PROBLEMS} problems; the rest is not listed")
            self.problems[_MAX_PROBLEMS:] = [more]
        return Bundle(tuple(self._templates), tuple(self.problems))

    def take(self, data: bytes, source: str) -> None:
        if len(data) > MAX_BYTES:
            raise SourceError(source, f"larger than {MAX_BYTES >> 20} MB")
        if not data.strip():
            raise UnknownFormat(source, "the file is empty")
        self._source = scrub(source)
        self._known = False
        before = len(self.problems)
        for number, entry in enumerate(self._entries(data.removeprefix(b"\xef\xbb\xbf")), 1):
            if number > _MAX_TEMPLATES:
                self._tell(f"more than {_MAX_TEMPLATES} templates; the rest was left out", entry.line)
                break
            self._entry(entry, f"template {number}")
        if not self._known:
            told = self.problems[before:]
            del self.problems[before:]
            broken = next((problem for problem in told if not problem.reason.startswith("template ")), None)
            if broken:
                raise SourceError(source, broken.reason, broken.line)
            raise UnknownFormat(source, "there is no template in it")

    def _tell(self, reason: str, line: int | None = None) -> None:
        if len(self.problems) <= _MAX_PROBLEMS:
            self.problems.append(Problem(self._source, reason, line))

    # From bytes to entries: whole where it is sound and small, else piece by piece, so that one bad piece costs no other.

    def _entries(self, data: bytes) -> Iterator[_Entry]:
        if len(data) <= _MAX_ENTRY:
            try:
                whole = msgspec.json.decode(data)
            except DECODE_ERRORS:
                pass
            else:
                yield from self._unfold(whole)
                return
        yield from self._lines(data) if _is_by_line(data) else self._pieces(data)

    def _unfold(self, value: Any, line: int | None = None) -> Iterator[_Entry]:
        """The entries of a document: a template, a list of them, a mapping of names, or any of these in `templates`."""
        if isinstance(value, list):
            yield from (_Entry(item, line=line) for item in value)
        elif _is_template(value):
            yield _Entry(value, line=line)
        elif isinstance(value, dict):
            self._check_version(value)
            inner = value.get("templates")
            if isinstance(inner, list) or (isinstance(inner, dict) and not _is_template(inner)):
                self._known = True
                yield from self._unfold(inner, line)
            elif any(map(_is_template, value.values())):
                yield from (_Entry(item, name, line) for name, item in value.items())

    def _check_version(self, facts: dict[str, Any]) -> None:
        version = facts.get("warmstart")
        self._known = self._known or version is not None
        if isinstance(version, int) and version > VERSION:
            raise SourceError(self._source, f"a bundle of version {version}; this Warmstart reads {VERSION}")

    def _lines(self, data: bytes) -> Iterator[_Entry]:
        for number, line in enumerate(io.BytesIO(data), 1):
            if number > _MAX_PIECES:
                self._tell(f"more than {_MAX_PIECES} lines; the rest was left out", number)
                break
            for value in self._decode(line, number):
                if isinstance(value, list) or (isinstance(value, dict) and "templates" in value):
                    yield from self._unfold(value, number)
                else:
                    yield _Entry(value, line=number)

    def _pieces(self, data: bytes) -> Iterator[_Entry]:
        facts: dict[str, Any] = {}  # of a document that is one template, or a mapping
        scanner = Scanner(io.BytesIO(data).read, lambda line, reason: self._tell(reason, line))
        for number, (key, raw, line) in enumerate(scanner.pieces(_ARRAYS)):
            if number == _MAX_PIECES:
                self._tell(f"more than {_MAX_PIECES} pieces; the rest was left out", line)
                break
            for value in self._decode(raw, line):
                if key == "templates" and isinstance(value, dict) and any(map(_is_template, value.values())):
                    yield from self._unfold({key: value}, line)
                elif key in ("", "templates"):
                    self._known = self._known or key != ""
                    yield _Entry(value, line=line)
                elif key in _ARRAYS:
                    facts.setdefault(key, []).append(value)
                else:
                    facts[key] = value
            self._check_version(facts)
        yield from self._unfold(facts)

    def _decode(self, raw: bytes, line: int) -> list[Any]:
        values, wrong = _decode(raw)
        if wrong:
            self._tell(wrong, line)
        return values

    # From an entry to a template.

    def _entry(self, entry: _Entry, where: str) -> None:
        value, line = entry.value, entry.line
        if not _is_template(value):
            self._tell(f"{where}: neither examples nor messages in it", line)
            return
        self._known = True
        name = string_of(value.get("name")) or entry.name
        version = max(1, _whole(value.get("version"), 1))
        try:
            name = check_name(name)
        except BadName as error:
            self._tell(f"{where}: {error}", line)
            return
        where = f"{where} ({name})"
        key = name_key(name)
        spelled = self._spelled.get(key, name)
        if spelled != name or (key, version) in self._seen:
            wrong = f"its name is too like that of {spelled!r}" if spelled != name else "it is there twice"
            self._tell(f"{where}: {wrong}", line)
            return
        examples = tuple(self._examples(value, where, line))
        template = _template(value, name, version, examples)
        if not examples and not template.addendum and not _is_own(value):
            self._tell(f"{where}: no example that worked; left out", line)
            return
        self._spelled[key] = name
        self._seen.add((key, version))
        provenance = _provenance(value.get("provenance"), self._source)
        self._templates.append(structs.replace(template, provenance=provenance))

    def _examples(self, value: dict[str, Any], where: str, line: int | None) -> Iterator[Example]:
        is_ours = _is_own(value)
        records, messages = value.get("examples"), value.get("seed_messages")
        if not records and isinstance(messages, list):
            records, is_ours = self._from_messages(messages), True
        if not isinstance(records, list):
            if records is not None:
                self._tell(f"{where}: its examples are no list", line)
            return
        sessions = _sessions(value)
        session = sessions[0] if len(sessions) == 1 and not is_ours else ""
        failed = taken = 0
        for number, record in enumerate(records, 1):
            if taken == _MAX_EXAMPLES:
                self._tell(f"{where}: the examples after number {number - 1} were left out", line)
                break
            wrong = _wrong_example(record)
            if wrong:
                self._tell(f"{where}, example {number}: {wrong}", line)
            elif not self._worked(record, is_ours):
                failed += 1
            elif example := _example(record, is_ours, session):
                taken += 1
                yield example
            else:
                self._tell(f"{where}, example {number}: its arguments are too large", line)
        if failed:
            self._tell(f"{where}: {failed} calls that did not work were left out", line)

    def _worked(self, record: dict[str, Any], is_ours: bool) -> bool:
        """As the record says, or else as its result reads; our own bundles hold nothing else."""
        flag = _pick(record, "success", "result_success")
        known = flag if isinstance(flag, bool) else _FLAGS.get(string_of(flag).lower())
        if known is not None or is_ours:
            return known is not False
        call = ToolCall("", _tool(record), clean_value(parse_arguments(record.get("arguments"))))
        return self._judge(call, _result(record), None).status == "ok"

    def _from_messages(self, messages: list[Any]) -> list[dict[str, Any]]:
        """Each call of a conversation as the record of an example; what was said last before it is its intent."""
        session = from_messages([message for message in messages if isinstance(message, dict)], self._judge)
        pairs = iter(session.calls())
        records: list[dict[str, Any]] = []
        said = ""
        for step in session.steps:
            if isinstance(step, Message) and step.role != "system":
                said = step.text
            elif isinstance(step, ToolCall):
                call, answer = next(pairs)
                record: dict[str, Any] = {"tool": call.tool, "arguments": call.arguments, "intent": said}
                record |= {"task": session.task, "step": len(records), "result": answer.text if answer else ""}
                record["success"] = answer is not None and answer.outcome.status == "ok"
                records.append(record)
        return records


def _is_template(value: Any) -> bool:
    return isinstance(value, dict) and any(key in value and not isinstance(value[key], dict) for key in _CONTENTS)


def _is_own(value: dict[str, Any]) -> bool:
    """Whether we wrote it: only we keep a provenance. Its excerpts are cut already, which makes them a little longer."""
    return isinstance(value.get("provenance"), dict)


def _pick(record: dict[str, Any], *keys: str) -> Any:
    """What stands under the first of the keys that says something."""
    return next((record[key] for key in keys if record.get(key) not in (None, "", [])), None)


def _is_by_line(data: bytes) -> bool:
    lines = [line for line in islice(io.BytesIO(data), 20) if line.strip()][:5]
    if len(lines) < 2 or lines[0].strip() == b"[":
        return False
    return sum(isinstance(value, dict) for line in lines for value in _decode(line)[0]) * 2 >= len(lines)


def _decode(raw: bytes) -> tuple[list[Any], str | None]:
    if len(raw) > _MAX_ENTRY:
        return [], f"a piece of more than {_MAX_ENTRY >> 20} MB was left out"
    try:
        return [msgspec.json.decode(raw)], None
    except DECODE_ERRORS:
        pass
    try:
        return loose_values(raw)
    except ValueError:
        return [], "a number too long to read"


def _template(value: dict[str, Any], name: str, version: int, examples: tuple[Example, ...]) -> Template:
    is_ours = _is_own(value)
    tags = value.get("tags")
    category, task_type = string_of(value.get("category")).lower(), string_of(value.get("task_type")).lower()
    return Template(
        name=name,
        version=version,
        category=category if category in get_args(Category) else "general",  # type: ignore[arg-type]
        task_type=task_type if task_type in get_args(TaskType) else "mixed",  # type: ignore[arg-type]
        description=_bound(string_of(value.get("description")), _DESCRIPTION, is_ours),
        tags=_texts(re.split(r"\s*,\s*", tags.strip()) if isinstance(tags, str) else tags, _TAG, _TAGS),
        addendum=_bound(string_of(_pick(value, "addendum", "system_prompt_addendum")), _ADDENDUM, is_ours),
        examples=examples,
        source_sessions=_sessions(value),
        created=parse_time(_pick(value, "created", "created_at")),
    )


def _provenance(record: Any, source: str) -> Provenance:
    known: dict[str, Any] = record if isinstance(record, dict) else {}
    facts = {key: string_of(known.get(key))[:_NOTE] or None for key in ("project", "agent", "parent")}
    suspicions = _texts(known.get("suspicions"), _NOTE, _NOTES)
    return Provenance(origin="imported", source=source, suspicions=suspicions, **facts)


def _sessions(value: dict[str, Any]) -> tuple[str, ...]:
    found = _pick(value, "source_sessions", "source_session_ids", "source_session_id")
    return _texts(found if isinstance(found, list) else [found], _ID, _IDS)


def _tool(record: dict[str, Any]) -> str:
    return string_of(_pick(record, "tool", "tool_name"))[:_ID]


def _result(record: dict[str, Any]) -> str:
    return _said(_pick(record, "result", "result_summary"))


def _wrong_example(record: Any) -> str | None:
    if not isinstance(record, dict):
        return "it is no object"
    return None if _tool(record).strip() else "it names no tool"


def _example(record: dict[str, Any], is_ours: bool, session: str) -> Example | None:
    arguments = _arguments(record.get("arguments"), is_ours)
    if arguments is None:
        return None
    return Example(
        tool=_tool(record),
        arguments=arguments,
        result=_bound(_result(record), RESULT, is_ours),
        intent=_bound(string_of(_pick(record, "intent", "context_hint")), _INTENT, is_ours),
        task=_bound(string_of(record.get("task")), _TASK, is_ours),
        correction=_bound(string_of(record.get("correction")), _NOTE, is_ours) or None,
        why=_bound(string_of(record.get("why")), _NOTE, is_ours),
        session=string_of(record.get("session"))[:_ID] or session,
        step=count_of(_pick(record, "step", "turn_number")),
        support=_whole(record.get("support"), 1),
        successes=_whole(record.get("successes"), 1),
        failures=_whole(record.get("failures"), 0),
    )


def _arguments(value: Any, is_ours: bool) -> Arguments | None:
    """As JSON says them, or as JSON text says them; None where they are too large."""
    if not isinstance(value, (dict, str, type(None))):
        value = _said(value)
    parsed = clean_value(value if is_ours and isinstance(value, str) else parse_arguments(value))
    kept: Arguments = parsed if is_ours and _fits(parsed) else cut_value(parsed, ARGUMENT - _GAP)
    return kept if len(json.dumps(kept)) <= _MAX_ARGUMENTS else None


def _said(value: Any) -> str:
    """A result as text: some tools left it as JSON."""
    if isinstance(value, str):
        return value
    value = clean_value(value)
    if isinstance(value, list) and value and all(isinstance(part, dict) and "type" in part for part in value):
        return text_of(value)
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def clean_value(value: Any, depth: int = 0) -> Any:
    """What every JSON writer takes: nothing endless, nothing too deep."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if not isinstance(value, (dict, list, tuple)):
        return value
    if depth >= _DEEPEST:
        return "[...]"
    if isinstance(value, dict):
        return {key: clean_value(item, depth + 1) for key, item in value.items()}
    return [clean_value(item, depth + 1) for item in value]


def _fits(value: Any) -> bool:
    """Whether it may have been shortened before: what a cut or a placeholder adds must not be cut again."""
    if isinstance(value, str):
        return len(value) <= 2 * ARGUMENT
    if isinstance(value, (dict, list)):
        return len(value) <= 400 and all(map(_fits, value.values() if isinstance(value, dict) else value))
    return True


def _bound(text: str, limit: int, is_ours: bool) -> str:
    return text if len(text) <= (2 * limit if is_ours else limit) else cut(text, limit - _GAP)


def _texts(values: Any, limit: int, most: int) -> tuple[str, ...]:
    found = (string_of(value)[:limit] for value in (values if isinstance(values, list) else ()))
    return tuple(islice((text for text in found if text.strip()), most))


def _whole(value: Any, otherwise: int) -> int:
    known = count_of(int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 10 else value)
    return otherwise if known is None else known
