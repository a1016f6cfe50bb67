"""Whether enough people may decide for a quorum to be reached, over all rules that meet at one action."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from warmstart.confirm.policy.actions import key_of
from warmstart.names import name_key

_ANY = "x"  # what stands for a wildcard in an example


def count_deciders(lists: Iterable[Iterable[str]]) -> int | None:
    """How many different people fit one pattern of each list. None: there is no telling how many fit a wildcard."""
    found = [[name_key(name) for name in names if name.strip()] for names in lists]
    plain = [names for names in found if not any(is_pattern(name) for name in names)]
    if not plain:
        return None
    return sum(all(any(fnmatchcase(one, name) for name in names) for names in found) for one in set(plain[0]))


def is_pattern(name: str) -> bool:
    return any(character in name for character in "*?[")


def find_example(glob: str) -> str:
    """A name that a pattern of actions fits."""
    return key_of(glob).replace("*", _ANY).replace("?", _ANY)


def find_common(one: str, other: str) -> str | None:
    """A name that both patterns of actions fit; None where there is none."""
    left, right = key_of(one), key_of(other)
    longer = _find_shortest(left.replace("*", "?*"), right.replace("*", "?*"))  # reads better: deploy_x, not deploy_
    return longer if longer is not None else _find_shortest(left, right)


def _find_shortest(one: str, other: str) -> str | None:
    ends = (len(one), len(other))
    names = {(0, 0): ""}
    reached = [(0, 0)]
    for at in reached:  # grows while it is walked: the nearest first
        if at == ends:
            return names[at]
        for step, letter in _steps(one, other, *at):
            if step not in names:
                names[step] = names[at] + letter
                reached.append(step)
    return None


def _steps(one: str, other: str, left: int, right: int) -> Iterator[tuple[tuple[int, int], str]]:
    """From a place in each pattern: where one letter more, or a * that stands for nothing, leads."""
    mine, theirs = one[left : left + 1], other[right : right + 1]
    if mine == "*":
        yield (left + 1, right), ""
    if theirs == "*":
        yield (left, right + 1), ""
    if not mine or not theirs or mine == theirs == "*":
        return
    letters = {letter for letter in (mine, theirs) if letter not in "*?"}
    if len(letters) < 2:
        yield (left + (mine != "*"), right + (theirs != "*")), letters.pop() if letters else _ANY
