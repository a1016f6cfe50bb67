"""Loads msgspec and pathlib without the parts that no quick command uses, which take longer to load than the rest.

- `typing_extensions`: msgspec asks it, if it is installed, only for names that `typing` has too.
- `decimal` and `uuid`: msgspec asks for the types of values that no type of this program has.
- `datetime`: in Python 3.11 it defines every type twice, in Python and then in C. Later versions load only the latter.
- `urllib.parse`: `pathlib` quotes addresses of files with it.
- The others are modules of msgspec, which are loaded when one of their names is asked for.

For the program's quick commands only; a library must not.
"""

from __future__ import annotations

import sys
from typing import Any

_UNUSED = {
    "inspect": (),
    "_json_schema": ("schema", "schema_components"),
    "toml": (),
    "yaml": (),
}  # names taken from them


def load_msgspec() -> None:
    """Load msgspec and pathlib, and let others still load what they were loaded without."""
    modules: dict[str, Any] = sys.modules
    if "msgspec" in modules or "typing_extensions" in modules:
        return
    _load_datetime()
    stand_ins: dict[str, Any] = {f"msgspec.{name}": _Later(name, names) for name, names in _UNUSED.items()}
    stand_ins |= {"decimal": _Decimal("decimal"), "uuid": _Uuid("uuid"), "urllib.parse": _Parse("urllib.parse")}
    stand_ins = {name: module for name, module in stand_ins.items() if name not in modules}
    stand_ins["typing_extensions"] = None  # importing it fails
    modules |= stand_ins
    try:
        __import__("msgspec")
        __import__("pathlib")
    finally:
        for name in stand_ins:
            del modules[name]


def _load_datetime() -> None:
    """Load `datetime` as Python 3.12 does."""
    if sys.version_info >= (3, 12) or "datetime" in sys.modules or sys.implementation.name != "cpython":
        return
    module = type(sys)("datetime")
    module.__dict__.update(
        (name, value) for name, value in vars(__import__("_datetime")).items() if not name.startswith("__")
    )
    sys.modules["datetime"] = module


class _Later(type(sys)):  # type: ignore[misc]
    """A module of msgspec that is loaded when it is used."""

    def __init__(self, name: str, names: tuple[str, ...]) -> None:
        super().__init__(f"msgspec.{name}")
        for function in names:
            setattr(
                self, function, lambda *values, _name=function, **named: getattr(self, f"_{_name}")(*values, **named)
            )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        from importlib import import_module

        return getattr(import_module(self.__name__), name.removeprefix("_"))


class _Decimal(type(sys)):  # type: ignore[misc]
    """The one type of the module `decimal` that msgspec asks for; nothing is one of it."""

    class Decimal: ...


class _Uuid(type(sys)):  # type: ignore[misc]
    """The types of the module `uuid` that msgspec asks for; nothing is one of them."""

    class UUID: ...

    class SafeUUID:
        unknown = None


class _Parse(type(sys)):  # type: ignore[misc]
    """The one function of `urllib.parse` that `pathlib` takes."""

    @staticmethod
    def quote_from_bytes(path: bytes) -> str:
        from urllib.parse import quote_from_bytes

        return quote_from_bytes(path)
