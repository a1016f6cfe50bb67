"""Addresses of PostgreSQL servers: which passwords they hold, and how they read without them."""

from __future__ import annotations

from warmstart import lazy_regex as re

SERVERS = ("postgresql://", "postgres://")  # how addresses of stores on a server begin
_LOGIN = re.compile(r"\A(postgres(?:ql)?:/{0,2}[^:?#]*):([^?#]*|[^/]*)@")  # also one with unescaped signs in it
_OPTION = re.compile(r"(?<=[?&])(?:ssl)?password=([^&#]*)&?", re.I)
_PAIR = re.compile(r"\b(?:ssl)?password\s*=", re.I)  # of libpq's other notation: host=... password=...


def find_passwords(address: str) -> list[str]:
    """Return the passwords in an address, as they are written there and decoded."""
    login = _LOGIN.match(address)
    written = [login[2] if login else "", *(found[1] for found in _OPTION.finditer(address))]
    if not any("%" in password for password in written):
        return [password for password in written if password]
    from urllib.parse import unquote  # hooks load the settings, and an agent waits for them

    return list(dict.fromkeys(form for password in written if password for form in (password, unquote(password))))


def drop_passwords(address: str) -> str:
    """Return an address without the passwords in it."""
    return _OPTION.sub("", _LOGIN.sub(r"\1@", address)).rstrip("?&")


def could_be_mistyped(text: str) -> bool:
    """Return whether a path looks like the address of a server in another notation, which may hold a password."""
    return bool(_LOGIN.match(text) or _PAIR.search(text))
