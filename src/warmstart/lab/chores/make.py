"""Families in, tasks and training sessions out: the same for the same random_seed, whoever asks for how many."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from itertools import zip_longest

from msgspec import Struct

from warmstart.lab.chores.draw import Draw, Split
from warmstart.lab.chores.families import FAMILIES, Family
from warmstart.lab.chores.tasks import LabTask

TEST_TASKS = 5  # of a family: 75 in all
SESSIONS, SESSION_TASKS = 4, 3  # training sessions of a family, and tasks one after another in each


class TrainingSession(Struct, frozen=True):
    """Tasks of one kind that a user asks for one after another, each done in a folder of its own. No two of them have a
    file of the same name: read as one story, none contradicts another."""

    id: str
    family: str
    tasks: tuple[LabTask, ...]


def make_tasks(
    *, random_seed: int, split: Split, per_family: int = TEST_TASKS, held_out: bool = False
) -> list[LabTask]:
    """Tasks of all tested families, or of all that are held out, in an order shuffled by the random_seed.

    Fewer of a family are the first of more, in the same order: a short run is a part of the long one.
    """
    tasks = [
        task
        for place, family in enumerate(FAMILIES)
        if family.held_out == held_out
        for task in _instances(family, place, split, random_seed, per_family)
    ]
    return sorted(tasks, key=lambda task: _shuffled(random_seed, task.id))


def make_sessions(random_seed: int, *, held_out: bool = False) -> list[TrainingSession]:
    """The sessions to learn from. They do not depend on what is tested."""
    sessions = []
    for place, family in enumerate(FAMILIES):
        if family.held_out == held_out:
            tasks = _instances(family, place, "train", random_seed, SESSIONS * SESSION_TASKS)
            for number in range(SESSIONS):
                part = tuple(tasks[number * SESSION_TASKS : (number + 1) * SESSION_TASKS])
                sessions.append(TrainingSession(f"{family.name}-train-{number:02}", family.name, part))
    return sorted(sessions, key=lambda session: _shuffled(random_seed, session.id))


def take(tasks: Sequence[LabTask], count: int) -> list[LabTask]:
    """So many of the tasks, evenly over their families and in their order. More of them always hold the fewer."""
    taken = frozenset(task.id for task in _deal(tasks)[:count])
    return [task for task in tasks if task.id in taken]


def count_different(tasks: Sequence[LabTask]) -> int:
    """How many can be taken before one asks what another has asked: arms are compared request by request."""
    asked: set[tuple[str, str]] = set()
    for task in _deal(tasks):
        if (task.family, task.request) in asked:
            break
        asked.add((task.family, task.request))
    return len(asked)


def _deal(tasks: Sequence[LabTask]) -> list[LabTask]:
    """One of every family, then the next of every family."""
    families: dict[str, list[LabTask]] = {}
    for task in sorted(tasks, key=_number):  # stable: those of one number stay in their order
        families.setdefault(task.family, []).append(task)
    return [task for turn in zip_longest(*families.values()) for task in turn if task is not None]


def _instances(family: Family, place: int, split: Split, random_seed: int, count: int) -> list[LabTask]:
    """The first so many of a family. Half of the tests are reworded; families differ in which half, so that any few
    tasks have both."""
    draw = Draw(random.Random(f"{family.name} {split} {random_seed}"), split)
    tasks = []
    for number in range(count):
        instance = family.make(draw)
        reworded = split == "test" and (number + place) % 2 == 0
        wordings = family.rewordings if reworded else family.phrasings
        turn = number + number // SESSION_TASKS if split == "train" else number // 2  # sessions begin differently
        wording = "-reworded" if reworded else "-same" if split == "test" else ""
        tasks.append(
            LabTask(
                id=f"{family.name}-{split}{wording}-{number:02}",
                family=family.name,
                request=wordings[turn % len(wordings)].format(**instance.slots),
                files=instance.files,
                solution=instance.ways[number % len(instance.ways) if split == "train" else 0],
                check=instance.check,
            )
        )
    return tasks


def _number(task: LabTask) -> int:
    return int(task.id.rpartition("-")[2])


def _shuffled(random_seed: int, name: str) -> str:
    return hashlib.blake2b(f"{random_seed} {name}".encode(), digest_size=8).hexdigest()
