"""Anchors elsewhere: written by the daemon, read by `verify`, and what they reveal."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from confirm.commands import run, run_json
from confirm.serving import House, check, wait_until
from confirm.tampering import anchor_of, copy_database
from warmstart.confirm.audit.chain import ChainHead
from warmstart.confirm.audit.elsewhere import FolderPlace, GitPlace, open_place, read_literal
from warmstart.doors.web import ConfirmationServer
from warmstart.errors import ConfigError, StoreError


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return f"file://{tmp_path / 'bucket'}"


@pytest.fixture
def repository(tmp_path: Path) -> str:
    """A bare repository that refuses to be rewritten, as a server's would."""
    bare = tmp_path / "repo.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(bare)], check=True)
    subprocess.run(["git", "-C", str(bare), "config", "receive.denyNonFastForwards", "true"], check=True)
    return f"git+file://{bare}"


def verify(database: Path, *anchors: str) -> tuple[int, str]:
    done = run("verify", "--db", str(database), *(part for anchor in anchors for part in ("--anchor", anchor)))
    return done.exit_code, done.output


@pytest.mark.slow
def test_redteam_the_daemon_anchors_elsewhere_and_an_old_copy_is_named(
    open_house: Callable[..., House], folder: str, repository: str, tmp_path: Path
) -> None:
    house = open_house(anchors=[folder, repository])
    house.submit()
    house.stop()
    old = tmp_path / "old.db"
    copy_database(house.database, old)
    house.start()
    house.deny(house.submit().body["id"])
    house.stop()
    code, text = verify(house.database, folder, repository)
    assert (code, "anchors from elsewhere compared" in text) == (0, True), text
    assert run_json("verify", "--db", str(house.database), "--anchor", folder)["witnesses"] >= 2
    assert check(old).ok, "with the anchor beside it the old copy looks fine"
    for place in (folder, repository):
        code, text = verify(old, place)
        assert code == 1
        assert "an old copy was put back, or its end was cut" in text, text
        assert "as it was anchored at " in text
    done = run("verify", "--db", str(old), "--anchor", folder, "--accept", "--yes")
    assert "cannot be accepted" in done.output and done.exit_code == 1


def test_redteam_another_audit_in_its_place_is_named(
    open_house: Callable[..., House], folder: str, tmp_path: Path
) -> None:
    house = open_house(anchors=[folder])
    house.stop()
    forged = tmp_path / "forged.db"
    ConfirmationServer(database=forged, port=0, ui_port=0).start_background().stop()
    code, text = verify(forged, folder)
    assert (code, "holds no anchor of this audit: another audit was put in its place" in text) == (1, True)


def test_an_anchor_from_a_message_is_written_out(house: House) -> None:
    house.submit()
    house.stop()
    head = anchor_of(house.database).read()
    assert head is not None
    assert verify(house.database, f"{head.sequence}:{head.hash}")[0] == 0
    code, text = verify(house.database, f"{head.sequence}:{'0' * 64}")
    assert (code, "the audit was rewritten" in text) == (1, True)
    assert "an old copy" in verify(house.database, f"{head.sequence + 5}:{head.hash}")[1]
    assert read_literal("12:abc") is None


def test_a_mistyped_anchor_is_named(house: House) -> None:
    house.submit()
    house.stop()
    mistyped = run("verify", "--db", str(house.database), "--anchor", "3:abc")
    assert mistyped.exit_code != 0 and "this hash has 3 characters" in mistyped.stderr, mistyped.output
    head = anchor_of(house.database).read()
    right = run("verify", "--db", str(house.database), "--anchor", f"{head.sequence}:{head.hash}")
    assert "; 1 anchor from elsewhere compared" in right.stdout


def test_redteam_a_repository_keeps_what_a_later_commit_takes_out(repository: str, tmp_path: Path) -> None:
    place = open_place(repository, tmp_path, "confirm-x")
    heads = [ChainHead(n, f"{n}" * 64) for n in (1, 2, 3)]
    for head in heads:
        place.write(head)
    place.write(heads[-1])  # nothing new
    assert isinstance(place, GitPlace)
    copy = place._copy
    (copy / "confirm-x.anchors").write_text("3:" + "9" * 64 + "\n")
    for arguments in (["commit", "-qam", "x"], ["push", "-q", "origin", "HEAD:refs/heads/anchors"]):
        identity = ["-c", "user.name=x", "-c", "user.email=x@localhost"]
        subprocess.run(["git", *identity, *arguments], cwd=copy, check=True)
    fresh = open_place(repository, tmp_path / "other", "confirm-x")
    assert fresh.read() == [*heads, ChainHead(3, "9" * 64)], "both: one of them contradicts"


def test_a_place_that_does_not_take_it_is_seen(open_house: Callable[..., House], tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file, not a folder")
    house = open_house(anchors=[f"file://{tmp_path / 'taken'}"])
    wait_until(lambda: "elsewhere" in house.desk.trouble)
    assert house.submit().status == 202, "everything else goes on"


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
def test_addresses_are_checked(tmp_path: Path) -> None:
    for wrong in ("/just/a/path", "nonsense://x"):
        with pytest.raises(ConfigError):
            open_place(wrong, tmp_path, "x")
    memory = open_place("memory://anchors-test", tmp_path, "x")
    assert isinstance(memory, FolderPlace)
    assert memory.read() == []
    memory.write(ChainHead(7, "a" * 64))
    assert memory.read() == [ChainHead(7, "a" * 64)]
    with pytest.raises(StoreError, match="git fetch failed"):
        open_place(f"git+file://{tmp_path / 'nowhere'}", tmp_path, "x").read()
    done = run("verify", "--anchor", str(tmp_path / "a"), "--anchor", str(tmp_path / "b"))
    assert done.exit_code != 0
