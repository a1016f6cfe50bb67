"""Share notes and templates with a team, and receive theirs: push, pull, check and list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from msgspec import Struct

from warmstart import lazy_regex as re
from warmstart.bundles.git import Author, PushRejected
from warmstart.bundles.incoming import ItemReceiver, ReceivedItem, WaitingItem
from warmstart.bundles.items import BundleItem, read_item
from warmstart.bundles.keys import FOLDER, SignatureCheck, Signer, SigningKey, TrustedKeys, load_key
from warmstart.bundles.merge import PushedItem, plan_push, summarise
from warmstart.bundles.outgoing import ItemSelector, LeftOut, collect_people, read_histories
from warmstart.bundles.places import BundleFiles, BundlePlace, CommitFacts, open_place
from warmstart.bundles.sweep import sweep_clones
from warmstart.config import Settings
from warmstart.errors import ConfigError, Refused, SourceError
from warmstart.model import Problem
from warmstart.notes.library import NoteLibrary
from warmstart.ports import Progress
from warmstart.store import Store
from warmstart.templates.library import TemplateLibrary

_TRIES = 8  # pushes, while others push too
_AUTHOR = re.compile(r"(?P<name>[^<>\n\0]{1,100}?) *<(?P<email>[^<>\s\0]{0,200})>")


class Pushed(Struct, frozen=True, kw_only=True):
    """The result of a push."""

    place: str
    where: str  # branch and commit, or folder; empty: nothing had to be written
    items: tuple[PushedItem, ...]
    left_out: tuple[LeftOut, ...]
    problems: tuple[Problem, ...]  # files of the bundle that cannot be read
    signer: str  # your public key


class Pulled(Struct, frozen=True, kw_only=True):
    """The result of a pull."""

    place: str
    items: tuple[ReceivedItem, ...]
    problems: tuple[Problem, ...]  # files that were refused


SignatureState = Literal["trusted", "refused"]


class CheckedItem(Struct, frozen=True, kw_only=True):
    """An item of a bundle, and whether its signature would be accepted."""

    file: str
    type: str
    project: str
    status: str
    title: str
    signer: str
    state: SignatureState
    effect: str = ""
    reason: str = ""  # why it would be refused


class Checked(Struct, frozen=True, kw_only=True):
    """The content of a bundle. Nothing is stored."""

    place: str
    items: tuple[CheckedItem, ...]
    problems: tuple[Problem, ...]


class Bundles:
    """Notes and templates shared with others."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        clock: Callable[[], float],
        notes: NoteLibrary,
        templates: TemplateLibrary,
    ) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._notes = notes
        self._templates = templates

    @property
    def trusted(self) -> TrustedKeys:
        """The keys of others: list, add, remove."""
        return TrustedKeys(self._settings.home)

    def key(self, name: str | None = None) -> SigningKey:
        """Return your signing key, made on first need. `name` sets the name beside your signatures."""
        return load_key(self._settings.home, name)

    def push(
        self,
        address: str = "",
        projects: Sequence[str] = (),
        *,
        branch: str | None = None,
        author: str | None = None,
        hide: Sequence[str] = (),
        dry: bool = False,
        progress: Progress | None = None,
    ) -> Pushed:
        """Write the active notes and templates of projects into a bundle, redacted and signed.

        Others' files are never touched. While others push at the same time, their files are fetched and it is tried again.
        `dry`: write nothing; the plan is returned.
        """
        if not projects:
            raise Refused("name the projects to share: --project NAME")
        signer, identity = Signer(self.key()), self._read_author(author)
        histories = read_histories(self._store, projects, progress)
        people = collect_people(self._settings, histories, hide)
        selector = ItemSelector(self._settings, self._notes, self._templates, people)
        for project in projects:
            if reason := selector.check_project(project):
                raise Refused(f"project {project} cannot be shared: {reason}")
        selection = selector.select(frozenset(projects))
        with self._open(address, branch, create=True) as place:
            attempt, where = 1, ""
            while True:
                found = place.read()
                present, problems = _read_items(found)
                plan = plan_push(present, found.files, selection.items, signer)
                facts = CommitFacts(message=summarise(plan.items), author=identity, now=self._clock())
                try:
                    if plan.files and not dry:
                        where = place.write(plan.files, facts)
                    break
                except PushRejected:
                    if attempt == _TRIES:
                        raise
                    attempt += 1
            return Pushed(
                place=place.shown,
                where=where,
                items=plan.items,
                left_out=selection.left_out,
                problems=(*found.problems, *problems),
                signer=signer.key,
            )

    def pull(self, address: str = "", *, branch: str | None = None, approve: bool = False) -> Pulled:
        """Receive the items of a bundle that keys you trust have signed. They wait for a decision; `approve` is yours.

        Nothing is deleted: an item that its signer retired, or that is gone, is proposed for retirement. All of it is stored
        in one transaction.
        """
        with self._open(address, branch) as place:
            found = place.read()
        check = self._check_signatures()
        items, problems = _read_items(found)
        accepted, refused = {}, []
        for path, item in items.items():
            fault = check.find_fault(item)
            if fault:
                refused.append(Problem(f"{place.shown}: {path}", fault))
            else:
                accepted[path] = (item, check.name(item))
        receiver = ItemReceiver(self._store, self._notes, self._templates, place.shown)
        unread = {*found.files} - {*accepted}
        received = receiver.receive(accepted, kept=unread, approve=approve)
        return Pulled(place=place.shown, items=received, problems=(*found.problems, *problems, *refused))

    def check(self, address: str = "", *, branch: str | None = None) -> Checked:
        """Read a bundle and check its signatures; nothing is stored."""
        with self._open(address, branch) as place:
            found = place.read()
        check = self._check_signatures()
        items, problems = _read_items(found)
        checked = []
        for path, item in items.items():
            fault = check.find_fault(item)
            checked.append(
                CheckedItem(
                    file=path,
                    type=item.type,
                    project=item.project,
                    status=item.status,
                    title=item.title,
                    signer=check.name(item),
                    state="refused" if fault else "trusted",
                    effect=item.evidence.effect.state() if item.evidence.effect else "",
                    reason=fault or "",
                )
            )
        return Checked(place=place.shown, items=tuple(checked), problems=(*found.problems, *problems))

    def waiting(self) -> tuple[WaitingItem, ...]:
        """Return what came from bundles and waits for your decision: new items, and proposed retirements."""
        return ItemReceiver(self._store, self._notes, self._templates, "").list_waiting()

    def _check_signatures(self) -> SignatureCheck:
        own = self.key().public if (self._settings.home / FOLDER / "signing.key").exists() else None
        return SignatureCheck(self.trusted.list(), own)

    @contextmanager
    def _open(self, address: str, branch: str | None, *, create: bool = False) -> Iterator[BundlePlace]:
        address = address or self._settings.bundle.url
        if not address:
            raise ConfigError("give the bundle's address: a git repository, a folder or an archive; or set bundle.url")
        sweep_clones(self._settings.home / FOLDER, self._clock())
        branch = branch or self._settings.bundle.branch or None
        with open_place(address, self._settings.home, branch, create=create) as place:
            yield place

    def _read_author(self, author: str | None) -> Author:
        text = self._settings.bundle.author if author is None else author
        if not text:
            return Author()
        match = _AUTHOR.fullmatch(text.strip())
        if match is None:
            raise ConfigError(f"{text[:100]!r}: an author is written as: Name <address>")
        return Author(match["name"], match["email"])


def _read_items(found: BundleFiles) -> tuple[dict[str, BundleItem], list[Problem]]:
    items, problems = {}, []
    for path, data in found.files.items():
        try:
            items[path] = read_item(path, data)
        except SourceError as error:
            problems.append(Problem(error.path, error.reason))
    return items, problems
