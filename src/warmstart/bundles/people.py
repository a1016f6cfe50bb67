"""Names of people in what is shared: learned from the sessions around it, and replaced wherever they occur.

Redaction knows secrets, e-mail addresses, home folders, phone numbers and hosts by their form. A name has none, so it is
collected where something gives it away, and how sure that is decides what is done:

- known: accounts of home folders, the machine's user, git's identity, `NAME <address>`
- claimed: a field or form that holds names and other things too (`"owner": "x"`, `TODO(x)`, `@x`)
- seen in sentences: capitalised words side by side, first names, "ask X"

A word that is common, or that the sentences of the sessions write small, is nobody's name unless it is hidden by hand. A
name is replaced in any case and as part of a handle, but not inside identifiers and paths whose words are also used in
code, unless it is an account. What still repeats a name in an encoding is not shared at all.
"""

from __future__ import annotations

import base64
import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from warmstart import lazy_regex as re
from warmstart.bundles.ordinary import FIRST_NAMES, is_common
from warmstart.redact import Redactor, Scope

PERSON = "a person"  # instead of a name, in a sentence that people read
_WORD = r"[^\W\d_]+(?:['’-][^\W\d_]+)*"
_NAME = rf"{_WORD}(?:[ ]{_WORD}\.?){{0,3}}"
_HANDLE = rf"{_WORD}(?:[._-]{_WORD})*"
# Each after a text that must occur. The co-author that agents add to commits is none.
_KNOWN = ("@", re.compile(rf"(?<![\w.])({_NAME})[\s\d.]*<(?!no-?reply@)[\w.+-]+@[\w.-]+>"))
_ACCOUNTS = (
    (
        "/",
        re.compile(
            r"(?<![\w.})-])(?:/(?:data|export|mnt|mnt/[a-z]|net|nfs|srv|var|System/Volumes/Data))?/(?:home|Users)"
            rf"/({_HANDLE})"
        ),
    ),
    ("\\", re.compile(rf"[A-Za-z]:\\{{1,4}}Users\\{{1,4}}({_HANDLE})")),
)
_CLAIMED = (
    (
        ":",
        re.compile(
            r"(?i:author|committer|signed-off-by|co-authored-by|reviewed-by|reported-by|assignee|reviewer|owner)"
            rf"\s*:\s*@?({_NAME})(?![\s\d.]*<no-?reply@)"
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
    ("@", re.compile(rf"(?<![\w./])({_WORD}(?:[._+-]{_WORD})*)\d*@(?:[\w-]+\.)+[A-Za-z]{{2,}}")),
    ("(", re.compile(rf"(?i:todo|fixme|xxx|hack)\(@?({_HANDLE})\)")),
)
_MENTIONED = re.compile(r"(?<![\w@/.`])@([A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*)(?![\w/.@`-])")  # in sentences only
_TITLED = r"[^\W\d_a-z][^\W\d_]+(?:['’-][^\W\d_]+)*"
_OF = ("van", "von", "der", "den", "de", "da", "di", "del", "dos", "du", "la", "le", "bin", "al", "el", "ter")
_RUN = rf"{_TITLED}(?:[ ](?:(?:{'|'.join(_OF)})[ ])*{_TITLED})*"
_ADDRESSED = re.compile(
    r"(?i:\b(?:i am|i'm|i’m|my name is|name's|ich bin|je suis|soy|hi|hello|hey|dear|thanks|thanks to|cc|ask|tell|told|ping"
    rf"|mr|mrs|ms|dr|colleague|boss|teammate))[., ]+@?({_RUN})"
)
_CAPITALISED = re.compile(rf"(?<![\w`/.@-])({_RUN})(?![\w`/(=])")
_SMALL = re.compile(r"(?<![\w/.@-])[a-zà-ÿ]{3,}(?![\w/@-])")
_CODE = re.compile(  # words that are parts of identifiers, file names and paths
    r"(?<![A-Za-z])[a-z]{3,}(?=[_/(-]|\.[a-z]|[A-Z])|(?<=[_/-])[a-z]{3,}|(?<=[a-z])[A-Z][a-z]{2,}|[A-Z][a-z]{2,}(?=[A-Z][a-z]|_)"
)
_ADDRESS = re.compile(
    r"[\w.+-]+@[\w.-]+|(?:/home/|/Users/)[^/\s]+|\w+://[^/\s]+|[\w.-]+\.(?:corp|home|internal|intra|lan|local)\b"
)
_SURNAME_CASE = re.compile(r"(?:Mc|Mac|De|Di|Du|La|Le|Van|O['’])[A-Z][a-z]+")
_ENCODED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_=%\\-")
_SHORTEST = 3  # letters of a part of a name
_MOST = 5_000
# Of accounts and addresses that are nobody's.
_NOBODY = frozenset(
    """
    admin bot ci deploy desktop dev developer guest home host laptop local localhost node noreply root runner shared
    staging support team ubuntu user vagrant vm workspace
    """.split()
)


class PersonalWords:
    """Names, collected from texts. `hide`: words of your own that must never leave."""

    def __init__(self, hide: Iterable[str] = ()) -> None:
        self._hidden = {_normalise(word) for word in hide}
        self._accounts: set[str] = set()
        self._known: set[str] = set()
        self._claimed: set[str] = set()
        self._addressed: set[str] = set()
        self._runs: set[str] = set()  # of capitalised words
        self._small: Counter[str] = Counter()  # words in sentences, by how they are written
        self._titled: Counter[str] = Counter()
        self._code: set[str] = set()
        self._compiled: _Compiled | None = None

    def learn(self, text: str) -> None:
        """Collect the names that a text gives away by their form."""
        clue, known = _KNOWN
        if clue in text:
            self._keep(self._known, known.findall(text))
        for clue, pattern in _ACCOUNTS:
            if clue in text:
                self._keep(self._accounts, pattern.findall(text))
        for clue, pattern in _CLAIMED:
            if clue in text:
                self._keep(self._claimed, pattern.findall(text))

    def learn_prose(self, text: str) -> None:
        """Collect names from sentences too: who is addressed, and capitalised words side by side."""
        self.learn(text)
        self._keep(self._claimed, _MENTIONED.findall(text))
        self._keep(self._addressed, _ADDRESSED.findall(text))
        self._small.update(_SMALL.findall(text))
        runs = _CAPITALISED.findall(text)
        self._keep(self._runs, runs)
        self._titled.update(word.casefold() for run in runs for word in run.split())

    def learn_code(self, text: str) -> None:
        """Collect the words of identifiers, file names and paths: hardly anybody's name."""
        self._code.update(map(str.lower, _CODE.findall(_ADDRESS.sub(" ", text))))
        self._compiled = None

    def add(self, name: str) -> None:
        """Add the name of a person."""
        self._keep(self._known, [name])

    def add_account(self, name: str) -> None:
        """Add the name of an account, which is replaced in paths and identifiers too."""
        self._keep(self._accounts, [name])

    def _keep(self, names: set[str], found: Iterable[str]) -> None:
        if len(names) < _MOST:
            names.update(unicodedata.normalize("NFC", name).strip() for name in found)
        self._compiled = None

    # Who is meant

    def _is_ordinary(self, word: str) -> bool:
        """Return whether a word is common, or written small more often than not."""
        return is_common(word) or 0 < self._small[word] >= self._titled[word]

    def _resolve(self) -> _Names:
        """Return the names, now that all texts are known."""
        names = _Names(set(), set(), set())
        for name in self._hidden:
            self._add(names, split_name(name), split_name(name), free=True)
        for name in self._accounts:
            every = split_name(name)
            parts = every if len(every) == 1 else self._drop_ordinary(every)
            self._add(names, every, [part for part in parts if part not in _NOBODY and not is_common(part)], free=True)
        for name in self._known:
            every = split_name(name)
            parts = self._drop_ordinary(every) if " " not in name else [part for part in every if not is_common(part)]
            self._add(names, every, parts, free=len(parts) > 1 or not FIRST_NAMES.isdisjoint(parts))
        for name in self._claimed:
            every = split_name(name)
            self._add(names, every, [part for part in self._drop_ordinary(every) if part not in _NOBODY])
        for run in self._addressed:
            for words in self._split_run(run):
                if len(words) > 1 or words[0] in FIRST_NAMES or words[0] not in self._code:
                    self._add(names, words, self._drop_ordinary(words))
        for run in self._runs:
            for words in self._split_run(run):
                is_first, is_used = words[0] in FIRST_NAMES, self._code.issuperset(words)
                if (is_first or len(words) > 1) and not (is_used and (len(words) == 1 or not is_first)):
                    self._add(names, words, self._drop_ordinary(words))
        return names

    def _add(self, names: _Names, every: list[str], parts: list[str], *, free: bool = False) -> None:
        """Add a name: whole, by those of its parts that may stand for it, and as the handles that people make of theirs."""
        if not parts or all(len(part) < 2 for part in every):
            return
        for part in parts:
            if len(part) >= _SHORTEST or not part.isascii():
                (names.strict if part in self._code and not free else names.free).add(part)
        if len(every) > 1:
            first, last = every[0], every[-1]
            names.whole.add(" ".join(every))
            handles = (first + last, last + first, first[0] + last, first + last[0])
            names.whole.update(handle for handle in handles if not self._is_ordinary(handle))

    def _drop_ordinary(self, name: list[str]) -> list[str]:
        return [word for word in name if word in FIRST_NAMES or not self._is_ordinary(word)]

    def _split_run(self, run: str) -> Iterator[list[str]]:
        """Yield what may be names in capitalised words: a first name and what follows, else words that are not ordinary."""
        name: list[str] = []
        for word in (*run.split(), ""):
            folded = word.casefold()
            is_cased = word.istitle() or _SURNAME_CASE.fullmatch(word) is not None
            follows = len(name) == 1 and name[0] in FIRST_NAMES
            if is_cased and (follows or folded in FIRST_NAMES or not self._is_ordinary(folded)):
                name.append(folded)
            elif name and word in _OF:
                name.append(word)
            elif name:
                while name and name[-1] in _OF:
                    name.pop()
                if name:
                    yield name
                name = []

    @property
    def words(self) -> tuple[str, ...]:
        """All names, their parts and the handles made of them; the longest first."""
        names = self._resolve()
        return _order(names.whole | names.free | names.strict)

    def _compile(self) -> _Compiled:
        if self._compiled is None:
            names = self._resolve()
            free, strict = _join(names.whole | names.free), _join(names.strict - names.free)
            forms = []
            if free:
                forms.append(rf"(?<![^\W\d_])(?:{free})(?![^\W\d_])")
            if strict:
                forms.append(rf"(?<![\w./@-])(?:{strict})(?![\w/@(-]|\.\w)")
            words = _order(names.whole | names.free | names.strict)
            needles = [pair for word in words if len(word) >= 4 or not word.isascii() for pair in _spell(word)]
            self._compiled = _Compiled(re.compile("|".join(forms)) if forms else None, tuple(dict.fromkeys(needles)))
        return self._compiled

    def hide(self, text: str, scope: Scope, word: str = "") -> str:
        """Return a text with every name replaced: by a placeholder, or by a plain word."""
        pattern = self._compile().pattern
        text = unicodedata.normalize("NFC", text)
        if pattern is None:
            return text
        pieces, at = [], 0
        for match in pattern.finditer(_fold(text)):
            pieces += [text[at : match.start()], word or scope.placeholder(match[0], "person")]
            at = match.end()
        return self._hide_encoded("".join((*pieces, text[at:])), scope, word)

    def _hide_encoded(self, text: str, scope: Scope, word: str) -> str:
        """Replace every run of characters that repeats a name in an encoding."""
        lower = text.casefold()
        for how, needle in self._compile().needles:
            while (at := (text if how == "base64" else lower).find(needle)) >= 0:
                start, end = _find_run(text, at, at + len(needle))
                text = text[:start] + (word or scope.placeholder(text[start:end], "person")) + text[end:]
                lower = text.casefold()
        return text

    def find_encoded(self, text: str) -> str | None:
        """Return how a text repeats a name in an encoding; None if it does not."""
        lower = text.casefold()
        for how, needle in self._compile().needles:
            if needle in (text if how == "base64" else lower):
                return how
        return None


class _Names(NamedTuple):
    """Names in small letters, by where they are replaced."""

    whole: set[str]  # first and last name, and handles made of them
    free: set[str]  # single words, also in paths and identifiers
    strict: set[str]  # single words that code uses too: only where they stand alone


def split_name(name: str) -> list[str]:
    """Return the words of a name or handle in small letters."""
    return re.findall(r"[^\W\d_]+", _normalise(name).casefold())


def _normalise(name: str) -> str:
    return unicodedata.normalize("NFC", name).strip()


def _order(words: Iterable[str]) -> tuple[str, ...]:
    long = (word for word in words if len(word) >= _SHORTEST or not word.isascii())
    return tuple(sorted(long, key=lambda word: (-len(word), word)))


def _join(words: Iterable[str]) -> str:
    folded = dict.fromkeys(map(_fold, _order(words)))
    return "|".join(re.escape(word).replace(r"\ ", r"[\s._+-]*") for word in folded)


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

    def sentence(self, text: str) -> str:
        """Return a sentence redacted for readers: a plain word stands for a name."""
        return self._people.hide(str(self._scope.value(text)), self._scope, PERSON)


def _map_texts(value: Any, change: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {_map_texts(key, change): _map_texts(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_map_texts(item, change) for item in value]
    return value
