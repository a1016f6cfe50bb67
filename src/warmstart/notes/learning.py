"""Learning notes: a digest for each new session, added up per project, and decided about."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import structs

from warmstart.calls.tools import PATCH, READ, SEARCH, WRITE, base_tool
from warmstart.model import LearnedNotes
from warmstart.notes.digest import Cause, Digest, decode_digest, digest_session
from warmstart.notes.mine import ProjectHistory, add_up, make_id
from warmstart.notes.register import POLICY, RULES, encode
from warmstart.notes.tried import MEASURED, TriedNotes
from warmstart.notes.trust import find_suspicions
from warmstart.notes.types import Note, NoteKind
from warmstart.ports import Progress
from warmstart.scopes import SHARED
from warmstart.store.history import decode_session
from warmstart.store.rows import SessionRow

ALONE: frozenset[NoteKind] = frozenset(("path", "command", "environment", "refusal"))  # proposed after one session
_UNSUPPORTED = "its sessions no longer support it"
_STALE = 90 * 86_400.0  # seconds without a sighting after which a note is retired
_FILE_TOOLS = frozenset((READ, WRITE, PATCH, SEARCH))


class NoteLearner(TriedNotes):
    """Makes notes of stored sessions and decides what becomes of them."""

    def learn(self, *, project: str | None = None, progress: Progress | None = None) -> LearnedNotes:
        """Make the notes of every project, or of one, from all its sessions. New sessions only add their digests."""
        self.close_occurrences()
        shown = self._notes.sessions_shown()
        places = [(name, scope) for name, scope, _count in self._notes.projects() if project in (None, name)]
        totals = [0, 0, 0, 0]
        histories: dict[str, list[tuple[str, Digest]]] = {}
        for done, (name, scope) in enumerate(places):
            if progress:
                progress(done, len(places), name)
            read = self._read_digests(name, scope)
            digests = [digest for _key, digest in read]
            causes = {key: digest.causes.keys() for key, digest in read}
            if not scope:
                for digest in digests:
                    histories.setdefault(digest.agent, []).append((name, digest))
            history = add_up(name, digests, scope)
            mined = [_count_showings(note, shown, causes) for note in history.make_notes(min_support=1)]
            _add(totals, self._keep(mined, name, scope))
        if project is None:
            for agent, met in sorted(histories.items()):
                _add(totals, self._keep(_find_rules(agent, met), "", "", agent))
            self._forget_projects({name for name, _scope in places})
        self.write_indexes()
        active, proposed, new, retired = totals
        return LearnedNotes(projects=len(places), notes=active, proposed=proposed, new=new, retired=retired)

    def _forget_projects(self, known: Collection[str]) -> None:
        """Delete the notes of projects whose sessions were all deleted."""
        with self._store.writing():
            for note in self.list():
                if note.project and note.project not in known and not note.decision.startswith("imported"):
                    self._notes.delete(note.id)

    def forget_unsupported(self) -> None:
        """Learn again and delete, rather than retire, notes that no stored session supports: their session was deleted."""
        self.learn()
        with self._store.writing():
            for note in self.list(status="retired"):
                if note.decision == f"{POLICY}: {_UNSUPPORTED}":  # not active, so no index holds it
                    self._notes.delete(note.id)

    def _read_digests(self, project: str, scope: str) -> list[tuple[str, Digest]]:
        roots = self._notes.roots(project)
        digests = []
        for key, body in self._notes.digests(project, scope, RULES):
            digest = decode_digest(body)
            if digest is None:
                digest = self._make_digest(key, roots)
            if digest is not None:
                digests.append((key, digest))
        return digests

    def _make_digest(self, key: str, roots: Sequence[str]) -> Digest | None:
        rows = self._store.rows("session_by_key", (key,))
        if not rows:
            return None
        row = SessionRow.from_columns(rows[0])
        session = decode_session(row, self._store.calls_of(key))
        if session is None:
            return None
        digest = digest_session(session, roots=roots, skip=self._notes.copied_calls(key))
        with self._store.writing():
            self._notes.put_digest(key, RULES, row.digest, encode(digest).decode())
        return digest

    def _keep(
        self, mined: Iterable[Note], project: str, scope: str, agent: str | None = None
    ) -> tuple[int, int, int, int]:
        """Store what was mined, decide what becomes of each note, and retire what is no longer mined."""
        now = self._clock()
        mined = list(mined)
        newest = max((note.last_seen or 0.0 for note in mined), default=0.0)  # a sleeping project forgets nothing
        with self._store.writing():
            ids = {note.id for note in mined}
            stored = self.list(project=project)
            known = {
                note.id: note for note in stored if note.scope == scope or (note.scope == SHARED and note.id in ids)
            }
            if agent is not None:
                known = {name: note for name, note in known.items() if note.agent == agent}
            by_person = self._notes.decided_by_person()
            measured = self._notes.retired_by(MEASURED)
            counts = [0, 0, 0, 0]
            for note in mined:
                if note.support < 2 and note.kind not in ALONE:
                    continue
                old = known.pop(note.id, None)
                decided = self._decide(note, old, by_person.get(note.id), newest)
                if old is not None and note.id in measured:  # it does harm, however often sessions meet it
                    decided = structs.replace(decided, status="retired", decision=old.decision)
                self._put(decided, old, now)
                counts[0] += decided.status == "active"
                counts[1] += decided.status == "proposed"
                counts[2] += old is None
            for note in known.values():
                if note.status != "retired" and by_person.get(note.id) != "active":
                    self._retire(note, POLICY, _UNSUPPORTED, now)
                    counts[3] += 1
            return counts[0], counts[1], counts[2], counts[3]

    def _decide(self, note: Note, old: Note | None, by_person: str | None, newest: float) -> Note:
        """Return a mined note with its status: a person's word stands, else the policy decides."""
        suspicions = find_suspicions(note)
        text = (
            old.text if old is not None and by_person == "active" and old.decision.startswith("edited") else note.text
        )
        shared = old is not None and old.scope == SHARED  # a person let every scope use it
        note = structs.replace(note, suspicions=suspicions, text=text, scope=SHARED if shared else note.scope)
        if by_person is not None and old is not None:
            return structs.replace(note, status=old.status, decision=old.decision)
        if note.last_seen is not None and newest - note.last_seen > _STALE:
            return structs.replace(note, status="retired", decision="policy: not seen for three months")
        if note.support >= self._settings.min_support and not suspicions:
            reason = f"policy: met in {note.support} sessions, nothing suspicious"
            return structs.replace(note, status="active", decision=reason)
        waits = (
            suspicions[0] if suspicions else f"met in {note.support} session, {self._settings.min_support} are needed"
        )
        return structs.replace(note, status="proposed", decision=f"policy: {waits}")


def _is_own_tool(cause: Cause) -> bool:
    """Return whether a cause is about the agent's own file tools, whose messages no project and no server writes."""
    tools_met = {mark[5:] for mark in cause.marks if mark.startswith("tool:")}
    return bool(tools_met) and all(base_tool(tool) in _FILE_TOOLS and "__" not in tool for tool in tools_met)


def _find_rules(agent: str, digests: Sequence[tuple[str, Digest]]) -> list[Note]:
    """Return the rules of an agent's own file tools, met in two projects: no path or name of a project is kept."""
    history = ProjectHistory("")
    met: dict[str, set[str]] = {}  # cause -> projects
    for project, digest in digests:
        causes = {key: cause for key, cause in digest.causes.items() if cause.kind == "tool" and _is_own_tool(cause)}
        for key, cause in causes.items():
            met.setdefault(key, set()).add(project)
            cause.files.clear()
            cause.marks = {mark: count for mark, count in cause.marks.items() if mark.startswith(("tool:", "fresh:"))}
        history.add(structs.replace(digest, causes=causes))
    rules = [note for note in history.make_notes(min_support=3) if note.kind == "tool" and len(met[note.key]) >= 2]
    return [structs.replace(note, agent=agent, id=make_id("", "", f"{agent}:{note.key}")) for note in rules]


def _count_showings(
    note: Note, shown: Mapping[str, Mapping[str, str | None]], met: Mapping[str, Collection[str]]
) -> Note:
    """Return a note with the number of sessions that were shown it, and of those that met it all the same."""
    keys = shown.get(note.id, {})
    recurred = sum(key is not None and note.key in met.get(key, ()) for key in keys.values())
    return structs.replace(note, shown=len(keys), recurred=recurred)


def _add(totals: list[int], counts: Iterable[int]) -> None:
    for at, count in enumerate(counts):
        totals[at] += count
