"""Make tasks and training sessions of the families; the same random seed makes the same ones, however many are made."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from itertools import zip_longest

from msgspec import Struct

from warmstart.lab.chores.draw import Draw, Split
from warmstart.lab.chores.families import FAMILIES, Family
from warmstart.lab.chores.tasks import LabTask

TEST_TASKS = 5  # per family: 75 in all
SESSIONS, SESSION_TASKS = 4, 3  # training sessions per family, and tasks in each


class TrainingSession(Struct, frozen=True):
    """Tasks of one family that a user asks for one after another, each done in its own folder. No two have a file of the
    same name, so that the transcript, read as one story, does not contradict itself."""

    id: str
    family: str
    tasks: tuple[LabTask, ...]


def make_tasks(
    *, random_seed: int, split: Split, per_family: int = TEST_TASKS, held_out: bool = False
) -> list[LabTask]:
    """Return tasks of all tested families, or of all held-out ones, shuffled by the random seed.

    A smaller `per_family` gives the first tasks of a larger one in the same order: a short run is part of a long one.
    """
    tasks = [
        task
        for place, family in enumerate(FAMILIES)
        if family.held_out == held_out
        for task in _instances(family, place, split, random_seed, per_family)
    ]
    return sorted(tasks, key=lambda task: _shuffled(random_seed, task.id))


def make_sessions(random_seed: int, *, held_out: bool = False) -> list[TrainingSession]:
    """Return the sessions to learn from. They do not depend on the tested tasks."""
    sessions = []
    for place, family in enumerate(FAMILIES):
        if family.held_out == held_out:
            tasks = _instances(family, place, "train", random_seed, SESSIONS * SESSION_TASKS)
            for number in range(SESSIONS):
                part = tuple(tasks[number * SESSION_TASKS : (number + 1) * SESSION_TASKS])
                sessions.append(TrainingSession(f"{family.name}-train-{number:02}", family.name, part))
    return sorted(sessions, key=lambda session: _shuffled(random_seed, session.id))


def take(tasks: Sequence[LabTask], count: int) -> list[LabTask]:
    """Return `count` tasks, spread evenly over their families, in their order. A larger count includes a smaller one."""
    taken = frozenset(task.id for task in _deal(tasks)[:count])
    return [task for task in tasks if task.id in taken]


def count_different(tasks: Sequence[LabTask]) -> int:
    """Return how many tasks can be taken before a request repeats: arms are compared request by request."""
    asked: set[tuple[str, str]] = set()
    for task in _deal(tasks):
        if (task.family, task.request) in asked:
            break
        asked.add((task.family, task.request))
    return len(asked)


def _deal(tasks: Sequence[LabTask]) -> list[LabTask]:
    """Return the first task of every family, then the second of every family, and so on."""
    families: dict[str, list[LabTask]] = {}
    for task in sorted(tasks, key=_number):  # stable: tasks of one number stay in their order
        families.setdefault(task.family, []).append(task)
    return [task for turn in zip_longest(*families.values()) for task in turn if task is not None]


def _instances(family: Family, place: int, split: Split, random_seed: int, count: int) -> list[LabTask]:
    """Return the first `count` tasks of a family. Half of the tests are reworded; families differ in which half, so that
    even a few tasks have both."""
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
