"""Group usage into tables: combine each session's transcript, live reports and prices, then add up by group.

Pure. Unknown stays None; a sum covers what is known, and the number of sessions missing from it is reported beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from warmstart.model import Spent, Usage
from warmstart.usage.amounts import FIGURES, TOKENS, add_up, count_tokens, share

By = Literal["day", "agent", "model", "project", "session"]
BYS: tuple[By, ...] = ("day", "agent", "model", "project", "session")

_PLACES = 9  # decimal places of a cost
Pricing = Callable[[Usage, str], float | None]  # tokens of a model -> US dollars


class Account(NamedTuple):
    """One session's usage, from its transcript and from live reports."""

    id: str
    agent: str
    model: str
    project: str | None
    day: str  # on which it started
    recorded: Sequence[Spent]  # from the transcript
    live: Sequence[Spent] = ()


class UsageCell(NamedTuple):
    """A session's usage of one model on one day."""

    model: str
    day: str
    usage: Usage
    estimated: frozenset[str]  # names of the figures that are estimates


class UsageRow(Struct, kw_only=True):
    """One row of the table. A figure is None if it is unknown for all of its sessions."""

    name: str | None  # the day, agent, model, project or session; None: unknown, or the totals
    sessions: int = 0
    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None  # part of the output
    total: int | None = None  # input, output, cache reads and cache writes
    cost: float | None = None  # US dollars
    estimated: dict[str, float] = {}  # the estimated part of each figure
    tokens_estimated: int = 0  # sessions, like the next four
    output_completed: int = 0  # reported, but for an output taken from the text
    tokens_unknown: int = 0
    cost_estimated: int = 0  # from list prices
    cost_unknown: int = 0


class UsageReport(Struct, frozen=True, kw_only=True):
    """Tokens and costs of sessions, by group."""

    by: By
    since: str | None
    until: str | None
    rows: tuple[UsageRow, ...]
    totals: UsageRow
    undated: int  # sessions left out of a period because their day is unknown
    unpriced: tuple[str, ...]  # models that need a price and have none
    prices: str  # source and date of the prices
    unread_files: int = 0  # of a lake: left out because they are damaged


class UsageQuery(Struct, frozen=True, kw_only=True):
    """How to group usage, and which part of it to report."""

    by: By = "day"
    since: str | None = None  # first day, "2026-11-01"
    until: str | None = None  # last day
    agent: str | None = None
    project: str | None = None


def settle_account(account: Account, pricing: Pricing) -> tuple[UsageCell, ...]:
    """Return a session's usage, counted once. A session that reports any cost is not priced, or it could count twice."""
    cells = join(account.recorded, account.live)
    if any(cell.usage.cost is not None for cell in cells):
        return cells
    return tuple(_price(cell, pricing) for cell in cells)


def _price(cell: UsageCell, pricing: Pricing) -> UsageCell:
    cost = pricing(cell.usage, cell.model)
    if cost is None:
        return cell
    return cell._replace(usage=replace(cell.usage, cost=cost), estimated=cell.estimated | {"cost"})


def join(recorded: Sequence[Spent], live: Sequence[Spent]) -> tuple[UsageCell, ...]:
    """Join a session's transcript and live reports.

    For each figure the transcript's report wins, then the live report, then the estimate from the text.
    """
    reported = [part for part in recorded if part.usage.basis != "estimated"]
    estimated = [part for part in recorded if part.usage.basis == "estimated"]
    live_total = add_up(live)
    if live_total is None:
        return _make_cells(reported, ()) + _make_cells(estimated, TOKENS)
    counted = add_up(reported) or Usage()
    known = {name for name in FIGURES if getattr(counted, name) is not None}
    if counted.basis == "completed" and live_total.output is not None:
        known.discard("output")  # a live report knows more than the text
    if any(part.usage.cost is not None for part in estimated):
        known.add("cost")
    if known & set(TOKENS):
        fresh = [name for name in FIGURES if name not in known]
        filled = share(_pick(live_total, fresh), reported)
        if "output" in known:
            filled = tuple(map(_keep_basis, filled, reported))
        replaced = [name for name in fresh if getattr(live_total, name) is not None]
        return _make_cells(filled, ()) + _make_cells([_drop(part, replaced) for part in estimated], TOKENS)
    rest = add_up(estimated) or Usage()
    missing = [name for name in TOKENS if getattr(live_total, name) is None and getattr(rest, name) is not None]
    cost = (add_up(recorded) or Usage()).cost
    filled = share(replace(_pick(rest, missing), cost=cost), live)
    return _make_cells(filled, missing)


def _make_cells(parts: Iterable[Spent], estimated: Iterable[str]) -> tuple[UsageCell, ...]:
    names = frozenset(estimated)
    cells = []
    for part in parts:
        guessed = names | {"output"} if part.usage.basis == "completed" else names
        known = frozenset(name for name in guessed if getattr(part.usage, name) is not None)
        cells.append(UsageCell(part.model, part.day, part.usage, known))
    return tuple(cells)


def _keep_basis(filled: Spent, part: Spent) -> Spent:
    return replace(filled, usage=replace(filled.usage, basis=part.usage.basis))


def _pick(usage: Usage, names: Iterable[str]) -> Usage:
    return Usage(**{name: getattr(usage, name) for name in names})


def _drop(part: Spent, names: Iterable[str]) -> Spent:
    return replace(part, usage=replace(part.usage, **dict.fromkeys(names)))


class Groups:
    """Adds up accounts, by group and in total."""

    def __init__(self, query: UsageQuery, pricing: Pricing) -> None:
        self._query = query
        self._pricing = pricing
        self._rows: dict[tuple[str, str], UsageRow] = {}
        self._totals = UsageRow(name=None)
        self._undated = 0
        self._unpriced: set[str] = set()

    def take(self, account: Account) -> None:
        """Add a session, if it matches the query."""
        query = self._query
        if (query.agent is not None and account.agent != query.agent) or (
            query.project is not None and account.project != query.project
        ):
            return
        cells = settle_account(account, self._pricing)
        if not cells:  # the session counts, although its usage is unknown
            cells = (UsageCell(account.model, account.day, Usage(), frozenset()),)
        inside = [cell for cell in cells if self._is_inside(cell.day or account.day)]
        self._undated += not inside and not all(cell.day or account.day for cell in cells)
        groups: dict[tuple[str, str], list[UsageCell]] = {}
        for cell in inside:
            groups.setdefault(self._name_group(account, cell), []).append(cell)
        self._unpriced |= find_unpriced(cells)
        for name, members in groups.items():
            count(self._rows.setdefault(name, UsageRow(name=name[1] or None)), members)
        if inside:
            count(self._totals, inside)

    def _is_inside(self, day: str) -> bool:
        since, until = self._query.since, self._query.until
        if since is None and until is None:
            return True
        return bool(day) and (since is None or day >= since) and (until is None or day <= until)

    def _name_group(self, account: Account, cell: UsageCell) -> tuple[str, str]:
        """Return the group of a cell; sessions of several agents may have the same id."""
        by = self._query.by
        if by == "session":
            return account.agent, account.id
        names = {"day": cell.day or account.day, "agent": account.agent, "model": cell.model or account.model}
        return "", names.get(by, account.project or "")

    def report(self, prices: str) -> UsageReport:
        return UsageReport(
            by=self._query.by,
            since=self._query.since,
            until=self._query.until,
            rows=tuple(sorted(self._rows.values(), key=self._order)),
            totals=self._totals,
            undated=self._undated,
            unpriced=tuple(sorted(self._unpriced)),
            prices=prices,
        )

    def _order(self, row: UsageRow) -> tuple[float, str]:
        """Sort days by date, other groups by total, the largest first."""
        return (0 if self._query.by == "day" else -(row.total or 0)), row.name or ""


def find_unpriced(cells: Sequence[UsageCell]) -> set[str]:
    """Return the models without a price, in a session that reports no cost."""
    if any(cell.usage.cost is not None and "cost" not in cell.estimated for cell in cells):
        return set()
    return {
        cell.model
        for cell in cells
        if cell.usage.cost is None and cell.usage.input is not None and cell.usage.output is not None
    }


def count(row: UsageRow, cells: Sequence[UsageCell]) -> None:
    """Add one session's cells to the row of a group."""
    row.sessions += 1
    for cell in cells:
        for name in FIGURES:
            _count_figure(row, name, getattr(cell.usage, name), name in cell.estimated)
        tokens = count_tokens(cell.usage)
        _count_figure(row, "total", tokens, False)
        if cell.estimated & set(TOKENS):
            known = _pick(cell.usage, cell.estimated & set(TOKENS))
            row.estimated["total"] = row.estimated.get("total", 0) + (count_tokens(known) or 0)
    row.tokens_estimated += any(cell.estimated & set(TOKENS) and not _is_completed(cell) for cell in cells)
    row.output_completed += any(map(_is_completed, cells))
    row.tokens_unknown += all(count_tokens(cell.usage) is None for cell in cells)
    row.cost_estimated += any("cost" in cell.estimated for cell in cells)
    costless = [cell for cell in cells if cell.usage.cost is None]
    row.cost_unknown += len(costless) == len(cells) or any(count_tokens(cell.usage) for cell in costless)


def _is_completed(cell: UsageCell) -> bool:
    """Return whether only the output comes from the text; the rest is reported."""
    return cell.usage.basis == "completed" and "output" in cell.estimated


def _count_figure(row: UsageRow, name: str, value: float | None, is_estimated: bool) -> None:
    if value is None:
        return
    setattr(row, name, _add(getattr(row, name) or 0, value))
    if is_estimated:
        row.estimated[name] = _add(row.estimated.get(name, 0), value)


def _add(total: float, value: float) -> float:
    """Add an amount. Costs are whole billionths of a dollar, so that a sum (below a million) does not depend on the order."""
    if isinstance(value, int):
        return total + value
    return round(total + round(value, _PLACES), _PLACES)
