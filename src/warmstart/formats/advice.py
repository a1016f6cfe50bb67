"""Our own notes in results: plugins append them to the text, and record beside it what they added and replaced."""

from __future__ import annotations

from typing import Any

from warmstart.formats.fields import dict_of, string_of
from warmstart.formats.session_builder import SessionBuilder


def take_advice(draft: SessionBuilder, call_id: str, text: str, record: Any) -> str:
    """Return a result's text without our note, and give its call the arguments with which it really ran.

    `record` is what our plugin wrote beside the result: `{note, input}`. Text is removed only where it is that note.
    """
    fields = dict_of(record)
    note, arguments = string_of(fields.get("note")), fields.get("input")
    if isinstance(arguments, dict):
        draft.replace(call_id, arguments)
    return text[: -len(note)].rstrip("\n") if note and text.endswith(note) else text
