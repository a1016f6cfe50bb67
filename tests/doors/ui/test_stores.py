"""The server's stores: what is at the path counts, not what was there when it was opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from ui_home import make_session, make_settings
from warmstart.config import Settings
from warmstart.doors.ui.figures import Figures
from warmstart.doors.ui.live import LiveFeed
from warmstart.doors.ui.stores import OpenStores
from warmstart.errors import StoreError, StoreTooNew
from warmstart.pipeline import Warmstart
from warmstart.store import locate_store


def fill(settings: Settings, sessions: int) -> Path:
    with Warmstart(settings) as ws:
        for number in range(sessions):
            ws.store.put_session(make_session(number), [], [])
    path = locate_store(settings.store_url)
    assert path is not None
    return path


def move_away(path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.rename(file.with_name(f"old-{file.name}"))


def count(ws: Warmstart, *_: object) -> int:
    return ws.count_sessions()


def test_a_replaced_store_is_opened_anew(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    path = fill(settings, 1)
    stores = OpenStores(settings)
    figures = Figures(stores)
    with stores.borrow() as first:
        assert first.count_sessions() == 1
    with stores.borrow() as again:
        assert again is first, "kept while the file is the same"
    assert figures.get("count", count, wait=None).value == 1
    move_away(path)
    fill(settings, 3)
    with stores.borrow() as ws:
        assert ws.count_sessions() == 3
        ws.store.put_session(make_session(9), [], [])
    assert figures.get("count", count, wait=None).value == 4
    with apsw.Connection(str(path.with_name(f"old-{path.name}"))) as old:
        assert old.execute("SELECT count(*) FROM sessions").get == 1, "nothing goes into the file that was moved away"
    figures.close()
    stores.close()


def test_a_store_that_is_gone_is_named_and_not_made_anew(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    path = fill(settings, 1)
    stores = OpenStores(settings)
    with stores.borrow() as ws:
        assert ws.count_sessions() == 1
    move_away(path)
    for _time in range(2):
        with pytest.raises(StoreError, match="no longer there"), stores.borrow() as ws:
            ws.count_sessions()
    assert not path.exists()
    fill(settings, 2)
    with stores.borrow() as ws:
        assert ws.count_sessions() == 2
    stores.close()


def test_a_store_that_was_upgraded_meanwhile_is_named(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    path = fill(settings, 1)
    stores = OpenStores(settings)
    with stores.borrow() as ws:
        assert ws.count_sessions() == 1
    with apsw.Connection(str(path)) as other:
        other.pragma("user_version", 999)
    with pytest.raises(StoreTooNew), stores.borrow() as ws:
        ws.count_sessions()
    stores.close()


class HeardFeed(LiveFeed):
    """Keeps what it would send."""

    heard: list[dict[str, Any]]

    def _send(self, event: dict[str, Any]) -> None:
        self.heard.append(event)


def test_a_change_is_sent_once(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    feed = HeardFeed(OpenStores(settings), clock=lambda: 100.0)
    feed.heard = []
    with Warmstart(settings) as ws:
        ws.store.put_session(make_session(1, calls=1, errors=1, updated=101.0), [], [])
        since = feed._read(ws, 99.0)
        since = feed._read(ws, since)
        assert [event["counts"] for event in feed.heard] == ["1 call, 1 error"]
        ws.store.put_session(make_session(1, calls=2, errors=1, updated=102.0, digest="more"), [], [])
        feed._read(ws, since)
    assert [event["calls"] for event in feed.heard] == [1, 2]
