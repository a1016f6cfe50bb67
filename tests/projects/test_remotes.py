"""One name for every address of a repository, and never a credential in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmstart.projects.remotes import normalise_remote


@pytest.mark.parametrize(
    "address",
    [
        "git@github.com:Org/Repo.git",
        "git@github.com:Org/Repo",
        "github.com:org/repo.git",
        "https://github.com/Org/Repo",
        "https://github.com/Org/Repo.git/",
        "https://GitHub.com/org/repo/",
        "https://www.github.com/org/repo",
        "https://user:ghp_0123456789abcdefghij0123456789abcdef@github.com/Org/Repo",
        "https://x-access-token@github.com/Org/Repo.git",
        "ssh://git@github.com/Org/Repo.git",
        "ssh://git@github.com:22/Org/Repo.git",
        "ssh://git@ssh.github.com:443/Org/Repo.git",
        "git://github.com/org/repo.git",
        "git+ssh://git@github.com/org/repo.git",
        "https://github.com/org/repo?token=abc#main",
        "git@github-work:Org/Repo.git",
        "git@github.com-work:Org/Repo.git",
        " https://github.com/org/repo\n".strip("\n"),
    ],
)
def test_all_addresses_of_a_repository_have_one_name(address):
    assert normalise_remote(address) == "github.com/org/repo"


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://gitlab.example.org:8443/group/sub/repo.git", "gitlab.example.org/group/sub/repo"),
        ("git@github.mycorp.com:org/repo.git", "github.mycorp.com/org/repo"),
        ("https://host/a/../repo", None),
        ("/srv/git/repo.git", None),
        ("../repo", None),
        ("file:///srv/git/repo.git", None),
        (r"C:\repos\repo", None),
        ("https://github.com/", None),
        ("[trimmed for fixture]", None),
        ("https://github.com/ghp_0123456789abcdefghij0123456789abcdef/repo", None),
        ("https://github.com/org/re\x1b[31mpo", None),
        ("", None),
        (None, None),
    ],
)
def test_other_addresses(address, name):
    assert normalise_remote(address) == name


@given(st.text(max_size=80))
def test_any_text_is_a_name_or_none(address):
    name = normalise_remote(address)
    assert name is None or (normalise_remote(f"https://{name}") == name and "@" not in name)


@given(st.from_regex(r"[A-Za-z0-9_.%-]{1,30}", fullmatch=True), st.from_regex(r"[A-Za-z0-9_.%-]{8,40}", fullmatch=True))
def test_user_and_password_are_never_in_the_name(user, password):
    assert normalise_remote(f"https://{user}:{password}@example.com/a/b.git") == "example.com/a/b"
