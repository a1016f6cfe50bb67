"""Trials in the store: what sessions were given, by which experiment, and what became of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from warmstart.errors import NotFound
from warmstart.model import Measures, Pick, Problem
from warmstart.store.rows import ExperimentRow, TrialRow
from warmstart.store.sqlite import SqliteStore

_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_picks = msgspec.json.Decoder(list[Pick])
_measures = msgspec.json.Decoder(Measures)


class TrialStore:
    """The trials and experiments of a store. Changes are made inside the store's `writing()`."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.problems: list[Problem] = []  # records that could not be read; the rest is served

    # Trials

    def trial(self, session: str) -> TrialRow | None:
        found = self.store.rows("trial", (session,))
        return TrialRow.from_columns(found[0]) if found else None

    def trials(self, experiment: str) -> list[TrialRow]:
        """All of an experiment, the oldest first."""
        return [TrialRow.from_columns(row) for row in self.store.rows("trials_of", (experiment,))]

    def trials_of_session(self, session: str, key: str) -> list[TrialRow]:
        """What a remembered session was given: by its own id, or by the transcript that a person named."""
        return [TrialRow.from_columns(row) for row in self.store.rows("trials_of_session", (session, key))]

    def hidden_trials(self) -> list[TrialRow]:
        """Of sessions whose ids were redacted."""
        return [TrialRow.from_columns(row) for row in self.store.rows("hidden_trials")]

    def mentioning(self, key: str) -> list[TrialRow]:
        """Return the trials whose picks include an example of this session."""
        return [TrialRow.from_columns(row) for row in self.store.rows("trials_mentioning", (key,))]

    def set_picks(self, session: str, picks: Iterable[Pick]) -> None:
        """Replace the examples of a trial and drop its seed, which is composed again from them."""
        self.store.run("set_picks", (msgspec.json.encode(list(picks)).decode(), session))
        self.store.run("delete_seeds", (session,))

    def recent_trials(self, limit: int) -> list[TrialRow]:
        return [TrialRow.from_columns(row) for row in self.store.rows("recent_trials", (limit,))]

    def totals(self) -> dict[str, int]:
        """Trials by arm."""
        return dict(self.store.rows("trial_totals"))

    def picks(self, trial: TrialRow) -> list[Pick] | None:
        """What was chosen for a session, or None (told in `problems`) where the record cannot be read."""
        try:
            return _picks.decode(trial.picks)
        except _BROKEN as error:
            self.problems.append(Problem(f"session {trial.session}", f"its record cannot be read: {error}"))
            return None

    def measures(self, trial: TrialRow) -> Measures | None:
        """How the session went, or None where that is not known."""
        try:
            return _measures.decode(trial.measures) if trial.measures else None
        except _BROKEN as error:
            self.problems.append(Problem(f"session {trial.session}", f"its measures cannot be read: {error}"))
            return None

    def put_trial(self, row: TrialRow, used: Iterable[tuple[str, int]]) -> None:
        self.store.run("put_trial", row.to_columns())
        for name, version in used:
            self.store.run("count_use", (row.at, name, version))

    def make_cold(self, session: str) -> None:
        """A person wants the session cold, whatever was drawn for it."""
        self.store.run("delete_seeds", (session,))
        self.store.run("make_cold", (session,))

    def closable(self) -> list[tuple[str, str, str | None, str]]:
        """Trials whose transcript has come, or has grown since: `(session, key, agent of the transcript, task)`."""
        return [tuple(row) for row in self.store.rows("closable_trials")]

    def close(self, session: str, transcript: str, measures: Measures | None, at: float) -> None:
        body = msgspec.json.encode(measures).decode() if measures else None
        self.store.run("close_trial", (transcript, body, at, session))

    # Seeds

    def seed(self, session: str, dialect: str) -> str | None:
        found = self.store.rows("seed", (session, dialect))
        return str(found[0][0]) if found else None

    def put_seed(self, session: str, dialect: str, body: str) -> None:
        self.store.run("put_seed", (session, dialect, body))

    def seed_tokens(self, session: str) -> int:
        """What the session's seed cost; of several dialects the dearest."""
        return int(self.store.rows("seed_tokens", (session,))[0][0] or 0)

    # Experiments

    def running(self) -> ExperimentRow | None:
        found = self.store.rows("running_experiment")
        return ExperimentRow.from_columns(found[0]) if found else None

    def experiments(self) -> list[ExperimentRow]:
        """The latest first."""
        return [ExperimentRow.from_columns(row) for row in self.store.rows("experiments")]

    def experiment(self, name: str) -> ExperimentRow:
        found = self.store.rows("experiment", (name,))
        if not found:
            raise NotFound(f"no experiment {name}; see: warmstart experiment list")
        return ExperimentRow.from_columns(found[0])

    def has_experiment(self, name: str) -> bool:
        return bool(self.store.rows("experiment", (name,)))

    def put_experiment(self, row: ExperimentRow) -> None:
        self.store.run("put_experiment", row.to_columns())

    def stop_experiment(self, name: str, at: float) -> None:
        self.store.run("stop_experiment", (at, name))

    def set_shares(self, name: str, shares: Mapping[str, float]) -> None:
        """How the next sessions are shared out."""
        self.store.run("set_shares", (msgspec.json.encode(shares).decode(), name))

    # What was known before

    def history(self) -> list[tuple[float, str | None, str | None, str, int, int]]:
        """`(ended, project, model, category, errors, judged)` of every session with times, in the order of their ends."""
        return [tuple(row) for row in self.store.rows("error_history")]

    def starts(self, window: int) -> list[tuple[str, float | None, str | None, str | None, int, int]]:
        """`(key, started, project, task, errors, judged)` over the first turns of every session that no other started."""
        return [tuple(row) for row in self.store.rows("session_starts", (window,))]
