"""A fresh clone and a new worktree of a known repository get its examples from the hook."""

from __future__ import annotations

import uuid
from pathlib import Path

import warmstart
from doors.hooks.events import answer, prompt, start
from projects.repositories import git, make_repository
from transcripts import teach, work_lines

REMOTE = "git@github.com:Org/Shop.git"


def teach_shop(repo: Path) -> None:
    calls = (
        ("Read", {"file_path": f"{repo}/src/cart.py"}, f"1 # {repo}/src/cart.py"),
        ("Bash", {"command": f"cd {repo} && uv run pytest -q tests/test_cart.py"}, "3 passed in 0.12s"),
        ("Edit", {"file_path": f"{repo}/src/cart.py", "old_string": "a", "new_string": "b"}, "updated"),
    )
    with warmstart.open() as ws:
        teach(ws, *(work_lines(f"s-{n}", *calls, cwd=str(repo), day=n + 1) for n in range(3)))
        ws.learn()


def test_a_fresh_clone_gets_the_seed_written_for_its_own_root(tmp_path):
    repo = make_repository(tmp_path / "code" / "shop", REMOTE)
    teach_shop(repo)
    clone = tmp_path / "other" / "checkout"
    clone.parent.mkdir()
    git(tmp_path, "clone", "-q", str(repo), str(clone))
    git(clone, "remote", "set-url", "origin", "https://github.com/org/shop.git")
    opening = answer(start(cwd=str(clone)))
    added = answer(prompt("fix the failing cart tests", cwd=str(clone)))
    given = f"{opening}{added}"
    assert "uv run pytest -q tests/test_cart.py" in given
    assert str(repo) not in given


def test_a_new_worktree_gets_it_too_and_another_repository_does_not(tmp_path):
    repo = make_repository(tmp_path / "code" / "shop", REMOTE)
    teach_shop(repo)
    git(repo, "worktree", "add", "-q", str(repo / ".claude" / "worktrees" / "fix"))
    session = str(uuid.uuid4())
    assert answer(start(session, cwd=str(repo / ".claude" / "worktrees" / "fix" / "src")))
    other = make_repository(tmp_path / "mine" / "shop", "git@github.com:me/shop.git")
    assert answer(start(str(uuid.uuid4()), cwd=str(other))) is None
