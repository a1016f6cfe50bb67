"""The files of the project that a session edited and read, for finding where the work of a request is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from msgspec import Struct, field

from warmstart import lazy_regex as re
from warmstart.calls.prose import strip_programs
from warmstart.calls.words import STOP_WORDS, find_words, stem
from warmstart.model import Arguments, PastCall
from warmstart.notes.marks import Place, is_editor, is_reader

_MOST_FILES = 80  # of a session, of either kind: the most used ones stay
_MOST_WORDS = 200  # different words of a request
_LONGEST = 160  # characters of a path
_LONGEST_LINE = 4_000
_PATCH = "*** Begin Patch"
_PATCHED = re.compile(r"\*\*\* (?:(?:Update|Add|Delete) File|Move to): ([^\n\\\"]{1,400})")
_UPDATED = re.compile(r"^[MA] (\S[^\n]{0,400})$", re.M)  # in the answer to a patch, whose text may be shortened
_PLAIN = re.compile(r"(?:[\w.@+()\[\]$=,~-]+/)*[\w.@+()\[\]$=,~-]+")
_NAMED = re.compile(r"[^/.][^/]*\.\w{1,8}\Z")  # the end of a path that is a file, not a folder
_FOREIGN = frozenset("node_modules .git vendor target dist build .venv venv __pycache__ site-packages".split())
_REWRITE = re.compile(  # sed -i ... FILE, cat > FILE <<, tee FILE <<
    r"(?:^|[\s;&|])(?:(?:sed|perl)\s[^\n;&|]*?-\w*i\S*\s[^\n;&|]*\s([^\s'\"<>|;&]+)[ \t]*(?=$|[\n;&|])"
    r"|(?:cat|tee)\s+(?:-a\s+)?>{0,2}\s*([^\s'\"<>|;&]+)\s*<<)"
)
_URL = re.compile(r"\w{1,12}://\S+")
_LONGEST_REQUEST = 20_000


class Visit(Struct):
    """Where one session went: its request in words, the files it edited and those it only read."""

    session: str = ""  # key of the root session
    at: float | None = None
    folder: str = ""  # in which it ran
    words: list[str] = field(default_factory=list)
    edited: dict[str, int] = field(default_factory=dict)  # path -> calls
    read: dict[str, int] = field(default_factory=dict)


def split_request(text: str) -> list[str]:
    """Return the different words of a request: stems, parts of camelCase names too, no addresses."""
    words = (stem(word) for word in find_words(drop_addresses(strip_programs(text)), camel=True))
    kept = dict.fromkeys(word for word in words if 1 < len(word) < 30 and word not in STOP_WORDS)
    return list(kept)[:_MOST_WORDS]


def drop_addresses(text: str) -> str:
    """Return the beginning of a request without web addresses, whose parts are no words and no files."""
    return _URL.sub(" ", text[:_LONGEST_REQUEST])


@lru_cache(8192)
def split_path(path: str) -> tuple[str, ...]:
    """Return the words of a path as requests write them."""
    return tuple(word for word in map(stem, find_words(path, camel=True)) if len(word) > 1)


def find_edits(call: PastCall, path: str | None, place: Place) -> list[str]:
    """Return the files of the project that a call edited. `path`: the one that its arguments name."""
    text = _read_patch(call.arguments)
    if text:
        named = [*_PATCHED.findall(text), *_UPDATED.findall(call.excerpt or "")]
        paths: Iterable[str | None] = (place.relate(name) for name in named)
    else:
        paths = (path,) if is_editor(call.tool) else ()
    return list(dict.fromkeys(path for path in paths if path and is_own(path)))


def find_rewrites(line: str, place: Place) -> list[str]:
    """Return the files of the project that a command line edits in place or writes from a here-document."""
    named = (first or second for first, second in _REWRITE.findall(line[:_LONGEST_LINE]))
    paths = (place.relate(name) for name in named)
    return list(dict.fromkeys(path for path in paths if path and is_own(path) and _is_file(path)))


def find_reads(call: PastCall, path: str | None, marks: Iterable[str]) -> list[str]:
    """Return the files of the project that a call read: by a reading tool or on a command line."""
    if _read_patch(call.arguments) or is_editor(call.tool):
        return []
    if path is not None:
        return [path] if is_reader(call.tool) and is_own(path) else []
    paths = (mark[5:] for mark in marks if mark.startswith("path:"))
    return list(dict.fromkeys(path for path in paths if is_own(path) and _is_file(path)))


def is_own(path: str) -> bool:
    """Return whether a relative path may be shown as a file of the project: plain, not installed or generated."""
    if len(path) > _LONGEST or path in (".", "..") or path.startswith(("/", "~", "../", "$")) or path.endswith("/"):
        return False
    return _PLAIN.fullmatch(path) is not None and _FOREIGN.isdisjoint(path.split("/")[:-1])


def _is_file(path: str) -> bool:
    return _NAMED.search(path.rpartition("/")[2]) is not None


def keep_most(counts: dict[str, int]) -> dict[str, int]:
    """Return the files that were used most, so that a digest stays small."""
    if len(counts) <= _MOST_FILES:
        return counts
    return dict(sorted(counts.items(), key=lambda item: -item[1])[:_MOST_FILES])


def merge_visits(visits: Iterable[Visit]) -> list[Visit]:
    """Return one visit for each root session, in the order given: subagents' files belong to the session above them."""
    merged: dict[str, Visit] = {}
    for visit in visits:
        known = merged.setdefault(visit.session, Visit(visit.session, visit.at, visit.folder))
        known.words = list(dict.fromkeys((*known.words, *visit.words)))
        known.at = max(filter(None, (known.at, visit.at)), default=None)
        for counts, more in ((known.edited, visit.edited), (known.read, visit.read)):
            for path, count in more.items():
                counts[path] = counts.get(path, 0) + count
    return list(merged.values())


def _read_patch(arguments: Arguments) -> str:
    """Return the text of a patch, also one inside a script; "" for a call without one."""
    return next((text for text in _list_texts(arguments) if _PATCH in text), "")


def _list_texts(arguments: Arguments) -> Iterator[str]:
    if isinstance(arguments, str):
        yield arguments
        return
    for value in arguments.values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from (part for part in value if isinstance(part, str))
