"""A second look at a session: first what can be found without a model, then, where one is configured, what it finds."""

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
from warmstart.ingest.read import scan, sources
from warmstart.ingest.records import Recorder, session_key
from warmstart.judging.score import score
from warmstart.model import Arguments, Outcome, PastSession, Session, Step, Template, ToolCall, ToolResult
from warmstart.redact import Redactor
from warmstart.review.apply import tell_action
from warmstart.review.fork import Fork, ForkLimits, ForkRun, find_new_results
from warmstart.review.lessons import find_corrections, find_repeated, find_template, place_calls
from warmstart.review.prompts import TOOLS, Focus, write_instruction, write_question
from warmstart.review.proposal_drafts import ProposalDraft, is_denied, read_wish
from warmstart.review.proposals import ProposalDesk
from warmstart.review.snapshot import Snapshot, find_file, take_session
from warmstart.store import CallRow, ProposalRow, ProposalStore, SessionRow, SqliteStore
from warmstart.store.history import decode_session
from warmstart.templates.library import TemplateLibrary

log = logging.getLogger("warmstart.review")

LINE = "Self-improvement review: "
_EARLIER = 30  # sessions of the same project in which repeated errors are looked for
_HISTORY = 60_000  # tokens of a transcript that a configured model is shown


class Reviewed(Struct, frozen=True, kw_only=True):
    """What one review did."""

    session: str  # the agent's own id
    proposals: tuple[ProposalRow, ...] = ()
    refused: tuple[str, ...] = ()  # what was not kept, and why
    denied: tuple[str, ...] = ()  # tools that the model may not use
    steps: int = 0  # answers of the model
    tokens: int = 0
    ended: str = "no model"  # no model, nothing new, done, steps, budget, time, failed
    line: str = ""  # for the person; empty: nothing happened
    warning: str = ""  # what went wrong; the rest was done


class Reviews:
    """Reviews sessions and keeps what they propose."""

    def __init__(self, store: SqliteStore, settings: Settings, clock: Callable[[], float]) -> None:
        self._store = store
        self._inbox = ProposalStore(store)
        self._settings = settings
        self._clock = clock
        self._desk = ProposalDesk(store, settings, clock)

    # Looking

    def review(
        self, name: str | Path, *, focus: Focus = "both", model: bool = True, context: str = "command"
    ) -> list[Reviewed]:
        """Review a transcript, every session of a file or folder, or a remembered session."""
        redactor = Redactor(self._settings.secrets)
        fork = self.make_fork() if model else None
        snapshots = [
            take_session(session, redactor.scope(), context=context, tokens=_HISTORY)
            for session in self._read_sessions(name)
        ]
        return [self.review_snapshot(snapshot, fork, focus) for snapshot in snapshots]

    def make_fork(self) -> Fork | None:
        """The configured model, or None."""
        chosen = self._settings.review
        if not chosen.url or not chosen.model:
            return None
        llm = HttpLLM(Endpoint(url=chosen.url, key=self._settings.review_key, timeout=chosen.timeout))
        return Fork(llm, {"model": chosen.model, "tools": list(TOOLS)}, self.limits)

    @property
    def limits(self) -> ForkLimits:
        return ForkLimits(self._settings.review.steps, self._settings.review.budget)

    def review_snapshot(self, snapshot: Snapshot, fork: Fork | None = None, focus: Focus = "both") -> Reviewed:
        """What is new since this session's last review. Trouble with the model is told, not raised."""
        since, total = self._inbox.reviewed(snapshot.key), len(snapshot.session.steps)
        if total <= since:
            return Reviewed(session=self._desk.hide(snapshot.session.id), ended="nothing new")
        run = _Run(self._desk, snapshot, focus)
        for wish in self._find(snapshot, since):
            run.take(wish)
        failed = run.ask(fork) if fork else ""
        if not failed:
            with self._store.writing():
                self._inbox.put_reviewed(snapshot.key, total, self._clock())
        return run.tell(failed)

    def _find(self, snapshot: Snapshot, since: int) -> Iterator[ProposalDraft]:
        session = snapshot.session
        past = self._remember(session)
        if past is None:
            return
        places = place_calls(session)
        yield from find_corrections(past, places, since)
        yield from find_repeated(past, places, since, self._read_earlier(past))
        library = TemplateLibrary(self._store, self._settings, self._clock)
        draft = past.key if library.has_learned_from(past.key) else library.draft(past)
        if isinstance(draft, Template) and (wish := find_template(draft, past, places, since)):
            yield wish

    def _remember(self, session: Session) -> PastSession | None:
        """As mining sees it: redacted. Nothing of it is stored."""
        made = Recorder(self._settings.secrets).record(session, score(session, self._settings.tools), self._clock())
        return decode_session(made.session, made.calls)

    def _read_earlier(self, past: PastSession) -> Iterator[PastSession]:
        for row in self._store.list_sessions(_EARLIER, project=past.project):
            if row.key != past.key and (found := decode_session(row, self._store.calls_of(row.key))) is not None:
                yield found

    def _read_sessions(self, name: str | Path) -> list[Session]:
        path = Path(name)
        if path.exists():
            return [scored.session for source in sources(path) for scored in self._scan(source)]
        return [self._read_session(self._store.find_session(str(name)))]

    def _scan(self, source: Source) -> Iterator[Any]:
        yield from scan(source, self._settings.tools)
        if source.problems:
            log.debug("%s: %s", source.uri, source.problems[0].reason)

    def _read_session(self, row: SessionRow) -> Session:
        """From its transcript; where that is gone, from the calls that are remembered."""
        path = find_file(row.source_uri)
        try:
            found = self._read_sessions(path) if path is not None else []
        except (SourceError, OSError):
            found = []
        same = next((session for session in found if session_key(session) == row.key), None)
        return same or rebuild_session(row, self._store.calls_of(row.key))

    # Deciding

    def list(self, status: str | None = None) -> list[ProposalRow]:
        """Proposals, the oldest first: waiting, applied, discarded or all."""
        return self._inbox.list(status)

    def show(self, name: str) -> ProposalRow:
        """One proposal by its id, or the beginning of it."""
        return self._inbox.find(name)

    def apply(self, name: str) -> ProposalRow:
        """A person's yes: it is written."""
        return self._desk.apply(name)

    def discard(self, name: str, *, reason: str = "") -> ProposalRow:
        """A person's no: it is not proposed again."""
        return self._desk.discard(name, reason=reason)


class _Run:
    """One review while it runs."""

    def __init__(self, desk: ProposalDesk, snapshot: Snapshot, focus: Focus) -> None:
        self._desk = desk
        self._snapshot = snapshot
        self._focus = focus
        self._proposals: list[ProposalRow] = []
        self._refused: list[str] = []
        self._denied: list[str] = []
        self._found: list[str] = []  # actions without a model
        self._ran: ForkRun | None = None

    def take(self, wish: ProposalDraft) -> None:
        """A finding: kept, or passed over in silence where it is known."""
        try:
            row = self._desk.propose(self._snapshot, wish)
        except Refused:
            return
        self._proposals.append(row)
        self._found.append(tell_action(row))

    def ask(self, fork: Fork) -> str:
        """The model's part; what went wrong in it, or nothing."""
        try:
            self._ran = fork.run(self._snapshot, write_instruction(self._snapshot, self._focus), self._run_tool)
        except (WarmstartError, OSError, ValueError, TypeError) as error:
            told = f"the review's model part failed: {_describe(error)}"
            log.warning("%s", told)
            return told
        return ""

    def _run_tool(self, call: AskedCall) -> Mapping[str, Any]:
        try:
            wish = read_wish(call.name, call.arguments, call.id)
            row = self._desk.propose(self._snapshot, wish, write_question(self._focus))
        except WarmstartError as error:
            (self._denied if is_denied(call.name) else self._refused).append(
                call.name if is_denied(call.name) else f"{call.name}: {error}"
            )
            return {"success": False, "error": str(error)}
        self._proposals.append(row)
        return {"success": True, "done": tell_action(row), "proposal": row.id, "status": row.status}

    def tell(self, failed: str) -> Reviewed:
        ran = self._ran or ForkRun(messages=[], ended="failed" if failed else "no model")
        history = self._snapshot.history
        results = find_new_results([*history, *ran.results], history)
        return Reviewed(
            session=self._desk.hide(self._snapshot.session.id),
            proposals=tuple(self._proposals),
            refused=tuple(self._refused),
            denied=tuple(self._denied),
            steps=ran.steps,
            tokens=ran.tokens,
            ended=ran.ended,
            line=write_line(
                [*self._found, *read_actions(results)] if not failed else [tell_action(p) for p in self._proposals]
            ),
            warning=failed,
        )


def read_actions(results: list[str]) -> list[str]:
    """What results say was done."""
    found = []
    for text in results:
        try:
            told = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(told, dict) and told.get("success") is True and isinstance(told.get("done"), str):
            found.append(told["done"])
    return found


def write_line(actions: list[str]) -> str:
    """One line for the person, or nothing."""
    counts = {action: actions.count(action) for action in actions}
    said = [action if count == 1 else f"{action} ({count})" for action, count in counts.items()]
    return LINE + " · ".join(said) if said else ""


def rebuild_session(row: SessionRow, calls: list[CallRow]) -> Session:
    """A session whose transcript is gone, as far as its calls are remembered."""
    steps: list[Step] = []
    for call in calls:
        arguments = msgspec.json.decode(call.arguments, type=Arguments)
        steps.append(ToolCall(call.call_id, call.tool, arguments, call.at))
        if call.excerpt is not None:
            outcome = Outcome(call.status, call.basis, call.error_kind)
            steps.append(ToolResult(call.call_id, call.excerpt, outcome, call.answered))
    made = Session(row.id, row.format, row.source_uri, row.agent, tuple(steps), task=row.task, project=row.project)
    return structs.replace(made, parent=row.parent, started=row.started, model=row.model, label=row.label)


def _describe(error: Exception) -> str:
    """Ours in its own words; of others only the kind, for they may quote what is secret."""
    return str(error) if isinstance(error, WarmstartError) else type(error).__name__
