"""Atomic file writes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from warmstart.atomic_files import final_name, sweep_unfinished, write_beside, write_whole

WRITING = """
import sys
from pathlib import Path
from warmstart.atomic_files import write_whole
print("ready", flush=True)
number = 0
while True:
    number = (number + 1) % 10
    write_whole(Path(sys.argv[1]), str(number).encode() * 300_000)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.slow
def test_a_kill_leaves_the_old_or_the_new(folder: Path) -> None:
    place = folder / "kept.json"
    for round in range(8):
        process = subprocess.Popen([sys.executable, "-c", WRITING, str(place)], stdout=subprocess.PIPE)
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        time.sleep(0.05 + 0.011 * round)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        data = place.read_bytes()
        assert len(data) == 300_000 and len(set(data)) == 1
    assert {final_name(path.name) for path in folder.iterdir()} == {"kept.json"}


@pytest.mark.parametrize("synced", [False, True])
@pytest.mark.parametrize("name", ["n" * 255, "\U0001f9ca" * 63], ids=["long", "wide"])
def test_write_whole_replaces_the_file(folder: Path, name: str, synced: bool) -> None:
    place = folder / name
    for data in (b"old\r\n", b"", b"new\n\x00"):
        write_whole(place, data, synced=synced)
        assert place.read_bytes() == data and names_in(folder) == [place.name]
    assert place.stat().st_mode & 0o777 == 0o600


def test_a_sibling_that_was_not_renamed_is_deleted(folder: Path) -> None:
    place = folder / "kept.json"
    place.write_text("old")
    with pytest.raises(RuntimeError), write_beside(place, b"new") as unfinished:
        assert unfinished.read_bytes() == b"new" and final_name(unfinished.name) == place.name
        raise RuntimeError
    with write_beside(place, b"new"):
        pass
    assert names_in(folder) == ["kept.json"] and place.read_text() == "old"
    with pytest.raises(FileNotFoundError):
        write_whole(folder / "nowhere" / "x", b"new")


def test_only_stale_part_files_are_deleted(folder: Path) -> None:
    abandoned = ".kept.json.0123456789abcdef.part"
    others = ["download.part", ".kept.json.part", "kept.json", f"{abandoned}.txt", ".kept.json.0123456789ABCDEF.part"]
    for name in (abandoned, *others):
        (folder / name).write_text("x")
        os.utime(folder / name, (0, 0))
    with write_beside(folder / "kept.json", b"y") as fresh:
        sweep_unfinished(folder)
        assert names_in(folder) == sorted([*others, fresh.name])
    sweep_unfinished(folder / "nowhere")
