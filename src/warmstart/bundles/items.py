"""One note or template of a bundle: its fields, its file name, its text, and the bytes that a signature covers.

A file is written for the reader of a pull request: one item a file, stable names, keys in a fixed order, and no
character that shows nothing. A file is foreign when it is read: every field is checked.
"""

from __future__ import annotations

import json
import unicodedata
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, structs

from warmstart import lazy_regex as re
from warmstart.digests import blake2b
from warmstart.errors import SourceError
from warmstart.names import name_key
from warmstart.notes.types import NoteKind
from warmstart.projects.remotes import normalise_remote

VERSION = 1
LARGEST = 512 << 10  # bytes of one file
ANY_PROJECT = ""  # of rules of an agent itself, and of templates that a person shared with every project
_OPENING = b"warmstart bundle item\0"
_LONGEST_SLUG = 40
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
_BY_COMMIT = re.compile(r"[\w.~+-]{1,100}@[0-9a-f]{12}")
_PATH = re.compile(r"(?:notes|templates)/[a-z0-9][a-z0-9.-]{0,80}/[a-z0-9][a-z0-9.-]{0,120}\.json")

ItemType = Literal["note", "template"]
ItemStatus = Literal["active", "retired"]
_Text = Annotated[str, Meta(max_length=600)]
_Name = Annotated[str, Meta(max_length=300)]
_Count = Annotated[int, Meta(ge=0, le=10**9)]


class ItemEffect(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The effect that the signer measured, against sessions or occurrences without the item."""

    metric: _Name
    n: dict[_Name, _Count]  # sessions or occurrences, per arm
    difference: float | None = None  # arm minus control
    low: float | None = None
    high: float | None = None
    verdict: _Name = "inconclusive"

    def state(self) -> str:
        """Return the effect in a few words."""
        arms = ", ".join(f"{name} {count}" for name, count in sorted(self.n.items()))
        if self.difference is None:
            return f"{self.verdict}: {self.metric}, n: {arms}"
        interval = "" if self.low is None or self.high is None else f" [{self.low:+.3g}, {self.high:+.3g}]"
        return f"{self.verdict}: {self.metric} {self.difference:+.3g}{interval}, n: {arms}"


class ItemEvidence(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the signer's own sessions say about an item: counts, never texts."""

    sessions: _Count = 0
    people: _Count = 1
    failed: _Count = 0  # calls with the note's trigger that failed
    worked: _Count = 0  # that worked
    rate: Annotated[float, Meta(ge=0, le=1)] = 0.0  # recent sessions that meet it
    effect: ItemEffect | None = None  # None: not measured


class SharedNote(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The statement of a note."""

    kind: NoteKind
    text: _Text
    fix: _Text = ""
    subject: _Text
    trigger: _Text
    key: _Text
    agent: _Name = ""


class ItemSignature(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who signed a file. The name is the signer's own choice; only the key identifies."""

    by: _Name = ""
    key: _Name
    value: _Name


class BundleItem(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of a bundle."""

    warmstart_bundle: int = VERSION
    type: ItemType
    id: Annotated[str, Meta(pattern="^[0-9a-f]{12}$")]
    project: _Name
    status: ItemStatus = "active"
    reason: _Text = ""  # of a retirement
    revision: Annotated[int, Meta(ge=1, le=10**9)] = 1  # counts the signer's changes, so that no clock is compared
    note: SharedNote | None = None
    template: dict[str, Any] | None = None  # as `templates export` writes one
    evidence: ItemEvidence = ItemEvidence()
    signature: ItemSignature | None = None

    @property
    def title(self) -> str:
        """The note's sentence, or the template's name."""
        return self.note.text if self.note else str((self.template or {}).get("name", ""))

    @property
    def statement(self) -> tuple[Any, ...]:
        """What two items must have in common to say the same. Numbers in a note's sentence are counts, which differ."""
        if self.note:
            return self.note.kind, self.note.trigger, self.note.fix, re.sub(r"\d+", "0", self.note.text)
        return ("template", msgspec.json.encode(self.template, order="sorted"))


_decoder = msgspec.json.Decoder(BundleItem)


def make_template_id(project: str, name: str) -> str:
    """Return the id of a template in bundles: the same name in the same project has the same."""
    return blake2b(f"template\0{project}\0{name_key(name)}".encode(), digest_size=6).hexdigest()


def name_file(item: BundleItem, key: str = "") -> str:
    """Return the path of an item in its bundle. `key`: of a signer whose item differs from another's at the plain path."""
    project = f"{_slug(item.project)}-{_digest(item.project)}" if item.project else "any-project"
    title = f"{item.note.kind} {item.note.subject}" if item.note else item.title
    variant = f".{_digest(key)}" if key else ""
    return f"{item.type}s/{project}/{_slug(title)}-{item.id}{variant}.json"


def is_item_path(path: str) -> bool:
    """Return whether a path is one that this program would write."""
    return _PATH.fullmatch(path) is not None and ".." not in path


def is_shareable_project(project: str) -> bool:
    """Return whether a project's name means the same on every machine: a repository's address or its first commit."""
    if project == ANY_PROJECT or _BY_COMMIT.fullmatch(project):
        return True
    return normalise_remote(f"https://{project}") == project


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=4).hexdigest()


def _slug(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:_LONGEST_SLUG].strip("-") or "item"


def get_signed_bytes(item: BundleItem) -> bytes:
    """Return the bytes that the signature of an item covers: everything but the signature, keys sorted."""
    return _OPENING + msgspec.json.encode(structs.replace(item, signature=None), order="sorted")


def write_item(item: BundleItem) -> bytes:
    """Return the text of an item's file."""
    facts = {name: value for name, value in msgspec.to_builtins(item).items() if value is not None}
    text = json.dumps(facts, ensure_ascii=False, indent=2, allow_nan=False)
    return ("".join(map(_show, text)) + "\n").encode()


def _show(character: str) -> str:
    """Return a character so that a reader of the file sees it; inside JSON, hidden ones can only stand in strings."""
    if character == "\n" or character.isascii() or unicodedata.category(character) not in _HIDDEN:
        return character
    return json.dumps(character)[1:-1]


def read_item(path: str, data: bytes) -> BundleItem:
    """Return the item of a file. Raises SourceError with the reason."""
    if len(data) > LARGEST:
        raise SourceError(path, f"larger than {LARGEST >> 10} KB")
    try:
        version = msgspec.json.decode(data, type=dict[str, msgspec.Raw]).get("warmstart_bundle")
        number = msgspec.json.decode(version, type=int) if version else None
        if number is not None and number > VERSION:
            raise SourceError(path, f"of bundle version {number}; this Warmstart reads version {VERSION}: upgrade it")
        item = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SourceError(path, f"not an item of a bundle: {error}") from error
    if (item.note is None) == (item.template is None) or (item.type == "note") != (item.note is not None):
        raise SourceError(path, "it must hold one note or one template, as its type says")
    if not is_shareable_project(item.project):
        raise SourceError(path, f"{item.project[:100]!r} does not name a repository")
    if path not in (name_file(item), name_file(item, item.signature.key if item.signature else "")):
        raise SourceError(path, f"it does not belong here, but at {name_file(item)}")
    return item
