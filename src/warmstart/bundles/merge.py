"""What a push changes in a bundle, file by file. Nobody's file is ever overwritten by another's. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from msgspec import Struct, structs

from warmstart.bundles.items import BundleItem, name_file, write_item
from warmstart.bundles.keys import Signer

PushChange = Literal["new", "updated", "retired", "same", "beside", "known"]


class PushedItem(Struct, frozen=True, kw_only=True):
    """What became of one of your items."""

    type: str
    id: str
    title: str
    change: PushChange
    file: str
    project: str


class PushPlan(Struct, frozen=True):
    """The files to write, and what becomes of each item."""

    files: dict[str, bytes]
    items: tuple[PushedItem, ...]


def plan_push(
    present: Mapping[str, BundleItem], paths: Collection[str], items: Iterable[BundleItem], signer: Signer
) -> PushPlan:
    """Return what to write. `present`: the readable items of the bundle; `paths`: all its paths, also unreadable ones.

    - An item that you signed before is updated, or marked as retired.
    - An item that says the same as another's is left to them.
    - An item that says something else about the same thing goes into a file beside theirs.
    """
    files: dict[str, bytes] = {}
    pushed = []
    for item in items:
        path, change = _find_file(item, present, paths, signer.key)
        if change in ("new", "beside") and item.status == "retired":
            continue  # nobody has seen it
        if change in ("new", "beside"):
            files[path] = write_item(signer.sign(item))
        elif change == "updated":
            old = present[path]
            revised = structs.replace(item, revision=old.revision + 1)
            if structs.replace(revised, revision=old.revision, signature=old.signature) == old:
                change = "same"
            else:
                files[path] = write_item(signer.sign(revised))
                change = "retired" if item.status == "retired" and old.status != "retired" else "updated"
        pushed.append(
            PushedItem(type=item.type, id=item.id, title=item.title, change=change, file=path, project=item.project)
        )
    return PushPlan(files, tuple(pushed))


def _find_file(
    item: BundleItem, present: Mapping[str, BundleItem], paths: Collection[str], key: str
) -> tuple[str, PushChange]:
    """Return where an item belongs, and how the file there relates to it."""
    by_id = [path for path, other in present.items() if (other.type, other.id) == (item.type, item.id)]
    for path in by_id:
        signature = present[path].signature
        if signature is not None and signature.key == key and path in (name_file(item), name_file(item, key)):
            return path, "updated"
    for path in by_id:
        if present[path].statement == item.statement and present[path].project == item.project:
            return path, "known"
    plain = name_file(item)
    if plain not in paths and not by_id:
        return plain, "new"
    own = name_file(item, key)
    return (own, "beside") if own not in paths else (own, "known")


def summarise(items: Iterable[PushedItem]) -> str:
    """Return the subject of a commit: counts only."""
    counts: dict[str, int] = {}
    for item in items:
        if item.change not in ("same", "known"):
            counts[item.change] = counts.get(item.change, 0) + 1
    total = sum(counts.values())
    listed = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    return f"Share {total} {'item' if total == 1 else 'items'} ({listed})"
