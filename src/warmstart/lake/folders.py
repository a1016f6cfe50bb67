"""The folders of a lake's sessions, as evidence for the projects that they belong to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow.compute as pc

from warmstart.store import ProjectNameRow
from warmstart.store.projects import SettledFolder

CALL_FACTS = ("session_key", "tool", "arguments", "status")
_EVIDENCE = 40  # sessions of a folder whose calls are evidence, as in the store

Places = dict[str, tuple[str, str | None]]  # folder -> project and root


class LakeFolders:
    """The folders of a lake, for the same settler that gives a store's folders their projects."""

    def __init__(self, index: Any, read_calls: Callable[[int], Any]) -> None:
        """`index`: of all sessions. `read_calls`: returns the calls of the file with this number, None without any."""
        self._index = index
        self._read_calls = read_calls
        self.placed: Places = {}

    def names(self) -> dict[str, ProjectNameRow]:
        return {}

    def remotes(self) -> dict[str, str | None]:
        """Return the folders of all sessions, each with the latest remote that a transcript records."""
        index = self._index.select(["folder", "remote", "started"])
        pairs = index.group_by(["folder", "remote"]).aggregate([("started", "max")]).to_pylist()
        latest: dict[str, str | None] = {}
        for row in sorted(pairs, key=lambda row: (row["started_max"] or 0.0, row["remote"] or "")):
            if row["folder"] is not None:
                latest[row["folder"]] = row["remote"] or latest.get(row["folder"])
        return latest

    def calls_in(self, folder: str) -> list[tuple[str, str]]:
        """Return tool and arguments of calls in a folder that did not fail, of its earliest sessions."""
        index = self._index
        rows = index.filter(pc.equal(index["folder"], folder)).select(["key", "started", "file"]).to_pylist()
        rows.sort(key=lambda row: (row["started"] is not None, row["started"], row["key"]))
        wanted: dict[int, set[str]] = {}
        for row in rows[:_EVIDENCE]:
            wanted.setdefault(row["file"], set()).add(row["key"])
        calls: list[tuple[str, str]] = []
        for number, keys in wanted.items():
            table = self._read_calls(number)
            for row in table.to_pylist() if table is not None else ():
                if row["session_key"] in keys and row["status"] != "error":
                    calls.append((row["tool"], row["arguments"]))
        return calls

    def place(self, _rows: Iterable[ProjectNameRow], folders: Sequence[SettledFolder]) -> int:
        self.placed = {one.folder: (one.project, one.root) for one in folders}
        return 0
