"""Learning notes: a digest for each new session, added up per project, and decided about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from msgspec import structs

from warmstart.errors import NotFound, Refused
from warmstart.model import LearnedNotes
from warmstart.notes.counts import NoteCounts
from warmstart.notes.merging import MergedDigests
from warmstart.notes.mine import ProjectHistory, make_id
from warmstart.notes.register import POLICY
from warmstart.notes.tried import MEASURED, TriedNotes
from warmstart.notes.trust import find_suspicions
from warmstart.notes.types import Note, NoteKind
from warmstart.ports import Progress
from warmstart.scopes import SHARED

MergedNotes = Mapping[tuple[str, str], Mapping[str, NoteCounts]]  # project and scope -> agent -> what its sessions met
ALONE: frozenset[NoteKind] = frozenset(("path", "command", "environment", "refusal"))  # proposed after one session
_UNSUPPORTED = "its sessions no longer support it"
_STALE = 90 * 86_400.0  # seconds without a sighting after which a note is retired


class NoteLearner(TriedNotes):
    """Makes notes of stored sessions and decides what becomes of them."""

    def learn(
        self, *, project: str | None = None, progress: Progress | None = None, merged: MergedNotes | None = None
    ) -> LearnedNotes:
        """Make the notes of every project, or of one, from all its sessions. New sessions only add their digests.

        `merged`: what sessions elsewhere met, such as those of a lake, in place of the store's. Notes of other projects stay.
        """
        is_whole = project is None and merged is None
        self.close_occurrences()
        shown = self._notes.sessions_shown()
        if merged is None:
            merged = MergedDigests(self._store).count_notes(project, progress)
        totals = [0, 0, 0, 0]
        by_agent: dict[str, dict[str, NoteCounts]] = {}
        for (name, scope), counts in merged.items():
            history = ProjectHistory(name, scope)
            for agent, own in counts.items():
                history.counts.merge(own)
                if not scope:
                    by_agent.setdefault(agent, {})[name] = own
            mined = [_count_showings(note, shown, history) for note in history.make_notes(min_support=1)]
            _add(totals, self._keep(mined, name, scope))
        if project is None:
            for agent, projects in sorted(by_agent.items()):
                _add(totals, self._keep(find_rules(agent, projects), "", "", agent))
            if is_whole:
                self._forget_projects({name for name, _scope in merged})
        self.write_indexes()
        active, proposed, new, retired = totals
        return LearnedNotes(projects=len(merged), notes=active, proposed=proposed, new=new, retired=retired)

    def _forget_projects(self, known: Collection[str]) -> None:
        """Delete the notes of projects whose sessions were all deleted."""
        with self._store.writing():
            for note in self.list():
                is_own = note.source is None and not note.decision.startswith("imported")
                if note.project and note.project not in known and is_own:
                    self._notes.delete(note.id)

    def forget_unsupported(self) -> None:
        """Learn again and delete, rather than retire, notes that no stored session supports: their session was deleted."""
        self.learn()
        with self._store.writing():
            for note in self.list(status="retired"):
                if note.decision == f"{POLICY}: {_UNSUPPORTED}":  # not active, so no index holds it
                    self._notes.delete(note.id)
            for note in self.list():
                kept = tuple(session for session in note.sessions if self._is_stored(session))
                if kept != note.sessions:
                    self._put(structs.replace(note, sessions=kept), note, self._clock())

    def _is_stored(self, session: str) -> bool:
        try:
            self._store.find_session(session)
        except NotFound:
            return False
        except Refused:  # several sessions have this id
            return True
        return True

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
                if note.source is None and note.status != "retired" and by_person.get(note.id) != "active":
                    self._retire(note, POLICY, _UNSUPPORTED, now)
                    counts[3] += 1
            return counts[0], counts[1], counts[2], counts[3]

    def _decide(self, note: Note, old: Note | None, by_person: str | None, newest: float) -> Note:
        """Return a mined note with its status: a person's word stands, else the policy decides."""
        suspicions = find_suspicions(note)
        if old is not None and by_person is not None and old.is_written:
            note = structs.replace(note, text=old.text, written=True)
        if old is not None and old.errors:
            note = structs.replace(note, errors=old.errors, sessions=old.sessions)
        shared = old is not None and old.scope == SHARED  # a person let every scope use it
        source = old.source if old is not None else None
        note = structs.replace(note, suspicions=suspicions, scope=SHARED if shared else note.scope, source=source)
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


def find_rules(agent: str, projects: Mapping[str, NoteCounts]) -> list[Note]:
    """Return the rules of an agent's own file tools, met in two projects: no path or name of a project is kept."""
    history = ProjectHistory("")
    met: Counter[str] = Counter()  # cause -> projects
    for counts in projects.values():
        met.update(counts.rules.keys())
        marks = {mark: times for mark, times in counts.marks.items() if mark.startswith(("tool:", "fresh:"))}
        history.counts.merge(NoteCounts(roots=counts.roots, marks=marks, causes=counts.rules))
    rules = [note for note in history.make_notes(min_support=3) if note.kind == "tool" and met[note.key] >= 2]
    return [structs.replace(note, agent=agent, id=make_id("", "", f"{agent}:{note.key}")) for note in rules]


def _count_showings(note: Note, shown: Mapping[str, Mapping[str, str | None]], history: ProjectHistory) -> Note:
    """Return a note with the number of sessions that were shown it, and of those that met it all the same."""
    keys = shown.get(note.id, {})
    tally = history.counts.causes.get(note.key)
    recurred = sum(key is not None and tally is not None and key in tally.sessions for key in keys.values())
    return structs.replace(note, shown=len(keys), recurred=recurred)


def _add(totals: list[int], counts: Iterable[int]) -> None:
    for at, count in enumerate(counts):
        totals[at] += count
