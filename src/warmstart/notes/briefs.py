"""What a session starts with: the notes that it may use, its brief, and the files that its request leads to.

Apart from the library, which learns: agents wait for a brief, and learning loads half of the program.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from warmstart.dialects.tokens import estimate
from warmstart.model import Brief, NoteOmission
from warmstart.notes.brief import add_where, reserve_line, write_brief
from warmstart.notes.register import RULES, NoteRegister
from warmstart.notes.types import MOST_FILES, Note
from warmstart.scopes import SHARED

if TYPE_CHECKING:
    from warmstart.notes.where import Where

_OWN_FILES = ("AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md")
_LARGEST_FILE = 100_000


class ProjectBriefs(NoteRegister):
    """Chooses notes for sessions and writes briefs."""

    def notes_for(self, project: str | None, scope: str = "", agent: str | None = None) -> tuple[Note, ...]:
        """Return the active notes that a session may use: its project's, shared ones, and rules of its agent."""
        own = [
            note
            for note in self.list(project=project or "", status="active")
            if note.scope in (scope, SHARED) and (project or note.agent == agent)
        ]
        subjects = {note.subject for note in own if note.kind == "tool"}
        rules = self.list(project="", status="active") if project and not scope else ()
        return (*own, *(note for note in rules if note.agent == agent and note.subject not in subjects))

    def brief(
        self,
        *,
        project: str | None,
        task: str = "",
        agent: str | None = None,
        scope: str = "",
        root: Path | None = None,
        budget: int = 300,
        adds: bool = False,
    ) -> Brief:
        """Return the brief for a session: what its project knows and the repository does not say itself.

        `adds`: the session was given it before its task was known; only the files that the task leads to are added.
        """
        where = self.where(task, project=project, scope=scope, root=root) if task else None
        notes = () if adds else self.notes_for(project, scope, agent)
        if root is not None and not root.is_dir():  # another machine's folder: nothing can be checked there
            root = None
        gone = {note.id for note in notes if not still_holds(note, root)} if root is not None else set()
        notes = tuple(note for note in notes if note.id not in gone)
        said = read_own_files(root) if root is not None else ""
        room = budget - reserve_line(where, estimate, budget) if where else budget
        brief = write_brief(notes, estimate, task=task, budget=room, said=said, project=project)
        disproved = tuple(NoteOmission(name, f"not true any more in {root}") for name in sorted(gone))
        brief = structs.replace(brief, omitted=(*disproved, *brief.omitted))
        return add_where(brief, where, estimate, budget) if where else brief

    def where(
        self, text: str, *, project: str | None, scope: str = "", root: Path | None = None, limit: int = MOST_FILES
    ) -> Where:
        """Return the files that earlier requests like this one led to, or why none is named."""
        from warmstart.notes.visits import look_up_where
        from warmstart.notes.where import Where

        if not project:
            return Where(silent="the request belongs to no project")
        return look_up_where(self._notes, RULES, text, project=project, scope=scope, root=root, limit=limit)


def still_holds(note: Note, root: Path) -> bool:
    """Return whether a note about a path is still true on this disk: the path is missing and its fix is there."""
    if note.kind != "path" or note.subject.startswith(("/", "~")):
        return True
    try:
        if (root / note.subject).exists():
            return False
        return not note.fix or note.fix.startswith(("/", "~")) or (root / note.fix).exists()
    except (OSError, ValueError):
        return False


def read_own_files(root: Path) -> str:
    """Return the repository's own instructions, which the agent gets anyway."""
    texts = []
    for name in _OWN_FILES:
        try:
            with (root / name).open("rb") as file:
                texts.append(file.read(_LARGEST_FILE).decode("utf-8", "replace"))
        except OSError:
            continue
    return "\n".join(texts)
