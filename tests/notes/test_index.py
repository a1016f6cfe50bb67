"""The index files of notes: found by folder, searched by mark, and no notes where they are damaged."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notes.making import PROJECT, make_note, write_notes
from warmstart.notes.compact_json import dump_json, parse_json
from warmstart.notes.index import LoadedIndex, NoteIndex, find_index, make_key, open_index
from warmstart.notes.index_files import add_folder, delete_indexes, name_index, write_folders, write_index


class CountingFile(io.BufferedReader):
    """A file that counts how often it is repositioned."""

    seeks = 0

    def seek(self, *where):
        self.seeks += 1
        return super().seek(*where)


def look_up(path, mark):
    """Return the subjects of a mark's notes, which the file and the loaded index must agree on."""
    index = open_index(str(path))
    assert index is not None
    subjects = [note["subject"] for note in index.find(mark)]
    assert [note["subject"] for note in LoadedIndex(index).find(mark)] == subjects
    index.close()
    return subjects


class TestSearching:
    def test_every_note_is_found_by_its_trigger_and_by_its_key(self, tmp_path):
        subjects = [f"src/{number}/{name}" for number in range(60) for name in ("a.go", "ab.go", "ä.go", "z")]
        path = write_notes(tmp_path, *(make_note(subject=subject) for subject in subjects))
        for subject in subjects:
            assert look_up(path, f"path:{subject}") == [subject]
            assert look_up(path, f"=path:{subject}") == [subject]
        for mark in ("path:src", "path:src/0/a.g", "path:src/0/a.goo", "a", "zzz", "=", "path:", "", "path:x\ny"):
            assert look_up(path, mark) == []

    def test_the_best_supported_of_a_mark_come_first_and_only_active_ones(self, tmp_path):
        notes = [make_note("tool", f"message {n}", trigger="tool:Edit", support=n) for n in range(2, 40)]
        retired = make_note("tool", "gone", trigger="tool:Edit", support=99, status="retired")
        subjects = look_up(write_notes(tmp_path, *notes, retired), "tool:Edit")
        assert subjects[:3] == ["message 39", "message 38", "message 37"] and len(subjects) == 16

    @given(st.sets(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12), max_size=30))
    def test_whatever_the_marks_are(self, tmp_path_factory, subjects):
        path = write_notes(tmp_path_factory.mktemp("home"), *(make_note(subject=subject) for subject in subjects))
        for subject in subjects:
            plain = make_key(f"path:{subject}") is not None
            assert look_up(path, f"path:{subject}") == ([subject] if plain else [])

    def test_a_name_of_ten_thousand_characters_is_left_out(self, tmp_path):
        long = "x" * 10_000
        path = write_notes(tmp_path, make_note(subject=long), make_note(subject="a.yml"))
        assert look_up(path, f"path:{long}") == [] and look_up(path, "path:a.yml") == ["a.yml"]
        assert path.stat().st_size < 2_000

    def test_many_notes_cost_little_more_than_few(self, tmp_path):
        """Reads of the file are counted, not time: a lookup in 10,000 notes touches some 25 places."""
        reads = {}
        for number in (100, 10_000):
            path = write_index(tmp_path, str(number), (make_note(subject=f"{i:06}") for i in range(number)))
            with path.open("rb", buffering=0) as raw, CountingFile(raw) as file:
                start = len(file.readline())
                assert NoteIndex(file, {}, start, path.stat().st_size).find("path:000042")
                reads[number] = file.seeks
        assert reads[10_000] <= 2 * reads[100] <= 60


class TestFolders:
    def test_the_longest_folder_around_the_working_folder_counts(self, tmp_path):
        outer, inner = write_index(tmp_path, "/p", []), write_index(tmp_path, "/p/web", [])
        write_folders(tmp_path, {"/p": outer, "/p/web/": inner})
        found = {
            folder: find_index(str(tmp_path), folder)
            for folder in ("/p", "/p/x/y", "/p/web", "/p/web/src", "/px", "/", "", None)
        }
        assert found == {
            "/p": (str(outer), "/p"), "/p/x/y": (str(outer), "/p"), "/p/web": (str(inner), "/p/web"), "/p/web/src": (str(inner), "/p/web"),
            "/px": None, "/": None, "": None, None: None,
        }  # fmt: skip

    def test_a_folder_may_stand_for_all_others(self, tmp_path):
        rules = write_index(tmp_path, "", [])
        write_folders(tmp_path, {"": rules})
        assert find_index(str(tmp_path), "/anywhere") == (str(rules), "")

    def test_a_linked_folder_leads_to_its_project(self, tmp_path):
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "real")
        index = write_index(tmp_path, "p", [])
        write_folders(tmp_path, {str((tmp_path / "real").resolve()): index})
        assert find_index(str(tmp_path), str(tmp_path / "link")) == (str(index), str((tmp_path / "real").resolve()))

    def test_a_fresh_clone_joins_the_folders_of_its_project(self, tmp_path):
        index = write_notes(tmp_path, make_note())
        assert add_folder(tmp_path, "/home/dev/clone", index)
        assert not add_folder(tmp_path, "/home/dev/clone/", index)
        assert find_index(str(tmp_path), "/home/dev/clone/src") == (str(index), "/home/dev/clone")
        assert find_index(str(tmp_path), PROJECT) == (str(index), PROJECT)
        for folder, path in (("relative", index), ("/a\nb", index), ("/c", tmp_path / "none.index")):
            assert not add_folder(tmp_path, folder, path)

    @pytest.mark.parametrize("line", ["/p\t../../etc/passwd\n", "/p\t/etc/passwd\n", "/p\tx.index", "/p", "\x00"])
    def test_a_damaged_map_leads_nowhere_else(self, tmp_path, line):
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes" / "folders").write_text(line)
        assert find_index(str(tmp_path), "/p") is None

    def test_indexes_of_projects_without_notes_are_deleted(self, tmp_path):
        old, new = write_index(tmp_path, "/old", []), write_index(tmp_path, "/new", [])
        delete_indexes(tmp_path, [new])
        assert not old.exists() and new.exists()


class TestDamage:
    def test_a_missing_index_is_no_index(self, tmp_path):
        assert open_index(str(tmp_path / "none")) is None

    @pytest.mark.parametrize(
        "damage",
        [
            lambda data: data[: len(data) // 2],  # half-written
            lambda data: data[:-1],
            lambda data: data + b"more",
            lambda data: data.replace(b'"warmstart_notes": 1', b'"warmstart_notes": 2'),
            lambda data: b"",
            lambda data: b"\n" + data,
            lambda data: b"\xff\xfe" + data,
            lambda data: b"[" * 60_000 + b"\n",
            lambda data: b"SQLite format 3\0" * 100,
        ],
    )
    def test_a_damaged_index_is_no_index_and_is_written_anew(self, tmp_path, damage):
        path = write_notes(tmp_path, make_note(), make_note(subject="b.yml"))
        whole = path.read_bytes()
        path.write_bytes(damage(whole))
        assert open_index(str(path)) is None
        assert write_notes(tmp_path, make_note(), make_note(subject="b.yml")).read_bytes() == whole
        assert look_up(path, "path:b.yml") == ["b.yml"]

    def test_only_the_owner_can_read_it(self, tmp_path):
        path = write_notes(tmp_path, make_note())
        assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700

    def test_readers_never_see_half_of_it_while_it_is_written(self, tmp_path):
        """Two agents at once: one learns again and again, the other reads."""
        many = [make_note(subject=f"{i}.yml") for i in range(300)]
        path = write_notes(tmp_path, *many)
        code = (
            "import sys; sys.path[:0] = sys.argv[2:]\n"
            "from pathlib import Path; from notes.making import PROJECT, make_note, write_notes\n"
            "for n in range(40): write_notes(Path(sys.argv[1]), *(make_note(subject=f'{i}.yml') for i in range(300 - n % 2)))"
        )
        writer = subprocess.Popen([sys.executable, "-c", code, str(tmp_path), *sys.path])
        until = time.monotonic() + 60
        while writer.poll() is None and time.monotonic() < until:
            index = open_index(str(path))
            assert index is not None and index.find("path:7.yml")
            index.close()
        assert writer.wait() == 0

    def test_projects_do_not_share_a_file(self):
        assert len({name_index("/a"), name_index("/b"), name_index("/a", "team"), name_index("/a\0team")}) >= 3


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(), inside, max_size=3),
    max_leaves=12,
)


class TestJson:
    @given(values)
    def test_it_reads_and_writes_as_the_standard_library_does(self, value):
        assert parse_json(json.dumps(value)) == value == parse_json(json.dumps(value).encode())
        assert json.loads(dump_json(value)) == value

    @pytest.mark.parametrize("text", ["", "{", "x", "{} x", '{"a": }', "[1,]", '"\n"', "\x00"])
    def test_what_is_no_json_is_an_error(self, text):
        with pytest.raises(ValueError):
            parse_json(text)


def test_readers_load_nothing_heavy():
    code = (
        "import sys; before = set(sys.modules)\n"
        "import warmstart.notes.advise, warmstart.notes.index, warmstart.notes.session_state, warmstart.notes.rewrite\n"
        "warmstart.notes.compact_json.parse_json('{}')\n"
        "print([m for m in sys.modules if m not in before and not m.startswith('warmstart')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.strip() == "['__future__', '_json']"
