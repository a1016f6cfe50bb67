"""Trials and experiments in the store: which session got which seed, and how it went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from warmstart.errors import NotFound
from warmstart.model import Measures, Pick, Problem
from warmstart.store.protocol import Store
from warmstart.store.rows import ExperimentRow, TrialRow

_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class TrialPlace(msgspec.Struct, frozen=True):
    """Where a trial's session belongs, among its facts."""

    scope: str = ""
    project: str = ""


def read_place(trial: TrialRow) -> TrialPlace:
    """Return the scope and project of a trial's session. Trials of earlier versions name no scope: the machine's own user."""
    try:
        return msgspec.json.decode(trial.task, type=TrialPlace)
    except _BROKEN:
        return TrialPlace()


def read_scope(trial: TrialRow) -> str:
    """Return the scope of a trial's session."""
    return read_place(trial).scope


class TrialStore:
    """The trials and experiments of a store. Make changes inside the store's `writing()`."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.problems: list[Problem] = []  # records that could not be read

    # Trials

    def trial(self, session: str) -> TrialRow | None:
        """Return the trial of a session."""
        rows = self.store.rows("trial", (session,))
        return TrialRow.from_columns(rows[0]) if rows else None

    def trials(self, experiment: str) -> list[TrialRow]:
        """Return the trials of an experiment, oldest first."""
        return [TrialRow.from_columns(row) for row in self.store.rows("trials_of", (experiment,))]

    def trials_of_session(self, session: str, key: str) -> list[TrialRow]:
        """Return the trials of a stored session: by its id, or by the transcript that a person recorded for it."""
        return [TrialRow.from_columns(row) for row in self.store.rows("trials_of_session", (session, key))]

    def hidden_trials(self) -> list[TrialRow]:
        """Return the trials of sessions whose ids were redacted."""
        return [TrialRow.from_columns(row) for row in self.store.rows("hidden_trials")]

    def mentioning(self, key: str) -> list[TrialRow]:
        """Return the trials whose picks include an example of this session."""
        return [TrialRow.from_columns(row) for row in self.store.rows("trials_mentioning", (key,))]

    def set_picks(self, session: str, picks: Iterable[Pick]) -> None:
        """Replace the examples of a trial and drop its seed, which is composed again from them."""
        self.store.run("set_picks", (msgspec.json.encode(list(picks)).decode(), session))
        self.store.run("delete_seeds", (session,))

    def recent_trials(self, limit: int) -> list[TrialRow]:
        """Return the latest trials, newest first."""
        return [TrialRow.from_columns(row) for row in self.store.rows("recent_trials", (limit,))]

    def count(self) -> int:
        """Return the number of trials."""
        return int(self.store.rows("count_trials")[0][0])

    def picks(self, trial: TrialRow) -> list[Pick] | None:
        """Return the examples chosen for a session; None, and an entry in `problems`, if they cannot be read."""
        try:
            return msgspec.json.decode(trial.picks, type=list[Pick])
        except _BROKEN as error:
            self.problems.append(Problem(f"session {trial.session}", f"its record cannot be read: {error}"))
            return None

    def measures(self, trial: TrialRow) -> Measures | None:
        """Return the measures of a session; None if they are unknown."""
        try:
            return msgspec.json.decode(trial.measures, type=Measures) if trial.measures else None
        except _BROKEN as error:
            self.problems.append(Problem(f"session {trial.session}", f"its measures cannot be read: {error}"))
            return None

    def put_trial(self, row: TrialRow, used: Iterable[tuple[str, int]]) -> None:
        """Store a trial and count the use of the templates that it shows."""
        self.store.run("put_trial", row.to_columns())
        self.store.run("mark_transcripts", (row.session,))
        for name, version in used:
            self.store.run("count_use", (row.at, name, version))

    def choose_arm(self, session: str, arm: str, at: float) -> None:
        """Record the arm that a person chose after the draw. The drawn arm stays, and comparisons go by it."""
        self.store.run("delete_seeds", (session,))
        self.store.run("choose_arm", (arm, at, session))

    # Closing

    def has_unmeasured(self) -> bool:
        """Return whether a session of a trial is new or has changed."""
        return bool(self.store.rows("has_unmeasured")[0][0])

    def take_closable(self) -> list[tuple[str, str, str | None, str]]:
        """Return the trials with a new or changed transcript, once: `(session, key, agent of the transcript, task)`."""
        rows = [tuple(row) for row in self.store.rows("closable_trials")]
        self.store.run("clear_unmeasured")
        return rows

    def close(self, row: TrialRow, measures: Measures | None) -> None:
        """Store the transcript, the measures and what leaves a trial out of comparisons."""
        body = msgspec.json.encode(measures).decode() if measures else None
        self.store.run("close_trial", (row.transcript, body, row.left_out, row.closed, row.session))

    def owner(self, transcript: str) -> str | None:
        """Return the session whose trial was measured with a transcript."""
        rows = self.store.rows("trial_of_transcript", (transcript,))
        return str(rows[0][0]) if rows else None

    def repeated_calls(self, transcript: str) -> list[tuple[str, str, bool]]:
        """Return the calls that an earlier session made too: `(call id, id of that session, whether it is the parent)`."""
        return [
            (call, own_id, bool(is_parent))
            for call, own_id, is_parent in self.store.rows("repeated_calls", (transcript,))
        ]

    # Seeds

    def seed(self, session: str, dialect: str) -> str | None:
        """Return the JSON of the seed that a session was given."""
        rows = self.store.rows("seed", (session, dialect))
        return str(rows[0][0]) if rows else None

    def put_seed(self, session: str, dialect: str, body: str) -> None:
        """Store the JSON of a session's seed."""
        self.store.run("put_seed", (session, dialect, body))

    def seeds(self, session: str) -> list[tuple[str, str, str]]:
        """Return the seeds of a session and of its parts: `(session or part, dialect, JSON)`."""
        return [tuple(row) for row in self.store.rows("seeds_of", (session,))]

    def set_seed(self, session: str, dialect: str, body: str) -> None:
        """Replace the JSON of a seed."""
        self.store.run("set_seed", (body, session, dialect))

    def seed_tokens(self, session: str) -> int:
        """Return the tokens of a session's seed; with several dialects, the maximum."""
        return int(self.store.rows("seed_tokens", (session,))[0][0] or 0)

    def treated_sessions(self) -> set[str]:
        """Return the sessions that got a seed that is not empty, or advice; what was added to a session counts for it."""
        return {session for (session,) in self.store.rows("treated_sessions")}

    # Experiments

    def running(self) -> ExperimentRow | None:
        """Return the running experiment."""
        rows = self.store.rows("running_experiment")
        return ExperimentRow.from_columns(rows[0]) if rows else None

    def experiments(self) -> list[ExperimentRow]:
        """Return the experiments, newest first."""
        return [ExperimentRow.from_columns(row) for row in self.store.rows("experiments")]

    def experiment(self, name: str) -> ExperimentRow:
        """Return an experiment by its name."""
        rows = self.store.rows("experiment", (name,))
        if not rows:
            raise NotFound(f"no experiment {name}; see: warmstart experiment list")
        return ExperimentRow.from_columns(rows[0])

    def has_experiment(self, name: str) -> bool:
        """Return whether an experiment has this name."""
        return bool(self.store.rows("experiment", (name,)))

    def put_experiment(self, row: ExperimentRow) -> None:
        """Store a new experiment."""
        self.store.run("put_experiment", row.to_columns())

    def stop_experiment(self, name: str, at: float) -> None:
        """Stop an experiment."""
        self.store.run("stop_experiment", (at, name))

    def set_shares(self, name: str, shares: Mapping[str, float]) -> None:
        """Set each arm's share of new sessions."""
        self.store.run("set_shares", (msgspec.json.encode(shares).decode(), name))

    # Facts from before

    def history(self) -> list[tuple[float, str | None, str | None, str, str, int, int]]:
        """Return `(ended, project, model, category, scope, errors, judged)` per session with a time, ordered by its end."""
        return [tuple(row) for row in self.store.rows("error_history")]

    def starts(self, window: int) -> list[tuple[str, float | None, str | None, str | None, int, int]]:
        """Return `(key, started, project, task, errors, judged)` over the first turns of sessions without a parent."""
        return [tuple(row) for row in self.store.rows("session_starts", (window,))]
