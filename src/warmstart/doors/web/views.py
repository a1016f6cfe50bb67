"""Answers: the JSON of requests, audit entries and errors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from warmstart.confirm.canonical import show_hidden, write_readable
from warmstart.confirm.desk.desk import Desk
from warmstart.confirm.masking.findings import ArgumentFinding, find_dangers
from warmstart.confirm.model import (
    LONGEST,
    SHORTEST,
    Allowance,
    AuditEntry,
    Delivered,
    Delivery,
    HumanDecision,
    Identity,
    Request,
    Status,
    Vote,
)
from warmstart.confirm.policy.standing import Standing

Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]


class Addresses(Struct, frozen=True):
    """The daemon's addresses."""

    api: str  # http://127.0.0.1:6000
    page: str  # http://127.0.0.1:6080

    def page_of(self, id: str) -> str:
        return f"{self.page}/#/request/{id}"


class DecisionView(Struct, frozen=True):
    status: Status
    by: str
    reason: str
    at: Time


class ErrorView(Struct, frozen=True, omit_defaults=True):
    """An error: what is wrong and what to do; `code` is for programs."""

    error: str
    code: str
    decision: DecisionView | None = None
    remaining: int | None = None
    window_seconds: int | None = None
    limit: int | None = None
    retry_after_seconds: int | None = None


class VoteView(Struct, frozen=True):
    by: str
    reason: str
    at: Time


class NoticeView(Struct, frozen=True):
    channel: str
    state: Delivery
    attempts: int
    error: str


class ExecutionView(Struct, frozen=True):
    token: str
    expires: Time


class MaskView(Struct, frozen=True):
    """A masked value: how often it was seen in other requests, and how often those were approved."""

    mask: str
    seen: int
    approved: int


class FindingView(Struct, frozen=True):
    """Something in the arguments to look at first."""

    kind: str
    where: str
    line: int
    note: str
    text: str


class RequestView(Struct, frozen=True, kw_only=True):
    """A request as it is now. In lists and events `details` is null and `details_omitted` true: read the request itself."""

    id: str
    action: str
    description: str
    details: Any
    details_text: str
    masked: int
    digest: str
    status: Status
    high_risk: bool
    requester: str
    claimed_requester: str
    session_key: str
    created: Time
    deadline: Time
    seconds_left: float
    timeout_seconds: int
    quorum: int
    approvals: list[VoteView]
    lapsed: list[VoteView]
    missing: int
    decision: DecisionView | None
    executed: Time | None
    execution: ExecutionView | None
    notifications: list[NoticeView]
    page_url: str
    size: int
    details_omitted: bool
    masks: list[MaskView]
    findings: list[FindingView]
    created_at: float  # seconds since the epoch, like `resolved_at`: names that older clients use
    created_at_iso: Time
    resolved_at: float | None
    resolved_by: str | None


class RequestList(Struct, frozen=True):
    requests: list[RequestView]
    next: int | None
    waiting: int  # requests that wait in all, whatever was asked for
    count: int = 0  # of `requests`


class DeniedAllView(Struct, frozen=True):
    """How many requests of a requester were denied, and how many of them this person may not deny."""

    requester: str
    denied: int
    refused: int


class SubmittedView(Struct, frozen=True, kw_only=True):
    """The receipt."""

    id: str
    action: str
    status: Status
    timeout_seconds: int
    deadline: Time
    digest: str
    high_risk: bool
    message: str
    approve_url: str
    deny_url: str
    page_url: str


class ExecutedView(Struct, frozen=True):
    id: str
    status: Status
    executed: Time
    digest: str


class AuditView(Struct, frozen=True):
    sequence: int
    at: Time
    event: str
    request: str
    action: str
    actor: str
    credential: str
    details: dict[str, Any]
    previous: str
    hash: str


class AuditList(Struct, frozen=True):
    entries: list[AuditView]
    next: int


class AllowanceView(Struct, frozen=True):
    id: str
    action: str
    session_key: str
    requester: str
    digest: str
    created: Time
    created_by: str
    expires: Time
    times: int | None = None
    used: int = 0


class AllowanceList(Struct, frozen=True):
    entries: list[AllowanceView]


class HealthView(Struct, frozen=True):
    status: str
    version: str
    pending: int
    trouble: str
    page_url: str = ""  # of the page, as people open it


class SessionView(Struct, frozen=True):
    subject: str
    scopes: list[str]
    csrf_token: str
    expires: Time


def show_time(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds")


def show_decision(decision: HumanDecision | None) -> DecisionView | None:
    if decision is None:
        return None
    return DecisionView(decision.status, decision.by, decision.reason, show_time(decision.at))


def show_request(desk: Desk, request: Request, who: Identity, addresses: Addresses) -> RequestView:
    """Show a request to a caller. Only the submitter gets the execution token."""
    request = desk.apply_policy(request)
    view = _show(desk, request, who, addresses, desk.find_standing(request), desk.notices(request.id))
    details = json.loads(request.details)
    decides = who.may("approver:decide")
    masks = desk.list_masks(request.id) if decides else []
    findings = find_dangers(details) if decides else []
    return msgspec.structs.replace(
        view,
        details=details,
        details_text=write_readable(details),
        details_omitted=False,
        masks=[MaskView(one.mask, one.seen, one.approved) for one in masks],
        findings=[_show_finding(desk, finding) for finding in findings],
    )


def _show_finding(desk: Desk, finding: ArgumentFinding) -> FindingView:
    """Show a finding. Decoded text may hold secrets that were not masked before."""
    text = desk.masker.mask_text(finding.text) if finding.kind == "encoded" else show_hidden(finding.text)
    return FindingView(finding.kind, show_hidden(finding.where), finding.line, finding.note, text)


def show_summaries(desk: Desk, requests: Sequence[Request], who: Identity, addresses: Addresses) -> list[RequestView]:
    """Show requests of a list, without their details."""
    current = [desk.apply_policy(request) for request in requests]
    standings, notices = desk.list_standings(current), desk.list_notices(current)
    return [_show(desk, one, who, addresses, standings[one.id], notices[one.id]) for one in current]


def _show(
    desk: Desk,
    request: Request,
    who: Identity,
    addresses: Addresses,
    standing: Standing,
    notices: Sequence[Delivered],
) -> RequestView:
    execution = None
    if desk.may_execute(who, request) and request.execute_by is not None:
        execution = ExecutionView(desk.execution_token(request.id), show_time(request.execute_by))
    pending = request.status == "pending"
    return RequestView(
        id=request.id,
        action=request.action,
        description=request.description,
        details=None,
        details_text="",
        masked=request.masked,
        digest=request.digest,
        status=request.status,
        high_risk=request.high_risk,
        requester=request.subject,
        claimed_requester=request.claimed,
        session_key=request.session_key,
        created=show_time(request.created),
        deadline=show_time(request.deadline),
        seconds_left=max(0, request.deadline - desk.now()) / 1000 if pending else 0.0,
        timeout_seconds=request.timeout,
        quorum=request.quorum,
        approvals=[_show_vote(vote) for vote in standing.votes],
        lapsed=[_show_vote(vote) for vote in standing.lapsed],
        missing=standing.missing if request.status in ("pending", "approved") else 0,
        decision=show_decision(request.decision),
        executed=None if request.executed is None else show_time(request.executed),
        execution=execution,
        notifications=[NoticeView(n.channel, n.state, n.attempts, n.error) for n in notices],
        page_url=addresses.page_of(request.id),
        size=request.size,
        details_omitted=True,
        masks=[],
        findings=[],
        created_at=request.created / 1000,
        created_at_iso=show_time(request.created),
        resolved_at=None if request.decided is None else request.decided / 1000,
        resolved_by=request.decided_by or None,
    )


def _show_vote(vote: Vote) -> VoteView:
    return VoteView(vote.by, vote.reason, show_time(vote.at))


def show_receipt(request: Request, addresses: Addresses, wanted: int | None = None) -> SubmittedView:
    """Answer a submission. A repeated idempotency key gets the same answer, whatever was decided meanwhile. `wanted`: the
    timeout that the request named."""
    allowed = request.status == "auto_approved"
    message = (
        f"allowed without asking: {request.reason}"
        if allowed
        else f"waiting for a person to decide at {addresses.page_of(request.id)}"
    )
    if wanted is not None and wanted != request.timeout:
        longest = f"{SHORTEST} to {LONGEST}, or less by the policy"
        message += f"; it waits {request.timeout} seconds, not {str(wanted)[:20]}: a timeout may be {longest}"
    return SubmittedView(
        id=request.id,
        action=request.action,
        status="auto_approved" if allowed else "pending",
        timeout_seconds=request.timeout,
        deadline=show_time(request.deadline),
        digest=request.digest,
        high_risk=request.high_risk,
        message=message,
        approve_url=f"{addresses.api}/confirm/{request.id}/approve",
        deny_url=f"{addresses.api}/confirm/{request.id}/deny",
        page_url=addresses.page_of(request.id),
    )


def show_entry(entry: AuditEntry) -> AuditView:
    return AuditView(
        entry.sequence,
        show_time(entry.at),
        entry.event,
        entry.request,
        entry.action,
        entry.actor,
        entry.credential,
        json.loads(entry.details),
        entry.previous,
        entry.hash,
    )


def show_allowance(entry: Allowance) -> AllowanceView:
    return AllowanceView(
        entry.id,
        entry.action,
        entry.session_key,
        entry.requester_key,
        entry.digest,
        show_time(entry.created),
        entry.created_by,
        show_time(entry.expires),
        entry.times,
        entry.used,
    )
