"""What sessions cost, kept and added up: reports of callers go in, tables come out.

Callers report while a session runs, from hooks that may fire twice, late or in several processes at once. So everything
happens in one transaction, an event counts once, and a running total only ever grows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date

from msgspec import Struct
from msgspec.structs import replace

from warmstart.config import Settings
from warmstart.errors import Refused
from warmstart.model import LiveUsage, Spent, Usage
from warmstart.redact.identifiers import IdentifierRedactor
from warmstart.store import LiveRow, SqliteStore, UsageStore
from warmstart.store.usage import SessionFacts, to_spent
from warmstart.usage.amounts import FIGURES, add_up, day_of, figures, make_usage
from warmstart.usage.prices import PriceList
from warmstart.usage.report import BYS, Account, By, Groups, UsageQuery, UsageReport

MOST = 10**15  # tokens or dollars; more is a mistake
_END = 253_402_300_800.0  # the year 10000
_LONG = 1_000  # characters of a name
_CENT = 1e-9  # dollars that are no difference


class LiveUsageResult(Struct, frozen=True, kw_only=True):
    """What became of a live report."""

    session: str  # as it is kept
    changed: bool
    reason: str = ""  # why nothing changed
    usage: Usage  # what is known of the session from live reports, this one included


class UsageAccounts:
    """The usage of a store's sessions."""

    def __init__(self, store: SqliteStore, settings: Settings, clock: Callable[[], float]) -> None:
        self._store = store
        self._usage = UsageStore(store)
        self._identifiers = IdentifierRedactor(settings.secrets)
        self._own_prices = settings.prices
        self._clock = clock

    def set(self, told: LiveUsage) -> LiveUsageResult:
        """Running totals of a session's model, or of the whole session. Figure by figure the greater counts, so a
        total that comes again or late changes nothing; what is new belongs to the day of the report."""
        return self._take(told, _grow)

    def add(self, told: LiveUsage) -> LiveUsageResult:
        """What came on top, counted once: the report needs an event id, for otherwise nobody could tell one that is
        sent again from another."""
        if not told.event:
            raise Refused("what is added needs an event id, so that it counts once; give --event ID")
        return self._take(told, _top_up)

    def report(
        self,
        by: By = "day",
        *,
        since: str | None = None,
        until: str | None = None,
        agent: str | None = None,
        project: str | None = None,
    ) -> UsageReport:
        """Usage by day, agent, model, project or session. `since` and `until` are the first and the last day, in UTC."""
        if by not in BYS:
            raise Refused(f"usage is not kept by {by}; choose of {', '.join(BYS)}")
        wanted = UsageQuery(by=by, since=_check_day(since), until=_check_day(until), agent=agent, project=project)
        prices = PriceList(self._own_prices)
        groups = Groups(wanted, prices.cost)
        for account in self._accounts():
            groups.take(account)
        return groups.report(f"{prices.table.source}, {prices.table.date}")

    # Live reports

    def _take(
        self, told: LiveUsage, count: Callable[[LiveUsage, list[LiveRow], float], LiveRow | None]
    ) -> LiveUsageResult:
        told = self._check(told)
        now = self._clock()
        at = now if told.at is None else told.at
        with self._store.writing():
            if told.event and not self._usage.put_event(told.session, told.event, at):
                return self._answer(told.session, "the event was counted before")
            told = self._identify(told)
            known = [row for row in self._usage.live_of(told.session) if row.agent == told.agent]
            row = count(replace(told, at=at), known, now)
            if row is not None:
                self._usage.put_live(row)
            return self._answer(told.session, "" if row is not None else "nothing new in it")

    def _answer(self, session: str, reason: str) -> LiveUsageResult:
        known = add_up(to_spent(row) for row in self._usage.live_of(session)) or Usage()
        return LiveUsageResult(session=session, changed=not reason, reason=reason, usage=known)

    def _identify(self, told: LiveUsage) -> LiveUsage:
        """A session may be reported before its agent or model is known: both are still the same then."""
        known = self._usage.live_of(told.session)
        agents = {row.agent for row in known}
        if told.agent and agents == {""}:
            self._usage.name_agent(told.session, told.agent)
        elif not told.agent and len(agents) == 1:
            told = replace(told, agent=agents.pop())
        models = [row.model for row in known if row.agent in ("", told.agent)]
        if told.model and set(models) == {""}:
            self._usage.name_model(told.session, told.agent, told.model)
        elif not told.model and models:
            told = replace(told, model=models[-1], whole=True)
        return told

    def _check(self, told: LiveUsage) -> LiveUsage:
        """The report as it may be kept."""
        if not told.session.strip():
            raise Refused("the session's id is empty")
        if all(value is None for value in figures(told.usage)):
            raise Refused("the report tells nothing; give at least one figure")
        for name, value in zip(FIGURES, figures(told.usage), strict=True):
            _check_figure(name, value)
        if told.at is not None and not 0 <= told.at < _END:
            raise Refused(f"{told.at}: no time; give seconds since 1970")
        names = {name: getattr(told, name) or "" for name in ("session", "agent", "model", "project", "event")}
        for name, text in names.items():
            if len(text) > _LONG:
                raise Refused(f"the {name} is longer than {_LONG} characters")
        return replace(
            told,
            session=self._identifiers.identify(told.session),
            event=self._identifiers.identify(told.event) if told.event else None,
            agent=self._identifiers.clean(told.agent),
            model=self._identifiers.clean(told.model),
            project=self._identifiers.clean(told.project) if told.project else None,
        )

    # Transcripts and live reports as one

    def _accounts(self) -> Iterator[Account]:
        """Every session once. Live reports are joined by the agent's own session id, and the agent where it was told."""
        told: dict[str, list[Spent]] = {}
        for key, part in self._usage.spent():
            told.setdefault(key, []).append(part)
        live: dict[str, dict[str, list[LiveRow]]] = {}
        for row in self._usage.live():
            live.setdefault(row.session, {}).setdefault(row.agent, []).append(row)
        waiting: dict[tuple[str, str], list[tuple[SessionFacts, list[Spent]]]] = {}
        for facts in self._usage.sessions():
            parts = told.get(facts.key, [])
            if facts.id in live:  # of the same id there may be several
                waiting.setdefault((facts.id, facts.agent), []).append((facts, parts))
            else:
                yield _account(facts, parts, [])
        for (id, agent), found in sorted(waiting.items()):
            reported = live[id].pop(agent, None) or live[id].pop("", [])
            yield _account(found[0][0], [part for _facts, parts in found for part in parts], reported)
        for by_agent in live.values():
            for rows in by_agent.values():
                yield _live_account(rows)


def _check_day(text: str | None) -> str | None:
    try:
        return None if text is None else date.fromisoformat(text).isoformat()
    except ValueError as error:
        raise Refused(f"{text} is no day; write 2026-11-16") from error


def _check_figure(name: str, value: float | None) -> None:
    if value is None:
        return
    kinds = (int, float) if name == "cost" else (int,)
    if isinstance(value, bool) or not isinstance(value, kinds) or not math.isfinite(value):
        raise Refused(f"{name}: {value!r} is no number of {'dollars' if name == 'cost' else 'tokens'}")
    if value < 0:
        raise Refused(f"{name}: {value} is below zero")
    if value > MOST:
        raise Refused(f"{name}: {value} is more than there can be")


def _grow(told: LiveUsage, known: list[LiveRow], now: float) -> LiveRow | None:
    """The row of this day and model with what a running total has more than is known; None where it has no more."""
    counted = add_up(to_spent(row) for row in known if told.whole or row.model == told.model) or Usage()
    more: list[float | None] = []
    for before, after in zip(figures(counted), figures(told.usage), strict=True):
        new = None if after is None else after - (before or 0)
        small = _CENT if isinstance(new, float) else 0
        more.append(new if new is not None and (before is None or new > small) else None)
    return _add(replace(told, usage=make_usage(more)), known, now) if any(new is not None for new in more) else None


def _top_up(told: LiveUsage, known: list[LiveRow], now: float) -> LiveRow:
    return _add(told, known, now)


def _add(told: LiveUsage, known: list[LiveRow], now: float) -> LiveRow:
    day = day_of(told.at)
    today = [to_spent(row) for row in known if (row.model, row.day) == (told.model, day)]
    usage = add_up([*today, Spent(told.usage)]) or Usage()
    for name, value in zip(FIGURES, figures(usage), strict=True):
        _check_figure(name, value)
    sums: Mapping[str, float | None] = dict(zip(FIGURES, figures(usage), strict=True))
    names = {"session": told.session, "agent": told.agent, "model": told.model, "project": told.project}
    return LiveRow(**names, day=day, **sums, updated=now)  # type: ignore[arg-type]


def _account(facts: SessionFacts, told: Sequence[Spent], live: Sequence[LiveRow]) -> Account:
    project = facts.project or next((row.project for row in reversed(live) if row.project), None)
    parts = tuple(map(to_spent, live))
    return Account(facts.id, facts.agent, facts.model or "", project, day_of(facts.started), told, parts)


def _live_account(rows: Sequence[LiveRow]) -> Account:
    last = rows[-1]
    project = next((row.project for row in reversed(rows) if row.project), None)
    return Account(
        last.session, last.agent, last.model, project, min(r.day for r in rows), (), tuple(map(to_spent, rows))
    )
