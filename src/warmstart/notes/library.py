"""The notes of a store: learned beside templates, decided about, shown, and measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct, structs

from warmstart.calls.origins import find_origin
from warmstart.errors import Refused
from warmstart.insights.errors import make_error_key, name_error, number_origin
from warmstart.model import PastCall, PastSession
from warmstart.notes.briefs import ProjectBriefs
from warmstart.notes.digest import digest_session, read_calls
from warmstart.notes.effect import MOST, EffectReader, NoteEffects, Recurrence
from warmstart.notes.imports import ReceivedNotes
from warmstart.notes.learning import NoteLearner
from warmstart.notes.marks import Place
from warmstart.notes.merging import MergedDigests, WantedSessions
from warmstart.notes.mine import add_up, make_id
from warmstart.notes.note_trials import NoteTrial
from warmstart.notes.publish import Published, prepare
from warmstart.notes.register import PERSON, RULES, encode
from warmstart.notes.types import BY_PERSON, DECIDED, LONGEST_SENTENCE, Note, NoteSource, NoteStatus
from warmstart.redact import Redactor
from warmstart.scopes import SHARED, Border
from warmstart.store.history import decode_session
from warmstart.store.notes import NoteDecision, NoteRow, Showing

MET = 50  # sessions that are listed


class ShownNote(Struct, frozen=True, kw_only=True):
    """A note with its decisions and what became of sessions that were shown it."""

    note: Note
    decisions: tuple[NoteDecision, ...]
    sessions: tuple[str, ...]  # that were shown it
    met: tuple[str, ...]  # sessions that met it, the latest first, at most MET
    before: Recurrence  # sessions that met it before it was first shown
    since: Recurrence
    trial: NoteTrial | None = None  # None: never drawn
    omitted: str | None = None  # why the brief of a new session leaves the active note out; None: the brief has it


class NoteLibrary(NoteLearner, ProjectBriefs, ReceivedNotes):
    """Learns notes, shows them, takes a person's decisions, and writes briefs."""

    # Deciding

    def show(self, name: str) -> ShownNote:
        """Return one note with its decisions and its recurrence, by its id or a unique prefix."""
        note = self._find(name)
        showings = [showing for showing in self._notes.showings(note.id) if showing.how != "wrong"]
        before, since = self._effects.count(note, min((showing.at for showing in showings), default=None))
        return ShownNote(
            note=note,
            decisions=tuple(self._notes.decisions(note.id)),
            sessions=tuple(dict.fromkeys(showing.session for showing in showings)),
            met=tuple(dict.fromkeys((*self._effects.list_met(note, MET), *note.sessions)))[:MET],
            before=before,
            since=since,
            trial=self._find_trial(note.id),
            omitted=self._explain_omission(note),
        )

    def _explain_omission(self, note: Note) -> str | None:
        """Return why the brief of a new session, checked on the project's disk, leaves an active note out."""
        if note.status != "active":
            return None
        roots = (Path(root) for root in self._notes.roots(note.project)) if note.project else ()
        brief = self.brief(
            project=note.project or None,
            agent=note.agent or None,
            scope="" if note.scope == SHARED else note.scope,
            root=next((root for root in roots if root.is_dir()), None),
            budget=self._settings.brief,
        )
        return next((omission.reason for omission in brief.omitted if omission.note == note.id), None)

    def approve(self, name: str, *, reason: str = "") -> Note:
        """Activate a note: a person's decision. `reason` is kept on the record.

        A signer's change takes the place of the note that it changes: the returned note has that one's id.
        """
        return self._store_decision(self._find(name), "active", "approved", reason)

    def retire(self, name: str, *, reason: str = "") -> Note:
        """Retire a note: a person's decision. `reason` is kept on the record."""
        return self._store_decision(self._find(name), "retired", "retired", reason)

    def edit(self, name: str, text: str, *, reason: str = "") -> Note:
        """Replace the sentence of a note: a person's decision, which also activates it. The old sentence is recorded."""
        text = self._write_sentence(text)
        if not text:
            raise Refused("a note needs a text")
        old = self._find(name)
        record = ": ".join(filter(None, (self._write(reason), f"was: {old.text}")))
        return self._store_decision(structs.replace(old, text=text, written=True), "active", "edited", record)

    def make(self, session: str, call: int, text: str = "") -> Note:
        """Make a note of a failed call, numbered from 0: a person's decision, which also activates it.

        Its cause and the calls that it concerns are found as mining finds them; `text` replaces the sentence. Where no
        cause is recognised a text is needed, and the note is shown only at the start of sessions.
        """
        row = self._store.find_session(session)
        past = decode_session(row, self._store.calls_of(row.key))
        if past is None or not past.project:
            raise Refused(f"session {row.id} belongs to no project that a note could be about")
        if not 0 <= call < len(past.calls):
            raise Refused(f"session {row.id} has no call {call}; it has {len(past.calls)}, counted from 0")
        text = self._write_sentence(text)
        mined = self._mine(past, call)
        if mined is None and not text:
            raise Refused("no specific cause was recognised in this message; write the note's sentence yourself")
        known = {note.id: note for note in self.list(project=past.project) if note.scope in (past.scope, SHARED)}
        note = mined
        if note is None or (text and note.id not in known):  # the same sentence again is the same note
            same = (one for one in known.values() if one.status != "retired" and _is_same_sentence(one, text))
            note = next(same, None) or note or self._write_note(past, text)
        note = self._link(note, past, past.calls[call])
        old = known.get(note.id)
        if not text:
            return self._store_decision(note, "active", "made")
        note = structs.replace(note, text=text, written=True)
        if old is None or old.text == text:
            return self._store_decision(note, "active", "made")
        return self._store_decision(note, "active", "edited", f"was: {old.text}")

    def _link(self, note: Note, past: PastSession, call: PastCall) -> Note:
        """Return a note that names the error that it is made of, and the sessions that met that error."""
        key = make_error_key(call)
        error = (name_error(key), number_origin(find_origin(past)))
        wanted = WantedSessions(project=past.project, border=Border(past.scope, past.project or ""))
        rows = [self._store.find_session(one) for one in MergedDigests(self._store).find_sessions(wanted, key)]
        rows.sort(key=lambda row: -(row.ended or row.started or 0.0))
        sessions = tuple(
            dict.fromkeys((*(row.parent or row.id for row in rows), past.parent or past.id, *note.sessions))
        )
        return structs.replace(
            note,
            errors=tuple(dict.fromkeys((*note.errors, error))),
            sessions=sessions[:MET],
            support=len(sessions) if note.key.startswith(BY_PERSON) else note.support,
        )

    def _mine(self, past: PastSession, call: int) -> Note | None:
        """Return the note about the cause of a call: as it is known, else as this session alone shows it."""
        project = past.project or ""
        roots = self._notes.roots(project)
        place = Place(past.folder or project, (*roots, *((past.root,) if past.root else ())))
        keys = [sighting.key for sighting in list(read_calls(past, place))[call].sightings]
        known = {note.key: note for note in self.list(project=project) if note.scope in (past.scope, SHARED)}
        digest = digest_session(past, roots=roots)
        mined = {note.key: note for note in add_up(project, [digest], past.scope).make_notes(min_support=1)}
        return next((notes[key] for key in keys for notes in (known, mined) if key in notes), None)

    def _write_note(self, past: PastSession, text: str) -> Note:
        key = f"{BY_PERSON}{text}"
        seen = past.ended or past.started
        return Note(
            id=make_id(past.project or "", past.scope, key),
            project=past.project or "",
            scope=past.scope,
            kind="environment",
            subject=text,
            key=key,
            trigger="",
            text=text,
            support=1,
            rate=1.0,
            first_seen=seen,
            last_seen=seen,
        )

    def _write_sentence(self, text: str) -> str:
        """Return a note's sentence as a person wrote it, on one line and without secrets; refuse one that is too long."""
        text = self._write(text)
        if len(text) > LONGEST_SENTENCE:
            raise Refused(
                f"a note's sentence has at most {LONGEST_SENTENCE} characters; yours has {len(text)}: shorten it"
            )
        return text

    def _write(self, text: str) -> str:
        """Return a person's words on one line, without secrets."""
        redacted = Redactor(self._settings.secrets).scope().value(" ".join(text.split()))
        assert isinstance(redacted, str)
        return redacted

    def share(self, name: str, *, reason: str = "") -> Note:
        """Let every scope of the project use a note: a person's decision."""
        note = structs.replace(self._find(name), scope=SHARED)
        return self._store_decision(note, note.status, "shared", reason)

    def unshare(self, name: str, *, reason: str = "") -> Note:
        """Take a note back into the scope that it was made in: a person's decision."""
        note = self._find(name)
        if note.scope != SHARED:
            raise Refused(f"note {note.id} is not shared")
        return self._store_decision(
            structs.replace(note, scope=self._find_origin(note)), note.status, "no longer shared", reason
        )

    def _find_origin(self, note: Note) -> str:
        """Return the scope that a note was made in, which its id is made of; the machine's own if none fits."""
        key = note.key if note.project else f"{note.agent}:{note.key}"
        scopes = (str(scope) for (scope,) in self._store.rows("session_scopes"))
        return next((scope for scope in scopes if make_id(note.project, scope, key) == note.id), "")

    def delete(self, name: str) -> Note:
        """Delete a note and what was recorded about it. Learning makes it again if sessions still support it."""
        note = self._find(name)
        with self._store.writing():
            self._notes.delete(note.id)
        self.write_indexes()
        return note

    def import_(self, notes: Iterable[Note], source: str) -> tuple[Note, ...]:
        """Store notes of others as proposed: a person approves them here. Return those that are new here."""
        with self._store.writing():
            received = self.receive(structs.replace(note, source=NoteSource(place=source)) for note in notes)
        return tuple(note for note, change in received if change in ("new", "conflict"))

    def _store_decision(self, note: Note, status: NoteStatus, verb: str, reason: str = "") -> Note:
        why = ": ".join(filter(None, (verb, self._write(reason))))
        now = self._clock()
        decided = structs.replace(note, status=status, decision=f"{verb}{DECIDED}")
        with self._store.writing():
            if status == "active" and note.source is not None and note.source.replaces:  # a signer's change
                self._notes.delete(note.id)
                source = structs.replace(note.source, replaces="")
                decided = structs.replace(decided, id=note.source.replaces, source=source)
            self._notes.put(
                NoteRow(decided.id, note.project, decided.scope, note.kind, status, encode(decided).decode(), now)
            )
            self._notes.decide(NoteDecision(decided.id, status, PERSON, why, now))
        self.write_indexes()
        return decided

    # Showing

    def publish(self, file: Path, *, project: str) -> Published:
        """Return a file with the project's active notes in its managed block; call write() on it to write it."""
        notes = [note for note in self.list(project=project, status="active") if note.scope in ("", SHARED)]
        return prepare(file, notes)

    def record(self, showings: Sequence[Showing]) -> None:
        """Record what sessions were shown."""
        with self._store.writing():
            self._notes.put_showings(showings)

    def weigh(self, most: int = MOST) -> NoteEffects:
        """Return what became of the notes that sessions were shown, the most shown first."""
        return self._effects.weigh(self.list(), most)

    @property
    def _effects(self) -> EffectReader:
        return EffectReader(self._notes, RULES)


def _is_same_sentence(note: Note, text: str) -> bool:
    return note.is_written and note.text.casefold().rstrip(".") == text.casefold().rstrip(".")
