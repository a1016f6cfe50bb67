r"""Clues for values beside a name: patterns that occur wherever `context.find_named` finds a secret, and seldom elsewhere.

Most names before a `:` or `=` announce nothing (`keyword`, `max_tokens`), and most values of the others are words. The
clues leave these out: the announcing word ends the name, and unless any value counts as secret after it, the value has
a digit or 20 characters, without which `values.is_drawn` accepts nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from warmstart.redact.values import SUFFIXES

_GAP = r"[_\-.]?"
_SPACED_GAP = r"[_\-. ]?"


def _spread(word: str, kept: int, gap: str = _GAP) -> str:
    """Return a pattern for a word that may be split once after its first letters: `pass_wd`, `pass-phrase`."""
    return word[:kept] + "".join(gap + letter for letter in word[kept:])


# Words after which any value is secret, and words after which only a random one or one with digits is: see `strength`.
_ANY_VALUE = (
    "bindpw",
    "contrasena",
    "kennwort",
    "masterauth",
    _spread("motdepasse", 1, _SPACED_GAP),
    _spread("passcode", 4),
    _spread("passphrase", 4, _SPACED_GAP),
    _spread("passwd", 4),
    _spread("password", 4, _SPACED_GAP),
    _spread("passwort", 4),
    "psk",
    _spread("pwd", 2),
    "requirepass",
    _spread("rootpw", 5),
    "secret",
    "senha",
    "sshpass",
    r"connection[_\-. ]*string",
    r"(?:secret|key)[_\-. ]*base",
)
_DRAWN_VALUE = (
    "auth",
    _spread("authorization", 4),
    _spread("authtoken", 5),
    _spread("secretkey", 7),
    "bearer",
    "cookie",
    r"credential[_\-.]?",
    "creds",
    "dsn",
    "jwt",
    "key",
    "mnemonic",
    "otp",
    "pass",
    "salt",
    "sess(?:ion)?id",
    "signature",
    "token",
    "webhook",
    r"(?:auth|recovery)[_\-. ]*code",
)
# Words that `context.NAMED` finds only at the start of a word, and words that it finds only after one of its own.
_STARTING = r"\bpin|\bsid|\bsig|(?:\b|_)(?:pat|pw)"
_FOLLOWING = "assertion|cred|csrf|hash|nonce|pat|pin|pw|seed|session|sid|sig|xsrf|(?:seed|recovery)[_\\-. ]*phrase"
_NAMED = (
    "pass|kennwort|contrase|senha|pwd|psk|secret|token|cred|key|otp|auth|bearer|cookie|sess|salt|dsn|connection|jwt"
    f"|mnemonic|webhook|recovery|backup|{_STARTING}"
)
_TAIL = rf"s?(?:[_\-. ]*(?:{'|'.join(sorted(SUFFIXES))}|[0-9]+))*[_\-. ]*"
# The separators of `context.NAMED`, without bounds on their blanks.
_SEPARATOR = (
    r"(?i:[ \t]*:[ \t]*[&?]?[a-z][a-z<>\[\]?|.']+[ \t]*=[ \t]*"
    r"|[\\\"'`\])]*[ \t]*(?:[:=|]|!=|:=|=>)=*[ \t]*"
    r"|\\*[\"']?[ \t]+(?:value|content|default)[ \t]*=[ \t]*"
    r"|[\\\"' \t]*\n[\n \t\-]*[\"']?value[\"']?[ \t]*:[ \t]*)"
)
_COMMA = r"\\*[\"'`][ \t]*,[ \t\n]*\\*"
_QUOTES = "\"'`"
_DIGIT = "|".join(
    [rf"{quote}+(?:[^{quote}\\\n]|\\[^\n])*[0-9]|\\+{quote}+[^{quote}\n]*[0-9]" for quote in _QUOTES]
)  # within quotes, which may be escaped or contain escaped ones
_LONG = "|".join(rf"\\*{quote}+(?:[^{quote}\n]{{5}}){{4}}" for quote in _QUOTES)
_SCHEME = r"(?i:[a-z0-9\-]{3,}[ \t+]+)?"  # `Bearer`, `Basic`
_OPENED = r"[rbuf@$]{0,2}"
_FIRST = r"[^\s\"'`<>\\(\[{]"  # of a bare value; one that begins with a bracket is code


def _name(words: Iterable[str]) -> str:
    return rf"(?i:(?:{'|'.join(words)}){_TAIL})"


_DRAWN_NAME = _name((*_DRAWN_VALUE, _STARTING, rf"(?:{_NAMED})[a-z0-9_\-.]*(?:{_FOLLOWING})"))
NAME_CLUES = (
    rf"{_name(_ANY_VALUE)}(?:{_SEPARATOR}|{_COMMA}[\"'`]|>)",
    rf"{_DRAWN_NAME}(?:{_SEPARATOR}(?:{_OPENED}(?:{_DIGIT})|{_SCHEME}(?:[0-9]|{_FIRST}\S*[0-9]))"
    rf"|{_COMMA}(?:{_DIGIT})|>[^<]+</)",
    rf"{_DRAWN_NAME}(?:{_SEPARATOR}(?:{_OPENED}(?:{_LONG})|{_SCHEME}{_FIRST}\S{{4}}(?:\S{{5}}){{3}})"
    rf"|{_COMMA}(?:{_LONG}))",
)
