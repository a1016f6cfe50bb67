"""Hostile repositories, folders and archives: nothing runs, nothing escapes, and the sound files are still read."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from bundles.team import PROJECT, Member, git, list_changes, list_files, make_team, rewrite
from places import SRC
from warmstart.bundles.items import LARGEST
from warmstart.errors import Refused, SourceError, StoreFull


@pytest.fixture
def team(tmp_path):
    return make_team(tmp_path)


def test_links_submodules_and_strange_names_are_refused(team, tmp_path):
    anna, ben, repository = team
    anna.push(repository)
    good = len(list_files(repository))
    (tmp_path / "secret.json").write_text("{}")

    def poison(checkout: Path) -> None:
        folder = next((checkout / "notes").iterdir())
        (folder / "link-1.json").symlink_to(tmp_path / "secret.json")
        (checkout / "templates").mkdir(exist_ok=True)
        (checkout / "templates" / "all").symlink_to("/etc")
        (folder / "huge.json").write_bytes(b" " * (LARGEST + 1))
        (folder / "CON.json").write_text("{}")
        (folder / "Upper Case.json").write_text("{}")
        (folder / "bad.json").write_bytes(b"\xff\xfe{")
        (folder / "deep.json").write_text("[" * 5_000)
        (checkout / ".gitattributes").write_text("*.json filter=evil\n")
        (checkout / ".gitmodules").write_text('[submodule "x"]\n\tpath = x\n\turl = https://example.com/x\n')
        (checkout / "README.md").write_text("ours")
        inner = checkout / "notes" / "module"
        git("init", "--quiet", inner)
        git("commit", "--allow-empty", "--quiet", "-m", "x", folder=inner)

    rewrite(repository, poison)
    pulled = ben.pull(repository)
    assert [item.change for item in pulled.items] == ["new"] * good
    reasons = {problem.path.rpartition("/")[2]: problem.reason for problem in pulled.problems}
    assert reasons["link-1.json"] == reasons["all"] == "a symbolic link"
    assert reasons["module"] == "a submodule"
    assert reasons["huge.json"] == "larger than 512 KB"
    assert reasons["CON.json"] == reasons["Upper Case.json"] == "not the name of a note or template"
    assert {"bad.json", "deep.json"} <= reasons.keys()


def test_no_hook_and_no_setting_of_the_repository_runs(team, tmp_path):
    anna, ben, repository = team
    anna.push(repository)
    ran = tmp_path / "ran"
    for name in ("pre-receive", "update", "post-receive", "post-update", "reference-transaction", "push-to-checkout"):
        hook = repository / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
        hook.chmod(0o755)
    for setting in ("uploadpack.packObjectsHook", "core.fsmonitor", "core.sshCommand", "gc.recentObjectsHook"):
        git("config", setting, f"touch {ran}", folder=repository)
    git("config", "gc.auto", "1", folder=repository)
    git("config", "receive.autogc", "true", folder=repository)
    anna.work(
        ("Bash", {"command": "npm run tset"}, "Exit code 1\nnpm error Missing script: tset"),
        ("Bash", {"command": "npm run test"}, "ok"),
        first=5,
    )
    assert anna.push(repository).where
    ben.pull(repository)
    time.sleep(0.3)
    assert not ran.exists()


def test_an_item_that_claims_another_place_is_refused(team):
    anna, ben, repository = team
    anna.push(repository)

    def move(checkout: Path) -> None:
        file = next((checkout / "notes").rglob("command-*.json"))
        file.rename(file.with_name("other-name.json"))

    rewrite(repository, move)
    assert any("does not belong here" in problem.reason for problem in ben.pull(repository).problems)


@pytest.mark.parametrize(
    "change", [{"project": "../../etc"}, {"project": "/home/anna/x"}, {"warmstart_bundle": 2}, {"x": 1}]
)
def test_fields_are_checked(team, tmp_path, change):
    anna, ben, _repository = team
    anna.push(tmp_path / "b")
    file = next((tmp_path / "b" / "notes").rglob("command-*.json"))
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with ben.open() as ws:
        checked = ws.bundles.check(str(tmp_path / "b"))
    assert len(checked.problems) == 1
    assert str(file.name) in checked.problems[0].path


def test_a_folder_with_links_and_pipes(team, tmp_path):
    anna, ben, _repository = team
    folder = tmp_path / "b"
    anna.push(folder)
    project = next((folder / "notes").iterdir())
    os.mkfifo(project / "pipe.json")
    (project / "link.json").symlink_to("/etc/passwd")
    (project / "loop").symlink_to(project)
    pulled = ben.pull(folder)
    assert {problem.reason for problem in pulled.problems} == {"not a plain file", "a symbolic link"}
    assert pulled.items
    outside = tmp_path / "outside"
    outside.mkdir()
    trap = tmp_path / "trap"
    trap.mkdir()
    (trap / "notes").symlink_to(outside)
    with pytest.raises(Refused, match="symbolic link"):
        anna.push(trap)
    assert not list(outside.iterdir())


def test_an_archive_with_links_and_paths_out_of_it(team, tmp_path):
    _anna, ben, _repository = team
    with tarfile.open(tmp_path / "b.tar", "w") as tar:
        for name, kind in (("notes/x/../../../etc/x.json", tarfile.REGTYPE), ("notes/x/l.json", tarfile.SYMTYPE)):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            tar.addfile(member, io.BytesIO(b""))
        member = tarfile.TarInfo("notes/x/big.json")
        member.size = LARGEST + 1
        tar.addfile(member, io.BytesIO(b" " * member.size))
    pulled = ben.pull(tmp_path / "b.tar")
    assert len(pulled.problems) == 3
    assert not pulled.items
    (tmp_path / "c.zip").write_bytes(b"PK\x03\x04garbage")
    with pytest.raises(SourceError, match="not an archive"):
        ben.pull(tmp_path / "c.zip")


def test_a_listing_without_end_is_refused(team, tmp_path):
    """A tree of trees of trees: eight levels of ten are a hundred million files in a few hundred bytes."""
    _anna, ben, repository = team
    blob = (
        subprocess.run(
            ["git", "hash-object", "-w", "--stdin"], cwd=repository, input=b"x", capture_output=True, check=True
        )
        .stdout.decode()
        .strip()
    )
    entry = f"100644 blob {blob}"
    for _ in range(8):
        lines = "".join(f"{entry}\tn{number}\n" for number in range(10))
        tree = subprocess.run(["git", "mktree"], cwd=repository, input=lines.encode(), capture_output=True, check=True)
        entry = f"040000 tree {tree.stdout.decode().strip()}"
    top = subprocess.run(
        ["git", "mktree"], cwd=repository, input=f"{entry}\tnotes\n".encode(), capture_output=True, check=True
    )
    commit = git("commit-tree", top.stdout.decode().strip(), "-m", "x", folder=repository).strip()
    git("update-ref", "refs/heads/main", commit, folder=repository)
    began = time.monotonic()
    with pytest.raises(SourceError, match="larger than"):
        ben.pull(repository)
    assert time.monotonic() - began < 30


PUSH = """
import sys, warmstart
from pathlib import Path
with warmstart.open(Path(sys.argv[1])) as ws:
    sys.stdout.write("ready\\n"); sys.stdout.flush()
    getattr(ws.bundles, sys.argv[2])(sys.argv[3], *([[sys.argv[4]]] if sys.argv[2] == "push" else []))
"""


@pytest.mark.slow
@pytest.mark.parametrize("action", ["push", "pull"])
def test_kill_9_leaves_nothing_half_done(team, action):
    """Killed at many points: the branch is as before or complete, the store has none or all, and the next run works."""
    anna, ben, repository = team
    member = anna if action == "push" else ben
    if action == "pull":
        anna.push(repository)
    for delay in (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.45):
        process = subprocess.Popen(
            [sys.executable, "-c", PUSH, str(member.home), action, str(repository), PROJECT],
            env=os.environ | {"PYTHONPATH": SRC},
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        if action == "push":
            refs = git("for-each-ref", folder=repository)
            files = list_files(repository) if refs else []
            assert len(files) in (0, 2, 3)
            assert git("fsck", "--strict", folder=repository) is not None
        else:
            with ben.open() as ws:
                assert len(ws.notes.list()) in (0, 2)
    if action == "push":
        anna.push(repository)
        assert len(list_files(repository)) >= 2
    assert {change.split()[1] for change in list_changes(ben.pull(repository))} <= {"new", "same"}
    with ben.open() as ws:
        assert len(ws.notes.list()) == 2


def test_a_full_disk_of_the_repository_is_a_clear_error_and_the_branch_stays(tmp_path, small_disk):
    anna, _ben, repository = make_team(tmp_path, small_disk)
    anna.push(repository)
    before = git("rev-parse", "main", folder=repository)
    anna.work(
        ("Bash", {"command": "npm run tset"}, "Exit code 1\nnpm error Missing script: tset"),
        ("Bash", {"command": "npm run test"}, "ok"),
        first=5,
    )
    ballast = fill_disk(small_disk)
    with pytest.raises(Refused, match="No space left"):
        anna.push(repository)
    assert git("rev-parse", "main", folder=repository) == before
    ballast.unlink()
    anna.push(repository)
    assert git("rev-parse", "main", folder=repository) != before
    git("fsck", "--strict", folder=repository)


def test_a_full_disk_of_the_receiver_is_a_clear_error_and_the_next_pull_is_complete(tmp_path, small_disk):
    anna, _ben, repository = make_team(tmp_path)
    anna.push(repository)
    cleo = Member(small_disk, "cleo")
    cleo.trust(anna)
    with cleo.open() as ws:
        assert not ws.notes.list()  # there is a store
    ballast = fill_disk(small_disk)
    reasons, received = [], None
    while received is None:  # with a little more room each time
        try:
            received = cleo.pull(repository)
        except (Refused, StoreFull) as error:
            reasons.append(type(error))
            assert re.search(r"no space left", str(error), re.I), error
            os.truncate(ballast, ballast.stat().st_size - 12_288)
    assert {*reasons} == {Refused, StoreFull}, "git and the store ran out of space"
    assert {change.split()[1] for change in list_changes(received)} == {"new"}, "no attempt left anything"
    assert not list((cleo.home / "bundles").rglob("git-*"))


def fill_disk(disk: Path) -> Path:
    """Fill a disk with one file."""
    with pytest.raises(OSError, match="No space"):
        (disk / "ballast").write_bytes(bytes(3_000_000))
    return disk / "ballast"


def test_no_clock_decides(team, monkeypatch):
    """Ben's machine is a year behind Anna's: he receives, updates and retires all the same."""
    anna, ben, repository = team
    anna.push(repository)
    with ben.open() as ws:
        ws._clock = lambda: 1_700_000_000.0 - 365 * 86_400
        assert {item.change for item in ws.bundles.pull(str(repository)).items} == {"new"}
    with anna.open() as ws:
        ws._clock = lambda: 1_600_000_000.0
        note = ws.notes.list(kind="command")[0]
        ws.notes.retire(note.id)
        assert "retired" in {item.change for item in ws.bundles.push(str(repository), [PROJECT]).items}
    assert "note retirement proposed" in list_changes(ben.pull(repository))
