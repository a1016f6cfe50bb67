"""The addresses of running daemons, saved beside the anchor at every start, for the commands that print login links.

One line per daemon, the newest first: the page's address as people open it, and the one that it listens on. A daemon
removes its line when it stops; after a crash the line stays, so readers check that a daemon answers there.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from warmstart.atomic_files import write_whole
from warmstart.confirm.store.protocol import ConfirmStore

DEFAULT_PAGE = "http://127.0.0.1:6080"
_MOST = 20  # lines kept


class PageAddress(NamedTuple):
    """Where the page of one daemon is."""

    page: str  # as people open it
    local: str  # as it listens


def remember_page(store: ConfirmStore, url: str, local: str = "") -> None:
    """Save the address. A failure does not stop the start: links then lead to the default address."""
    new = PageAddress(url, local or url)
    with suppress(OSError), store.alone():
        _write(store, [new, *(other for other in recall_pages(store) if other.local != new.local)])


def forget_page(store: ConfirmStore, local: str) -> None:
    """Remove a daemon that stops, unless it was the last one: its address stays the best guess."""
    with suppress(OSError), store.alone():
        others = [other for other in recall_pages(store) if other.local != local]
        if others:
            _write(store, others)


def recall_pages(store: ConfirmStore) -> list[PageAddress]:
    """Return the addresses of daemons that may be running, the newest first."""
    try:
        lines = _file(store).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    pairs = (line.split() for line in lines)
    return [PageAddress(words[0], words[-1]) for words in pairs if words]


def _write(store: ConfirmStore, addresses: list[PageAddress]) -> None:
    lines = "".join(f"{page} {local}\n" for page, local in addresses[:_MOST])
    write_whole(_file(store), lines.encode())


def _file(store: ConfirmStore) -> Path:
    return store.anchor_path.with_suffix(".page")
