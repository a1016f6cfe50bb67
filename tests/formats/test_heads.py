"""The beginning of a document, read at the speed of `json.loads` and as the scanner reads it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from warmstart import formats
from warmstart.errors import UnknownFormat
from warmstart.formats.lenient import NotPlain, Scanner, loose_values, plain_pieces
from warmstart.formats.source import Source

_ARRAYS = frozenset(("messages",))
_DOCUMENT = {"id": 3, "info": {"a": [1, {"b": "}\\"}]}, "messages": [{"n": 1}, {"n": "é\n"}], "end": None, "ok": True}


def _scan(text: str) -> list[tuple[str, Any]]:
    pieces = Scanner(io.BytesIO(text.encode()).read, lambda _line, _reason: None).pieces(_ARRAYS)
    return [(key, next(iter(loose_values(piece)[0]), None)) for key, piece, _line in pieces]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("root", [_DOCUMENT, [_DOCUMENT, {"messages": []}]])
def test_plain_pieces_are_those_of_the_scanner_wherever_the_text_is_cut(root: Any, indent: int | None) -> None:
    text = json.dumps(root, indent=indent)
    for end in range(len(text) + 1):
        assert list(plain_pieces(text[:end], _ARRAYS)) == _scan(text[:end]), text[:end]


@pytest.mark.parametrize("text", ['{"a": {]}, "b": 1}', '\ufeff{"a": 1}', "plain words", '{"a": }', "{a: 1}"])
def test_text_that_is_no_plain_json_is_left_to_the_scanner(text: str) -> None:
    with pytest.raises(NotPlain):
        list(plain_pieces(text, _ARRAYS))


def test_an_opencode_export_is_known_by_a_first_message_longer_than_any_head(tmp_path: Path) -> None:
    message = {"info": {"role": "user"}, "parts": [{"type": "text", "text": "Please " + "read " * 100_000}]}
    file = tmp_path / "export.json"
    file.write_text(json.dumps({"info": {"id": "ses_1", "directory": "/a"}, "messages": [message]}))
    assert formats.detect(Source(file)).NAME == "opencode_export"


def test_a_rollout_is_known_by_a_first_line_longer_than_the_short_head(tmp_path: Path) -> None:
    line = {
        "timestamp": "2026-07-15T20:40:16.008Z",
        "type": "session_meta",
        "payload": {"text": "x" * 40_000, "id": "1"},
    }
    file = tmp_path / "rollout.jsonl"
    file.write_text(json.dumps(line, separators=(",", ":")) + "\n")
    source = Source(file)
    assert formats.detect(source).NAME == "codex"
    assert source.head.root == "object"  # the longer head was not needed


def test_an_event_of_openhands_with_a_list_as_its_kind_breaks_nothing(tmp_path: Path) -> None:
    file = tmp_path / "events.json"
    file.write_text(json.dumps([{"kind": [], "id": "e0", "source": "agent", "timestamp": "2026-08-03"}]))
    with pytest.raises(UnknownFormat):
        formats.detect(Source(file))
