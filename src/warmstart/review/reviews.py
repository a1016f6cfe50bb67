"""Review sessions: first without a model, then with one if it is configured."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from warmstart.config import Settings
from warmstart.endpoints.chat import AskedCall, Endpoint, HttpLLM
from warmstart.errors import Refused, SourceError, WarmstartError
from warmstart.formats.source import Source
from warmstart.ingest.read import scan
from warmstart.ingest.records import Recorder, session_key
from warmstart.ingest.sources import find_sources
from warmstart.judging.score import score
from warmstart.model import Arguments, Outcome, PastSession, Session, Step, Template, ToolCall, ToolResult
from warmstart.ports import NoteDesk
from warmstart.projects.gate import open_gate
from warmstart.redact import Redactor
from warmstart.review.apply import describe_action
from warmstart.review.fork import Fork, ForkLimits, ForkRun, find_new_results
from warmstart.review.lessons import draft_notes, find_corrections, find_repeated, find_template, place_calls
from warmstart.review.prompts import TOOLS, Focus, write_instruction, write_question
from warmstart.review.proposal_drafts import ProposalDraft, is_denied, read_draft
from warmstart.review.proposals import ProposalDesk
from warmstart.review.snapshot import Snapshot, find_file, take_session
from warmstart.review.spending import DailyBudget
from warmstart.store import CallRow, ProjectStore, ProposalRow, ProposalStore, SessionRow, Store
from warmstart.store.history import decode_session
from warmstart.templates.library import TemplateLibrary

log = logging.getLogger("warmstart.review")

LINE = "Self-improvement review: "
_EARLIER = 30  # earlier sessions of the same project that are searched for repeated errors
_HISTORY = 60_000  # tokens of a transcript that a configured model is shown


class Reviewed(Struct, frozen=True, kw_only=True):
    """The result of one review."""

    session: str  # the agent's own id
    proposals: tuple[ProposalRow, ...] = ()
    refused: tuple[str, ...] = ()  # calls that were not kept, and why
    denied: tuple[str, ...] = ()  # tools that the model may not use
    steps: int = 0  # answers of the model
    tokens: int = 0
    ended: str = "no model"  # no model, nothing new, not shared, done, steps, budget, day, time, stopped, failed
    line: str = ""  # for the person; empty: nothing happened
    warning: str = ""  # what went wrong, if only a part failed


class Reviews:
    """Reviews sessions and takes decisions about proposals."""

    def __init__(
        self, store: Store, settings: Settings, clock: Callable[[], float], notes: NoteDesk | None = None
    ) -> None:
        """`notes`: finds and approves notes about the project; without it, none are proposed."""
        self._store = store
        self._proposals = ProposalStore(store)
        self._settings = settings
        self._clock = clock
        self._notes = notes
        self._gate = open_gate(settings, lambda: ProjectStore(store))
        self._desk = ProposalDesk(store, settings, clock, notes)

    # Reviewing

    def review(
        self, name: str | Path, *, focus: Focus = "both", model: bool = True, context: str = "command"
    ) -> list[Reviewed]:
        """Review a remembered session, or every session of a file or folder."""
        redactor = Redactor(self._settings.secrets)
        fork = self.make_fork() if model else None
        snapshots = [
            take_session(session, redactor.scope(), context=context, tokens=_HISTORY)
            for session in self._read_sessions(name)
        ]
        return [self.review_snapshot(snapshot, fork, focus) for snapshot in snapshots]

    def make_fork(self) -> Fork | None:
        """Return a fork for the configured model, or None."""
        review = self._settings.review
        if not review.url or not review.model:
            return None
        llm = HttpLLM(Endpoint(url=review.url, key=self._settings.review_key, timeout=review.timeout))
        return Fork(llm, {"model": review.model, "tools": list(TOOLS)}, self.limits)

    @property
    def limits(self) -> ForkLimits:
        return ForkLimits(self._settings.review.steps, self._settings.review.budget)

    def review_snapshot(self, snapshot: Snapshot, fork: Fork | None = None, focus: Focus = "both") -> Reviewed:
        """Review what is new since this session's last review. A failing model is reported, not raised."""
        if self._gate is not None and not self._gate.admits(
            snapshot.session.project, snapshot.session.remote, snapshot.session.scope
        ):
            return Reviewed(session=self._desk.redact_id(snapshot.session.id), ended="not shared")
        since, total = self._proposals.reviewed(snapshot.key), len(snapshot.session.steps)
        if total <= since:
            return Reviewed(session=self._desk.redact_id(snapshot.session.id), ended="nothing new")
        run = _Run(self._desk, snapshot, focus, lambda: self._refuse_template(snapshot))
        for draft in self._find_lessons(snapshot, since):
            run.take(draft)
        failure = self._ask(run, fork) if fork else ""
        if not failure and not run.was_stopped:
            with self._store.writing():
                self._proposals.put_reviewed(snapshot.key, total, self._clock())
        return run.report(failure)

    def _ask(self, run: _Run, fork: Fork) -> str:
        """Ask the model if the day's budget has something left; return what went wrong, or an empty string."""
        budget = DailyBudget(self._settings.home, self._settings.review.daily_budget, self._clock)
        if not budget.left():
            return f"no model was asked: today's {budget.limit:,} tokens for reviews are used up (review.daily_budget)"
        fork.budget = budget
        return run.ask(fork)

    def _find_lessons(self, snapshot: Snapshot, since: int) -> Iterator[ProposalDraft]:
        """Yield what can be found without a model."""
        session = snapshot.session
        past = self._to_past_session(session)
        if past is None:
            return
        places = place_calls(session)
        yield from find_corrections(past, places, since)
        yield from find_repeated(past, places, since, self._read_earlier(past))
        library = TemplateLibrary(self._store, self._settings, self._clock)
        template = None if library.has_learned_from(past.key) else library.draft(past)
        if isinstance(template, Template) and (draft := find_template(template, past, places, since)):
            yield draft
        if self._notes is not None:
            yield from draft_notes(self._notes.find_waiting(past), places, since)

    def _refuse_template(self, snapshot: Snapshot) -> str | None:
        """Return why this session gives no template; None if it gives one."""
        past = self._to_past_session(snapshot.session)
        draft = TemplateLibrary(self._store, self._settings, self._clock).draft(past) if past else "it cannot be read"
        return draft if isinstance(draft, str) else None

    def _to_past_session(self, session: Session) -> PastSession | None:
        """Return the session as mining sees it: redacted. Nothing is stored."""
        recorder = Recorder(self._settings.secrets, self._settings.home)
        record = recorder.record(session, score(session, self._settings.tools), self._clock())
        return decode_session(record.session, record.calls)

    def _read_earlier(self, past: PastSession) -> Iterator[PastSession]:
        for row in self._store.list_sessions(_EARLIER, project=past.project):
            if row.key == past.key or row.scope != past.scope:
                continue
            if (earlier := decode_session(row, self._store.calls_of(row.key))) is not None:
                yield earlier

    def _read_sessions(self, name: str | Path) -> list[Session]:
        path = Path(name)
        if path.exists():
            return [scored.session for source in find_sources(path) for scored in self._scan(source)]
        return [self._read_session(self._store.find_session(str(name)))]

    def _scan(self, source: Source) -> Iterator[Any]:
        yield from scan(source, self._settings.tools)
        if source.problems:
            log.debug("%s: %s", source.uri, source.problems[0].reason)

    def _read_session(self, row: SessionRow) -> Session:
        """Read a session from its transcript, or rebuild it from the remembered calls if that is gone."""
        path = find_file(row.source_uri)
        try:
            sessions = self._read_sessions(path) if path is not None else []
        except (SourceError, OSError):
            sessions = []
        same = next((session for session in sessions if session_key(session) == row.key), None)
        return same or rebuild_session(row, self._store.calls_of(row.key))

    # Deciding

    def list(self, status: str | None = None) -> list[ProposalRow]:
        """Return proposals, the oldest first: waiting, applied, discarded or all."""
        return self._proposals.list(status)

    def show(self, name: str) -> ProposalRow:
        """Return one proposal by its id, or the unique beginning of it."""
        return self._proposals.find(name)

    def apply(self, name: str, *, anyway: bool = False) -> ProposalRow:
        """Apply a proposal for a person. `anyway`: also make a template of a session that failed."""
        return self._desk.apply(name, anyway=anyway)

    def discard(self, name: str, *, reason: str = "") -> ProposalRow:
        """Discard a proposal for a person. The same is not proposed again."""
        return self._desk.discard(name, reason=reason)


class _Run:
    """One review while it runs."""

    def __init__(
        self, desk: ProposalDesk, snapshot: Snapshot, focus: Focus, refuse_template: Callable[[], str | None]
    ) -> None:
        self._desk = desk
        self._refuse_template = refuse_template
        self._snapshot = snapshot
        self._focus = focus
        self._proposals: list[ProposalRow] = []
        self._refused: list[str] = []
        self._denied: list[str] = []
        self._actions: list[str] = []  # taken without a model
        self._ran: ForkRun | None = None

    def take(self, draft: ProposalDraft) -> None:
        """Propose a draft found without a model; one that is already known is skipped silently."""
        try:
            row = self._desk.propose(self._snapshot, draft)
        except Refused:
            return
        self._proposals.append(row)
        self._actions.append(describe_action(row))

    def ask(self, fork: Fork) -> str:
        """Ask the model; return what went wrong, or an empty string."""
        try:
            self._ran = fork.run(self._snapshot, write_instruction(self._snapshot, self._focus), self._run_tool)
        except (WarmstartError, OSError, ValueError, TypeError) as error:
            failure = f"the review's model part failed: {_describe_error(error)}"
            log.warning("%s", failure)
            return failure
        return ""

    @property
    def was_stopped(self) -> bool:
        """Whether the host ended before the model was asked anything: the session is to be reviewed another time."""
        return self._ran is not None and self._ran.ended in ("stopped", "day") and not self._ran.steps

    def _run_tool(self, call: AskedCall) -> Mapping[str, Any]:
        try:
            draft = read_draft(call.name, call.arguments, call.id)
            if draft.kind == "template" and (reason := self._refuse_template()):
                raise Refused(f"this session gives no template: {reason}")
            row = self._desk.propose(self._snapshot, draft, write_question(self._focus))
        except WarmstartError as error:
            (self._denied if is_denied(call.name) else self._refused).append(
                call.name if is_denied(call.name) else f"{call.name}: {error}"
            )
            return {"success": False, "error": str(error)}
        self._proposals.append(row)
        return {"success": True, "done": describe_action(row), "proposal": row.id, "status": row.status}

    def report(self, failure: str) -> Reviewed:
        ran = self._ran or ForkRun(messages=[], ended="failed" if failure else "no model")
        history = self._snapshot.history
        results = find_new_results([*history, *ran.results], history)
        if failure:
            actions = [describe_action(row) for row in self._proposals]
        else:
            actions = [*self._actions, *read_actions(results)]
        return Reviewed(
            session=self._desk.redact_id(self._snapshot.session.id),
            proposals=tuple(self._proposals),
            refused=tuple(self._refused),
            denied=tuple(self._denied),
            steps=ran.steps,
            tokens=ran.tokens,
            ended=ran.ended,
            line=write_line(actions),
            warning=failure,
        )


def read_actions(results: list[str]) -> list[str]:
    """Return what tool results report as done."""
    actions = []
    for text in results:
        try:
            result = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(result, dict) and result.get("success") is True and isinstance(result.get("done"), str):
            actions.append(result["done"])
    return actions


def write_line(actions: list[str]) -> str:
    """Write one line for the person; empty if nothing was done."""
    counts = {action: actions.count(action) for action in actions}
    parts = [action if count == 1 else f"{action} ({count})" for action, count in counts.items()]
    return LINE + " · ".join(parts) if parts else ""


def rebuild_session(row: SessionRow, calls: list[CallRow]) -> Session:
    """Rebuild a session whose transcript is gone from its remembered calls."""
    steps: list[Step] = []
    for call in calls:
        arguments = msgspec.json.decode(call.arguments, type=Arguments)
        steps.append(ToolCall(call.call_id, call.tool, arguments, call.at))
        if call.excerpt is not None:
            outcome = Outcome(call.status, call.basis, call.error_kind)
            steps.append(ToolResult(call.call_id, call.excerpt, outcome, call.answered))
    session = Session(row.id, row.format, row.source_uri, row.agent, tuple(steps), task=row.task, project=row.project)
    facts = {"parent": row.parent, "started": row.started, "model": row.model, "label": row.label, "scope": row.scope}
    return structs.replace(session, **facts)


def _describe_error(error: Exception) -> str:
    """Describe our own errors by message and others by type, because their message may quote a secret."""
    return str(error) if isinstance(error, WarmstartError) else type(error).__name__
