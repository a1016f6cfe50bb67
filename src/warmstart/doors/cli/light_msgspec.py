"""Loads msgspec without the parts that no quick command uses, which take longer to load than the rest of it.

`typing_extensions`: msgspec asks it, if it is installed, only for names that `typing` has too. `platform`: the module
`uuid`, which msgspec loads, asks it for the name of the system. The others are modules of msgspec, which are loaded when
one of their names is asked for. For the program's quick commands only; a library must not.
"""

from __future__ import annotations

import sys
from typing import Any

_EXTENSIONS = "typing_extensions"
_UNUSED = {
    "inspect": (),
    "_json_schema": ("schema", "schema_components"),
    "toml": (),
    "yaml": (),
}  # names taken from them


def load_msgspec() -> None:
    """Load msgspec, and let others still load what it was loaded without."""
    modules: dict[str, Any] = sys.modules
    if "msgspec" in modules or _EXTENSIONS in modules:
        return
    stand_ins: dict[str, Any] = {f"msgspec.{name}": _Later(name, names) for name, names in _UNUSED.items()}
    stand_ins[_EXTENSIONS] = None  # importing it fails
    if "platform" not in modules and "uuid" not in modules:
        stand_ins["platform"] = _Platform("platform")
    modules |= stand_ins
    try:
        __import__("msgspec")
    finally:
        for name in stand_ins:
            del modules[name]


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


class _Platform(type(sys)):  # type: ignore[misc]
    """The one name of the module `platform` that `uuid` uses."""

    @staticmethod
    def system() -> str:
        import os

        return os.uname().sysname if hasattr(os, "uname") else "Windows"
