"""The tables of a lake: rows to Parquet and back. The same rows give the same bytes, whoever writes them."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from warmstart.ingest.records import Record
from warmstart.lake.files import VERSION, VERSION_KEY, Lake, LakeFile, NewerLake
from warmstart.store import CallRow, SessionRow, SpentRow
from warmstart.store.rows import Row
from warmstart.usage.amounts import day_of

_R = TypeVar("_R", bound=Row)
_LEFT_OUT = {"first_seen", "updated"}  # when this machine read it: other machines read at other times
_GROUP = 8_192  # rows of a group
_encode = msgspec.json.Encoder(order="deterministic").encode


class DigestRow(Struct, frozen=True, kw_only=True):
    """The counts of one session."""

    key: str  # SessionRow.key
    content: str  # SessionRow.digest
    project: str  # after folders were given their projects; empty: unknown
    scope: str
    agent: str
    started: float | None
    notes: str  # JSON of notes.digest.Digest; empty: the session cannot be read
    figures: bytes  # msgpack of insights.gather.InsightCounts


def _find_type(hint: Any) -> Any:
    kinds = set(get_args(hint)) | {hint}
    for kind, arrow in ((bytes, pa.binary()), (float, pa.float64()), (bool, pa.bool_()), (int, pa.int64())):
        if kind in kinds:
            return arrow
    return pa.string()


def _make_schema(row: type[Struct], more: Sequence[tuple[str, Any]] = ()) -> Any:
    hints = get_type_hints(row)
    fields = [(name, _find_type(hints[name])) for name in row.__struct_fields__ if name not in _LEFT_OUT]
    return pa.schema([*fields, *more], metadata={VERSION_KEY: str(VERSION).encode()})


SESSIONS = _make_schema(SessionRow, [("spent", pa.string()), ("opening", pa.string())])
CALLS = _make_schema(CallRow)
DIGESTS = _make_schema(DigestRow)


def find_month(started: float | None) -> str:
    """Return the month of a session, like 2026-11; "unknown" without a date."""
    return day_of(started)[:7] or "unknown"


def encode_sessions(records: Iterable[Record]) -> bytes:
    """Return the sessions of records as Parquet, sorted by key."""
    rows = []
    for record in sorted(records, key=_sort_record):
        opening = next((call for call in record.calls[:1] if len(call.call_id) > 15), None)
        facts = {name: getattr(record.session, name) for name in SESSIONS.names[:-2]}
        spent = _encode([msgspec.structs.asdict(part) for part in record.spent]).decode()
        rows.append(facts | {"spent": spent, "opening": opening.call_id if opening else None})
    return _write(rows, SESSIONS)


def encode_calls(records: Iterable[Record]) -> bytes:
    """Return the calls of records as Parquet, sorted by session and position."""
    ordered = sorted(records, key=_sort_record)
    calls = (call for record in ordered for call in record.calls)
    return _write([{name: getattr(call, name) for name in CALLS.names} for call in calls], CALLS)


def encode_digests(rows: Iterable[DigestRow]) -> bytes:
    """Return digests as Parquet, sorted by session."""
    ordered = sorted(rows, key=lambda row: (row.key, row.content))
    return _write([msgspec.structs.asdict(row) for row in ordered], DIGESTS)


def _sort_record(record: Record) -> tuple[str, str]:
    return record.session.key, record.session.digest


def _write(rows: Sequence[dict[str, Any]], schema: Any) -> bytes:
    columns = [pa.array([_mend(row[name]) for row in rows], type=schema.field(name).type) for name in schema.names]
    return encode_table(pa.Table.from_arrays(columns, schema=schema))


def encode_table(table: Any) -> bytes:
    """Return a table as Parquet."""
    buffer = io.BytesIO()
    pq.write_table(
        table,
        buffer,
        compression="zstd",
        compression_level=3,
        row_group_size=_GROUP,
        version="2.6",
        data_page_version="1.0",
    )
    return buffer.getvalue()


def _mend(value: Any) -> Any:
    """Return a text without halves of surrogate pairs, which a transcript may hold and Parquet does not."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "replace").decode()
    return value


def read_table(lake: Lake, file: LakeFile, columns: Sequence[str] | None = None) -> Any:
    """Return a file as a table, None if it cannot be used. Columns that an older version lacks are null."""
    body = lake.read(file)
    if body is None:
        return None
    schema = {"sessions": SESSIONS, "calls": CALLS, "digests": DIGESTS}[file.table]
    source = pq.ParquetFile(io.BytesIO(body))
    version = int((source.schema_arrow.metadata or {}).get(VERSION_KEY, b"0"))
    if version > VERSION:
        raise NewerLake(f"{file.path} was written by a newer Warmstart (version {version}); upgrade this one")
    wanted = list(columns or schema.names)
    known = set(source.schema_arrow.names)
    table = source.read(columns=[name for name in wanted if name in known])
    for name in wanted:
        if name not in known:
            table = table.append_column(schema.field(name), pa.nulls(table.num_rows, schema.field(name).type))
    return table.select(wanted)


def read_sessions(lake: Lake, sessions: LakeFile) -> list[Record] | None:
    """Return the sessions of a file without their calls; None if it cannot be used."""
    table = read_table(lake, sessions)
    return None if table is None else list(_make_records(table, {}))


def read_records(lake: Lake, sessions: LakeFile, calls: LakeFile) -> list[Record] | None:
    """Return the sessions of a file with their calls, which are in the file of the same unit; None without either."""
    table = read_table(lake, sessions)
    rows = read_table(lake, calls) if table is not None else None
    if rows is None:
        return None
    by_session: dict[str, list[CallRow]] = {}
    for facts in rows.to_pylist():
        by_session.setdefault(facts["session_key"], []).append(_make_row(CallRow, facts))
    return list(_make_records(table, by_session))


def _make_records(table: Any, calls: Mapping[str, Sequence[CallRow]]) -> Iterator[Record]:
    for facts in table.to_pylist():
        spent = msgspec.json.decode(facts.pop("spent") or "[]", type=list[dict[str, Any]])
        facts.pop("opening")
        row = _make_row(SessionRow, facts | {"first_seen": 0.0, "updated": 0.0})
        yield Record(row, tuple(calls.get(row.key, ())), tuple(SpentRow(**part) for part in spent))


def _make_row(kind: type[_R], facts: dict[str, Any]) -> _R:
    """Make a row; a null where the row has a default is that default."""
    defaults = _list_defaults(kind)
    return kind(**{name: value for name, value in facts.items() if value is not None or name not in defaults})


@cache
def _list_defaults(kind: type[Row]) -> frozenset[str]:
    return frozenset(one.name for one in msgspec.structs.fields(kind) if not one.required)
