"""The notes of a store: learned beside templates, decided about, shown, and measured."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from warmstart.calls.tools import PATCH, READ, SEARCH, WRITE, base_tool
from warmstart.config import Settings
from warmstart.dialects.tokens import estimate
from warmstart.errors import Refused
from warmstart.model import Brief, LearnedNotes
from warmstart.notes.brief import add_where, reserve_line, write_brief
from warmstart.notes.digest import Cause, Digest, decode_digest, digest_session
from warmstart.notes.effect import MOST, EffectReader, NoteEffects, Recurrence
from warmstart.notes.index_files import delete_indexes, is_current, write_folders, write_index
from warmstart.notes.mine import ProjectHistory, add_up, make_id
from warmstart.notes.publish import Published, prepare
from warmstart.notes.showings import sweep_states, take_showings
from warmstart.notes.trust import find_suspicions
from warmstart.notes.types import Note, NoteKind, NoteStatus
from warmstart.notes.visits import look_up_where
from warmstart.notes.where import FILES, Where
from warmstart.ports import Progress
from warmstart.store import SqliteStore
from warmstart.store.history import decode_session
from warmstart.store.notes import NoteDecision, NoteRow, NoteStore, Showing
from warmstart.store.rows import SessionRow

RULES = 4  # raise it when marks, sightings or digests change their results: digests are then made anew
POLICY, PERSON = "policy", "person"
_UNSUPPORTED = "its sessions no longer support it"
_STALE = 90 * 86_400.0  # seconds without a sighting after which a note is retired
_OWN_FILES = ("AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md")
_FILE_TOOLS = frozenset((READ, WRITE, PATCH, SEARCH))
_LARGEST_FILE = 100_000
ALONE: frozenset[NoteKind] = frozenset(("path", "command", "environment", "refusal"))  # proposed after one session

_decoder = msgspec.json.Decoder(Note)
_encode = msgspec.json.Encoder(order="deterministic").encode


class ShownNote(Struct, frozen=True, kw_only=True):
    """A note with its decisions and what became of sessions that were shown it."""

    note: Note
    decisions: tuple[NoteDecision, ...]
    sessions: tuple[str, ...]  # that were shown it
    before: Recurrence  # sessions that met it before it was first shown
    since: Recurrence


class NoteLibrary:
    """Learns notes from stored sessions, keeps their life on record, and writes briefs."""

    def __init__(self, store: SqliteStore, settings: Settings, clock: Callable[[], float]) -> None:
        self._store = store
        self._notes = NoteStore(store)
        self._settings = settings
        self._clock = clock

    # Learning

    def learn(self, *, project: str | None = None, progress: Progress | None = None) -> LearnedNotes:
        """Make the notes of every project, or of one, from all its sessions. New sessions only add their digests."""
        self._take_showings()
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
                if note.decision == f"{POLICY}: {_UNSUPPORTED}":
                    self._notes.delete(note.id)
        self.write_indexes()

    def _take_showings(self) -> None:
        """Store what hooks noted down about notes that they showed."""
        with take_showings(self._settings.home) as taken, self._store.writing():
            self._notes.put_showings([Showing(one.note, one.session, one.how, one.at) for one in taken])
        sweep_states(self._settings.home, self._clock())

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
            self._notes.put_digest(key, RULES, row.digest, _encode(digest).decode())
        return digest

    def _keep(
        self, mined: Iterable[Note], project: str, scope: str, agent: str | None = None
    ) -> tuple[int, int, int, int]:
        """Store what was mined, decide what becomes of each note, and retire what is no longer mined."""
        now = self._clock()
        mined = list(mined)
        newest = max((note.last_seen or 0.0 for note in mined), default=0.0)  # a sleeping project forgets nothing
        with self._store.writing():
            known = {note.id: note for note in self._load(project, scope)}
            if agent is not None:
                known = {name: note for name, note in known.items() if note.agent == agent}
            by_person = self._notes.decided_by_person()
            counts = [0, 0, 0, 0]
            for note in mined:
                if note.support < 2 and note.kind not in ALONE:
                    continue
                old = known.pop(note.id, None)
                decided = self._decide(note, old, by_person.get(note.id), newest)
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
        note = structs.replace(note, suspicions=suspicions, text=text)
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

    def _put(self, note: Note, old: Note | None, now: float) -> None:
        if old == note:
            return
        self._notes.put(NoteRow(note.id, note.project, note.scope, note.kind, note.status, _encode(note).decode(), now))
        if old is None or old.status != note.status:
            self._notes.decide(NoteDecision(note.id, note.status, POLICY, note.decision, now))

    def _retire(self, note: Note, by: str, reason: str, now: float) -> Note:
        retired = structs.replace(note, status="retired", decision=f"{by}: {reason}")
        self._notes.put(
            NoteRow(note.id, note.project, note.scope, note.kind, "retired", _encode(retired).decode(), now)
        )
        self._notes.decide(NoteDecision(note.id, "retired", by, reason, now))
        return retired

    def write_indexes(self) -> None:
        """Write the index files that hooks read, one a project, and the map from folders to them."""
        home = self._settings.home
        paths = {
            (project, scope): write_index(home, project, notes, scope=scope, roots=self._notes.roots(project))
            for project, scope, notes in self._list_indexed()
        }
        folders = {root: paths[project, ""] for project, scope, root in self._notes.folders() if (project, "") in paths}
        write_folders(home, folders)
        delete_indexes(home, paths.values())

    def find_old_indexes(self) -> Sequence[str]:
        """Return the projects whose index file is missing or does not hold their notes as they are now."""
        home = self._settings.home
        return [
            project
            for project, scope, notes in self._list_indexed()
            if not is_current(home, project, notes, scope=scope, roots=self._notes.roots(project))
        ]

    def _list_indexed(self) -> Iterator[tuple[str, str, Sequence[Note]]]:
        """Yield each project and scope with the notes of its index."""
        rules = self.list(project="", status="active")
        for project, scope, _count in self._notes.projects():
            own = [note for note in self.list(project=project, status="active") if note.scope in (scope, "*")]
            known = () if scope else rules
            if own or known:
                yield project, scope, [*own, *known]

    # Reading and deciding

    def list(
        self,
        *,
        project: str | None = None,
        scope: str | None = None,
        kind: NoteKind | None = None,
        status: NoteStatus | None = None,
    ) -> tuple[Note, ...]:
        """Return the notes that match, those that matter most first."""
        bodies = self._notes.bodies(project, scope, kind, status)
        notes = [note for _id, body in bodies if (note := _decode(body)) is not None]
        return tuple(sorted(notes, key=lambda note: (note.project, -note.rate, -note.support, note.id)))

    def show(self, name: str) -> ShownNote:
        """Return one note with its decisions and its recurrence, by its id or a unique prefix."""
        note = self._find(name)
        showings = [showing for showing in self._notes.showings(note.id) if showing.how != "wrong"]
        before, since = self._effects.count(note, min((showing.at for showing in showings), default=None))
        return ShownNote(
            note=note,
            decisions=tuple(self._notes.decisions(note.id)),
            sessions=tuple(dict.fromkeys(showing.session for showing in showings)),
            before=before,
            since=since,
        )

    def approve(self, name: str) -> Note:
        """Activate a note: a person's decision."""
        return self._set_status(name, "active", "approved")

    def retire(self, name: str) -> Note:
        """Retire a note: a person's decision."""
        return self._set_status(name, "retired", "retired")

    def edit(self, name: str, text: str) -> Note:
        """Replace the sentence of a note: a person's decision, which also activates it."""
        text = " ".join(text.split())
        if not text:
            raise Refused("a note needs a text")
        note = structs.replace(self._find(name), text=text)
        return self._store_decision(note, "active", "edited")

    def share(self, name: str) -> Note:
        """Let every scope of the project use a note: a person's decision."""
        note = structs.replace(self._find(name), scope="*")
        return self._store_decision(note, note.status, "shared")

    def delete(self, name: str) -> Note:
        """Delete a note and what was recorded about it. Learning makes it again if sessions still support it."""
        note = self._find(name)
        with self._store.writing():
            self._notes.delete(note.id)
        self.write_indexes()
        return note

    def import_(self, notes: Iterable[Note], source: str) -> tuple[Note, ...]:
        """Store notes of others as proposed: a person approves them here."""
        now = self._clock()
        stored = []
        with self._store.writing():
            known = {note.id for note in self.list()}
            for note in notes:
                fresh = structs.replace(
                    note,
                    id=make_id(note.project, note.scope, note.key if note.project else f"{note.agent}:{note.key}"),
                    status="proposed",
                    decision=f"imported from {source}",
                    suspicions=find_suspicions(note),
                    shown=0,
                    recurred=0,
                )
                if fresh.id not in known:
                    self._put(fresh, None, now)
                    stored.append(fresh)
        return tuple(stored)

    def _set_status(self, name: str, status: NoteStatus, verb: str) -> Note:
        return self._store_decision(self._find(name), status, verb)

    def _store_decision(self, note: Note, status: NoteStatus, verb: str) -> Note:
        now = self._clock()
        decided = structs.replace(note, status=status, decision=f"{verb} by a person")
        with self._store.writing():
            self._notes.put(
                NoteRow(note.id, note.project, decided.scope, note.kind, status, _encode(decided).decode(), now)
            )
            self._notes.decide(NoteDecision(note.id, status, PERSON, verb, now))
        self.write_indexes()
        return decided

    def _find(self, name: str) -> Note:
        note_id, body = self._notes.find(name)
        note = _decode(body)
        if note is None:
            raise Refused(f"note {note_id}: its record cannot be read; `warmstart learn` makes it again")
        return note

    def _load(self, project: str, scope: str) -> tuple[Note, ...]:
        return self.list(project=project, scope=scope)

    # Showing

    def notes_for(self, project: str | None, scope: str = "", agent: str | None = None) -> tuple[Note, ...]:
        """Return the active notes that a session may use: its project's, shared ones, and rules of its agent."""
        own = [
            note
            for note in self.list(project=project or "", status="active")
            if note.scope in (scope, "*") and (project or note.agent == agent)
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

        `adds`: the session was given it before its task was known; only where the task leads to is left to say.
        """
        where = self.where(task, project=project, scope=scope, root=root) if task else Where()
        notes = () if adds else self.notes_for(project, scope, agent)
        if root is not None and not root.is_dir():  # another machine's folder: nothing can be checked there
            root = None
        if root is not None:
            notes = tuple(note for note in notes if still_holds(note, root))
        said = read_own_files(root) if root is not None else ""
        room = budget - reserve_line(where, estimate, budget)
        brief = write_brief(notes, estimate, task=task, budget=room, said=said, project=project)
        return add_where(brief, where, estimate, budget)

    def where(
        self, text: str, *, project: str | None, scope: str = "", root: Path | None = None, limit: int = FILES
    ) -> Where:
        """Return the files that earlier requests like this one led to, or why none is named."""
        if not project:
            return Where(silent="the request belongs to no project")
        return look_up_where(self._notes, RULES, text, project=project, scope=scope, root=root, limit=limit)

    def publish(self, file: Path, *, project: str) -> Published:
        """Return a file with the project's active notes in its managed block; call write() on it to write it."""
        notes = [note for note in self.list(project=project, status="active") if note.scope in ("", "*")]
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


def _decode(body: str) -> Note | None:
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
