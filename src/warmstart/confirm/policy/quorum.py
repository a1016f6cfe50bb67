"""Check whether a quorum can be reached under all rules that match one action."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from warmstart.confirm.policy.actions import key_of
from warmstart.names import name_key

_ANY = "x"  # replaces a wildcard in an example


def count_deciders(lists: Iterable[Iterable[str]]) -> int | None:
    """Count the people who match one pattern of every list. Return None if every list has a wildcard."""
    keys = [[name_key(name) for name in names if name.strip()] for names in lists]
    plain = [names for names in keys if not any(_is_pattern(name) for name in names)]
    if not plain:
        return None
    return sum(all(any(fnmatchcase(person, name) for name in names) for names in keys) for person in set(plain[0]))


def _is_pattern(name: str) -> bool:
    return any(character in name for character in "*?[")


def find_example(glob: str) -> str:
    """Return a name that matches a pattern of actions."""
    return key_of(glob).replace("*", _ANY).replace("?", _ANY)


def find_common(left: str, right: str) -> str | None:
    """Return a name that matches both patterns of actions, or None if there is none."""
    left, right = key_of(left), key_of(right)
    longer = _find_shortest(left.replace("*", "?*"), right.replace("*", "?*"))  # reads better: deploy_x, not deploy_
    return longer if longer is not None else _find_shortest(left, right)


def _find_shortest(left: str, right: str) -> str | None:
    """Walk both patterns at once, breadth first, until both end."""
    ends = (len(left), len(right))
    names = {(0, 0): ""}
    reached = [(0, 0)]
    for place in reached:  # grows during the loop
        if place == ends:
            return names[place]
        for next_place, letter in _find_steps(left, right, *place):
            if next_place not in names:
                names[next_place] = names[place] + letter
                reached.append(next_place)
    return None


def _find_steps(left: str, right: str, at: int, to: int) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield the places after one more letter, or after a * that matches nothing."""
    mine, theirs = left[at : at + 1], right[to : to + 1]
    if mine == "*":
        yield (at + 1, to), ""
    if theirs == "*":
        yield (at, to + 1), ""
    if not mine or not theirs or mine == theirs == "*":
        return
    letters = {letter for letter in (mine, theirs) if letter not in "*?"}
    if len(letters) < 2:
        yield (at + (mine != "*"), to + (theirs != "*")), letters.pop() if letters else _ANY
