"""Sessions in a table, with links to each."""

from __future__ import annotations

from collections.abc import Sequence

from warmstart.doors.cli.sessions import describe_task
from warmstart.doors.pages.markup import Markup
from warmstart.doors.render.fitted import cut_at_word, flatten
from warmstart.doors.ui.layout import keep_together, link, link_session, make_address, make_badge, make_table, make_time
from warmstart.pipeline import Warmstart
from warmstart.store import SessionRow

_COLUMNS = ("session", "task", "started (UTC)", "agent", "model", "#calls", "#errors", "verdict")


def show_sessions(ws: Warmstart, rows: Sequence[SessionRow]) -> Markup:
    """Show sessions as the command line lists them."""
    return make_table(_COLUMNS, [_make_row(ws, row) for row in rows], "Sessions")


def _make_row(ws: Warmstart, row: SessionRow) -> tuple[str | Markup, ...]:
    return (
        link_session(row.key, ws.store.shorten_id(row)),
        cut_at_word(flatten(describe_task(ws, row)), 110),
        make_time(row.started),
        keep_together(row.agent),
        keep_together(row.model or ""),
        link(make_address("/sessions", row.key) + "#calls", f"{row.calls:,}"),
        link(make_address("/sessions", row.key, errors=1) + "#calls", f"{row.errors:,}") if row.errors else "0",
        make_badge(row.verdict),
    )
