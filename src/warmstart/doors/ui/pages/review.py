"""The proposals of reviews, and a person's decisions about them."""

from __future__ import annotations

from typing import Any

import msgspec

from warmstart.doors.cli.review import describe_proposal
from warmstart.doors.pages.markup import Markup, element, isolate, join
from warmstart.doors.ui.layout import (
    Content,
    link_session,
    make_action,
    make_address,
    make_badge,
    make_choice,
    make_facts,
    make_field,
    make_filter,
    make_note,
    make_pager,
    make_part,
    make_time,
)
from warmstart.doors.ui.request import PageRequest, UiPage
from warmstart.errors import Refused
from warmstart.store import ProposalRow

_LISTED = 50
_STATUSES = ("waiting", "applied", "discarded", "all")


def _load(asked: PageRequest) -> list[ProposalRow]:
    status = asked.text("status") or "waiting"
    if status not in _STATUSES:
        raise Refused(f"there are no proposals of status {status!r}")
    return asked.ws.reviews.list(None if status == "all" else status)


def _show(rows: list[ProposalRow], asked: PageRequest) -> Content:
    status, offset = asked.text("status") or "waiting", asked.number("offset", 0)
    shown = rows[offset : offset + _LISTED]
    return Content(
        title="Review",
        lead="Proposals of reviews. Nothing is written before you apply one.",
        json=make_address("/review.json", status=status),
        body=[
            make_filter("/review", make_choice("status", "Status", [(one, one) for one in _STATUSES], status)),
            *(make_part(f"{row.kind} {row.action}: {row.target}", _show_proposal(row)) for row in shown),
            None if rows else make_note("None. To get some, run: warmstart review SESSION"),
            make_pager("/review", {"status": status}, total=len(rows), limit=_LISTED, offset=offset),
        ],
    )


def _show_proposal(row: ProposalRow) -> Markup:
    body: dict[str, Any] = msgspec.json.decode(row.body)
    suspicions: list[str] = msgspec.json.decode(row.suspicions)
    texts = [
        element("pre", {"class": "code", "tabindex": 0}, f"{name}:\n{value}") for name, value in body.items() if value
    ]
    facts = make_facts(
        [
            ("Status", join(make_badge(row.status), " ", isolate(row.reason))),
            ("Session", link_session(row.session_key, row.session[:40])),
            ("Steps", ", ".join(map(str, msgspec.json.decode(row.cites)))),
            ("Suspicious", "; ".join(suspicions)),
            ("Created", make_time(row.created)),
        ]
    )
    decide: Markup | None = None
    if row.status == "waiting":
        reason = make_field("reason", "Why", "", size=40, required="")
        decide = element(
            "div",
            {"class": "decide"},
            make_action("review/apply", "Apply", {"proposal": row.id}, css="main"),
            make_action("review/discard", "Discard", {"proposal": row.id}, reason),
        )
    return join(element("p", {}, isolate(row.summary)), facts, *texts, decide)


def _describe(rows: list[ProposalRow]) -> list[dict[str, Any]]:
    return [describe_proposal(row) for row in rows]


PAGE = UiPage(_load, _show, _describe)
