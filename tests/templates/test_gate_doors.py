"""One gate for every door to a template: what failed is refused with its numbers, and a person's overruling is recorded."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

import warmstart
from command_line import run, run_json
from hermes_exports import STEPS, hermes_session, write_export
from transcripts import CART, teach, work_lines
from warmstart.doors.agent_tools.warm_session import warm_session
from warmstart.doors.mcp.arguments import WrongArguments
from warmstart.doors.mcp.tools import TOOLS, ToolInvocation
from warmstart.errors import NotWorthLearning, Refused
from warmstart.formats.source import Source
from warmstart.ingest.read import scan
from warmstart.pipeline import Warmstart
from warmstart.redact import Redactor
from warmstart.review.proposal_drafts import ProposalDraft
from warmstart.review.proposals import POLICY, ProposalDesk
from warmstart.review.snapshot import take_session
from warmstart.scopes import Border
from warmstart.store import ProposalRow
from warmstart.store.history import decode_session
from warmstart.templates.build import BuildRequest
from warmstart.templates.mine import LearnLimits

FAILING = tuple((f"make target-{n}", f"make: *** [target-{n}] Error 2", 2) for n in range(32))
WORKING = tuple((f"cat notes-{n}.txt", f"text {n}", 0) for n in range(8))
BAD: dict[str, tuple[str, str]] = {  # kind -> session and the numbers of its refusal
    "errors": ("mostly-failed", r"32 of 40 calls failed \(80 %, limit 50 %\)"),
    "label": ("labelled", r"the session failed \(its label says so\); 0 of 3 calls failed"),
    "end": ("broken-off", r"it ended with crashed; 0 of 3 calls failed"),
    "job": ("cron_backup_20261116_030000", r"the session failed \(the job's answer says so\); 0 of 3 calls failed"),
    "no answer": ("cron_sync_20261116_030000", r"the session failed \(the job gave no answer\); 0 of 3 calls failed"),
}
KINDS = pytest.mark.parametrize(("session", "numbers"), BAD.values(), ids=BAD)


def bad_sessions(suffix: str = "") -> list[dict[str, Any]]:
    return [
        hermes_session(BAD["errors"][0] + suffix, *FAILING, *WORKING),
        hermes_session(BAD["label"][0] + suffix, *STEPS),
        hermes_session(BAD["end"][0] + suffix, *STEPS, end_reason="crashed"),
        hermes_session(BAD["job"][0], *STEPS, answer="[SCRIPT_FAILED]: the disk is full", end_reason="cron_complete"),
        hermes_session(BAD["no answer"][0], *STEPS, answer=None, end_reason="cron_complete"),
    ]


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[Warmstart]:
    path = write_export(tmp_path / "in" / "export.jsonl", *bad_sessions(), labels={"labelled": False})
    with warmstart.open() as opened:
        opened.ingest(path)
        yield opened


def propose(ws: Warmstart, session: str) -> ProposalRow:
    """Store the proposal of a template, as an earlier version of Warmstart would have."""
    path = Path(ws.store.find_session(session).source_uri.removeprefix("file://").partition("#")[0])
    (found,) = (one.session for one in scan(Source(path)) if one.session.id == session)
    snapshot = take_session(found, Redactor({}).scope(), context="command", tokens=1_000)
    draft = ProposalDraft(
        kind="template",
        action="propose",
        target=f"of-{session}",
        body={"name": f"of-{session}", "description": "backups"},
        claim="backups",
        cites=(2,),
        write_origin="review:new_template",
    )
    return ProposalDesk(ws.store, ws.settings, time.time).propose(snapshot, draft)


class TestDoors:
    def test_learn(self, ws: Warmstart) -> None:
        learned = ws.learn()
        assert learned.templates == ()
        assert learned.refused == {
            "more than 50 % of its calls failed": 1,
            "it ended with crashed": 1,
            "the session failed": 3,
        }
        shown = run("learn").stdout
        assert "32 of 40 calls failed (80 %, limit 50 %)" in shown
        assert "; 0 of 3 calls failed" in shown and ": 0 of 3 calls failed" in shown

    @KINDS
    def test_capture(self, ws: Warmstart, session: str, numbers: str) -> None:
        with pytest.raises(NotWorthLearning, match=numbers):
            ws.capture(session)
        assert ws.templates.find() == []

    def test_the_command_refuses_with_the_numbers_and_the_way_out(self, ws: Warmstart) -> None:
        message = run("capture", "mostly-failed", code=1).stderr
        assert "32 of 40 calls failed (80 %, limit 50 %)" in message and "--anyway" in message
        assert message.count("\n") == 1

    @KINDS
    def test_warm_session_build(self, ws: Warmstart, session: str, numbers: str) -> None:
        with pytest.raises(Refused, match=numbers):
            ws.templates.build([ws.store.find_session(session)], BuildRequest("built"))

    def test_warm_session_as_an_agent_calls_it(self, ws: Warmstart) -> None:
        answer = warm_session(ws, {"action": "build", "name": "built", "anyway": True, "min_messages": 0})
        assert not answer["success"] and "32 of 40 calls failed (80 %, limit 50 %)" in answer["error"]
        assert ws.templates.find() == []

    @KINDS
    def test_draft(self, ws: Warmstart, session: str, numbers: str) -> None:
        row = ws.store.find_session(session)
        past = decode_session(row, ws.store.calls_of(row.key))
        assert past is not None
        draft = ws.templates.draft(past)
        assert isinstance(draft, str) and re.fullmatch(numbers, draft)

    @KINDS
    def test_review_apply(self, ws: Warmstart, session: str, numbers: str) -> None:
        proposal = propose(ws, session)
        with pytest.raises(NotWorthLearning, match=numbers):
            ws.reviews.apply(proposal.id)
        assert ws.reviews.show(proposal.id).status == "waiting"
        assert ws.templates.find() == []

    def test_a_review_by_policy_never_overrules(self, ws: Warmstart) -> None:
        review = structs.replace(ws.settings.review, apply=("template",))
        ws.settings = structs.replace(ws.settings, review=review)
        proposal = propose(ws, "mostly-failed")
        assert proposal.status == "waiting" and "32 of 40 calls failed" in proposal.reason
        with pytest.raises(Refused, match="only a person"):
            ProposalDesk(ws.store, ws.settings, time.time).apply(proposal.id, by=POLICY, anyway=True)
        assert ws.templates.find() == []

    def test_an_agent_cannot_overrule_over_mcp(self, ws: Warmstart) -> None:
        given = {"session": "mostly-failed", "anyway": True}
        with pytest.raises(WrongArguments, match="anyway"):
            TOOLS["capture"].run(ToolInvocation(ws, given, lambda _done, _total, _what: None, (), Border()))
        with pytest.raises(WrongArguments, match="max_error_rate"):
            TOOLS["learn"].run(
                ToolInvocation(ws, {"max_error_rate": 1.0}, lambda _done, _total, _what: None, (), Border())
            )
        assert not {"anyway", "approve"} & set(TOOLS["capture"].schema["properties"])


class TestAnyway:
    def test_capture_is_recorded_as_a_persons_decision(self, ws: Warmstart) -> None:
        captured = run_json("capture", "mostly-failed", "--name", "mine", "--anyway")
        assert captured["status"] == "proposed"
        (decision,) = ws.templates.show("mine")[2]
        assert (decision.by, decision.status) == ("person", "proposed")
        assert decision.reason == "--anyway: 32 of 40 calls failed (80 %, limit 50 %)"

    def test_it_is_not_activated_by_the_policy(self, ws: Warmstart) -> None:
        ws.settings = structs.replace(ws.settings, min_support=1)
        assert ws.capture("mostly-failed", name="mine", anyway=True).status == "proposed"

    def test_anyway_and_approve_together(self, ws: Warmstart) -> None:
        assert run_json("capture", "broken-off", "--name", "mine", "--anyway", "--approve")["status"] == "active"
        (decision,) = ws.templates.show("mine")[2]
        assert (decision.by, decision.status) == ("person", "active")
        assert decision.reason == "approved at capture; --anyway: it ended with crashed; 0 of 3 calls failed"

    def test_review_apply(self, ws: Warmstart) -> None:
        proposal = propose(ws, "labelled")
        assert "--anyway" in run("review", "apply", proposal.id, code=1).stderr
        run("review", "apply", proposal.id, "--anyway")
        row, _template, decisions = ws.templates.show("of-labelled")
        assert row.status == "active"
        assert [(decision.by, decision.reason.partition(":")[0]) for decision in decisions] == [
            ("person", "--anyway"),
            ("person", f"proposal {proposal.id[:12]} applied"),
        ]
        assert "--anyway" in ws.reviews.show(proposal.id).reason

    def test_nothing_is_recorded_where_nothing_was_overruled(self, ws: Warmstart) -> None:
        teach(ws, work_lines("cart", *CART))
        ws.capture("cart", name="mine", anyway=True)
        assert ws.templates.show("mine")[2] == []

    def test_a_revoked_session(self, ws: Warmstart) -> None:
        teach(ws, work_lines("cart", *CART))
        ws.templates.revoke("cart")
        with pytest.raises(NotWorthLearning, match="a person revoked it"):
            ws.capture("cart")


def test_approve_at_capture(ws: Warmstart) -> None:
    teach(ws, work_lines("cart", *CART))
    assert run_json("capture", "cart", "--name", "mine", "--approve")["status"] == "active"
    (decision,) = ws.templates.show("mine")[2]
    assert (decision.by, decision.status, decision.reason) == ("person", "active", "approved at capture")


def test_three_failed_runs_of_a_job_are_no_template(tmp_path: Path) -> None:
    runs = [
        hermes_session(f"cron_backup_2026111{n}_030000", *STEPS, answer=answer, end_reason="cron_complete")
        for n, answer in enumerate(("[SCRIPT_FAILED]: no space", "The backup script crashed with exit code 1.", None))
    ]
    good = [
        hermes_session(f"cron_clean_2026111{n}_030000", *STEPS, answer="[SILENT]", end_reason="cron_complete")
        for n in range(3)
    ]
    with warmstart.open() as ws:
        ws.ingest(write_export(tmp_path / "export.jsonl", *runs, *good))
        learned = ws.learn()
        assert learned.refused == {"the session failed": 3}
        assert [(template.status, template.sessions) for template in learned.templates] == [("active", 3)]


def test_a_failure_and_its_correction_are_enough(tmp_path: Path) -> None:
    """python -> python3: two calls, of which one worked."""
    short = [
        hermes_session(
            f"s-{n}",
            *(("python -m build", "bash: python: command not found", 127),) * (n + 1),
            ("python3 -m build", "built billing.tar.gz", 0),
        )
        for n in range(2)
    ]
    with warmstart.open() as ws:
        ws.ingest(write_export(tmp_path / "export.jsonl", *short))
        learned = ws.learn(limits=LearnLimits(min_calls=2))
        assert learned.refused == {}
        (template,) = ws.templates.find()
        assert template[1].examples[0].correction is not None
