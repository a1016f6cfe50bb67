"""The repository of a folder on this machine, on real repositories."""

from __future__ import annotations

from pathlib import Path

import pytest

from projects.repositories import git, make_repository
from warmstart.projects.disk import find_checkout, find_root_commit, name_commit

REMOTE = "git@github.com:Org/Repo.git"
NAME = "github.com/org/repo"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder for repositories: below a temporary folder that is itself no project."""
    folder = tmp_path / "code"
    folder.mkdir()
    return folder


def test_a_subfolder_belongs_to_its_repository(place):
    repo = make_repository(place / "repo", REMOTE)
    checkout = find_checkout(str(repo / "src"))
    assert checkout is not None
    assert (checkout.root, checkout.remote, checkout.name) == (str(repo), NAME, "repo")


def test_a_deleted_subfolder_still_belongs_to_it(place):
    repo = make_repository(place / "repo", REMOTE)
    checkout = find_checkout(str(repo / "gone" / "deep"))
    assert checkout is not None
    assert checkout.root == str(repo)


def test_a_worktree_has_its_own_root_and_the_same_remote(place):
    repo = make_repository(place / "repo", REMOTE)
    git(repo, "worktree", "add", "-q", str(place / "elsewhere"))
    checkout = find_checkout(str(place / "elsewhere" / "src"))
    assert checkout is not None
    assert (checkout.root, checkout.remote, checkout.name) == (str(place / "elsewhere"), NAME, "repo")


def test_worktrees_without_a_remote_have_the_same_commit_and_name(place):
    repo = make_repository(place / "repo")
    git(repo, "worktree", "add", "-q", "-b", "other", str(place / "elsewhere"))
    git(place / "elsewhere", "commit", "-qm", "More", "--allow-empty")
    names = set()
    for folder in (repo, place / "elsewhere"):
        checkout = find_checkout(str(folder))
        assert checkout is not None and checkout.remote is None
        commit = find_root_commit(checkout)
        assert commit == git(repo, "rev-list", "--max-parents=0", "HEAD")
        names.add(name_commit(checkout, commit))
    assert names == {f"repo@{commit[:12]}"}


def test_a_submodule_is_its_own_project(place):
    library = make_repository(place / "library", "https://github.com/org/library")
    repo = make_repository(place / "repo", REMOTE)
    git(repo, "submodule", "add", "-q", str(library), "vendor/library")
    checkout = find_checkout(str(repo / "vendor" / "library" / "src"))
    assert checkout is not None
    assert (checkout.root, checkout.remote) == (str(repo / "vendor" / "library"), "github.com/org/library")


def test_a_clone_of_a_local_clone_has_the_original_remote(place):
    repo = make_repository(place / "repo", REMOTE)
    git(place, "clone", "-q", str(repo), "copy")
    checkout = find_checkout(str(place / "copy"))
    assert checkout is not None
    assert checkout.remote == NAME


def test_clones_of_a_bare_repository_share_the_root_commit(place):
    repo = make_repository(place / "repo")
    git(place, "clone", "-q", "--bare", str(repo), "bare.git")
    git(place, "clone", "-q", str(place / "bare.git"), "copy")
    copy = find_checkout(str(place / "copy"))
    original = find_checkout(str(repo))
    assert copy is not None and original is not None and copy.remote is None
    assert find_root_commit(copy) == find_root_commit(original) is not None


def test_the_first_remote_counts_where_there_is_no_origin(place):
    repo = make_repository(place / "repo")
    git(repo, "remote", "add", "upstream", "https://me:secret@gitlab.com/Group/Thing.git")
    git(repo, "remote", "add", "backup", "https://example.com/x/y")
    checkout = find_checkout(str(repo))
    assert checkout is not None
    assert checkout.remote == "gitlab.com/group/thing"


def test_a_repository_without_commits_has_no_root_commit(place):
    (place / "empty").mkdir()
    git(place / "empty", "init", "-q")
    checkout = find_checkout(str(place / "empty"))
    assert checkout is not None
    assert find_root_commit(checkout) is None


def test_a_shallow_clone_has_no_root_commit(place):
    repo = make_repository(place / "repo")
    git(repo, "commit", "-qm", "More", "--allow-empty")
    git(place, "clone", "-q", "--depth=1", f"file://{repo}", "shallow")
    checkout = find_checkout(str(place / "shallow"))
    assert checkout is not None
    assert find_root_commit(checkout) is None


def test_without_git_there_is_no_root_commit(place, monkeypatch):
    repo = make_repository(place / "repo")
    checkout = find_checkout(str(repo))
    assert checkout is not None
    monkeypatch.setenv("PATH", str(place))
    assert find_root_commit(checkout) is None


def test_settings_of_a_repository_execute_nothing(place):
    repo = make_repository(place / "repo")
    marker = place / "ran"
    for name in ("core.fsmonitor", "core.pager", "core.sshCommand", "diff.external", "credential.helper"):
        git(repo, "config", name, f"touch {marker}")
    git(repo, "remote", "add", "origin", f"ext::touch {marker}")
    checkout = find_checkout(str(repo))
    assert checkout is not None
    assert find_root_commit(checkout) is not None
    assert not marker.exists()


def test_a_home_folder_is_no_project_even_if_it_is_a_repository(place):
    home = make_repository(place / "me", REMOTE)
    (home / "notes").mkdir()
    assert find_checkout(str(home), home=str(home)) is None
    assert find_checkout(str(home / "notes"), home=str(home)) is None
    inside = make_repository(home / "work" / "repo", REMOTE)
    checkout = find_checkout(str(inside), home=str(home))
    assert checkout is not None and checkout.root == str(inside)


@pytest.mark.parametrize("folder", ["", "relative", "/nowhere/at/all", "/", "/tmp", "/a\nb", r"C:\x\y", "~/x"])
def test_folders_without_a_repository(folder):
    assert find_checkout(folder) is None


def test_damaged_repositories_are_no_checkouts(place):
    for name, content in (("a", "gitdir: "), ("b", "gitdir: /nowhere\n"), ("c", "x" * 9), ("d", "gitdir: \0")):
        (place / name).mkdir()
        (place / name / ".git").write_text(content)
        assert find_checkout(str(place / name)) is None
    (place / "e" / ".git").mkdir(parents=True)
    assert find_checkout(str(place / "e")) is None
