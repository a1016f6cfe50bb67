"""The module `re`, whose `compile` waits until a pattern is first used: `from warmstart import lazy_regex as re`.

Commands for which agents wait load modules with 130 patterns and use a few. Compiling all of them takes as long as two
starts of the interpreter. After its first use, a pattern is as fast as a compiled one.
"""

from __future__ import annotations

import re
from re import (
    IGNORECASE,
    NOFLAG,
    I,
    M,
    Match,
    Pattern,
    S,
    X,
    escape,
    findall,
    finditer,
    fullmatch,
    match,
    search,
    split,
    sub,
)
from typing import Any, AnyStr

__all__ = [
    "IGNORECASE",
    "NOFLAG",
    "I",
    "M",
    "Match",
    "Pattern",
    "S",
    "X",
    "compile",
    "escape",
    "findall",
    "finditer",
    "fullmatch",
    "match",
    "search",
    "split",
    "sub",
]
_METHODS = ("findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn")


def compile(source: AnyStr, flags: int = 0) -> Pattern[AnyStr]:
    """Return a pattern that is compiled when it is first used."""
    waiting: Any = _WaitingPattern(source, flags)
    pattern: Pattern[AnyStr] = waiting
    return pattern


class _WaitingPattern:
    """Compiles itself when an attribute of a pattern is asked for, and then has the compiled pattern's methods."""

    def __init__(self, source: str | bytes, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        compiled = re.compile(self._source, self._flags)
        self.__dict__.update({method: getattr(compiled, method) for method in _METHODS})
        return getattr(compiled, name)
