"""The archive: the same bytes come back, versions, secrets, deleted sessions, damage, killed writers."""

from __future__ import annotations

import json
import os
import signal
import stat
import time
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

import warmstart
from command_line import run, run_json, start_python
from homes import read_everything
from places import DATA
from transcripts import claude_lines, write_jsonl
from warmstart.archive.objects import PackedContents
from warmstart.archive.vanishing import read_cleanup_days
from warmstart.ingest.read import inspect

SECRET = "ghp_9fK2mQ7xVb4TzL8sWc1RjY6dHn3PgA5eUo0B"


def home() -> Path:
    return Path(os.environ["WARMSTART_HOME"])


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "projects" / "-shop" / "s-1.jsonl", claude_lines("s-1", calls=40))


CASES = sorted(p for p in DATA.rglob("case*") if ".expected" not in p.name and p.parent.name != "opencode_storage")


class TestRestore:
    def test_the_same_bytes_come_back_where_they_were(self, transcript: Path) -> None:
        before = transcript.read_bytes()
        added = run_json("archive", "add", transcript)
        assert (added["added"], added["size"]) == (1, len(before))
        assert added["packed"] < len(before) / 5
        transcript.unlink()
        run("archive", "restore", "s-1")
        assert transcript.read_bytes() == before

    @pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
    def test_every_format_comes_back(self, case: Path, tmp_path: Path) -> None:
        report = run_json("archive", "add", case)
        assert report["added"] == 1, report
        run("archive", "restore", case, "--to", tmp_path / "out")
        assert (tmp_path / "out" / case.name).read_bytes() == case.read_bytes()

    def test_a_file_that_differs_is_never_replaced(self, transcript: Path) -> None:
        run("archive", "add", transcript)
        transcript.write_text("mine")
        assert "differs" in run("archive", "restore", transcript, code=1).stderr
        assert transcript.read_text() == "mine"

    def test_a_file_that_is_there_already_is_left_alone(self, transcript: Path) -> None:
        run("archive", "add", transcript)
        assert "is there already" in run("archive", "restore", transcript).stdout

    def test_a_name_of_several_transcripts_is_refused(self, tmp_path: Path) -> None:
        for name in ("one", "two"):
            run("archive", "add", write_jsonl(tmp_path / f"{name}.jsonl", claude_lines(f"same-{name}")))
        assert "2 transcripts" in run("archive", "restore", "same", code=2).stderr
        assert "archive list" in run("archive", "restore", "nothing", code=1).stderr

    @given(chunks=st.lists(st.binary(max_size=300), max_size=20), data=st.data())
    def test_any_content_and_its_beginnings(
        self, tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes], data: st.DataObject
    ) -> None:
        contents = PackedContents(tmp_path_factory.mktemp("contents"))
        whole = b"".join(chunks)
        length = data.draw(st.integers(0, len(whole)))
        part = contents.put([whole[:length]])
        packed = contents.put(chunks, [length])
        assert b"".join(contents.read(packed.digest)) == whole
        assert packed.beginnings == {part.digest}


class TestVersions:
    def test_a_grown_transcript_replaces_its_beginning(self, transcript: Path) -> None:
        run("archive", "add", transcript)
        write_jsonl(transcript, claude_lines("s-1", calls=60))
        report = run_json("archive", "add", transcript)
        assert (report["added"], report["replaced"]) == (1, 1)
        (entry,) = run_json("archive", "list")
        assert entry["size"] == transcript.stat().st_size
        assert len(list((home() / "archive" / "contents").rglob("*.zst"))) == 1

    def test_a_rewritten_transcript_is_kept_beside_the_older_one(self, transcript: Path) -> None:
        run("archive", "add", transcript)
        write_jsonl(transcript, claude_lines("s-1", calls=40, text="other"))
        assert run_json("archive", "add", transcript)["replaced"] == 0
        assert len(run_json("archive", "list")) == 2
        assert run("archive", "delete", transcript, "--yes").stdout == "deleted 2 archived transcripts\n"
        assert not list((home() / "archive" / "contents").rglob("*.zst"))

    def test_an_unchanged_transcript_is_not_read_again(self, transcript: Path) -> None:
        run("archive", "add", transcript)
        assert run_json("archive", "add", transcript)["unchanged"] == 1

    def test_the_same_content_is_kept_once(self, transcript: Path, tmp_path: Path) -> None:
        copy = tmp_path / "copy.jsonl"
        copy.write_bytes(transcript.read_bytes())
        run("archive", "add", transcript, copy)
        assert len(run_json("archive", "list")) == 2
        assert len(list((home() / "archive" / "contents").rglob("*.zst"))) == 1
        run("archive", "delete", copy, "--yes")
        assert run_json("archive", "verify")["problems"] == []

    def test_the_archive_is_private(self, transcript: Path) -> None:
        run("archive", "add", transcript)
        modes = {p: stat.S_IMODE(p.stat().st_mode) for p in (home() / "archive").rglob("*")}
        assert all(mode == (0o700 if path.is_dir() else 0o600) for path, mode in modes.items())


class TestRedacted:
    def test_no_secret_is_kept_and_calls_keep_their_outcomes(self, tmp_path: Path) -> None:
        lines = claude_lines("s-1", text=f"export GITHUB_TOKEN={SECRET}")
        lines[2]["message"]["content"][0] |= {"is_error": True}
        file = write_jsonl(tmp_path / "s.jsonl", lines)
        run("archive", "add", file, "--redacted")
        before = inspect(file).sessions[0].session
        file.unlink()
        assert "redacted copy restored" in run("archive", "restore", file).stdout
        assert SECRET not in file.read_text()
        after = inspect(file).sessions[0].session
        assert after.id == before.id
        statuses = [r and r.outcome.status for _c, r in before.calls()]
        assert statuses[0] == "error"
        assert [c for c, _r in after.calls()] == [c for c, _r in before.calls()]
        assert [r and r.outcome.status for _c, r in after.calls()] == statuses
        run("archive", "delete", file, "--yes")
        assert SECRET.encode() not in read_everything(home())

    @pytest.mark.parametrize(
        "case",
        [
            "claude_code/case.jsonl",
            "codex/case.jsonl",
            "qwen_code/case.jsonl",
            "pi/case.jsonl",
            "atif/case.json",
            "openai_chat/case.jsonl",
            "anthropic/case.json",
            "otel/case.jsonl",
            "swe_agent/case.traj",
        ],
    )
    def test_redacted_copies_are_read_as_the_transcripts_are(self, case: str, tmp_path: Path) -> None:
        path = DATA / case
        if not path.exists():
            (path,) = [p for p in path.parent.glob("case.*") if ".expected" not in p.name]
        run("archive", "add", path, "--redacted")
        run("archive", "restore", path, "--to", tmp_path)
        before, after = inspect(path).sessions, inspect(tmp_path / path.name).sessions
        assert [(s.session.id, s.session.agent) for s in after] == [(s.session.id, s.session.agent) for s in before]
        for old, new in zip(before, after, strict=True):
            assert [c.call_id for c, _r in new.session.calls()] == [c.call_id for c, _r in old.session.calls()]
            assert [r and r.outcome.status for _c, r in new.session.calls()] == [
                r and r.outcome.status for _c, r in old.session.calls()
            ]

    def test_arguments_written_as_json_in_a_text_stay_json(self, tmp_path: Path) -> None:
        call = {"name": "shell", "arguments": json.dumps({"cmd": f'curl -H "Authorization: Bearer {SECRET}" "x"'})}
        messages = [
            {"role": "user", "content": "fetch it"},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": call}]},
            {"role": "tool", "tool_call_id": "c1", "content": "done"},
        ]
        file = write_jsonl(tmp_path / "s.jsonl", [{"session_id": "j-1", "messages": messages}])
        run("archive", "add", file, "--redacted")
        file.unlink()
        run("archive", "restore", file)
        ((call_back, _answer),) = inspect(file).sessions[0].session.calls()
        assert isinstance(call_back.arguments, dict)
        assert SECRET not in file.read_text()

    def test_ids_that_look_like_secrets_are_kept_and_secrets_beside_them_are_not(self, tmp_path: Path) -> None:
        opaque = "Zk4Qw8Rt2Yp6Lm0Nv3Bc7XdJ9hF5gS1a"
        lines = claude_lines(opaque, text="key Hq7Wz2Xc9Vb4Nm6Lk1Jh8Gf3Ds5Ap0Qe")
        lines[1]["message"]["content"][0]["input"] = {"id": "Tr5Ye8Ui2Op7As4Df9Gh1Jk6Lz3Xc0Vb"}
        file = write_jsonl(tmp_path / "s.jsonl", lines)
        before = inspect(file).sessions[0].session
        run("archive", "add", file, "--redacted")
        file.unlink()
        run("archive", "restore", file)
        after = inspect(file).sessions[0].session
        assert after.id == before.id == opaque
        assert [call.call_id for call, _answer in after.calls()] == [call.call_id for call, _answer in before.calls()]
        text = file.read_text()
        assert "Hq7Wz2Xc9Vb4" not in text
        assert "Tr5Ye8Ui2Op7" not in text, "arguments have no ids of the transcript"

    def test_a_packed_file_is_refused(self, tmp_path: Path, transcript: Path) -> None:
        packed = tmp_path / "s.jsonl.zst"
        packed.write_bytes(zstandard.compress(transcript.read_bytes()))
        assert "cannot be redacted" in run("archive", "add", packed, "--redacted", code=1).stderr
        assert run_json("archive", "add", packed)["added"] == 1


class TestDeletedSessions:
    def test_the_copy_goes_with_the_session_and_does_not_come_back(self, transcript: Path) -> None:
        run("ingest", transcript)
        run("archive", "add", transcript)
        assert "archived transcript" in run("sessions", "delete", "s-1", "--yes").stdout
        assert run_json("archive", "list") == []
        report = run_json("archive", "add", transcript)
        assert (report["added"], report["deleted"]) == (0, 1)
        assert not list((home() / "archive" / "contents").rglob("*.zst"))

    def test_a_copy_with_other_sessions_stays_and_is_named(self, tmp_path: Path) -> None:
        file = write_jsonl(
            tmp_path / "two.jsonl",
            [{"session_id": f"w-{n}", "messages": [{"role": "user", "content": f"do {n}"}]} for n in range(2)],
        )
        run("ingest", file)
        run("archive", "add", file)
        (entry,) = run_json("archive", "list")
        assert run_json("sessions", "delete", "w-0", "--yes")["still_archived"] == [entry["id"]]


class TestReading:
    def test_ingest_reads_what_the_agent_deleted(self, transcript: Path) -> None:
        run("archive", "add", transcript)
        transcript.unlink()
        assert run_json("ingest", "--archive")["new"] == 1
        assert run_json("sessions", "show", "s-1")["source_uri"] == transcript.as_uri()
        assert run_json("ingest", "--archive")["new"] == 0

    def test_a_redacted_copy_of_a_stored_session_is_no_second_session(self, tmp_path: Path) -> None:
        lines = claude_lines("s-1")
        lines[0]["message"]["content"] = f"use the token {SECRET}"
        file = write_jsonl(tmp_path / "s.jsonl", lines)
        run("ingest", file)
        run("archive", "add", file, "--redacted")
        file.unlink()
        assert run_json("ingest", "--archive")["new"] == 0
        assert len(run_json("sessions", "list")) == 1

    def test_a_transcript_that_is_still_there_is_left_to_ingest(self, transcript: Path) -> None:
        run("archive", "add", transcript)
        assert run_json("ingest", "--archive")["sessions"] == 0

    @pytest.mark.parametrize("mode", ["off", "plain", "redacted"])
    def test_hooks_archive_only_when_the_user_says_so(self, transcript: Path, mode: str) -> None:
        from warmstart.ingest.queue import Queue

        home().mkdir(parents=True)
        (home() / "config.toml").write_text(f'archive = "{mode}"\n')
        Queue(home()).add(transcript)
        with warmstart.open() as ws:
            ws.catch_up()
        entries = run_json("archive", "list")
        assert [entry["redacted"] for entry in entries] == {"off": [], "plain": [False], "redacted": [True]}[mode]

    def test_an_archive_that_cannot_be_written_stops_no_reading(self, transcript: Path) -> None:
        from warmstart.ingest.queue import Queue

        home().mkdir(parents=True)
        (home() / "config.toml").write_text('archive = "plain"\n')
        (home() / "archive").write_text("a file in its place")
        Queue(home()).add(transcript)
        with warmstart.open() as ws:
            report = ws.catch_up()
        assert report.new == 1
        assert [Path(problem.path).name for problem in report.problems] == ["archive"]
        assert Queue(home()).count() == 0

    def test_an_unknown_mode_is_a_clear_error(self) -> None:
        home().mkdir(parents=True)
        (home() / "config.toml").write_text('archive = "yes"\n')
        assert "archive" in run("archive", "list", code=2).stderr


class TestFaults:
    def test_damage_is_found_and_never_restored(self, transcript: Path, tmp_path: Path) -> None:
        other = write_jsonl(tmp_path / "o.jsonl", claude_lines("s-2"))
        run("archive", "add", transcript, other)
        (entry,) = [e for e in run_json("archive", "list") if e["path"] == str(transcript)]
        packed = next((home() / "archive" / "contents").rglob(f"{entry['digest']}.zst"))
        packed.write_bytes(packed.read_bytes()[:-9] + b"\0" * 9)
        (problem,) = run_json("archive", "verify", code=1)["problems"]
        assert problem["path"] == str(transcript)
        transcript.unlink()
        run("archive", "restore", transcript, code=1)
        assert not transcript.exists()
        assert not list(transcript.parent.glob(".*.part"))
        other.unlink()
        run("archive", "restore", other)

    def test_another_content_in_its_place_is_found(self, transcript: Path) -> None:
        run("archive", "add", transcript)
        (packed,) = (home() / "archive" / "contents").rglob("*.zst")
        packed.write_bytes(zstandard.compress(transcript.read_bytes().replace(b"fine", b"evil")))
        (problem,) = run_json("archive", "verify", code=1)["problems"]
        assert "has changed" in problem["reason"]
        transcript.unlink()
        run("archive", "restore", transcript, code=1)
        assert not transcript.exists()

    def test_an_entry_that_cannot_be_read_keeps_all_contents(self, transcript: Path) -> None:
        run("archive", "add", transcript)
        (entry,) = (home() / "archive" / "entries").glob("*.json")
        entry.write_text("{")
        content = next((home() / "archive" / "contents").rglob("*.zst"))
        os.utime(content, (0, 0))
        run("archive", "add", DATA / "codex")
        assert content.exists()
        assert "not an entry" in run("archive", "list").stderr

    def test_bad_paths_are_named_and_the_others_kept(self, transcript: Path, tmp_path: Path) -> None:
        junk = tmp_path / "junk.json"
        junk.write_text('{"a": 1}')
        report = run_json("archive", "add", tmp_path / "missing", junk, transcript)
        assert report["added"] == 1
        assert {Path(p["path"]).name for p in report["problems"]} == {"missing", "junk.json"}
        run("archive", "add", tmp_path / "missing", code=1)

    def test_a_database_is_not_archived(self, tmp_path: Path) -> None:
        from formats.samples import fill_hermes

        folder = tmp_path / "hermes"
        folder.mkdir()
        fill_hermes(folder / "state.db")
        assert "a database" in run("archive", "add", folder / "state.db", code=1).stderr
        assert run_json("archive", "add", folder)["skipped"] == 1

    def test_deleting_asks(self, transcript: Path) -> None:
        run("archive", "add", transcript)
        assert "--yes" in run("archive", "delete", "s-1", code=2).stderr
        assert len(run_json("archive", "list")) == 1

    def test_killed_writers_lose_nothing_acknowledged(self, tmp_path: Path) -> None:
        """A process archives versions and says which are done; it is killed; every one that it said is there."""
        code = """
import sys, pathlib, warmstart
folder = pathlib.Path(sys.argv[1])
with warmstart.open() as ws:
    for n in range(100000):
        path = folder / f"{n}.jsonl"
        path.write_text((folder / "first").read_text().replace("s-1", f"k-{n}"))
        ws.archive.add([path])
        print(path, flush=True)
"""
        write_jsonl(tmp_path / "in" / "first", claude_lines("s-1", calls=300))
        done: set[str] = set()
        for wait in (0.0, 0.013, 0.029, 0.05):
            process = start_python(code, str(tmp_path / "in"))
            assert process.stdout
            done.add(process.stdout.readline().strip())
            time.sleep(wait)
            process.send_signal(signal.SIGKILL)
            rest, _err = process.communicate()
            done |= set(rest.splitlines())
        report = run_json("archive", "verify")
        assert report["problems"] == []
        listed = {entry["path"] for entry in run_json("archive", "list")}
        assert {path for path in done if path.endswith(".jsonl")} <= listed
        for content in (home() / "archive" / "contents").rglob("*"):
            os.utime(content, (0, 0))
        run("archive", "add", tmp_path / "in" / "0.jsonl")
        assert not list((home() / "archive" / "contents").glob(".*.part"))
        used = {entry["digest"] for entry in run_json("archive", "list")}
        assert {p.stem for p in (home() / "archive" / "contents").rglob("*.zst")} == used


class TestVanishing:
    def test_doctor_says_which_transcripts_go_when(self) -> None:
        claude = Path(os.environ["HOME"]) / ".claude"
        for n, age in enumerate((1, 10, 25)):
            file = write_jsonl(claude / "projects" / "-shop" / f"v-{n}.jsonl", claude_lines(f"v-{n}"))
            at = time.time() - age * 86_400
            os.utime(file, (at, at))
        found = run_json("doctor")["vanishing"]
        assert (found["days"], found["transcripts"], found["soon"]) == (30, 3, 1)
        first = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 5 * 86_400))
        assert found["earliest"].startswith(first)
        assert (
            f"3 transcripts of Claude Code not archived: it deletes them after 30 days without use, the first from {first}, 1 within a week"
            in " ".join(run("doctor").stdout.split())
        )
        (claude / "settings.json").write_text(json.dumps({"cleanupPeriodDays": 90, "model": "x"}))
        assert run_json("doctor")["vanishing"]["soon"] == 0
        run("archive", "add")
        assert run_json("doctor")["vanishing"]["transcripts"] == 0
        assert "not archived" not in run("doctor").stdout

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            '{"cleanupPeriodDays": "x"}',
            '{"cleanupPeriodDays": -1}',
            "[" * 100_000,
            "{}",
            '{"cleanupPeriodDays": 1e300}',
        ],
    )
    def test_settings_that_cannot_be_read_count_as_the_default(self, text: str, tmp_path: Path) -> None:
        (tmp_path / "settings.json").write_text(text)
        assert read_cleanup_days(tmp_path / "settings.json") == 30
