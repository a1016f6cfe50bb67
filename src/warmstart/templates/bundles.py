"""Read templates from files: Warmstart's own bundle, and the JSON layouts of three earlier tools.

A file is foreign until a person approves its templates: nothing arrives active. One bad entry is a Problem; the others
are read.

A bundle reads back the same: every field of a template and of its examples, except `status`, `used` and the
provenance's `origin` and `source`, which describe its place in a store. Imported templates are "proposed" and
"imported". Files of earlier tools also hold how often a template was used, which is kept. A text is cut only if it is
more than twice as long as the limit used in learning.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, structs

from warmstart.errors import BadName, SourceError, UnknownFormat
from warmstart.formats import Source, find_files
from warmstart.formats.fields import string_of
from warmstart.formats.lenient import DECODE_ERRORS, Scanner, loose_values, scrub
from warmstart.model import Example, Problem, Template
from warmstart.names import check_name, name_key
from warmstart.ports import Judge
from warmstart.templates.bundle_records import (
    BundleRecord,
    check_example,
    find_sessions,
    has_worked,
    is_own,
    is_template,
    read_example,
    read_provenance,
    read_template,
    records_of_messages,
)

VERSION = 1
MAX_BYTES = 64 << 20  # per file
_MAX_ENTRY = 8 << 20  # bytes decoded at once: one template
_MAX_TEMPLATES, _MAX_EXAMPLES, _MAX_PROBLEMS = 10_000, 50, 1_000
_MAX_PIECES = 50_000  # per file that is read piece by piece
_SUFFIXES = frozenset((".json", ".jsonl", ".ndjson", ".zst"))
_ARRAYS = frozenset(("templates", "examples", "seed_messages"))


class Bundle(Struct, frozen=True):
    """The templates of one or several files, and the parts that could not be read."""

    templates: tuple[Template, ...]
    problems: tuple[Problem, ...]


class _Entry(NamedTuple):
    value: Any
    name: str = ""  # its key, if the file maps names to templates
    line: int | None = None


def read_bundle(data: bytes, source: str, judge: Judge) -> Bundle:
    """Return the templates in the bytes of a file. `source` is the file's name, kept as provenance.

    Raises SourceError if the file cannot be read at all, and UnknownFormat if it holds no template.
    """
    reading = _Reading(judge)
    reading.take(data, source)
    return reading.bundle()


def read_bundles(path: Path, judge: Judge) -> Bundle:
    """Return the templates of a file, or of every JSON file below a folder."""
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
    """Collects the templates of one or several files. No two of them have names that look alike."""

    def __init__(self, judge: Judge) -> None:
        self.problems: list[Problem] = []
        self._templates: list[Template] = []
        self._judge = judge
        self._source = ""
        self._known = False  # whether the file, or an entry in it, is of a known kind
        self._spelled: dict[str, str] = {}
        self._seen: set[tuple[str, int]] = set()

    def bundle(self) -> Bundle:
        if len(self.problems) > _MAX_PROBLEMS:
            more = Problem(self._source, f"more than {_MAX_PROBLEMS} problems; the rest is not listed")
            self.problems[_MAX_PROBLEMS:] = [more]
        return Bundle(tuple(self._templates), tuple(self.problems))

    def take(self, data: bytes, source: str) -> None:
        """Read one file."""
        if len(data) > MAX_BYTES:
            raise SourceError(source, f"larger than {MAX_BYTES >> 20} MB")
        if not data.strip():
            raise UnknownFormat(source, "the file is empty")
        self._source = scrub(source)
        self._known = False
        before = len(self.problems)
        for number, entry in enumerate(self._split(data.removeprefix(b"\xef\xbb\xbf")), 1):
            if number > _MAX_TEMPLATES:
                self._report(f"more than {_MAX_TEMPLATES} templates; the rest was left out", entry.line)
                break
            self._add(entry, f"template {number}")
        if not self._known:
            problems = self.problems[before:]
            del self.problems[before:]
            broken = next((problem for problem in problems if not problem.reason.startswith("template ")), None)
            if broken:
                raise SourceError(source, broken.reason, broken.line)
            raise UnknownFormat(source, "the file holds no template")

    def _report(self, reason: str, line: int | None = None) -> None:
        if len(self.problems) <= _MAX_PROBLEMS:
            self.problems.append(Problem(self._source, reason, line))

    # From bytes to entries: at once if the file is sound and small, else piece by piece, so that a bad piece costs no other.

    def _split(self, data: bytes) -> Iterator[_Entry]:
        if len(data) <= _MAX_ENTRY:
            try:
                document = msgspec.json.decode(data)
            except DECODE_ERRORS:
                pass
            else:
                yield from self._unfold(document)
                return
        yield from self._split_lines(data) if _is_by_line(data) else self._split_pieces(data)

    def _unfold(self, value: Any, line: int | None = None) -> Iterator[_Entry]:
        """Yield the entries of a document: a template, a list of them, a mapping by name, or any of these in `templates`."""
        if isinstance(value, list):
            yield from (_Entry(item, line=line) for item in value)
        elif is_template(value):
            yield _Entry(value, line=line)
        elif isinstance(value, dict):
            self._check_version(value)
            inner = value.get("templates")
            if isinstance(inner, list) or (isinstance(inner, dict) and not is_template(inner)):
                self._known = True
                yield from self._unfold(inner, line)
            elif any(map(is_template, value.values())):
                yield from (_Entry(item, name, line) for name, item in value.items())

    def _check_version(self, facts: dict[str, Any]) -> None:
        version = facts.get("warmstart")
        self._known = self._known or version is not None
        if isinstance(version, int) and version > VERSION:
            raise SourceError(
                self._source,
                f"a bundle of version {version}; this Warmstart reads version {VERSION}. Upgrade Warmstart",
            )

    def _split_lines(self, data: bytes) -> Iterator[_Entry]:
        for number, line in enumerate(io.BytesIO(data), 1):
            if number > _MAX_PIECES:
                self._report(f"more than {_MAX_PIECES} lines; the rest was left out", number)
                break
            for value in self._decode(line, number):
                if isinstance(value, list) or (isinstance(value, dict) and "templates" in value):
                    yield from self._unfold(value, number)
                else:
                    yield _Entry(value, line=number)

    def _split_pieces(self, data: bytes) -> Iterator[_Entry]:
        facts: dict[str, Any] = {}  # of a document that is one template, or a mapping
        scanner = Scanner(io.BytesIO(data).read, lambda line, reason: self._report(reason, line))
        for number, (key, raw, line) in enumerate(scanner.pieces(_ARRAYS)):
            if number == _MAX_PIECES:
                self._report(f"more than {_MAX_PIECES} pieces; the rest was left out", line)
                break
            for value in self._decode(raw, line):
                if key == "templates" and isinstance(value, dict) and any(map(is_template, value.values())):
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
        values, problem = _decode(raw)
        if problem:
            self._report(problem, line)
        return values

    # From an entry to a template.

    def _add(self, entry: _Entry, where: str) -> None:
        value, line = entry.value, entry.line
        if not is_template(value):
            self._report(f"{where}: it has neither examples nor messages", line)
            return
        self._known = True
        version = max(1, BundleRecord(value, own=False).number("version", 1))
        try:
            name = check_name(string_of(value.get("name")) or entry.name)
        except BadName as error:
            self._report(f"{where}: {error}", line)
            return
        where = f"{where} ({name})"
        key = name_key(name)
        spelled = self._spelled.get(key, name)
        if spelled != name or (key, version) in self._seen:
            problem = f"its name looks like {spelled!r}" if spelled != name else f"version {version} appears twice"
            self._report(f"{where}: {problem}", line)
            return
        examples = tuple(self._read_examples(value, where, line))
        template = read_template(value, name, version, examples)
        if not examples and not template.addendum and not is_own(value):
            self._report(f"{where}: left out, because it has no example that worked", line)
            return
        self._spelled[key] = name
        self._seen.add((key, version))
        provenance = read_provenance(value.get("provenance"), self._source)
        self._templates.append(structs.replace(template, provenance=provenance))

    def _read_examples(self, value: dict[str, Any], where: str, line: int | None) -> Iterator[Example]:
        own = is_own(value)
        records, messages = value.get("examples"), value.get("seed_messages")
        if not records and isinstance(messages, list):
            records, own = records_of_messages(messages, self._judge), True
        if not isinstance(records, list):
            if records is not None:
                self._report(f"{where}: its examples are not a list", line)
            return
        sessions = find_sessions(value)
        session = sessions[0] if len(sessions) == 1 and not own else ""
        failed = taken = 0
        for number, item in enumerate(records, 1):
            if taken == _MAX_EXAMPLES:
                self._report(f"{where}: the examples after number {number - 1} were left out", line)
                break
            if problem := check_example(item):
                self._report(f"{where}, example {number}: {problem}", line)
                continue
            record = BundleRecord(item, own=own)
            if not has_worked(record, self._judge):
                failed += 1
            elif example := read_example(record, session):
                taken += 1
                yield example
            else:
                self._report(f"{where}, example {number}: its arguments are too large", line)
        if failed:
            self._report(f"{where}: {failed} calls that did not work were left out", line)


def _is_by_line(data: bytes) -> bool:
    lines = [line for line in islice(io.BytesIO(data), 20) if line.strip()][:5]
    if len(lines) < 2 or lines[0].strip() == b"[":
        return False
    return sum(isinstance(value, dict) for line in lines for value in _decode(line)[0]) * 2 >= len(lines)


def _decode(raw: bytes) -> tuple[list[Any], str | None]:
    """Return the values of a piece of JSON, and what is wrong with it."""
    if len(raw) > _MAX_ENTRY:
        return [], f"a piece of more than {_MAX_ENTRY >> 20} MB was left out"
    try:
        return [msgspec.json.decode(raw)], None
    except DECODE_ERRORS:
        return loose_values(raw)
