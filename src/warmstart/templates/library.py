"""Learn templates from stored sessions; capture, build, import and export them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from warmstart.arms import COLD
from warmstart.calls.shapes import signature
from warmstart.errors import NotFound, NotWorthLearning, Refused, SourceError
from warmstart.excerpt import MESSAGE, cut
from warmstart.judging.gate import GateLimits
from warmstart.judging.outcome import judge_result
from warmstart.model import (
    Decision,
    LearnedNotes,
    PastSession,
    Pick,
    Problem,
    TaskType,
    Template,
    TemplateStatus,
    Verdict,
)
from warmstart.names import check_name, name_key
from warmstart.ports import Progress
from warmstart.scopes import SHARED, Border, mark_name
from warmstart.store import SessionRow, TemplateRow, TrialRow
from warmstart.store.history import decode_session, read_history
from warmstart.templates.build import BuildRequest, Built, count_elsewhere, explain_refusal, merge_drafts
from warmstart.templates.build_sources import BuildSources, find_build_sources
from warmstart.templates.bundles import read_bundles
from warmstart.templates.export import redact_template, write_bundle
from warmstart.templates.mine import LearnLimits, MiningOptions, RefusedSession, capture, check_capture, mine
from warmstart.templates.origins import TemplateOrigin, read_origin
from warmstart.templates.register import PERSON, LearnedTemplate, kind_of
from warmstart.templates.secret_stand_ins import put_stand_ins_in
from warmstart.templates.settle import LearnedTemplates

_REDACTED_ID = "{{SECRET:"
_UNREADABLE = "its record cannot be read"
_REVOKED = "a person revoked it"

Signature = tuple[str, str]


class Learned(Struct, frozen=True, kw_only=True):
    """The result of one `learn`."""

    considered: int  # number of sessions that matched
    refused: dict[str, int]  # number of sessions by the reason why they were refused
    templates: tuple[LearnedTemplate, ...]
    refusals: tuple[RefusedSession, ...] = ()  # one session of each reason, with its numbers
    notes: LearnedNotes | None = None  # notes learned beside the templates
    unread_files: int = 0  # of a lake: left out because they are damaged or incomplete


class Imported(Struct, frozen=True, kw_only=True):
    """The result of one `import`."""

    templates: tuple[LearnedTemplate, ...]
    problems: tuple[Problem, ...]  # parts of the files that could not be read


class TemplateLibrary(LearnedTemplates):
    """Learns templates from sessions, and moves them in and out of files."""

    def learn(
        self,
        *,
        agent: str | None = None,
        since: float | None = None,
        project: str | None = None,
        verdict: Verdict | None = None,
        source: str | None = None,
        limits: LearnLimits | None = None,
        progress: Progress | None = None,
        history: Iterable[PastSession | None] | None = None,
    ) -> Learned:
        """Mine the stored sessions and settle the learned templates, in one transaction.

        `history`: sessions elsewhere, such as those of a lake, in place of the store's.

        With a filter or limits, only templates change all of whose sessions match; without them, the learned templates
        become those that the whole history leads to.
        """
        wanted = {name: value for name, value in structs.asdict(limits or LearnLimits()).items() if value is not None}
        is_whole = not wanted and all(one is None for one in (agent, since, project, verdict, source, history))
        if history is None:
            history = read_history(
                self._store,
                agent=agent,
                since=since,
                project=project,
                verdict=verdict,
                source=source,
                progress=progress,
            )
        lessons = _Lessons(self, history)
        mined = mine(lessons, self._options(limits), seeded=lessons.seeded)
        with self._store.writing():
            if is_whole:
                learned = self._settle_all(mined.drafts)
            else:
                learned = self._settle_some(mined.drafts, lessons.keys)
        return Learned(
            considered=lessons.considered,
            refused=mined.refused | dict(lessons.refused),
            templates=tuple(learned),
            refusals=mined.refusals,
        )

    def capture(
        self,
        session: str,
        *,
        name: str | None = None,
        task_type: TaskType | None = None,
        max_examples: int | None = None,
        description: str | None = None,
        tags: tuple[str, ...] = (),
        anyway: bool = False,
        approve: bool = False,
    ) -> LearnedTemplate:
        """Make a template of one session. Raises Refused with the numbers if the session is not worth it.

        `anyway` and `approve` are a person's decisions, recorded as such: to overrule the gate, and to use the template.
        """
        row = self._store.find_session(session)
        past = decode_session(row, self._store.calls_of(row.key))
        seeded = self.find_seeded(past) if past else None
        if past is None or seeded is None:
            raise Refused(f"session {session}: {_UNREADABLE}")
        redact, options = self._redact(), self._options(named=True)
        refusal = self._check(past, options, seeded)
        draft = capture(
            past,
            options,
            name=self._check_name(name) if name else None,
            description=redact(description),
            tags=tuple(map(redact, tags)),
            task_type=task_type,
            max_examples=max_examples,
            seeded=seeded,
        )
        if isinstance(draft, str):
            raise Refused(f"session {session}: {draft}")
        if refusal and not anyway:
            raise NotWorthLearning(f"session {session}: {refusal}")
        overruled = f"--anyway: {redact(refusal)}" if refusal else ""
        with self._store.writing():
            return self._keep_captured(draft, overruled, approve)

    def _keep_captured(self, draft: Template, overruled: str, approve: bool) -> LearnedTemplate:
        """Store a captured template, with the decisions of the person who captured it."""
        if overruled:
            suspicions = (*draft.provenance.suspicions, f"a person captured it {overruled}")
            draft = structs.replace(draft, provenance=structs.replace(draft.provenance, suspicions=suspicions))
        kept = self._keep(draft)
        row = self._row(kept)
        if approve and row.status != "active":
            reason = "; ".join(filter(None, ("approved at capture", overruled)))
            self._activate(row, self._load(row), PERSON, reason)
            self._make_room({(row.category, row.project, row.scope)}, {row.name})
        elif overruled:
            self._templates.decide(row, row.status, PERSON, overruled, self._clock())
        return self._refresh(kept)

    def build(self, rows: Sequence[SessionRow], request: BuildRequest) -> Built:
        """Make one named template of several sessions. It becomes active by the same rules as any other."""
        name = self._check_name(request.name)
        redact = self._redact()
        lessons = _Lessons(self, (decode_session(row, self._store.calls_of(row.key)) for row in rows))
        options = self._options()
        mined = mine(lessons, options, seeded=lessons.seeded)
        if not mined.drafts:
            raise Refused(explain_refusal(len(rows), mined.refused, mined.refusals))
        template = structs.replace(merge_drafts(mined.drafts, options.max_examples), name=name)
        if request.description:
            template = structs.replace(template, description=redact(request.description))
        if request.tags:
            template = structs.replace(template, tags=tuple(map(redact, request.tags)))
        if request.addendum:
            template = structs.replace(template, addendum=cut(redact(request.addendum), MESSAGE))
        with self._store.writing():
            kept = self._keep(template)
            self._make_room({kind_of(template)}, {kept.name})
        return Built(self._refresh(kept), mined.refused | count_elsewhere(mined.drafts, template))

    def find_sessions(self, sources: BuildSources, description: str = "") -> list[SessionRow]:
        """Return the sessions to build a template from: of a source, long enough, and about the description."""
        return find_build_sources(self._store, sources, description)

    def save(self, template: Template, *, approve: bool = False) -> LearnedTemplate:
        """Store a template that was written by hand, redacted. `approve` activates it as a person's decision."""
        name = self._check_name(template.name)
        if not template.examples and not template.addendum:
            raise Refused(f"template {name} has neither examples nor an addendum")
        if nameless := [at for at, example in enumerate(template.examples, 1) if not example.tool.strip()]:
            raise Refused(f"example {nameless[0]} of template {name} names no tool")
        if template.provenance.scope == SHARED:
            raise Refused("a template is shared by a decision of its own: save it, then share it")
        written = structs.replace(
            template, name=name, provenance=structs.replace(template.provenance, origin="written", source=None)
        )
        with self._store.writing():
            kept = self._keep(redact_template(written, self._redact()))
            row = self._row(kept)
            if approve and row.status != "active":
                self._activate(row, self._load(row), PERSON, "approved when it was written")
                self._make_room({(row.category, row.project, row.scope)}, {row.name})
        return self._refresh(kept)

    def draft(self, past: PastSession) -> Template | str:
        """Return the template that a session would give, without storing it; or the reason why there is none."""
        seeded = self.find_seeded(past)
        if seeded is None:
            return _UNREADABLE
        options = self._options()
        return self._check(past, options, seeded) or capture(past, options, seeded=seeded)

    def _check(self, past: PastSession, options: MiningOptions, seeded: set[Signature]) -> str | None:
        """Return why no template should be made of a session, with its numbers; None if nothing speaks against it."""
        if self.is_revoked(past.key):
            return _REVOKED
        refusal = check_capture(past, options, seeded)
        return refusal.detail if refusal else None

    def has_learned_from(self, key: str) -> bool:
        """Return whether a template shows a call of this session."""
        return bool(self._templates.from_session(key))

    def find_seeded(self, session: PastSession) -> set[Signature] | None:
        """Return the calls of a session's seed, which are never mined back from it; None if they cannot be read."""
        if _REDACTED_ID in session.id:
            trials = self._trials.hidden_trials()
        else:
            trials = self._trials.trials_of_session(session.id, session.key)
        given = [self._trials.picks(trial) for trial in trials if trial.arm != COLD]
        if None in given:
            return None
        calls = (call for picks in given for pick in picks or () for call in pick.example.shown)
        return {signature(call.tool, call.arguments) for call in calls}

    def _options(self, limits: LearnLimits | None = None, *, named: bool = False) -> MiningOptions:
        """Return the options of mining. `named`: somebody chose the session, so that a long one may be good."""
        extra = frozenset(name.lower() for name in self._settings.trivial_tools)
        chosen = {name: value for name, value in structs.asdict(limits or LearnLimits()).items() if value is not None}
        most = chosen.pop("max_examples", MiningOptions().max_examples)
        return MiningOptions(
            gate=GateLimits(min_quality=0.0) if named else GateLimits(**chosen),
            max_examples=most,
            min_support=self._settings.min_support,
            trivial_tools=MiningOptions().trivial_tools | extra,
            max_kinds=max(MiningOptions().max_kinds, self._settings.max_active),
        )

    def _check_name(self, name: str) -> str:
        if self._redact()(name) != name:
            raise Refused("the name contains a secret; choose another name")
        return check_name(name)

    # Files

    def import_(self, *paths: Path, approve: bool = False) -> Imported:
        """Import bundles and the files of earlier tools. `approve` activates them as a person's decision."""
        kept: list[LearnedTemplate] = []
        problems: list[Problem] = []
        for path in paths:
            try:
                bundle = read_bundles(path, judge_result)
            except SourceError as error:
                problems.append(Problem(error.path, error.reason, error.line))
                continue
            problems += bundle.problems
            redact = self._redact()
            for template in bundle.templates:
                with self._store.writing():
                    try:
                        kept.append(self._keep(put_stand_ins_in(redact_template(template, redact))))
                    except Refused as error:  # its name is another scope's; the others are imported
                        problems.append(Problem(str(path), f"template {template.name}: {error}"))
                        continue
                    row = self._row(kept[-1])
                    if approve and row.status != "active":
                        self._activate(row, self._load(row), PERSON, "approved at import")
                        self._make_room({(row.category, row.project, row.scope)}, {learned.name for learned in kept})
        return Imported(templates=tuple(map(self._refresh, kept)), problems=tuple(problems))

    def receive(self, template: Template, origin: TemplateOrigin) -> LearnedTemplate:
        """Store a template of others as proposed, in a transaction that the caller has begun.

        It is known again by its file and its signer or place. Where its name is another template's, the signer's name is
        added: both are kept. Raises Refused if no name is free.
        """
        signer = origin.signer
        for name in (template.name, f"{template.name}-{signer}", f"{template.name}-{signer}-2"):
            versions = self._templates.versions(name_key(name))
            if all(origin.is_same(self._origin_of(row)) for row in versions):
                break
        else:
            raise Refused(f"the name {template.name} is taken")
        provenance = structs.replace(template.provenance, origin="imported", source=origin.write())
        named = structs.replace(template, name=check_name(name), provenance=provenance)
        return self._keep(put_stand_ins_in(redact_template(named, self._redact())))

    def _origin_of(self, row: TemplateRow) -> TemplateOrigin | None:
        template = self._templates.facts(row.name, row.version, row.body)
        return (
            read_origin(template.provenance.source) if template and template.provenance.origin == "imported" else None
        )

    def find_received(self) -> list[tuple[TemplateOrigin, TemplateRow]]:
        """Return the latest version, with its origin, of every template that came from a bundle and is not retired."""
        latest: dict[str, tuple[TemplateOrigin, TemplateRow]] = {}
        for row in self._templates.find():
            origin = self._origin_of(row)
            if origin and (row.name not in latest or row.version >= latest[row.name][1].version):
                latest[row.name] = (origin, row)
        return [pair for pair in latest.values() if pair[1].status != "retired"]

    def propose_retirement(self, row: TemplateRow, by: str, reason: str) -> bool:
        """Record that its source retired a template, for a person to decide; False if that was proposed before."""
        if any(decision.by == by and decision.reason == reason for decision in self._templates.decisions(row.name)):
            return False
        self._templates.decide(row, row.status, by, reason, self._clock())
        return True

    def export(self, *names: str, share: bool = True, border: Border | None = None) -> bytes:
        """Return a bundle of the named templates, or of all templates that are not retired and within the border.

        `share` also redacts people and machines. Unreadable records are left out and listed in `problems`.
        """
        if names:
            chosen = [self._load(self.find_version(name, border)) for name in names]
        else:
            rows = [row for row in self._templates.find() if _is_within(row, border)]
            latest = {row.name: row for row in rows if row.status != "retired"}
            chosen = [template for row in latest.values() if (template := self._templates.load(row)) is not None]
        return write_bundle(chosen, redact=self._redact(share=share))

    # Looking

    def find(
        self,
        status: TemplateStatus | None = None,
        category: str | None = None,
        task_type: str | None = None,
        *,
        border: Border | None = None,
    ) -> list[tuple[TemplateRow, Template]]:
        """Return the templates that match, with their examples. Unreadable records are listed in `problems`.

        `border` limits them to what a session may see; None is for the machine's owner, who may see all.
        """
        rows = [row for row in self._templates.find(status, category, task_type) if _is_within(row, border)]
        return [(row, template) for row in rows if (template := self._templates.load(row)) is not None]

    def show(self, name: str, *, border: Border | None = None) -> tuple[TemplateRow, Template, list[Decision]]:
        """Return one template with every decision about it."""
        row = self.find_version(name, border)
        return row, self._load(row), self._templates.decisions(row.name)

    def find_version(self, name: str, border: Border | None) -> TemplateRow:
        """Return the latest version of NAME, or NAME@VERSION, within a border. Outside it there is no such template."""
        if border is None:
            return self.latest(name)
        for candidate in dict.fromkeys((name, mark_name(name, border.scope))):
            with suppress(NotFound):
                rows = [row for row in self.versions(candidate) if _is_within(row, border)]
                if rows:
                    return rows[0]
        raise NotFound(f"no template {name}")

    def stats(self) -> dict[str, Any]:
        """Return numbers of templates by status, category and type, of examples and uses, and recent seeds."""
        totals = self._templates.totals()

        def count_by(column: int) -> dict[str, int]:
            counts: Counter[str] = Counter()
            for row in totals:
                counts[str(row[column])] += row[3]
            return dict(counts)

        return {
            "templates": sum(row[3] for row in totals),
            "by_status": count_by(0),
            "by_category": count_by(1),
            "by_type": count_by(2),
            "examples": sum(row[5] for row in totals),
            "uses": sum(row[4] for row in totals),
            "provisions": self._trials.count(),
            "recent": [
                {"session": trial.session, "arm": trial.arm, "at": trial.at, "templates": self._shown(trial)}
                for trial in self._trials.recent_trials(10)
            ],
        }

    def _shown(self, trial: TrialRow) -> list[str]:
        return [] if trial.arm == COLD else _name_templates(self._trials.picks(trial) or ())


class _Lessons:
    """Iterates over the sessions that may be learned from, and counts the others."""

    def __init__(self, library: TemplateLibrary, history: Iterable[PastSession | None]) -> None:
        self._library = library
        self._history = history
        self.considered = 0
        self.keys: set[str] = set()
        self.refused: Counter[str] = Counter()
        self.seeded: dict[str, set[Signature]] = {}  # by session key; filled before the session is yielded

    def __iter__(self) -> Iterator[PastSession]:
        for session in self._history:
            self.considered += 1
            self.keys |= {session.key} if session else set()
            seeded = self._library.find_seeded(session) if session else None
            if session is None or seeded is None:
                self.refused[_UNREADABLE] += 1
            elif self._library.is_revoked(session.key):
                self.refused[_REVOKED] += 1
            else:
                if seeded:
                    self.seeded[session.key] = seeded
                yield session


def _is_within(row: TemplateRow, border: Border | None) -> bool:
    return border is None or border.admits(row.scope, row.project)


def _name_templates(picks: Iterable[Pick]) -> list[str]:
    return list(dict.fromkeys(f"{pick.template}@{pick.version}" for pick in picks))
