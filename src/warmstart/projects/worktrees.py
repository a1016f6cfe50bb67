"""Checkouts of one repository beside each other: the folders where git users and agents keep worktrees."""

from __future__ import annotations

from typing import NamedTuple

from warmstart import lazy_regex as re

# A folder in the repository that holds its worktrees: REPOSITORY/.claude/worktrees/NAME
_BELOW = re.compile(r"^(?P<main>.+?)/(?P<place>\.[a-z-]+/worktrees|\.?worktrees)/(?P<name>[^/]+)(?=/|$)")
# A folder elsewhere that holds the worktrees of many repositories, by repository and name
_APART = re.compile(
    r"^.*?/(?:conductor/workspaces|\.claude-worktrees|\.(?:conductor|cursor|superset)/(?:workspaces|worktrees))"
    r"/(?P<repository>[^/]+)/(?P<name>[^/]+)(?=/|$)"
)
# The same by name and repository
_APART_BY_NAME = re.compile(r"^.*?/\.(?:codex|gemini|claude)/worktrees/(?P<name>[^/]+)/(?P<repository>[^/]+)(?=/|$)")
_HOME = re.compile(r"^(?:/(?:home|Users)/[^/]+|/root|/tmp|/var/tmp|[A-Z]:/Users/[^/]+)$")


class Worktree(NamedTuple):
    """A folder that looks like one of several checkouts of a repository."""

    root: str  # the worktree's own root
    main: str  # root of the main checkout; empty: it is somewhere else
    repository: str  # name of the repository's folder
    is_certain: bool = True  # a plain `worktrees` folder may hold worktrees of several repositories


def find_worktree(folder: str) -> Worktree | None:
    """Return the worktree that a folder (with forward slashes) is or lies in, by the usual places of worktrees."""
    below = _BELOW.match(folder)
    if below and not _HOME.match(below["main"]):
        return Worktree(below[0], below["main"], below["main"].rpartition("/")[2], below["place"] != "worktrees")
    apart = _APART_BY_NAME.match(folder) or _APART.match(folder)
    return Worktree(apart[0], "", apart["repository"]) if apart else None
