"""Trials of notes in the store: take what hooks drew, read how it went, report it, and act on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct, structs

from warmstart.arms import COLD, CONTROLS, HOLDOUT, gets_brief, read_shares
from warmstart.notes.digest import decode_digest, read_calls
from warmstart.notes.index_files import list_levels
from warmstart.notes.marks import Place
from warmstart.notes.note_trials import (
    NoteTrial,
    TrialResults,
    TriedUnit,
    add_interval,
    describe_trial_figures,
    summarise_trials,
    weigh_trials,
)
from warmstart.notes.outcomes import read_outcome
from warmstart.notes.planning import count_traffic, plan_notes
from warmstart.notes.register import RULES, NoteRegister
from warmstart.notes.session_state import DRAWN
from warmstart.notes.showings import RecordedShowing, sweep_states, take_showings
from warmstart.notes.types import Note
from warmstart.scopes import SHARED
from warmstart.stats.designs import DesignPower
from warmstart.store import TrialRow, TrialStore
from warmstart.store.history import decode_session
from warmstart.store.notes import NoteDecision, Showing
from warmstart.store.occurrences import NoteOccurrence, OccurrenceStore
from warmstart.store.trials import read_place
from warmstart.store.weighings import is_weighing_due

MEASURED = "policy:measured-effect"  # as templates are decided about
MOST = 10  # notes in a report


class ClosedOccurrences(Struct, frozen=True, kw_only=True):
    """How many occurrences were read, and which notes changed because of them."""

    occurrences: int = 0
    retired: tuple[str, ...] = ()
    shown_to_work: tuple[str, ...] = ()


class TriedNotes(NoteRegister):
    """The notes of a store, with their trials."""

    def close_occurrences(self) -> ClosedOccurrences:
        """Read how occurrences went whose transcripts are new or have changed, and act on it. Again, it changes nothing."""
        self._take_showings()
        occurrences = OccurrenceStore(self._store)
        if not occurrences.has_unread():
            return ClosedOccurrences()
        with self._store.writing():
            unread = occurrences.take_unread()
            self._read_outcomes(unread)
            is_due = bool(unread) and is_weighing_due(self._store, "occurrence", len(unread))
            retired, working = self._act() if is_due else ((), ())
        if retired:
            self.write_indexes()
        return ClosedOccurrences(occurrences=len(unread), retired=tuple(retired), shown_to_work=tuple(working))

    def _take_showings(self) -> None:
        """Store what hooks noted down about notes that they showed or withheld."""
        with take_showings(self._settings.home) as taken, self._store.writing():
            shown = [Showing(one.note, one.session, one.how, one.at) for one in taken if one.how != DRAWN]
            self._notes.put_showings(shown)
            OccurrenceStore(self._store).put(_make_occurrence(one) for one in taken if _is_draw(one))
        sweep_states(self._settings.home, self._clock())

    def _read_outcomes(self, unread: Sequence[tuple[NoteOccurrence, str, str]]) -> None:
        store = OccurrenceStore(self._store)
        notes = {note.id: note for note in self.list()} if unread else {}
        by_key: dict[str, list[tuple[NoteOccurrence, str]]] = {}
        for one, key, content in unread:
            by_key.setdefault(key, []).append((one, content))
        for key, occurrences in by_key.items():
            session = decode_session(self._store.find_session(key), self._store.calls_of(key))
            calls = []
            if session is not None:
                roots = (*self._notes.roots(session.project or ""), *((session.root,) if session.root else ()))
                calls = read_calls(session, Place(session.folder or session.project, roots))
            for one, content in occurrences:
                note = notes.get(one.note)
                outcome = read_outcome(calls, note, one) if note is not None else None
                failed, worked = (outcome.failed, outcome.worked) if outcome else (None, None)
                store.close(structs.replace(one, failed=failed, worked=worked), key, content)

    # Reporting

    def weigh_occurrences(self, experiment: str | None = None, most: int = MOST) -> TrialResults:
        """Return what drawn occurrences have shown, by note and together: of one experiment, or of all."""
        return summarise_trials(self._weigh_occurrences(experiment), most)

    def _find_trial(self, note: str) -> NoteTrial | None:
        trial = next((trial for trial in self._weigh_occurrences().notes if trial.id == note), None)
        return add_interval(trial) if trial else None

    def _weigh_occurrences(self, experiment: str | None = None) -> TrialResults:
        store = OccurrenceStore(self._store)
        named = store.named_in_brief()
        units = [_make_unit(one, named) for one in store.find(experiment=experiment)]
        return weigh_trials(units, {note.id: note for note in self.list()}, "occurrence")

    def weigh_recurrences(self, most: int = MOST) -> TrialResults:
        """Return how many sessions met each note's cause since it became active: cold ones, and those that were helped."""
        known = {note.id: note for note in self.list(status="active") if note.project and note.key}
        trials = self._list_trials()
        units: list[TriedUnit] = []
        together: dict[str, TriedUnit] = {}
        for (project, scope), notes in _group(known.values()).items():
            met = self._find_causes(project, scope)
            since = {note.id: self._find_start(note) for note in notes}
            for trial, share in trials:
                place = read_place(trial)
                if place.project != project or scope not in (place.scope, SHARED):
                    continue
                own = [_make_session_unit(note, trial, share, met) for note in notes if trial.at >= since[note.id]]
                units += own
                if own:
                    before = together.get(trial.session)
                    failed = None if own[0].failed is None else any(one.failed for one in own)
                    if before is not None and before.failed is not None:
                        failed = bool(before.failed or failed)
                    together[trial.session] = structs.replace(own[0], note="", failed=failed)
        return summarise_trials(weigh_trials(units, known, "recurrence", list(together.values())), most)

    def plan_trials(self, *, cold_share: float, power: float, since: float | None = None) -> Sequence[DesignPower]:
        """Return what trials of the active notes can show, from the stored sessions (those that ended after `since`)."""
        places = []
        for (project, scope), notes in _group(note for note in self.list(status="active") if note.project).items():
            bodies = self._notes.digests(project, "" if scope == SHARED else scope, RULES)
            digests = [digest for _key, body in bodies if (digest := decode_digest(body)) is not None]
            places.append((notes, digests))
        traffic = count_traffic(places, list_levels(self._settings.advice), since)
        holdout = self._settings.holdout
        return plan_notes(traffic, self._clock(), cold_share=cold_share, holdout=holdout, power=power)

    def _list_trials(self) -> list[tuple[TrialRow, float]]:
        """Return the trials of sessions whose arm was drawn, cold or helped, each with the probability of cold."""
        store = TrialStore(self._store)
        listed = []
        for name in (HOLDOUT, *(row.name for row in store.experiments() if row.design == "random")):
            for trial in store.trials(name):
                shares = read_shares(trial.propensities)
                helped = sum(share for arm, share in shares.items() if gets_brief(arm))
                cold = shares.get(COLD, 0.0)
                is_drawn = trial.assignment == "random" and trial.left_out is None and trial.arm not in CONTROLS
                if is_drawn and cold > 0 and helped > 0:
                    listed.append((trial, cold / (cold + helped)))
        return listed

    def _find_causes(self, project: str, scope: str) -> dict[str, set[str]]:
        """Return the causes that each root session met."""
        met: dict[str, set[str]] = {}
        for own in {scope if scope != SHARED else "", ""}:
            for _key, body in self._notes.digests(project, own, RULES):
                digest = decode_digest(body)
                if digest is not None:
                    met.setdefault(digest.session, set()).update(digest.causes)
        return met

    def _find_start(self, note: Note) -> float:
        """Return since when a note is active."""
        return min((one.at for one in self._notes.decisions(note.id) if one.status == "active"), default=float("inf"))

    # Acting

    def _act(self) -> tuple[Sequence[str], Sequence[str]]:
        """Retire notes that harm and mark those that work, with a recorded decision each. A person's decision stands."""
        by_person = self._notes.decided_by_person()
        retired, working = [], []
        for trial in self._weigh_occurrences().notes:
            if trial.decision == "retire" and trial.status == "active" and trial.id not in by_person:
                reason = f"measured: more failures {describe_trial_figures(trial)}"
                self._retire(self._find(trial.id), MEASURED, reason, self._clock())
                retired.append(trial.id)
            elif trial.decision == "works" and trial.status == "active" and not self._is_marked(trial):
                reason = f"measured: fewer failures {describe_trial_figures(trial)}"
                self._notes.decide(NoteDecision(trial.id, "active", MEASURED, reason, self._clock()))
                working.append(trial.id)
        return retired, working

    def _is_marked(self, trial: NoteTrial) -> bool:
        return any(one.by == MEASURED and one.status == "active" for one in self._notes.decisions(trial.id))


def _is_draw(one: RecordedShowing) -> bool:
    return one.how == DRAWN and 0 < one.share < 1


def _make_occurrence(one: RecordedShowing) -> NoteOccurrence:
    return NoteOccurrence(
        note=one.note,
        session=one.session,
        experiment=one.experiment,
        withheld=one.withheld,
        share=one.share,
        action=one.action,
        expected=one.expected,
        call_id=one.call,
        at=one.at,
    )


def _make_unit(one: NoteOccurrence, named: set[tuple[str, str]]) -> TriedUnit:
    return TriedUnit(
        note=one.note,
        session=one.session,
        share=one.share,
        withheld=one.withheld,
        failed=one.failed,
        worked=one.worked,
        expected=one.expected,
        briefed=(one.note, one.session) in named,
    )


def _make_session_unit(note: Note, trial: TrialRow, share: float, met: dict[str, set[str]]) -> TriedUnit:
    causes = met.get(trial.session)
    failed = None if trial.measures is None or causes is None else note.key in causes
    return TriedUnit(note=note.id, session=trial.session, share=share, withheld=trial.arm == COLD, failed=failed)


def _group(notes: Iterable[Note]) -> dict[tuple[str, str], list[Note]]:
    groups: dict[tuple[str, str], list[Note]] = {}
    for note in notes:
        groups.setdefault((note.project, note.scope), []).append(note)
    return groups
