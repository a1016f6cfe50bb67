"""What leaves: the notes and templates of chosen projects, redacted for others, each checked once more as text.

Only what a person or the policy decided to use is shared; nothing of personal scopes, no person's refusals, and nothing
that came from somebody else, except a note whose sentence you rewrote: that sentence is yours. An item whose trigger or
fix names a person or a machine would be of no use elsewhere and is left out, with the reason.
"""

from __future__ import annotations

import getpass
import socket
import subprocess
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct, structs

from warmstart.bundles.items import (
    BundleItem,
    ItemEffect,
    ItemEvidence,
    SharedNote,
    is_shareable_project,
    make_template_id,
    write_item,
)
from warmstart.bundles.people import PersonalWords, SharingScope
from warmstart.config import Settings
from warmstart.model import Effect, PastSession, Template
from warmstart.notes.library import NoteLibrary
from warmstart.notes.note_trials import NoteTrial
from warmstart.notes.types import Note
from warmstart.ports import Progress
from warmstart.projects.disk import build_environment
from warmstart.redact import Redactor
from warmstart.scopes import EVERYWHERE, SHARED, Border
from warmstart.store import Store, TemplateRow
from warmstart.store.history import read_history
from warmstart.templates.export import redact_template, to_record
from warmstart.templates.library import TemplateLibrary
from warmstart.templates.register import project_of

_OWN = ("", SHARED)  # scopes that may leave: the machine's own user, and whatever a person shared
_SIGNED = ("text", "fix", "subject", "trigger", "key")


class LeftOut(Struct, frozen=True, kw_only=True):
    """An item that is not shared, and why. It is only shown here."""

    type: str
    id: str
    title: str
    reason: str


class Selection(Struct, frozen=True):
    """Items to share, unsigned."""

    items: tuple[BundleItem, ...]
    left_out: tuple[LeftOut, ...]


class ItemSelector:
    """Selects and redacts what is shared of some projects."""

    def __init__(
        self, settings: Settings, notes: NoteLibrary, templates: TemplateLibrary, clues: PersonalWords
    ) -> None:
        """`clues`: the names of people that must not leave."""
        self._redactor = Redactor(settings.secrets, share=True)
        self._hosts = frozenset(settings.bundle.hosts)
        self._notes = notes
        self._templates = templates
        self._people = clues
        self._left: list[LeftOut] = []

    def select(self, projects: Collection[str]) -> Selection:
        """Return the items of projects. The rules of agents and shared templates of no project always belong to them."""
        self._left = []
        self._read_sentences(projects)
        items = [*self._select_notes(projects), *self._select_templates(projects)]
        return Selection(tuple(item for item in items if self._passes(item)), tuple(self._left))

    def _read_sentences(self, projects: Collection[str]) -> None:
        """Look for names in what a person may have written: no session holds those sentences."""
        for note in self._notes.list():
            if not note.project or note.project in projects:
                self._people.learn_prose(note.text)
                self._people.learn_prose(note.decision)
        for row, template in self._templates.find(border=Border("", EVERYWHERE)):
            for text in (row.reason, template.description):
                self._people.learn_prose(text)

    def check_project(self, project: str) -> str | None:
        """Return why a project's name must not leave; None if it may."""
        if not is_shareable_project(project):
            return "it has no git remote and no first commit, so that others could not tell which project it is"
        host, slash, path = project.partition("/")
        address = f"https://{'github.com' if host in self._hosts else host}/{path}" if slash else project
        if self._redactor.scope().value(address) != address:
            return f"its host may be private; if your team may read it: bundle.hosts = [{host!r}] in config.toml"
        return None

    # Notes

    def _select_notes(self, projects: Collection[str]) -> Iterator[BundleItem]:
        trials = {trial.id: trial for trial in self._notes.weigh_occurrences(most=10_000).notes}
        for note in self._notes.list():
            if note.project and note.project not in projects:
                continue
            if note.status == "proposed" or note.scope not in _OWN:
                continue
            if note.source is not None and not note.is_written:
                continue
            if item := self._share_note(note, trials.get(note.id)):
                yield item

    def _share_note(self, note: Note, trial: NoteTrial | None) -> BundleItem | None:
        if note.kind == "refusal" and note.scope != SHARED:
            self._leave("note", note.id, note.text, "a person's refusal is theirs; to share it: notes share")
            return None
        scope = SharingScope(self._redactor, self._people)
        plain = {name: getattr(note, name) for name in _SIGNED}
        safe = {name: str(scope.value(text)) for name, text in plain.items()} | {"text": scope.sentence(note.text)}
        if changed := [name for name in _SIGNED[1:] if safe[name] != plain[name]]:
            self._leave("note", note.id, note.text, f"its {changed[0]} names a person, a machine or a secret")
            return None
        try:
            shared = msgspec.convert(safe | {"kind": note.kind, "agent": note.agent}, SharedNote)
        except msgspec.ValidationError as error:
            self._leave("note", note.id, note.text, str(error))
            return None
        return BundleItem(
            type="note",
            id=note.id,
            project=note.project,
            status="retired" if note.status == "retired" else "active",
            reason=scope.sentence(note.decision)[:600] if note.status == "retired" else "",
            note=shared,
            evidence=_describe_support(note, trial),
        )

    # Templates

    def _select_templates(self, projects: Collection[str]) -> Iterator[BundleItem]:
        latest: dict[str, tuple[TemplateRow, Template]] = {}
        for row, template in self._templates.find(border=Border("", EVERYWHERE)):
            known = latest.get(row.name_key)
            is_better = known is None or (row.status == "active", row.version) > (
                known[0].status == "active",
                known[0].version,
            )
            if template.provenance.origin != "imported" and row.status != "proposed" and is_better:
                latest[row.name_key] = (row, template)
        taken: set[str] = set()
        for _key, (row, template) in sorted(latest.items()):
            project = project_of(template)
            if project in projects or (not project and row.scope == SHARED):
                yield self._share_template(row, template, project, taken)

    def _share_template(self, row: TemplateRow, template: Template, project: str, taken: set[str]) -> BundleItem:
        """Return a template as others see it. `taken`: ids of others; redaction makes names alike, and they stay apart."""
        scope = SharingScope(self._redactor, self._people)
        local = structs.replace(template.provenance, project=None, parent=None, source=None)
        bare = structs.replace(
            template,
            version=1,
            created=None,
            source_sessions=(),
            further=(),
            examples=tuple(structs.replace(example, session="", step=None) for example in template.examples),
            provenance=local,
        )
        safe = redact_template(bare, scope.value)
        name, count = safe.name, 1
        while (own := make_template_id(project, safe.name)) in taken:
            count += 1
            safe = structs.replace(safe, name=f"{name} {count}")
        taken.add(own)
        return BundleItem(
            type="template",
            id=own,
            project=project,
            status="retired" if row.status == "retired" else "active",
            reason=scope.sentence(row.reason)[:600] if row.status == "retired" else "",
            template=msgspec.json.decode(msgspec.json.encode(to_record(safe))),  # as it will be read
            evidence=ItemEvidence(
                sessions=len(template.source_sessions), effect=_describe_effect(self._templates.find_effect(row))
            ),
        )

    # The last look

    def _passes(self, item: BundleItem) -> bool:
        """Return whether a finished item holds nothing more to redact, in plain text or in an encoding."""
        if reason := self.check_project(item.project) if item.project else None:
            self._leave(item.type, item.id, item.title, f"project {item.project}: {reason}")
            return False
        anonymous = structs.replace(item, project="", id="0" * 12)
        bare = msgspec.json.decode(msgspec.json.encode(anonymous))
        if SharingScope(self._redactor, self._people).value(bare) != bare:
            self._leave(item.type, item.id, item.title, "after redaction it still holds something personal or secret")
            return False
        if how := self._people.find_encoded(write_item(anonymous).decode()):
            self._leave(item.type, item.id, item.title, f"it repeats a person's name in {how}")
            return False
        return True

    def _leave(self, type: str, id: str, title: str, reason: str) -> None:
        self._left.append(LeftOut(type=type, id=id, title=title, reason=reason))


def _describe_support(note: Note, trial: NoteTrial | None) -> ItemEvidence:
    if note.source is not None:
        return ItemEvidence(effect=_describe_trial(trial))  # the counts are another signer's
    return ItemEvidence(
        sessions=note.support,
        people=note.people,
        failed=note.failures,
        worked=note.against,
        rate=round(min(1.0, max(0.0, note.rate)), 2),
        effect=_describe_trial(trial),
    )


def _describe_trial(trial: NoteTrial | None) -> ItemEffect | None:
    if trial is None:
        return None
    counts = trial.counts
    return ItemEffect(
        metric="failure rate at occurrences with the note minus without it",
        n={"shown": counts.shown, "withheld": counts.withheld},
        difference=_round(trial.difference),
        low=_round(trial.low),
        high=_round(trial.high),
        verdict=trial.verdict,
    )


def _describe_effect(effect: Effect | None) -> ItemEffect | None:
    if effect is None:
        return None
    return ItemEffect(
        metric=f"{effect.metric}, {effect.arm} minus {effect.control}",
        n=dict(effect.n),
        difference=_round(effect.difference),
        low=_round(effect.low),
        high=_round(effect.high),
        verdict=effect.verdict,
    )


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def collect_people(
    settings: Settings, histories: Iterable[Iterable[PastSession | None]], hide: Iterable[str] = ()
) -> PersonalWords:
    """Return the names of people that the machine and the sessions of projects give away."""
    people = PersonalWords((*settings.bundle.hide, *hide))
    for name in _name_machine(settings):
        people.add_account(name)
    for history in histories:
        for session in history:
            if session is not None:
                _read_session(people, session)
    return people


def _read_session(people: PersonalWords, session: PastSession) -> None:
    people.learn_prose(session.task)
    places = f"{session.folder or ''}/ {session.root or ''}/"
    people.learn(places)
    people.learn_code(places)
    for call in session.calls:
        for prose in (call.intent, call.asked, call.closing):
            if prose:
                people.learn_prose(prose)
        for text in _list_texts(call.arguments):
            people.learn(text)
            people.learn_code(text)
        people.learn(call.excerpt or "")


def _list_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield msgspec.json.encode(value).decode("utf-8", "replace")
        for item in value.values():
            yield from _list_texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _list_texts(item)


def _name_machine(settings: Settings) -> Sequence[str]:
    """Return what names the user of this machine: the account, its home, the host, and git's identity."""
    names = [settings.user_home.name, socket.gethostname().split(".")[0]]
    with suppress(OSError, KeyError, ImportError):
        names.append(getpass.getuser())
    for setting in ("user.name", "user.email"):
        with suppress(OSError, subprocess.SubprocessError):
            command = ["git", "config", "--global", "--get", setting]
            done = subprocess.run(command, env=build_environment(), capture_output=True, timeout=5, check=False)
            names.append(done.stdout.decode("utf-8", "replace").strip().partition("@")[0])
    return [name for name in names if name]


def read_histories(
    store: Store, projects: Iterable[str], progress: Progress | None = None
) -> Iterator[Iterable[PastSession | None]]:
    """Yield the sessions of each project."""
    for project in projects:
        yield read_history(store, project=project, progress=progress)
