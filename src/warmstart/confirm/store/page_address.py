"""Where the page of a database's daemon is: kept beside the anchor at every start, for who makes login links later."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from warmstart.atomic_files import write_whole
from warmstart.confirm.store.protocol import ConfirmStore

DEFAULT_PAGE = "http://127.0.0.1:6080"


def remember_page(store: ConfirmStore, url: str) -> None:
    """Without it links may lead to the usual place: no reason not to start."""
    with suppress(OSError):
        write_whole(_file(store), url.encode() + b"\n")


def recall_page(store: ConfirmStore) -> str:
    """As the daemon said when it last started; empty where none has."""
    try:
        return _file(store).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _file(store: ConfirmStore) -> Path:
    return store.anchor_path.with_suffix(".page")
