"""Names of people in what is shared: learned from the sessions around it, and replaced wherever they occur.

Redaction knows secrets, e-mail addresses, home folders, phone numbers and hosts by their form. A name has none. So names
are collected where a form gives them away (`Author: NAME <...>`, `/home/NAME`, `"assignee": "NAME"`, "I'm NAME"), from
the machine's own user, and as pairs of capitalised words in prose; each is then replaced in every text, in any case,
also as part of a handle. What still repeats one in an encoding is not shared at all.
"""

from __future__ import annotations

import base64
import json
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from warmstart import lazy_regex as re
from warmstart.redact import Redactor, Scope

_WORD = r"[^\W\d_]+(?:['’-][^\W\d_]+)*"
_NAME = rf"{_WORD}(?:[ ]{_WORD}\.?){{0,3}}"
_GIVEN_AWAY = (  # forms that announce a name or a handle, each after a text that must occur
    ("@", re.compile(rf"(?<![\w.])({_NAME})\s*<[\w.+-]+@[\w.-]+>")),
    (
        ":",
        re.compile(
            r"(?i:author|committer|signed-off-by|co-authored-by|reviewed-by|reported-by|assignee|reviewer|owner)"
            rf"\s*:\s*@?({_NAME})"
        ),
    ),
    (
        '"',
        re.compile(
            r"(?i:[\"'](?:author|assignee|reviewer|owner|reporter|creator|customer|contact|user_?name|login|full_?name"
            r"|first_?name|last_?name|display_?name|created_by|assigned_to|manager|employee|patient|client)[\"'])"
            rf"\s*:\s*[\"']({_NAME})[\"']"
        ),
    ),
    ("/", re.compile(rf"(?:/home/|/Users/|/mnt/[a-z]/Users/)({_WORD}(?:[._-]{_WORD})*)")),
    ("\\", re.compile(rf"[A-Za-z]:\\{{1,4}}Users\\{{1,4}}({_WORD}(?:[._-]{_WORD})*)")),
    ("@", re.compile(rf"(?<![\w.])({_WORD}(?:[._+-]{_WORD})*)\d*@[\w-]+(?:\.[\w-]+)+")),
    ("(", re.compile(rf"(?i:todo|fixme|xxx|hack)\(@?({_WORD}(?:[._-]{_WORD})*)\)")),
)
_ADDRESSED = (  # in sentences only: in code `@property` is no person
    re.compile(
        r"(?i:\b(?:i am|i'm|i’m|my name is|this is|name's|ich bin|je suis|soy|hi|hello|hey|dear|thanks|cc))[ ,]+@?"
        r"([^\W\d_a-z][^\W\d_]+(?:[ ][^\W\d_a-z][^\W\d_]+)*)"
    ),
    re.compile(
        r"(?i:\b(?:ask|tell|told|from|by|with|ping|mr|mrs|ms|dr|colleague|customer|boss|manager|teammate|reviewer))\.? @?"
        r"([^\W\d_a-z][^\W\d_]+(?:[ ][^\W\d_a-z][^\W\d_]+)*)"
    ),
    re.compile(r"(?<![\w@/.])@([A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*)(?![\w/.@-])"),
)
_CAPITALISED = re.compile(r"(?<![\w`/.])[^\W\d_a-z][^\W\d_]+(?:[ ][^\W\d_a-z][^\W\d_]+)+(?![\w`/(=])")
# Capitalised words of the trade, and of beginnings of sentences: no names of people by themselves.
_TRADE = frozenset(
    """
    about access action actions add after agent all allow amazon an and android any anthropic apache api app apple are
    as at aws azure back bash before best bug build but can cannot chat check chrome claude click client cloud code codex
    command commit config connection console context copilot could create css current data database date debian debug
    default delete deny did do docker does done each edit eight end english env error errors event every exit expected
    express fail failed fast fetch file files find firefox first fix flask folder for found four french from gemini german
    get git github gitlab given go google grep had hello help here how html http if import in index info input install
    into invalid is issue it its java javascript job json kubernetes last let line lines linux list load lock log look
    machine mail main make may merge message microsoft missing mobile module my name need network new next nine no node
    not note now number object of ok on one open openai option or order orders other our out output over package page
    path permission plan please postgres postgresql private project prompt public pull push pytest python query react read
    ready redis release remove replace repository request required response result results return review root ruby run
    rust save script search second see send server service session set seven should show simple since site six so some
    spanish sql start starting state status step stop string style success system table take task ten test tests than
    thank that the their then there these they this three time timeout title to todo token tool tools try two type
    typescript ubuntu unable unexpected unit unknown update use used user using value verify version view visual was we
    web welcome were what when where which while who why will windows with without work working would write yes you your
    admin ci deploy desktop dev developer guest home host laptop local localhost node runner shared staging vagrant vm
    workspace noreply support team bot
    january february march april june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday
    """.split()
)
_SMALL = re.compile(r"(?<![\w/.@-])[a-zà-ÿ]{3,}(?![\w/@-])")
_ENCODED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_=%\\-")
_SHORTEST = 3  # letters of a part of a name
_MOST = 5_000


class PersonalWords:
    """Names, collected from texts. `hide`: words of your own that must never leave."""

    def __init__(self, hide: Iterable[str] = ()) -> None:
        self._ordinary: set[str] = set()  # words written small in sentences
        self._pairs: set[str] = set()  # of capitalised words
        self._names: set[str] = set()  # whole names and handles, case folded
        self._parts: set[str] = set()
        self._compiled: _Compiled | None = None
        for word in hide:
            self.add(word)

    def learn(self, text: str) -> None:
        """Collect the names that a text gives away by their form."""
        for clue, pattern in _GIVEN_AWAY:
            if clue in text:
                for match in pattern.finditer(text):
                    self.add(match[1])

    def learn_prose(self, text: str) -> None:
        """Collect names from sentences too: who is addressed, and pairs of capitalised words."""
        self.learn(text)
        for pattern in _ADDRESSED:
            for match in pattern.finditer(text):
                self.add(match[1])
        self._ordinary.update(_SMALL.findall(text))
        for match in _CAPITALISED.finditer(text):
            words = [word for word in match[0].split() if word.istitle() and word.casefold() not in _TRADE]
            if len(words) >= 2:
                self._pairs.add(" ".join(words))
        self._compiled = None

    def _add_pairs(self) -> None:
        """Take pairs of capitalised words for names, unless all their words are also written small."""
        for pair in self._pairs:
            if not {word.casefold() for word in pair.split()} <= self._ordinary:
                self.add(pair)
        self._pairs.clear()

    def add(self, name: str) -> None:
        """Add a name: whole, by its parts, and as the handles that people make of theirs."""
        folded = unicodedata.normalize("NFC", name).casefold().strip()
        parts = [part for part in re.findall(r"[^\W\d_]+", folded) if part not in _TRADE]
        if not parts or len(self._names) >= _MOST or all(len(part) < 2 for part in parts):
            return
        self._parts.update(part for part in parts if len(part) >= _SHORTEST or not part.isascii())
        if len(parts) > 1:
            first, last = parts[0], parts[-1]
            self._names |= {" ".join(parts), first + last, last + first, first[0] + last, first + last[0]}
        self._compiled = None

    @property
    def words(self) -> tuple[str, ...]:
        """All names, their parts and the handles made of them; the longest first."""
        self._add_pairs()
        words = self._names | self._parts
        long = (word for word in words if len(word) >= _SHORTEST or not word.isascii())
        return tuple(sorted(long, key=lambda word: (-len(word), word)))

    def _compile(self) -> _Compiled:
        if self._compiled is None:
            words = self.words
            folded = dict.fromkeys(map(_fold, words))
            joined = "|".join(re.escape(word).replace(r"\ ", r"[\s._+-]*") for word in folded)
            pattern = re.compile(rf"(?<![^\W\d_])(?:{joined})(?![^\W\d_])") if joined else None
            needles = [pair for word in words if len(word) >= 4 or not word.isascii() for pair in _spell(word)]
            self._compiled = _Compiled(pattern, tuple(dict.fromkeys(needles)))
        return self._compiled

    def hide(self, text: str, scope: Scope) -> str:
        """Return a text with every name replaced by a placeholder."""
        pattern = self._compile().pattern
        text = unicodedata.normalize("NFC", text)
        if pattern is None:
            return text
        pieces, at = [], 0
        for match in pattern.finditer(_fold(text)):
            pieces += [text[at : match.start()], scope.placeholder(match[0], "person")]
            at = match.end()
        return self._hide_encoded("".join((*pieces, text[at:])), scope)

    def _hide_encoded(self, text: str, scope: Scope) -> str:
        """Replace every run of characters that repeats a name in an encoding."""
        lower = text.casefold()
        for how, needle in self._compile().needles:
            while (at := (text if how == "base64" else lower).find(needle)) >= 0:
                start, end = _find_run(text, at, at + len(needle))
                text = text[:start] + scope.placeholder(text[start:end], "person") + text[end:]
                lower = text.casefold()
        return text

    def find_encoded(self, text: str) -> str | None:
        """Return how a text repeats a name in an encoding; None if it does not."""
        lower = text.casefold()
        for how, needle in self._compile().needles:
            if needle in (text if how == "base64" else lower):
                return how
        return None


class _Compiled(NamedTuple):
    """Names, ready to be searched for."""

    pattern: Any  # None: there are no names
    needles: tuple[tuple[str, str], ...]  # encoding, and a name in it


def _find_run(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the run of encoded characters around a span."""
    while start > 0 and text[start - 1] in _ENCODED:
        start -= 1
    while end < len(text) and text[end] in _ENCODED:
        end += 1
    return start, end


def _spell(word: str) -> list[tuple[str, str]]:
    return [pair for form in (word, word.title(), word.upper(), word.capitalize()) for pair in _encode(form)]


def _encode(word: str) -> Iterator[tuple[str, str]]:
    raw = word.encode()
    for data in (raw, word.encode("utf-16-le"), word.encode("utf-16-be")):
        yield "hex", data.hex()
        if len(data) >= 5:
            yield from (("base64", core) for core in _base64_cores(data))
    if quote(word) != word:
        yield "URL", quote(word).casefold()
    escaped = json.dumps(word)[1:-1]
    if escaped != word:
        yield "JSON", escaped.casefold()


def _base64_cores(data: bytes) -> Iterator[str]:
    """Yield the base64 of some bytes at each of the three alignments, without what it shares with its neighbours."""
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + data).decode().rstrip("=")
        core = encoded[(0, 2, 3)[shift] : len(encoded) - (0 if (len(data) + shift) % 3 == 0 else 1)]
        if len(core) >= 5:
            yield core
            yield core.replace("+", "-").replace("/", "_")


_LIKE = str.maketrans("łøđðþßæœı", "loddtsaoi")


def _fold(text: str) -> str:
    """Return a text of the same length in small letters without accents."""
    return "".join(map(_fold_letter, text)).translate(_LIKE)


def _fold_letter(letter: str) -> str:
    if letter.isascii():
        return letter.lower()
    lower = letter.lower()
    base = unicodedata.normalize("NFKD", lower if len(lower) == 1 else letter)
    return base[0] if base[0].isalpha() and all(map(unicodedata.combining, base[1:])) else letter


class SharingScope:
    """Redacts one item for sharing: secrets, people's data by its form, and names."""

    def __init__(self, redactor: Redactor, people: PersonalWords) -> None:
        self._scope = redactor.scope()
        self._people = people

    def value(self, value: Any) -> Any:
        """Return JSON-like data redacted, in keys too."""
        return _map_texts(self._scope.value(value), lambda text: self._people.hide(text, self._scope))


def _map_texts(value: Any, change: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {_map_texts(key, change): _map_texts(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_map_texts(item, change) for item in value]
    return value
