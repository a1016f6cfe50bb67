"""Checkpoint branches: the largest copy of each session, by object id, from repositories that may be hostile."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import warmstart
from command_line import run, run_json
from ingest.packing import checkpoint, commit, encode_session, make_repository, pack, run_git
from warmstart.errors import SourceError
from warmstart.ingest.skips import OTHER_NAME, SMALLER

PERSON = ("-c", "user.name=a", "-c", "user.email=a@example.com")
BRANCH = "entire/checkpoints/v1"
OLD, NEW = checkpoint("aa0000000001", "s-1", 2), checkpoint("bb0000000002", "s-1", 5)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    made = make_repository(tmp_path / "shop")
    commit(made, BRANCH, OLD | NEW | checkpoint("cc0000000003", "s-2", 1))
    return made


def test_the_largest_copy_of_each_session_is_read(repository: Path) -> None:
    report = run_json("ingest", f"git:{repository}")
    assert (report["new"], report["calls"], report["problems"]) == (2, 6, [])
    assert [(skip["reason"], skip["files"]) for skip in report["skips"]] == [(SMALLER, 1)]
    again = run_json("ingest", f"git:{repository}#{BRANCH}")
    assert (again["sessions"], again["unchanged"], again["skipped"]) == (0, 1, 0)
    row = next(row for row in run_json("sessions", "list") if row["id"] == "s-1")
    shown = run("sessions", "show", row["id"]).stdout
    assert "bb/0000000002/0/full.jsonl" in shown.replace("\n", "").replace(" ", "")


def test_only_new_objects_are_read(repository: Path) -> None:
    with warmstart.open() as ws:
        ws.ingest(f"git:{repository}")
        commit(repository, BRANCH, checkpoint("dd0000000004", "s-2", 4))
        report = ws.ingest(f"git:{repository}")
        assert (report.sessions, report.updated, report.unchanged) == (1, 1, 1)
        commit(repository, BRANCH, {"README.txt": b"x"})
        report = ws.ingest(f"git:{repository}")
        assert (report.sessions, report.unchanged) == (0, 2)


def test_a_repository_is_read_as_a_folder_with_its_checkpoints(repository: Path) -> None:
    (repository / "own.jsonl").write_bytes(encode_session("s-own"))
    with warmstart.open() as ws:
        report = ws.ingest(repository)
    assert report.new == 3
    assert {skip.reason for skip in report.skips} == {SMALLER}, "git's own files are no candidates"


@pytest.mark.parametrize("place", ["bare", "clone", "packed", "worktree", "sha256"])
def test_kinds_of_repositories(place: str, repository: Path, tmp_path: Path) -> None:
    other = tmp_path / place
    if place == "bare":
        run_git(tmp_path, "clone", "-q", "--bare", str(repository), str(other))
    elif place == "clone":  # the branch is only the remote's
        run_git(tmp_path, "clone", "-q", str(repository), str(other))
    elif place == "packed":
        run_git(repository, "pack-refs", "--all")
        run_git(repository, "gc", "-q")
        other = repository
    elif place == "worktree":
        commit(repository, "main", {"a.txt": b"x"})
        run_git(repository, "worktree", "add", "-q", str(other), "main", "--force")
    else:
        make_repository(other, "--object-format=sha256")
        commit(other, BRANCH, OLD | NEW | checkpoint("cc0000000003", "s-2", 1))
    found = warmstart.inspect(f"git:{other}")
    assert sorted((scored.session.id, scored.score.counts.tool_calls) for scored in found.sessions) == [
        ("s-1", 5),
        ("s-2", 1),
    ]


def test_other_branches_are_read_as_folders(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    files = {
        "logs/a.jsonl": encode_session("s-a"),
        "b.tar": pack({"b.jsonl": encode_session("s-b")}, "tar"),
        "x.py": b"x",
    }
    commit(repository, "logs/of/agents", files)
    run_git(repository, *PERSON, "tag", "-m", "x", "v1", "logs/of/agents")
    head = run_git(repository, "rev-parse", "logs/of/agents")
    for ref in ("logs/of/agents", "refs/heads/logs/of/agents", "v1", head):
        found = warmstart.inspect(f"git:{repository}#{ref}")
        assert {scored.session.id for scored in found.sessions} == {"s-a", "s-b"}, ref
    with warmstart.open() as ws:
        assert [(skip.reason, skip.files) for skip in ws.ingest(f"git:{repository}#v1").skips] == [(OTHER_NAME, 1)]


def test_parts_subagents_and_facts_that_cannot_be_read(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    whole = encode_session("s-1", 6)
    lines = whole.splitlines(keepends=True)
    files = checkpoint("aa0000000001", "s-1", 2)
    files["aa/0000000001/0/full.jsonl"] = b"".join(lines[:5]).rstrip(b"\n")
    files["aa/0000000001/0/full.jsonl.001"] = b"".join(lines[5:9]).rstrip(b"\n")
    files["aa/0000000001/0/full.jsonl.002"] = b"".join(lines[9:])
    files |= checkpoint("bb0000000001", "s-2", 1) | {"bb/0000000001/0/metadata.json": b'{"session_id": 7'}
    files |= checkpoint("cc0000000001", "s-3", 1) | {"cc/0000000001/0/metadata.json": b"[]"}
    files["aa/0000000001/0/tasks/toolu_1/agent-7.jsonl"] = encode_session("s-sub", 1)
    commit(repository, BRANCH, files)
    found = warmstart.inspect(f"git:{repository}")
    calls = {scored.session.id: scored.score.counts.tool_calls for scored in found.sessions}
    assert calls == {"s-1": 6, "s-2": 1, "s-3": 1, "s-sub": 1}
    assert len(found.problems) == 2


def trap(repository: Path, marker: Path) -> None:
    """Make a repository that runs a program wherever git lets it."""
    script = repository / "trap.sh"
    script.write_text(f"#!/bin/sh\ntouch '{marker}'\n")
    script.chmod(0o755)
    hooks = repository / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    for hook in ("post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc"):
        shutil.copy(script, hooks / hook)
    settings = {
        "core.fsmonitor": str(script),
        "core.pager": str(script),
        "core.sshCommand": str(script),
        "core.alternateRefsCommand": str(script),
        "diff.external": str(script),
        "filter.x.smudge": str(script),
        "filter.x.process": str(script),
        "protocol.allow": "always",
        "protocol.ext.allow": "always",
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "evil",
        "remote.evil.promisor": "true",
        "remote.evil.url": f"ext::{script}",
        "remote.evil.uploadpack": str(script),
    }
    for name, value in settings.items():
        run_git(repository, "config", name, value)
    (repository / ".git/info").mkdir(exist_ok=True)
    (repository / ".git/info/attributes").write_text("* filter=x diff=x\n")


def test_a_hostile_repository_runs_nothing(repository: Path, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    lost = run_git(repository, "rev-parse", f"{BRANCH}:cc/0000000003/0/full.jsonl")
    run_git(repository, "repack", "-adq")
    for pack_file in (repository / ".git/objects/pack").glob("*.pack"):  # loose objects, so that one can go
        data = pack_file.read_bytes()
        for file in pack_file.parent.glob(f"{pack_file.stem}.*"):
            file.unlink()
        run_git(repository, "unpack-objects", "-q", text=data)
    (repository / ".git/objects" / lost[:2] / lost[2:]).unlink()
    trap(repository, marker)
    with warmstart.open() as ws:
        report = ws.ingest(repository, f"git:{repository}")
    assert not marker.exists()
    assert report.new == 1, "the session whose object is there"
    assert any("damaged or incomplete" in problem.reason for problem in report.problems)
    subprocess.run(
        ["git", "-C", str(repository), "cat-file", "-p", lost],
        capture_output=True,
        env=os.environ | {"GIT_PAGER": "cat"},
    )
    assert marker.exists(), "the trap works: git itself runs the program"


def test_damaged_repositories(repository: Path, tmp_path: Path) -> None:
    run_git(repository, "gc", "-q")
    with pytest.raises(SourceError, match="no git repository"):
        warmstart.inspect(f"git:{tmp_path}")
    for ref in ("../../etc/passwd", "nope", "-x", "a b", "HEAD", "x" * 3000):
        with pytest.raises(SourceError, match="no branch, tag or commit"):
            warmstart.inspect(f"git:{repository}#{ref}")
    with pytest.raises(SourceError, match="damaged or incomplete"):
        warmstart.inspect(f"git:{repository}#{'0' * 39}1")
    with warmstart.open() as ws:
        report = ws.ingest(f"git:{repository}#{'0' * 39}1", f"git:{repository}#nope", f"git:{repository}")
        assert report.new == 2 and len(report.problems) == 2
    (pack_file,) = (repository / ".git/objects/pack").glob("*.pack")
    data = pack_file.read_bytes()
    pack_file.chmod(0o644)
    pack_file.write_bytes(data[: len(data) // 2])
    run("ingest", f"git:{repository}", "--json")
    with warmstart.open(home=tmp_path / "home") as ws:
        assert ws.ingest(f"git:{repository}").problems


def test_a_tree_that_lists_more_files_than_there_are_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = make_repository(tmp_path / "r")
    blob = run_git(repository, "hash-object", "-w", "--stdin", text=b"x")
    tree = run_git(repository, "mktree", text=f"100644 blob {blob}\tf\n".encode())
    for _ in range(8):
        text = "".join(f"040000 tree {tree}\t{name}\n" for name in "abcdefghij")
        tree = run_git(repository, "mktree", text=text.encode())
    top = run_git(repository, *PERSON, "commit-tree", "-m", "x", tree)
    run_git(repository, "update-ref", f"refs/heads/{BRANCH}", top)
    monkeypatch.setattr("warmstart.ingest.git_objects._MAX_LISTING", 1 << 20)
    with pytest.raises(SourceError, match="lists more than"):
        warmstart.inspect(f"git:{repository}")
