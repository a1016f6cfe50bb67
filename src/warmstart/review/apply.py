"""Apply proposals: write notes, skills or templates. A review writes nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from warmstart.config import Settings
from warmstart.errors import NotFound, Refused
from warmstart.ingest.records import Recorder
from warmstart.ingest.run import Ingest
from warmstart.ports import NoteDesk
from warmstart.review.memory import MemoryFolder
from warmstart.review.skills import SkillFolder, change_text, read_skill
from warmstart.review.snapshot import find_file
from warmstart.store import ProposalRow, Store
from warmstart.templates.library import TemplateLibrary

_DONE = {"create": "created", "edit": "updated", "patch": "updated", "delete": "deleted"}


class ReviewFolders:
    """The folders that a review may write to."""

    def __init__(self, settings: Settings) -> None:
        home, chosen = settings.home, settings.review
        self.memory = MemoryFolder(Path(chosen.memory_folder or home / "memory").expanduser())
        self.skills = SkillFolder(Path(chosen.skills_folder or home / "skills").expanduser(), home / "removed-skills")


class Applier:
    """Applies proposals. Applying twice changes nothing more: a process may be killed before the decision is recorded."""

    def __init__(
        self, store: Store, settings: Settings, clock: Callable[[], float], notes: NoteDesk | None = None
    ) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._notes = notes
        self.places = ReviewFolders(settings)

    def prepare(self, row: ProposalRow) -> None:
        """Ingest the session that a template or note is made of: it takes long, so it happens outside the transaction."""
        if row.kind == "template":
            self._ingest(row)
        elif row.kind == "note":
            self._learn_note(row)

    def _learn_note(self, row: ProposalRow) -> None:
        """Make sure that the note is stored. Its facts come from sessions, never from the proposal."""
        notes = self._get_notes()
        if notes.is_stored(row.target):
            return
        self._ingest(row)
        notes.learn(str(msgspec.json.decode(row.body, type=dict[str, Any])["project"]))
        if not notes.is_stored(row.target):
            raise Refused(f"no stored session supports note {row.target} any more; run: warmstart learn")

    def _get_notes(self) -> NoteDesk:
        if self._notes is None:
            raise Refused("a note is approved with: warmstart review apply, or warmstart notes approve")
        return self._notes

    def _ingest(self, row: ProposalRow) -> None:
        try:
            self._store.find_session(row.session_key)
        except NotFound:
            if (file := find_file(row.source)) is None:
                raise Refused(f"session {row.session} is not remembered; run: warmstart ingest PATH") from None
            recorder = Recorder(self._settings.secrets, self._settings.home)
            Ingest(self._store, recorder, self._settings.tools, self._clock).run([file])

    def apply(self, row: ProposalRow, *, by: str, anyway: bool = False) -> None:
        """Apply a proposal. `anyway`: the person makes a template of a session that failed."""
        body: dict[str, Any] = msgspec.json.decode(row.body, type=dict[str, Any])
        match row.kind:
            case "memory":
                self._write_memory(row, body)
            case "skill":
                self._write_skill(row, body)
            case "template":
                self._learn(row, body, by, anyway)
            case "note":
                self._get_notes().approve(row.target)

    def _write_memory(self, row: ProposalRow, body: dict[str, Any]) -> None:
        memory, content, old = self.places.memory, str(body["content"]), str(body["old_text"])
        if row.action == "remove":
            if any(old in note for note in memory.notes(row.target)):
                memory.remove(row.target, old)
        elif not memory.knows(content):
            if row.action == "add":
                memory.add(row.target, content)
            else:
                memory.replace(row.target, old, content)

    def _write_skill(self, row: ProposalRow, body: dict[str, Any]) -> None:
        skills, name = self.places.skills, row.target
        match row.action:
            case "create":
                if skills.find(name) is None or skills.read(name) != body["content"]:
                    skills.create(name, read_skill(str(body["content"]), name).text)
            case "delete":
                if skills.find(name) is not None:
                    skills.delete(name)
            case _:
                text = skills.read(name)
                if not _is_changed(row.action, body, text):
                    skills.change(name, change_skill(row.action, body, text, name))

    def _learn(self, row: ProposalRow, body: dict[str, Any], by: str, anyway: bool) -> None:
        """Capture and approve the template; the decision is the person's who applies it, or their policy's."""
        library = TemplateLibrary(self._store, self._settings, self._clock)
        template = library.capture(
            row.session_key,
            name=str(body["name"]) or None,
            description=str(body.get("description") or "") or None,
            anyway=anyway,
        )
        if template.status != "active":
            library.approve(template.name, reason=f"proposal {row.id[:12]} applied", by=by)


def change_skill(action: str, body: dict[str, Any], old: str, name: str) -> str:
    """Return a SKILL.md after an edit or a patch. Raises Refused if the change does not fit."""
    if action == "edit":
        return change_text(old, lambda _old: str(body["content"]), name)
    before, after = str(body["old_string"]), str(body["new_string"])
    if old.count(before) != 1:
        raise Refused(f"old_string stands {old.count(before)} times in the skill; exactly once it must")
    return change_text(old, lambda text: text.replace(before, after), name)


def _is_changed(action: str, body: dict[str, Any], text: str) -> bool:
    """Whether the text already has the change."""
    if action == "edit":
        return text == str(body["content"])
    before, after = str(body["old_string"]), str(body["new_string"])
    return bool(after) and after in text and before not in text.replace(after, "")


def describe_action(row: ProposalRow) -> str:
    """Describe a proposal in a few words, for the one line that a person reads."""
    applied = row.status == "applied"
    match row.kind:
        case "memory" if applied:
            return "Memory updated" if row.target == "memory" else "User profile updated"
        case "memory":
            return "Memory note proposed" if row.target == "memory" else "User note proposed"
        case "skill":
            what = _DONE[row.action] if applied else "proposed" if row.action == "create" else "change proposed"
            return f"Skill '{row.target}' {what}"
        case "note":
            return f"Note about the project {'approved' if applied else 'proposed'}"
        case _:
            return f"Template '{row.target}' {'learned' if applied else 'proposed'}"
