"""Store live usage reports, and report the usage of all sessions.

Callers report while a session runs, from hooks that may fire twice, late or in several processes at once. So each report is
one transaction, an event counts once, and a running total only grows or starts over (see `counters`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from warmstart.config import Settings
from warmstart.errors import Refused
from warmstart.model import LiveUsage, Spent, Usage
from warmstart.projects.gate import open_gate
from warmstart.projects.resolve import find_project, resolve_project
from warmstart.redact.identifiers import IdentifierRedactor
from warmstart.store import CounterRow, LiveRow, ProjectStore, SessionRow, Store, UsageStore
from warmstart.store.usage import SessionFacts, to_spent
from warmstart.usage.amounts import FIGURES, add_up, day_of, figures
from warmstart.usage.counters import Counter, advance, find_increase, has_restarted
from warmstart.usage.prices import PriceList
from warmstart.usage.report import BYS, Account, By, Groups, UsageQuery, UsageReport, UsageRow

MOST = 10**15  # tokens or dollars; a larger number is a mistake
_END = 253_402_300_800.0  # the year 10000
_LONG = 1_000  # characters of a name
_usage = msgspec.json.Decoder(Usage)


class LiveUsageResult(Struct, frozen=True, kw_only=True):
    """The outcome of a live report."""

    session: str  # as it is stored
    changed: bool
    reason: str = ""  # why nothing changed
    usage: Usage  # the session's usage from all live reports, including this one


class UsageAccounts:
    """The usage of a store's sessions."""

    def __init__(self, store: Store, settings: Settings, clock: Callable[[], float]) -> None:
        self._store = store
        self._usage = UsageStore(store)
        self._identifiers = IdentifierRedactor(settings.secrets)
        self._own_prices = settings.prices
        self._gate = open_gate(settings, lambda: ProjectStore(store))
        self._clock = clock

    def set(self, report: LiveUsage) -> LiveUsageResult:
        """Take running totals of a session's model, or of the whole session.

        Of each figure the larger one counts, so a repeated or late total changes nothing; a counter that has started over
        adds to what came before. An increase belongs to the day of the report.
        """
        is_timed = report.at is not None
        return self._take(report, lambda total, known, now: self._grow(total, known, now, is_timed))

    def add(self, report: LiveUsage) -> LiveUsageResult:
        """Take an increment. It needs an event id: without one a repeated report could not be recognised."""
        if not report.event:
            raise Refused("an added amount needs an event id, so that it counts once; give --event ID")
        return self._take(report, _add)

    def report(
        self,
        by: By = "day",
        *,
        since: str | None = None,
        until: str | None = None,
        agent: str | None = None,
        project: str | None = None,
    ) -> UsageReport:
        """Report usage by day, agent, model, project or session. `since` and `until` are the first and last day (UTC)."""
        if by not in BYS:
            raise Refused(f"usage cannot be grouped by {by}; choose one of {', '.join(BYS)}")
        project = find_project(ProjectStore(self._store), project).name if project else project
        query = UsageQuery(by=by, since=_check_day(since), until=_check_day(until), agent=agent, project=project)
        prices = PriceList(self._own_prices)
        groups = Groups(query, prices.cost)
        for account in self._list_accounts():
            groups.take(account)
        return groups.report(f"{prices.table.source}, {prices.table.date}")

    def of_session(self, session: SessionRow) -> UsageRow:
        """Return the usage of one session, counted as in reports."""
        facts = SessionFacts(
            session.key, session.id, session.agent, session.model, session.project, session.started or session.ended
        )
        recorded = [to_spent(row) for row in self._usage.spent_of(session.key)]
        live = [row for row in self._usage.live_of(session.id) if row.agent in (session.agent, "")]
        groups = Groups(UsageQuery(by="session"), PriceList(self._own_prices).cost)
        groups.take(_make_account(facts, recorded, live))
        return groups.report("").totals

    # Live reports

    def _take(
        self, report: LiveUsage, count: Callable[[LiveUsage, list[LiveRow], float], LiveRow | None]
    ) -> LiveUsageResult:
        folder, report = report.project, self._check(report)
        if self._gate is not None and not self._gate.admits(folder):
            return LiveUsageResult(
                session=report.session, changed=False, reason="store_projects does not name the project", usage=Usage()
            )
        now = self._clock()
        at = now if report.at is None else report.at
        with self._store.writing():
            if report.event and not self._usage.put_event(report.session, report.event, at):
                return self._answer(report.session, "the event was already counted")
            report = self._identify(report)
            known = [row for row in self._usage.live_of(report.session) if row.agent == report.agent]
            row = count(replace(report, at=at), known, now)
            if row is not None:
                self._usage.put_live(row)
            return self._answer(report.session, "" if row is not None else "the totals are not larger than before")

    def _grow(self, report: LiveUsage, known: list[LiveRow], now: float, is_timed: bool) -> LiveRow | None:
        """Return the row of this day and model, increased by what the running total adds; None if it adds nothing."""
        model = "" if report.whole else report.model
        at = now if report.at is None else report.at
        mark = msgspec.json.encode(["total", model, figures(report.usage)]).decode()
        if not self._usage.put_event(report.session, mark, at):
            return None  # the same total again, perhaps of a counter that has started over since
        row = self._usage.counter(report.session, report.agent, model)
        counter = _read_counter(row) if row else Counter()
        if is_timed and at < counter.since:
            return None
        counted = add_up(to_spent(part) for part in known if report.whole or part.model == report.model) or Usage()
        if has_restarted(counter, report.usage, at, is_timed=is_timed):
            counter = Counter(last=report.usage, base=counted, since=at, at=at)
        else:
            counter = advance(counter, report.usage, at)
        self._usage.put_counter(_make_counter_row(report, model, counter))
        more = find_increase(counter, counted, report.usage)
        return _add(replace(report, usage=more), known, now) if more else None

    def _answer(self, session: str, reason: str) -> LiveUsageResult:
        known = add_up(to_spent(row) for row in self._usage.live_of(session)) or Usage()
        return LiveUsageResult(session=session, changed=not reason, reason=reason, usage=known)

    def _identify(self, report: LiveUsage) -> LiveUsage:
        """Fill in a missing agent or model from earlier reports, or name those of earlier reports that lacked them."""
        known = self._usage.live_of(report.session)
        agents = {row.agent for row in known}
        if report.agent and agents == {""}:
            self._usage.name_agent(report.session, report.agent)
        elif not report.agent and len(agents) == 1:
            report = replace(report, agent=agents.pop())
        models = [row.model for row in known if row.agent in ("", report.agent)]
        if report.model and set(models) == {""}:
            self._usage.name_model(report.session, report.agent, report.model)
        elif not report.model and models:
            report = replace(report, model=models[-1], whole=True)
        return report

    def _check(self, report: LiveUsage) -> LiveUsage:
        """Refuse impossible values, and return the report with redacted names."""
        if not report.session.strip():
            raise Refused("the session's id is empty; give the agent's own session id")
        if all(value is None for value in figures(report.usage)):
            raise Refused("the report has no figures; give at least one")
        for name, value in zip(FIGURES, figures(report.usage), strict=True):
            _check_figure(name, value)
        if report.at is not None and not 0 <= report.at < _END:
            raise Refused(f"{report.at} is not a time; give seconds since 1970")
        names = {name: getattr(report, name) or "" for name in ("session", "agent", "model", "project", "event")}
        for name, text in names.items():
            if len(text) > _LONG:
                raise Refused(f"the {name} has {len(text)} characters; {_LONG} are allowed")
        return replace(
            report,
            session=self._identifiers.identify(report.session),
            event=self._identifiers.identify(report.event) if report.event else None,
            agent=self._identifiers.clean(report.agent),
            model=self._identifiers.clean(report.model),
            project=self._find_project(report.project) if report.project else None,
        )

    def _find_project(self, folder: str) -> str:
        """Return the project of the working folder that a caller reports."""
        return self._identifiers.clean(resolve_project(ProjectStore(self._store), folder).name)

    # Joining transcripts and live reports

    def _list_accounts(self) -> Iterator[Account]:
        """Yield every session once. Live reports join by the agent's own session id, and by agent if they name one."""
        recorded: dict[str, list[Spent]] = {}
        for key, part in self._usage.spent():
            recorded.setdefault(key, []).append(part)
        live: dict[str, dict[str, list[LiveRow]]] = {}
        for row in self._usage.live():
            live.setdefault(row.session, {}).setdefault(row.agent, []).append(row)
        waiting: dict[tuple[str, str], list[tuple[SessionFacts, list[Spent]]]] = {}
        for facts in self._usage.sessions():
            parts = recorded.get(facts.key, [])
            if facts.id in live:  # several sessions may have the same id
                waiting.setdefault((facts.id, facts.agent), []).append((facts, parts))
            else:
                yield _make_account(facts, parts, [])
        for (id, agent), sessions in sorted(waiting.items()):
            reported = live[id].pop(agent, None) or live[id].pop("", [])
            yield _make_account(sessions[0][0], [part for _facts, parts in sessions for part in parts], reported)
        for by_agent in live.values():
            for rows in by_agent.values():
                yield _make_live_account(rows)


def _check_day(text: str | None) -> str | None:
    try:
        return None if text is None else date.fromisoformat(text).isoformat()
    except ValueError as error:
        raise Refused(f"{text} is not a date; write 2026-11-16") from error


def _check_figure(name: str, value: float | None) -> None:
    if value is None:
        return
    kinds = (int, float) if name == "cost" else (int,)
    if isinstance(value, bool) or not isinstance(value, kinds) or not math.isfinite(value):
        raise Refused(f"{name}: {value!r} is not a number of {'dollars' if name == 'cost' else 'tokens'}")
    if value < 0:
        raise Refused(f"{name}: {value} is below zero")
    if value > MOST:
        raise Refused(f"{name}: {value} is above the maximum of {MOST}")


def _read_counter(row: CounterRow) -> Counter:
    return Counter(last=_usage.decode(row.last), base=_usage.decode(row.base), since=row.since, at=row.at)


def _make_counter_row(report: LiveUsage, model: str, counter: Counter) -> CounterRow:
    last, base = (msgspec.json.encode(usage).decode() for usage in (counter.last, counter.base))
    return CounterRow(
        session=report.session,
        agent=report.agent,
        model=model,
        last=last,
        base=base,
        since=counter.since,
        at=counter.at,
    )


def _add(report: LiveUsage, known: list[LiveRow], now: float) -> LiveRow:
    """Return the row of this day and model, increased by the report."""
    day = day_of(report.at)
    today = [to_spent(row) for row in known if (row.model, row.day) == (report.model, day)]
    usage = add_up([*today, Spent(report.usage)]) or Usage()
    for name, value in zip(FIGURES, figures(usage), strict=True):
        _check_figure(name, value)
    sums: Mapping[str, float | None] = dict(zip(FIGURES, figures(usage), strict=True))
    names = {"session": report.session, "agent": report.agent, "model": report.model, "project": report.project}
    return LiveRow(**names, day=day, **sums, updated=now)  # type: ignore[arg-type]


def _make_account(facts: SessionFacts, recorded: Sequence[Spent], live: Sequence[LiveRow]) -> Account:
    project = facts.project or next((row.project for row in reversed(live) if row.project), None)
    parts = tuple(map(to_spent, live))
    return Account(facts.id, facts.agent, facts.model or "", project, day_of(facts.started), recorded, parts)


def _make_live_account(rows: Sequence[LiveRow]) -> Account:
    last = rows[-1]
    project = next((row.project for row in reversed(rows) if row.project), None)
    return Account(
        last.session, last.agent, last.model, project, min(r.day for r in rows), (), tuple(map(to_spent, rows))
    )
