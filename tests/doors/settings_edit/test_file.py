"""A settings file that another program owns: changed, and restored to the byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from warmstart.doors.settings_edit.file import Editor, SettingsFile
from warmstart.doors.settings_edit.json_text import Insertion
from warmstart.errors import Refused


def open_file(path: Path, tmp_path: Path, text: str = "mine", owner: str = "test") -> SettingsFile:
    return SettingsFile(path, tmp_path / "home", owner, Editor(str, lambda now: now.replace(text, "")))


def put(path: Path, tmp_path: Path, text: str = "mine", owner: str = "test") -> None:
    open_file(path, tmp_path, text, owner).replace(lambda now: [Insertion(len(now), text)])


def take(path: Path, tmp_path: Path, text: str = "mine", owner: str = "test") -> bool:
    return open_file(path, tmp_path, text, owner).remove()


def test_a_link_is_written_through_and_rights_stay(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "real.json"
    real.parent.mkdir()
    real.write_text("theirs")
    real.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(real)
    put(link, tmp_path)
    assert link.is_symlink() and real.read_text() == "theirsmine"
    assert real.stat().st_mode & 0o777 == 0o640
    assert take(link, tmp_path)
    assert link.is_symlink() and real.read_text() == "theirs"
    assert [p.name for p in real.parent.iterdir()] == ["real.json"]


def test_a_change_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("theirs")

    def put_in(now: str) -> list[Insertion]:
        path.write_text("changed")
        return [Insertion(0, "mine")]

    with pytest.raises(Refused, match="someone else"):
        open_file(path, tmp_path).replace(put_in)
    assert path.read_text() == "changed"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.json", "user-home"]


def test_what_is_remembered_holds_nothing_of_theirs(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"token": "s3cr3t-of-theirs"}')
    put(path, tmp_path)
    (memory,) = (tmp_path / "home" / "changed").iterdir()
    assert "s3cr3t" not in memory.read_text()
    assert memory.stat().st_mode & 0o777 == 0o600
    take(path, tmp_path)
    assert list((tmp_path / "home" / "changed").iterdir()) == []


def test_two_owners_do_not_disturb_each_other(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("theirs")
    put(path, tmp_path, "one", "a")
    put(path, tmp_path, "two", "b")
    take(path, tmp_path, "one", "a")
    assert path.read_text() == "theirstwo"
    take(path, tmp_path, "two", "b")
    assert path.read_text() == "theirs"


def test_damaged_memory_is_no_trouble(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("theirs")
    put(path, tmp_path)
    (memory,) = (tmp_path / "home" / "changed").iterdir()
    memory.write_text("{")
    take(path, tmp_path)
    assert path.read_text() == "theirs"


def test_a_home_that_cannot_be_written_is_no_trouble(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("theirs")
    (tmp_path / "home").write_text("a file")
    put(path, tmp_path)
    assert take(path, tmp_path)
    assert path.read_text() == "theirs"


def test_a_second_change_replaces_the_first_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "a.json"
    put(path, tmp_path, "first")
    file = open_file(path, tmp_path, "first")

    def insert(now: str) -> list[Insertion]:
        assert now == "" and path.read_text() == "first"
        return [Insertion(0, "second")]

    file.replace(insert)
    assert path.read_text() == "second"
    assert file.remove() and not path.parent.exists(), "the file was not there before the first"


def test_a_refused_change_leaves_the_earlier_one(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("theirs")
    put(path, tmp_path)

    def refuse(_now: str) -> list[Insertion]:
        raise Refused("no")

    with pytest.raises(Refused, match=r"a\.json: no; it was left as it is"):
        open_file(path, tmp_path).replace(refuse)
    assert path.read_text() == "theirsmine" and take(path, tmp_path)
    assert path.read_text() == "theirs"
