"""A cluster writes the same lake as one process, also when a worker is killed."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

import warmstart
from lake.making import fill, hash_files, write_sessions
from warmstart.engines import open_engine
from warmstart.errors import ConfigError

pytestmark = pytest.mark.filterwarnings("default")  # of Dask, while a worker dies


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_writes_the_same_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr("warmstart.lake.units.UNIT_FILES", 1)
    folder = write_sessions(tmp_path / "t", 12)
    with (
        warmstart.open() as ws,
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
    ):
        fill(ws, tmp_path / "one", folder)
        victim = next(iter(cluster.workers.values())).pid
        killer = threading.Timer(0.3, os.kill, (victim, signal.SIGKILL))
        killer.start()
        lake = ws.lake(str(tmp_path / "many"), engine=cluster.scheduler_address)
        report = lake.ingest([folder])
        lake.close()
        killer.join()
    assert report.sessions == 12 and not report.problems
    assert hash_files(tmp_path / "many") == hash_files(tmp_path / "one")


def test_an_engine_that_does_not_answer_is_named() -> None:
    pytest.importorskip("distributed")
    with pytest.raises(ConfigError, match="no Dask scheduler answers"):
        open_engine("tcp://127.0.0.1:9", 1)
