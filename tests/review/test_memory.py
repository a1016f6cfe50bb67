"""Notes in MEMORY.md and USER.md: bullets in a folder of our own, Hermes' form inside its limits in Hermes' folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from warmstart.errors import Refused
from warmstart.review.memory import MemoryFolder


@pytest.fixture
def hermes(tmp_path: Path) -> MemoryFolder:
    (tmp_path / ".hermes").mkdir()
    (tmp_path / ".hermes" / "config.yaml").write_text("model: {default: x}\n")
    return MemoryFolder(tmp_path / ".hermes" / "memories")


def read(folder: MemoryFolder, name: str = "MEMORY.md") -> str:
    return (folder.root / name).read_text()


def test_a_folder_of_our_own_has_bullets(tmp_path: Path) -> None:
    folder = MemoryFolder(tmp_path / "memory")
    for note in ("One.", "Two."):
        folder.add("memory", note)
    assert read(folder) == "- One.\n- Two.\n" and folder.notes("memory") == ["One.", "Two."]
    folder.add("user", "x" * 5_000)  # nobody limits it


def test_hermes_form_from_the_first_note_on(hermes: MemoryFolder) -> None:
    hermes.add("memory", "One.")
    assert read(hermes) == "One."
    hermes.add("memory", "Two.")
    assert read(hermes) == "One.\n§\nTwo." and hermes.notes("memory") == ["One.", "Two."]
    hermes.remove("memory", "One")
    assert read(hermes) == "Two."
    hermes.replace("memory", "Two", "Three.")
    hermes.remove("memory", "Three")
    assert read(hermes) == ""


def test_an_entry_of_several_lines_stays_one(hermes: MemoryFolder) -> None:
    hermes.root.mkdir()
    (hermes.root / "MEMORY.md").write_text("The release:\n- tag it\n- push it")
    hermes.add("memory", "Tags are signed.")
    assert hermes.notes("memory") == ["The release:\n- tag it\n- push it", "Tags are signed."]


@pytest.mark.parametrize(("target", "file", "limit"), [("memory", "MEMORY.md", 2_200), ("user", "USER.md", 1_375)])
def test_a_full_file_is_refused_and_left_alone(hermes: MemoryFolder, target: str, file: str, limit: int) -> None:
    hermes.add(target, "a" * (limit - 10))
    with pytest.raises(Refused, match=rf"{file} is full: it has {limit - 10:,} of {limit:,} characters, .* remove or"):
        hermes.add(target, "b" * 8)
    assert read(hermes, file) == "a" * (limit - 10)
    hermes.add(target, "b" * 7)
    assert len(read(hermes, file)) == limit


def test_a_file_that_is_too_long_may_be_shortened(hermes: MemoryFolder) -> None:
    hermes.root.mkdir()
    (hermes.root / "MEMORY.md").write_text("\n§\n".join(letter * 1_000 for letter in "abc"))
    hermes.replace("memory", "aaa", "A.")
    assert hermes.notes("memory")[0] == "A."
    with pytest.raises(Refused, match=r"MEMORY\.md is full"):
        hermes.add("memory", "d" * 300)
    hermes.remove("memory", "bbb")


def test_the_limits_of_hermes_settings_count(hermes: MemoryFolder) -> None:
    (hermes.root.parent / "config.yaml").write_text("memory:\n  memory_char_limit: 50\n  user_char_limit: 9000\n")
    hermes.add("user", "x" * 5_000)
    with pytest.raises(Refused, match="of 50 characters"):
        hermes.add("memory", "x" * 51)
