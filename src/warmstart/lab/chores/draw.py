"""Names and values of tasks: short common words that a very small model can copy.

Training and tests share no word and no number: each has half of every pool, and training has the even numbers, tests the
odd ones. A right answer can then never be copied from an example.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Literal, TypeVar, get_args

T = TypeVar("T")
Split = Literal["train", "test"]
Names = Literal["text", "log", "event", "thing", "person", "place", "folder", "figures"]
Terms = Literal["database", "table", "people", "column", "key", "mode"]
Pool = Literal[Names, Terms]

POOLS: Mapping[Pool, Mapping[Split, tuple[str, ...]]] = {
    "text": {
        "train": tuple("notes report list draft plan memo letter diary guide story speech summary agenda".split()),
        "test": tuple("paper essay recipe lesson song poem travel review sketch outline minutes journal menu".split()),
    },
    "log": {
        "train": tuple("app server web system mail disk phone".split()),
        "test": tuple("api worker build network job cloud door".split()),
    },
    "event": {
        "train": tuple("error timeout failed denied retry".split()),
        "test": tuple("warning crash refused missing expired".split()),
    },
    "thing": {
        "train": tuple("apple banana cherry lemon melon peach bread butter cheese milk honey".split()),
        "test": tuple("grape orange mango carrot potato tomato rice sugar coffee salt onion".split()),
    },
    "person": {
        "train": tuple("Anna Ben Clara David Emma Frank Grace Henry Lucy".split()),
        "test": tuple("Ivan Julia Kevin Laura Maria Nina Oscar Peter Tom".split()),
    },
    "place": {
        "train": tuple("Paris London Rome Madrid Boston Tokyo Milan".split()),
        "test": tuple("Berlin Vienna Oslo Dublin Chicago Sydney Lisbon".split()),
    },
    "folder": {
        "train": tuple("archive docs old safe project".split()),
        "test": tuple("storage saved spare inbox public".split()),
    },
    "figures": {  # files with one number per line
        "train": tuple("ages prices points weights times".split()),
        "test": tuple("scores sizes costs grades heights".split()),
    },
    "database": {
        "train": tuple("shop school library office hotel garage kitchen".split()),
        "test": tuple("store clinic museum market farm bank garden".split()),
    },
    "table": {
        "train": tuple("orders sales books rooms cars".split()),
        "test": tuple("items plants tickets pets films".split()),
    },
    "people": {  # tables with a person in each row
        "train": tuple("users guests members drivers teachers".split()),
        "test": tuple("clients players students doctors writers".split()),
    },
    "column": {
        "train": tuple("price amount weight width".split()),
        "test": tuple("cost value size score".split()),
    },
    "key": {
        "train": tuple("port level limit speed depth".split()),
        "test": tuple("range height volume delay margin".split()),
    },
    "mode": {
        "train": tuple("fast dark quiet full local".split()),
        "test": tuple("slow light loud short remote".split()),
    },
}


class Draw:
    """Deals names and numbers of one split. A word comes back only after all others of its pool."""

    def __init__(self, rng: random.Random, split: Split) -> None:
        self.split = split
        self._rng = rng
        self._decks: dict[Pool, list[str]] = {}
        for pool in get_args(Pool):
            deck = list(POOLS[pool][split])
            rng.shuffle(deck)
            self._decks[pool] = deck

    def one(self, pool: Pool) -> str:
        deck = self._decks[pool]
        deck.append(deck.pop(0))
        return deck[-1]

    def some(self, pool: Pool, count: int) -> list[str]:
        return [self.one(pool) for _ in range(count)]

    def numbers(self, count: int, low: int, high: int) -> list[int]:
        """Return different numbers, even ones for training and odd ones for tests."""
        parity = 0 if self.split == "train" else 1
        return self._rng.sample([number for number in range(low, high + 1) if number % 2 == parity], count)

    def number(self, low: int, high: int) -> int:
        return self.numbers(1, low, high)[0]

    def between(self, low: int, high: int) -> int:
        """Return a number that no request mentions, such as how many lines a file has."""
        return self._rng.randint(low, high)

    def mix(self, values: list[T]) -> list[T]:
        return self._rng.sample(values, len(values))
