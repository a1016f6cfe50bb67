"""The page's address, saved beside the anchor at every start, for the commands that print login links."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from warmstart.atomic_files import write_whole
from warmstart.confirm.store.protocol import ConfirmStore

DEFAULT_PAGE = "http://127.0.0.1:6080"


def remember_page(store: ConfirmStore, url: str) -> None:
    """Save the address. A failure does not stop the start: links then lead to the default address."""
    with suppress(OSError):
        write_whole(_file(store), url.encode() + b"\n")


def recall_page(store: ConfirmStore) -> str:
    """Return the address that the daemon saved last, empty if none did."""
    try:
        return _file(store).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _file(store: ConfirmStore) -> Path:
    return store.anchor_path.with_suffix(".page")
