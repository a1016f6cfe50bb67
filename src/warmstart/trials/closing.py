"""Close trials: measure each with its own transcript, as soon as that is stored or has changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import structs

from warmstart.config import Settings
from warmstart.errors import NotFound, Refused
from warmstart.ingest.places import add_place
from warmstart.ingest.read import scan
from warmstart.ingest.records import Record, Recorder
from warmstart.ingest.sources import find_sources
from warmstart.store import Store, TrialRow, TrialStore
from warmstart.store.history import decode_session
from warmstart.trials.entry import began_earlier, find_copied, take_own_part
from warmstart.trials.measures import measure
from warmstart.usage.prices import PriceList

_facts = msgspec.json.Decoder(dict[str, str])


class TrialCloser:
    """Measures trials. One transcript closes one trial, and a trial has one transcript."""

    def __init__(self, store: Store, settings: Settings, clock: Callable[[], float]) -> None:
        self._store = store
        self._trials = TrialStore(store)
        self._settings = settings
        self._clock = clock
        self._prices = PriceList(settings.prices)

    def close_all(self) -> int:
        """Measure the trials whose transcripts are new or have changed, and return their number. Call it in a transaction."""
        keys: dict[str, list[tuple[bool, str]]] = {}
        for session, key, agent, task in self._trials.take_closable():
            is_of_other = read_facts(task).get("agent") not in (None, agent)
            keys.setdefault(session, []).append((is_of_other, key))
        for session, candidates in keys.items():
            self._close(session, min(candidates)[1])
        return len(keys)

    def record(self, session: str, path: Path | str) -> TrialRow:
        """Measure a trial with a transcript that a person names, even if it has another id inside."""
        trial = self._trials.trial(session)
        if trial is None:
            raise NotFound(f"session {session} was never provisioned; see: warmstart provision --session {session}")
        record = self._read(session, path)
        with self._store.writing():
            self._check_free(trial, record)
            if self._store.put_session(record.session, record.calls, record.spent) == "forgotten":
                raise Refused(
                    f"session {session}: you deleted its transcript's session ({record.session.id}), so that it is not stored"
                    " again; its trial stays unmeasured"
                )
            return self._close(session, record.session.key)

    def _read(self, session: str, path: Path | str) -> Record:
        recorder = Recorder(self._settings.secrets, self._settings.home)
        sessions = [scored for source in find_sources(path) for scored in scan(source, self._settings.tools)]
        own = [scored for scored in sessions if scored.session.id == session] or sessions
        if len(own) != 1:
            content = f"{len(sessions)} sessions, none of them {session}" if sessions else "no session"
            raise Refused(f"{recorder.name(str(path))}: holds {content}; give the file of that session alone")
        return recorder.record(add_place(self._store, own[0].session), own[0].score, self._clock())

    def _check_free(self, trial: TrialRow, record: Record) -> None:
        """Refuse a transcript that belongs to another trial, and a second transcript for the same trial."""
        key, own_id = record.session.key, record.session.id
        owner = self._trials.owner(key)
        if owner is None and own_id != trial.session and self._trials.trial(own_id) is not None:
            owner = own_id
        if owner is not None and owner != trial.session:
            raise Refused(
                f"session {trial.session}: this is the transcript of session {owner}, which has a trial of its own; "
                "one transcript closes one trial"
            )
        if trial.transcript not in (None, key):
            raise Refused(
                f"session {trial.session} has been measured with another transcript ({trial.transcript[:12]}), "
                "which stays; one trial has one transcript"
            )

    def _close(self, session: str, key: str) -> TrialRow:
        trial = self._trials.trial(session)
        assert trial is not None
        row = self._store.find_session(key)
        past = decode_session(row, self._store.calls_of(key))
        measures = None
        if past is not None:
            is_repeated = trial.assignment == "paired"  # a harness plays every task again, and may repeat ids too
            copied = () if is_repeated else find_copied(self._trials.repeated_calls(key))
            own = take_own_part(past, trial.at, copied)
            measures = measure(own, seed_tokens=self._trials.seed_tokens(session), price=self._prices.cost)
        is_early = past is not None and began_earlier(past, trial.at, row.first_seen)
        closed = structs.replace(trial, transcript=key, left_out="earlier" if is_early else None, closed=self._clock())
        self._trials.close(closed, measures)
        return self._trials.trial(session) or closed


def read_facts(body: str) -> dict[str, str]:
    """Return what was known of a task before its session."""
    try:
        return _facts.decode(body)
    except msgspec.DecodeError:
        return {}
