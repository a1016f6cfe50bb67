"""Usage in tables: each session's account is drawn up once, from its transcript, live reports and prices; then grouped.

Pure. What is unknown stays None; a sum is the sum of what is known, with how many sessions are missing from it beside it.
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

Pricing = Callable[[Usage, str], float | None]  # tokens of a model -> US dollars


class Account(NamedTuple):
    """One session: who it was, what its transcript tells and what was reported live."""

    id: str
    agent: str
    model: str
    project: str | None
    day: str  # on which it began
    told: Sequence[Spent]
    live: Sequence[Spent] = ()


class UsageCell(NamedTuple):
    """What a session used of one model on one day, and which figures of it are estimates."""

    model: str
    day: str
    usage: Usage
    guessed: frozenset[str]


class UsageRow(Struct, kw_only=True):
    """One line of the table. Figures are None where none of its sessions knows them."""

    name: str | None  # the day, agent, model, project or session; None: not known, or the totals
    sessions: int = 0
    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None  # part of the output
    total: int | None = None  # input, output and both of the cache
    cost: float | None = None  # US dollars
    estimated: dict[str, float] = {}  # of each figure, the part that is estimated
    tokens_estimated: int = 0  # sessions
    tokens_unknown: int = 0
    cost_estimated: int = 0  # sessions whose cost is from list prices
    cost_unknown: int = 0


class UsageReport(Struct, frozen=True, kw_only=True):
    """What sessions cost, in groups."""

    by: By
    since: str | None
    until: str | None
    rows: tuple[UsageRow, ...]
    totals: UsageRow
    undated: int  # sessions left out of a period because nobody knows their day
    unpriced: tuple[str, ...]  # models that need a price and have none
    prices: str  # where prices come from, and of which day they are


class UsageQuery(Struct, frozen=True, kw_only=True):
    """Which part of the usage is asked for."""

    by: By = "day"
    since: str | None = None  # first day, "2026-11-01"
    until: str | None = None  # last day
    agent: str | None = None
    project: str | None = None


def draw_up(account: Account, pricing: Pricing) -> tuple[UsageCell, ...]:
    """A session's usage, counted once. A session that tells a cost at all is not priced: it could be counted twice."""
    cells = join(account.told, account.live)
    if any(cell.usage.cost is not None for cell in cells):
        return cells
    return tuple(_price(cell, pricing) for cell in cells)


def _price(cell: UsageCell, pricing: Pricing) -> UsageCell:
    cost = pricing(cell.usage, cell.model)
    if cost is None:
        return cell
    return cell._replace(usage=replace(cell.usage, cost=cost), guessed=cell.guessed | {"cost"})


def join(told: Sequence[Spent], live: Sequence[Spent]) -> tuple[UsageCell, ...]:
    """Transcript and live reports of one session as one. Figure by figure what the transcript reports wins, then what was
    reported live, then what is estimated from the text."""
    reported = [part for part in told if part.usage.basis == "reported"]
    guessed = [part for part in told if part.usage.basis == "estimated"]
    in_all = add_up(live)
    if in_all is None:
        return _cells(reported, ()) + _cells(guessed, TOKENS)
    counted = add_up(reported) or Usage()
    known = {name for name in FIGURES if getattr(counted, name) is not None}
    if any(part.usage.cost is not None for part in guessed):
        known.add("cost")
    if known & set(TOKENS):
        fresh = [name for name in FIGURES if name not in known]
        filled = share(_pick(in_all, fresh), reported)
        told_live = [name for name in fresh if getattr(in_all, name) is not None]
        return _cells(filled, ()) + _cells([_drop(part, told_live) for part in guessed], TOKENS)
    rest = add_up(guessed) or Usage()
    missing = [name for name in TOKENS if getattr(in_all, name) is None and getattr(rest, name) is not None]
    cost = (add_up(told) or Usage()).cost
    filled = share(replace(_pick(rest, missing), cost=cost), live)
    return _cells(filled, missing)


def _cells(parts: Iterable[Spent], guessed: Iterable[str]) -> tuple[UsageCell, ...]:
    names = frozenset(guessed)
    return tuple(
        UsageCell(part.model, part.day, part.usage, frozenset(n for n in names if getattr(part.usage, n) is not None))
        for part in parts
    )


def _pick(usage: Usage, names: Iterable[str]) -> Usage:
    return Usage(**{name: getattr(usage, name) for name in names})


def _drop(part: Spent, names: Iterable[str]) -> Spent:
    return replace(part, usage=replace(part.usage, **dict.fromkeys(names)))


class Groups:
    """Adds accounts up, by one thing and in all."""

    def __init__(self, wanted: UsageQuery, pricing: Pricing) -> None:
        self._wanted = wanted
        self._pricing = pricing
        self._rows: dict[tuple[str, str], UsageRow] = {}
        self._totals = UsageRow(name=None)
        self._undated = 0
        self._unpriced: set[str] = set()

    def take(self, account: Account) -> None:
        wanted = self._wanted
        if (wanted.agent is not None and account.agent != wanted.agent) or (
            wanted.project is not None and account.project != wanted.project
        ):
            return
        cells = draw_up(account, self._pricing)
        if not cells:  # nothing is known of it, but that it was there
            cells = (UsageCell(account.model, account.day, Usage(), frozenset()),)
        inside = [cell for cell in cells if self._is_inside(cell.day or account.day)]
        self._undated += not inside and not all(cell.day or account.day for cell in cells)
        groups: dict[tuple[str, str], list[UsageCell]] = {}
        for cell in inside:
            groups.setdefault(self._name(account, cell), []).append(cell)
        self._unpriced |= find_unpriced(cells)
        for name, found in groups.items():
            count(self._rows.setdefault(name, UsageRow(name=name[1] or None)), found)
        if inside:
            count(self._totals, inside)

    def _is_inside(self, day: str) -> bool:
        since, until = self._wanted.since, self._wanted.until
        if since is None and until is None:
            return True
        return bool(day) and (since is None or day >= since) and (until is None or day <= until)

    def _name(self, account: Account, cell: UsageCell) -> tuple[str, str]:
        """What tells groups apart, and what the group is called."""
        by = self._wanted.by
        if by == "session":
            return account.agent, account.id
        names = {"day": cell.day or account.day, "agent": account.agent, "model": cell.model or account.model}
        return "", names.get(by, account.project or "")

    def report(self, prices: str) -> UsageReport:
        return UsageReport(
            by=self._wanted.by,
            since=self._wanted.since,
            until=self._wanted.until,
            rows=tuple(sorted(self._rows.values(), key=self._place)),
            totals=self._totals,
            undated=self._undated,
            unpriced=tuple(sorted(self._unpriced)),
            prices=prices,
        )

    def _place(self, row: UsageRow) -> tuple[float, str]:
        """Days in their order, else the greatest first."""
        return (0 if self._wanted.by == "day" else -(row.total or 0)), row.name or ""


def find_unpriced(cells: Sequence[UsageCell]) -> set[str]:
    """Models for whose tokens there is no price, in a session that does not tell its cost."""
    if any(cell.usage.cost is not None and "cost" not in cell.guessed for cell in cells):
        return set()
    return {
        cell.model
        for cell in cells
        if cell.usage.cost is None and cell.usage.input is not None and cell.usage.output is not None
    }


def count(row: UsageRow, cells: Sequence[UsageCell]) -> None:
    """Add what one session has in a group."""
    row.sessions += 1
    for cell in cells:
        for name in FIGURES:
            _count_figure(row, name, getattr(cell.usage, name), name in cell.guessed)
        tokens = count_tokens(cell.usage)
        _count_figure(row, "total", tokens, False)
        if cell.guessed & set(TOKENS):
            known = _pick(cell.usage, cell.guessed & set(TOKENS))
            row.estimated["total"] = row.estimated.get("total", 0) + (count_tokens(known) or 0)
    row.tokens_estimated += any(cell.guessed & set(TOKENS) for cell in cells)
    row.tokens_unknown += all(count_tokens(cell.usage) is None for cell in cells)
    row.cost_estimated += any("cost" in cell.guessed for cell in cells)
    costless = [cell for cell in cells if cell.usage.cost is None]
    row.cost_unknown += len(costless) == len(cells) or any(count_tokens(cell.usage) for cell in costless)


def _count_figure(row: UsageRow, name: str, value: float | None, guessed: bool) -> None:
    if value is None:
        return
    setattr(row, name, (getattr(row, name) or 0) + value)
    if guessed:
        row.estimated[name] = row.estimated.get(name, 0) + value
