"""Notes in the store: digests of sessions, notes, decisions about them, and what sessions were shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from warmstart.digests import blake2b
from warmstart.errors import NotFound, Refused
from warmstart.store.occurrences import OccurrenceStore
from warmstart.store.protocol import Store


def make_note_id(project: str, scope: str, key: str) -> str:
    """Return the id of the note about this cause: the same fact keeps its id."""
    return blake2b("\0".join((project, scope, key)).encode("utf-8", "replace"), digest_size=6).hexdigest()


class NoteRow(Struct, frozen=True, gc=False):
    """A stored note."""

    id: str
    project: str
    scope: str
    kind: str
    status: str
    body: str  # JSON of notes.types.Note
    updated: float


class NoteDecision(Struct, frozen=True, gc=False):
    """Why a note has its status."""

    note: str
    status: str
    by: str  # person, policy
    reason: str
    at: float


class Showing(Struct, frozen=True, gc=False):
    """A note that a session was shown."""

    note: str
    session: str  # the agent's own id
    how: str  # brief, tell, correct, stop, after
    at: float


class DigestedSession(NamedTuple):
    """A session whose counts are merged with those of others."""

    key: str
    project: str  # empty: unknown
    scope: str
    agent: str
    started: float | None
    content: str  # hash of what is stored of it
    is_digested: bool  # its digest is stored and up to date


class MergedPlace(NamedTuple):
    """Where merged counts are stored."""

    kind: str  # insights, notes
    project: str
    scope: str
    agent: str
    level: int
    number: int


class NoteStore:
    """The notes of a store. Make changes inside the store's `writing()`."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def projects(self) -> list[tuple[str, str, int]]:
        """Return every project with its scopes and the number of their sessions."""
        return [(project, scope, count) for project, scope, count in self.store.rows("note_projects")]

    def digests(self, project: str, scope: str, rules: int) -> list[tuple[str, str | None]]:
        """Return session keys with their digests, in order of time; None where the digest must be made anew."""
        return [(key, body) for key, body in self.store.rows("digests_of", (project, scope, rules))]

    def put_digest(self, key: str, rules: int, content: str, body: str, figures: bytes) -> None:
        """Store the digest of a session: its counts for notes, and its figures for insights."""
        self.store.run("put_digest", (key, rules, content, body, figures))

    def digested(self, rules: int, project: str | None = None, agent: str | None = None) -> list[DigestedSession]:
        """Return the sessions that counts can be merged of, in the order in which they were first stored."""
        return [DigestedSession(*row) for row in self.store.rows("digested_sessions", (rules, project, agent))]

    def digest_body(self, key: str) -> str:
        """Return the stored digest of a session; empty if there is none or the session cannot be read."""
        return next((body for (body,) in self.store.rows("body_of_digest", (key,))), "")

    def digest_figures(self, key: str) -> bytes:
        """Return the stored figures of a session; empty if there are none."""
        return next((figures or b"" for (figures,) in self.store.rows("figures_of_digest", (key,))), b"")

    def merged(self, place: MergedPlace) -> tuple[str, bytes] | None:
        """Return merged counts with their fingerprint; None if they were never made."""
        return next(((fingerprint, body) for fingerprint, body in self.store.rows("merged_digest", place)), None)

    def put_merged(self, place: MergedPlace, fingerprint: str, body: bytes) -> None:
        """Store merged counts."""
        self.store.run("put_merged_digest", (*place, fingerprint, body))

    def copied_calls(self, key: str) -> set[str]:
        """Return the ids of a session's calls that an earlier session made."""
        return {call for (call,) in self.store.rows("copied_calls", (key,))}

    def bodies(
        self,
        project: str | None = None,
        scope: str | None = None,
        kind: str | None = None,
        status: str | None = None,
    ) -> list[tuple[str, str]]:
        """Return id and body of the notes that match."""
        return [(note, body) for note, body in self.store.rows("notes", (project, scope, kind, status))]

    def find(self, name: str) -> tuple[str, str]:
        """Return id and body of a note, by its id or a unique prefix of it."""
        rows = self.store.rows("notes_by_prefix", (name,)) if name else []
        if not rows:
            raise NotFound(f"no note {name!r}; see: warmstart notes list")
        if len(rows) > 1 and rows[0][0] != name:
            raise Refused(f"{name} matches several notes: {', '.join(row[0] for row in rows)}")
        note, body = rows[0]
        return note, body

    def put(self, row: NoteRow) -> None:
        """Store a note."""
        self.store.run("put_note", (row.id, row.project, row.scope, row.kind, row.status, row.body, row.updated))

    def delete(self, note: str) -> None:
        """Delete a note."""
        self.store.run("delete_note", (note,))

    def decide(self, decision: NoteDecision) -> None:
        """Record a decision."""
        self.store.run("put_note_decision", (decision.note, decision.status, decision.by, decision.reason, decision.at))

    def decisions(self, note: str) -> list[NoteDecision]:
        """Return the decisions about a note, oldest first."""
        return [NoteDecision(*row) for row in self.store.rows("note_decisions", (note,))]

    def decided_by_person(self) -> dict[str, str]:
        """Return the last status that a person gave, by note."""
        return dict(self.store.rows("notes_decided_by_person"))

    def retired_by(self, policy: str) -> set[str]:
        """Return the notes that this policy retired and nobody has decided about since."""
        return {note for (note,) in self.store.rows("notes_retired_by", (policy,))}

    def put_showings(self, showings: Sequence[Showing]) -> None:
        """Record what sessions were shown; the same showing again changes nothing."""
        self.store.run_many("put_showing", [(one.note, one.session, one.how, one.at) for one in showings])

    def showings(self, note: str | None = None) -> list[Showing]:
        """Return what sessions were shown, in order of time."""
        return [Showing(*row) for row in self.store.rows("showings", (note,))]

    def move(self, old: str, new: str) -> None:
        """Move the notes of a project to another one, with their decisions and showings. A note that is there stays."""
        for columns in self.store.rows("notes_of_project", (old,)):
            note, scope, body = columns
            try:
                facts = msgspec.json.decode(body, type=dict[str, Any])
            except msgspec.DecodeError:
                continue
            key = str(facts.get("key", ""))
            is_plain = note == make_note_id(old, scope, key)  # else it stands beside another note about the same cause
            moved = make_note_id(new, scope, key if is_plain else f"{key}\0{note}")
            text = msgspec.json.encode(facts | {"id": moved, "project": new}).decode()
            self.store.run("rename_note", (moved, new, text, note))
            self.store.run("rename_showings", (moved, note))
            self.store.run("rename_note_decisions", (moved, note))
            self.store.run("delete_showings", (note,))
            OccurrenceStore(self.store).move(note, moved)
            self.store.run("delete_note", (note,))

    def sessions_shown(self) -> dict[str, dict[str, str | None]]:
        """Return by note the sessions that were shown it, each with its key; None while its transcript is not stored."""
        shown: dict[str, dict[str, str | None]] = {}
        for note, session, key in self.store.rows("sessions_shown"):
            shown.setdefault(note, {})[session] = key
        return shown

    def roots(self, project: str) -> list[str]:
        """Return the folders in which a project was worked on."""
        return [root for (root,) in self.store.rows("project_roots", (project,))]

    def folders(self) -> list[tuple[str, str, str]]:
        """Return every project, scope and folder."""
        return [(project, scope, root) for project, scope, root in self.store.rows("project_folders")]
