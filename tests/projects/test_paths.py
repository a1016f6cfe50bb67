"""Paths relative to the project's root, and text without the root."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmstart.projects.paths import absolute_path, is_broad, mask_root, relative_path
from warmstart.projects.worktrees import find_worktree

ROOT = "/home/me/repo"
WINDOWS = r"C:\Users\Me\My Repo"


@pytest.mark.parametrize(
    ("path", "relative"),
    [
        ("/home/me/repo/src/x.py", "src/x.py"),
        ("/home/me/repo", "."),
        ("/home/me/repo/", "."),
        ("./src/x.py", "src/x.py"),
        ("src/../x.py", "x.py"),
        ("/home/me/repo/a b/c d.py", "a b/c d.py"),
        ("~/repo/x.py", "x.py"),
        ("~me/repo/x.py", "x.py"),
        ("file:///home/me/repo/a%20b.py", "a b.py"),
        ("/home/me/repo/.claude/worktrees/fix/src/x.py", "src/x.py"),
        ("/home/me/repo/.worktrees/fix/src/x.py", "src/x.py"),
        ("/home/me/repo/worktrees/notes.md", "worktrees/notes.md"),
        ("../x.py", None),
        ("/home/me/repo/../other/x.py", None),
        ("/home/me/repository/x.py", None),
        ("/etc/passwd", None),
        ("~you/repo/x.py", None),
        ("", None),
        ("src/a\nb.py", None),
        ("/home/me/repo/\x1b[31mred.py", None),
        ("src/\u202egnp.exe", None),
        ("src/" + "x" * 2_000, None),
    ],
)
def test_relative_path(path, relative):
    assert relative_path(path, ROOT) == relative


@pytest.mark.parametrize(
    ("path", "relative"),
    [
        (r"C:\Users\Me\My Repo\src\x.py", "src/x.py"),
        ("c:/users/me/my repo/src/x.py", "src/x.py"),
        (r"\\?\C:\Users\Me\My Repo\x.py", "x.py"),
        ("/c/Users/Me/My Repo/x.py", "x.py"),
        ("/mnt/c/Users/Me/My Repo/x.py", "x.py"),
        (r"src\x.py", "src/x.py"),
        (r"D:\My Repo\x.py", None),
    ],
)
def test_relative_path_on_windows(path, relative):
    assert relative_path(path, WINDOWS) == relative


def test_a_path_of_the_main_checkout_is_the_same_in_its_worktree():
    assert relative_path("/home/me/repo/src/x.py", "/home/me/repo/.claude/worktrees/fix") == "src/x.py"
    assert relative_path("/home/me/repo/.claude/worktrees/other/x.py", "/home/me/repo/.claude/worktrees/fix") == "x.py"


def test_a_path_of_another_machine_is_relative_to_the_root_there():
    assert relative_path("/Users/you/code/repo/x.py", ROOT) is None
    assert relative_path("/Users/you/code/repo/x.py", ROOT, others=["/Users/you/code/repo"]) == "x.py"


def test_mac_os_temporary_folders_have_two_names():
    assert relative_path("/private/tmp/a/x", "/tmp/a") == "x"
    assert relative_path("/tmp/a/x", "/private/tmp/a") == "x"


def test_without_a_root_only_relative_paths_are_known():
    assert relative_path("./src/x.py", None) == "src/x.py"
    assert relative_path("/home/me/repo/x.py", None) is None


def test_a_home_folder_is_no_root():
    assert relative_path("/home/me/secrets.txt", "/home/me") is None
    assert mask_root("cat /home/me/x", "/home/me") == "cat /home/me/x"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("cd /home/me/repo && pytest /home/me/repo/tests/a.py", "pytest tests/a.py"),
        ('cd "/home/me/repo" && make', "make"),
        ("cd ~/repo; make", "make"),
        ("cd /home/me/repo/sub && ls", "cd sub && ls"),
        ("ls /home/me/repo", "ls ."),
        ("ls /home/me/repo/", "ls ."),
        ("I work in /home/me/repo.", "I work in ."),
        ("It is in /home/me/repo. Next", "It is in . Next"),
        ("cat '/home/me/repo/a b.py'", "cat 'a b.py'"),
        ("$HOME/repo/x:12: error", "x:12: error"),
        ("PYTHONPATH=/home/me/repo/src:/home/me/repo", "PYTHONPATH=src:."),
        ("/home/me/repo/.claude/worktrees/fix/src/x.py", "src/x.py"),
        ("file:///home/me/repo/x", "x"),
        ("/home/me/repository/x", "/home/me/repository/x"),
        ("/home/me/repo.git", "/home/me/repo.git"),
        ("/mnt/home/me/repo/x", "/mnt/home/me/repo/x"),
        ("https://host/home/me/repo/x", "https://host/home/me/repo/x"),
    ],
)
def test_mask_root(text, masked):
    assert mask_root(text, ROOT) == masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (r'cd "C:\Users\Me\My Repo" && dir', "dir"),
        (r'{"path": "C:\\Users\\Me\\My Repo\\src\\x.py"}', r'{"path": "src\\x.py"}'),
        (r"/c/Users/Me/My\ Repo/x", "x"),
    ],
)
def test_mask_root_on_windows(text, masked):
    assert mask_root(text, WINDOWS) == masked


def test_a_root_that_is_also_a_route_is_left_in_texts():
    assert (
        mask_root("cd /app && curl localhost/app/users; GET /app/users", "/app")
        == "curl localhost/app/users; GET /app/users"
    )
    assert relative_path("/app/src/x.py", "/app") == "src/x.py"
    assert mask_root("cat /testbed/x.py", "/testbed") == "cat x.py"


def test_paths_are_written_for_the_own_root():
    assert absolute_path("src/x.py", "/work/clone/") == "/work/clone/src/x.py"
    assert absolute_path("src/x.py", WINDOWS) == r"C:\Users\Me\My Repo\src\x.py"
    assert absolute_path(".", "/work/clone") == "/work/clone"
    assert absolute_path("/etc/hosts", "/work/clone") == "/etc/hosts"


_names = st.text("abcXYZ 019._-ä中", min_size=1, max_size=8).filter(lambda name: name.strip(". ") == name)


@given(st.lists(_names, min_size=1, max_size=4), st.sampled_from([ROOT, WINDOWS, "/private/tmp/a b"]))
def test_a_path_survives_the_way_to_another_root_and_back(names, root):
    path = "/".join(names)
    assert relative_path(absolute_path(path, root), root) == path


@given(st.text(max_size=60))
def test_any_text_has_a_plain_relative_path_or_none(path):
    relative = relative_path(path, ROOT)
    assert relative is None or (relative.isprintable() and not relative.startswith(("/", "../")))
    assert isinstance(mask_root(path, ROOT), str)


@pytest.mark.parametrize(
    ("folder", "root", "main", "repository"),
    [
        ("/home/me/repo/.claude/worktrees/fix/src", "/home/me/repo/.claude/worktrees/fix", "/home/me/repo", "repo"),
        ("/home/me/repo/.worktrees/fix", "/home/me/repo/.worktrees/fix", "/home/me/repo", "repo"),
        ("/home/me/repo/worktrees/fix", "/home/me/repo/worktrees/fix", "/home/me/repo", "repo"),
        ("/Users/me/conductor/workspaces/repo/oslo/a", "/Users/me/conductor/workspaces/repo/oslo", "", "repo"),
        ("/Users/me/.cursor/worktrees/repo/x1", "/Users/me/.cursor/worktrees/repo/x1", "", "repo"),
        ("/Users/me/.codex/worktrees/04ef/repo/src", "/Users/me/.codex/worktrees/04ef/repo", "", "repo"),
    ],
)
def test_usual_places_of_worktrees(folder, root, main, repository):
    assert find_worktree(folder)[:3] == (root, main, repository)


def test_other_folders_are_no_worktrees():
    assert find_worktree("/home/me/repo/src") is None
    assert find_worktree("/home/me/worktrees") is None


@pytest.mark.parametrize(
    "folder", ["/", "/tmp", "/private/tmp", "/home/me", "/root", "/Users/me/", "C:\\", r"C:\Users\Me"]
)
def test_broad_folders(folder):
    assert is_broad(folder)
    assert not is_broad(folder.rstrip("/\\") + "/repo")
