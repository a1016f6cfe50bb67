"""Past sessions in, templates out; and every decision about them, on the record.

A template becomes active only by a decision: a person's, or the local policy's for templates mined from one's own
sessions with enough support and nothing suspicious. A change and its record commit together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from warmstart.arms import COLD
from warmstart.calls.shapes import signature
from warmstart.config import Settings
from warmstart.dialects.compose import cost
from warmstart.dialects.tokens import estimate
from warmstart.errors import NotFound, Refused, SourceError
from warmstart.ingest.records import past_session
from warmstart.judging.outcome import judge_result
from warmstart.judging.score import gate
from warmstart.model import (
    DIALECTS,
    Decision,
    Origin,
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
from warmstart.redact import Redactor
from warmstart.store import EVERYWHERE, SqliteStore, TemplateRow, TemplateStore, TrialRow, TrialStore
from warmstart.templates.bundles import read_bundles
from warmstart.templates.export import redact_template, write_bundle
from warmstart.templates.mine import MiningOptions, capture, mine
from warmstart.templates.search import index_weights

POLICY = "policy:own-sessions"
MEASURED = "policy:measured-effect"
PERSON = "person"
_HIDDEN = "{{SECRET:"  # in an id: it was redacted
_UNREADABLE = "its record cannot be read"
_encode = msgspec.json.Encoder(order="deterministic").encode


class LearnedTemplate(Struct, frozen=True, kw_only=True):
    """A template that learning looked at."""

    name: str
    version: int
    status: TemplateStatus
    change: str  # new, updated, same
    category: str
    task_type: str
    examples: int
    sessions: int
    tokens: int  # of all its examples, in the openai dialect
    reason: str


class Learned(Struct, frozen=True, kw_only=True):
    """What one `learn` did."""

    considered: int
    refused: dict[str, int]
    templates: tuple[LearnedTemplate, ...]


class Imported(Struct, frozen=True, kw_only=True):
    """What one `import` did."""

    templates: tuple[LearnedTemplate, ...]
    problems: tuple[Problem, ...]


class TemplateLibrary:
    """Mines, decides and keeps templates in a store."""

    def __init__(self, store: SqliteStore, settings: Settings, clock: Callable[[], float]) -> None:
        self._store = store
        self._shelf = TemplateStore(store)
        self._ledger = TrialStore(store)
        self._settings = settings
        self._clock = clock

    # Learning

    def learn(
        self,
        *,
        agent: str | None = None,
        since: float | None = None,
        project: str | None = None,
        verdict: Verdict | None = None,
        limits: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> Learned:
        """Mine every remembered session that fits, and keep what is new of it. All of it or nothing.

        `limits` are fields of `mining.Mining`: min_calls, max_error_rate, skip_end_reasons, max_examples.
        """
        rows = self._store.list_sessions(None, agent=agent, since=since, project=project, verdict=verdict)
        past: list[PastSession] = []
        for done, row in enumerate(rows):
            if progress:
                progress(done, len(rows), row.id)
            if (session := past_session(row, self._store.calls_of(row.key))) is not None:
                past.append(session)
        seeded = self._seeded(past)
        kept = [session for session in past if session.key in seeded and not self._is_revoked(session.key)]
        mined = mine(kept, structs.replace(self._options(), **(limits or {})), _refuse, seeded=seeded)
        refused = mined.refused | {
            _UNREADABLE: len(rows) - len(seeded),
            "a person revoked it": len(seeded) - len(kept),
        }
        with self._store.writing():
            learned = tuple(self._keep(draft) for draft in mined.drafts)
            self._make_room({(draft.category, _project(draft)) for draft in mined.drafts})
        final = tuple(self._fresh(one) for one in learned)
        told = {reason: count for reason, count in refused.items() if count}
        return Learned(considered=len(rows), refused=told, templates=final)

    def capture(
        self,
        session: str,
        *,
        name: str | None = None,
        task_type: TaskType | None = None,
        max_examples: int | None = None,
        description: str | None = None,
        tags: tuple[str, ...] = (),
    ) -> LearnedTemplate:
        """One session into a template. Raises Refused with the reason why not."""
        row = self._store.find_session(session)
        past = past_session(row, self._store.calls_of(row.key))
        given = self._seeded([past]) if past else {}
        if past is None or past.key not in given:
            raise Refused(f"session {session}: {_UNREADABLE}")
        redact = self._redact()
        if name and redact(name) != name:
            raise Refused("there is a secret in the name; choose another")
        made = capture(
            past,
            self._options(),
            name=check_name(name) if name else None,
            description=redact(description),
            tags=tuple(map(redact, tags)),
            task_type=task_type,
            max_examples=max_examples,
            seeded=given[past.key],
        )
        if isinstance(made, str):
            raise Refused(f"session {session}: {made}")
        with self._store.writing():
            return self._keep(made)

    def draft(self, past: PastSession) -> Template | str:
        """What a session would teach, kept nowhere; or the reason why nothing."""
        given = self._seeded([past])
        if past.key not in given:
            return _UNREADABLE
        if self._is_revoked(past.key):
            return "a person revoked it"
        return _refuse(past) or capture(past, self._options(), seeded=given[past.key])

    def has_learned_from(self, key: str) -> bool:
        """Whether a template shows a call of this session."""
        return bool(self._shelf.from_session(key))

    def _options(self) -> MiningOptions:
        extra = frozenset(name.lower() for name in self._settings.trivial_tools)
        return MiningOptions(
            min_support=self._settings.min_support,
            trivial_tools=MiningOptions().trivial_tools | extra,
            max_kinds=max(MiningOptions().max_kinds, self._settings.max_active),
        )

    def _seeded(self, past: list[PastSession]) -> dict[str, set[tuple[str, str]]]:
        """What sessions were given by us: never to be mined back from them. Where that cannot be read, no entry."""
        found: dict[str, set[tuple[str, str]]] = {}
        for session in past:
            if _HIDDEN in session.id:
                trials = self._ledger.hidden_trials()
            else:
                trials = self._ledger.trials_of_session(session.id, session.key)
            given = [self._ledger.picks(trial) for trial in trials if trial.arm != COLD]
            if None not in given:
                picks = [pick for some in given for pick in some or ()]
                found[session.key] = {signature(pick.example.tool, pick.example.arguments) for pick in picks}
        return found

    def _is_revoked(self, key: str) -> bool:
        return bool(self._shelf.decisions(_session_name(key)))

    # Keeping

    def _keep(self, draft: Template) -> LearnedTemplate:
        """A new version where the content is new, its status decided; nothing where it is not."""
        name = check_name(draft.name)
        versions = self._shelf.versions(name_key(name))
        digest = _digest(draft)
        alike = next((row for row in versions if self._origin(row) in (draft.provenance.origin, None)), None)
        if alike is not None and alike.digest == digest:
            return self._told(draft, alike, "same")
        parent = f"{versions[0].name}@{versions[0].version}" if versions else draft.provenance.parent
        template = structs.replace(
            draft,
            name=versions[0].name if versions else name,
            version=versions[0].version + 1 if versions else 1,
            provenance=structs.replace(draft.provenance, parent=parent),
        )
        row = TemplateRow(
            name=template.name,
            version=template.version,
            name_key=name_key(template.name),
            status="proposed",
            reason=self._waiting(template) or "just learned",
            category=template.category,
            task_type=template.task_type,
            project=_project(template),
            strength=_strength(template),
            body=_encode(structs.replace(template, examples=())).decode(),
            digest=digest,
            created=self._clock(),
        )
        costs: list[dict[str, int]] = [
            {dialect: cost(example, dialect, estimate) for dialect in DIALECTS} for example in template.examples
        ]
        self._shelf.put(row, list(zip(template.examples, costs, strict=True)))
        if not self._waiting(template):
            support = f"mined from {len(template.source_sessions)} of your own sessions, nothing suspicious"
            row = self._activate(row, template, POLICY, support)
        return self._told(template, row, "updated" if versions else "new")

    def _waiting(self, template: Template) -> str | None:
        """Why a person must decide, or None where the local policy may."""
        if template.provenance.origin == "imported":
            return "imported: a person decides"
        if template.provenance.suspicions:
            return "a person should look first: " + "; ".join(template.provenance.suspicions)
        support = max((example.support for example in template.examples), default=0)  # forks and subagents not counted
        if min(support, len(template.source_sessions)) < self._settings.min_support:
            return f"seen in fewer than {self._settings.min_support} sessions"
        decisions = self._shelf.decisions(template.name)
        if decisions and (decisions[-1].by, decisions[-1].status) == (MEASURED, "retired"):
            return f"version {decisions[-1].version} was {decisions[-1].reason}"
        said = [one for one in decisions if not one.by.startswith("policy:")]
        if said and said[-1].status == "retired":
            return f"a person retired version {said[-1].version}"
        return None

    def _origin(self, row: TemplateRow) -> Origin | None:
        template = self._shelf.facts(row.name, row.version, row.body)
        return template.provenance.origin if template else None

    def _activate(self, row: TemplateRow, template: Template, by: str, reason: str) -> TemplateRow:
        for older in self._shelf.versions(row.name_key):
            if older.status == "active" and older.version != row.version:
                self._retire(older, by, f"replaced by version {row.version}")
        self._shelf.decide(row, "active", by, reason, self._clock())
        self._shelf.index(row, [index_weights(example, template) for example in template.examples])
        return structs.replace(row, status="active", reason=reason)

    def _retire(self, row: TemplateRow, by: str, reason: str) -> None:
        self._shelf.unindex(row)
        self._shelf.decide(row, "retired", by, reason, self._clock())

    def _make_room(self, kinds: set[tuple[str, str]], wanted: Collection[str] = ()) -> None:
        """The weakest retire, those a person has just asked for last."""
        most = self._settings.max_active
        for category, project in sorted(kinds):
            rows = self._shelf.active_of_kind(category, project)
            rows.sort(key=lambda row: (row.name not in wanted, not self._is_proven(row)))
            for row in rows[most:]:
                self._retire(row, POLICY, f"weaker than {most} others of its category and project")

    def _is_proven(self, row: TemplateRow) -> bool:
        effect = self._shelf.effect(row.effect)
        return effect is not None and effect.verdict == "better"

    # Deciding

    def approve(self, name: str, *, reason: str = "", by: str = PERSON) -> Decision:
        """A person's yes to the latest version."""
        with self._store.writing():
            row = self.latest(name)
            template = self._load(row)
            if row.status == "active":
                raise Refused(f"{row.name}@{row.version} is active already")
            self._activate(row, template, by, self._redact()(reason) or "approved")
            self._make_room({(row.category, row.project)}, {row.name})
        return self._shelf.decisions(row.name)[-1]

    def promote(self, name: str, *, reason: str, by: str) -> Decision:
        """Measured to help: active, whatever it was, and no longer the first to make room."""
        with self._store.writing():
            row = self.latest(name)
            if row.status == "active":
                self._shelf.decide(row, "active", by, reason, self._clock())
            else:
                self._activate(row, self._load(row), by, reason)
        return self._shelf.decisions(row.name)[-1]

    def retire(self, name: str, *, reason: str = "", by: str = PERSON) -> list[Decision]:
        """Out of use; nothing is deleted."""
        with self._store.writing():
            wanted = [row for row in self.versions(name) if row.status != "retired"]
            if not wanted:
                raise Refused(f"{name} is retired already")
            for row in wanted:
                self._retire(row, by, self._redact()(reason) or "retired")
        return self._shelf.decisions(wanted[0].name)[-len(wanted) :]

    def revoke(self, session: str, *, reason: str = "") -> list[str]:
        """Retire every template that shows a call of this session, whatever its version, and never learn from it again."""
        row = self._store.find_session(session)
        said = self._redact()(reason) or f"shows calls of session {row.id}"
        gone = []
        with self._store.writing():
            found = set(self._shelf.from_session(row.key))
            self._shelf.note(_session_name(row.key), "retired", PERSON, said, self._clock())
            for name in sorted({name for name, _version in found}):
                for version in self._shelf.versions(name_key(name)):
                    if (version.name, version.version) in found and version.status != "retired":
                        self._retire(version, PERSON, said)
                        gone.append(f"{version.name}@{version.version}")
        return gone

    def delete(self, name: str) -> list[str]:
        """Every version, for good."""
        with self._store.writing():
            gone = self._shelf.delete(self.latest(name).name_key)
        self._store.erase()
        return [f"{own}@{version}" for own, version in gone]

    # In and out

    def import_(self, *paths: Path, approve: bool = False) -> Imported:
        """Import bundles and the files of earlier tools. `approve` is the person's decision."""
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
                    one = self._keep(redact_template(template, redact))
                    kept.append(one)
                    row = self._row(one)
                    if approve and row.status != "active":
                        self._activate(row, self._load(row), PERSON, "approved at import")
                        self._make_room({(row.category, row.project)}, {done.name for done in kept})
        return Imported(templates=tuple(map(self._fresh, kept)), problems=tuple(problems))

    def export(self, *names: str, share: bool = True) -> bytes:
        """A bundle of the named templates, or of all that are not retired. `share` hides people and machines too."""
        if names:
            chosen = [self._load(self.latest(name)) for name in names]
        else:  # what cannot be read is told in `problems`, the rest is given
            chosen = [template for row in self._current() if (template := self._shelf.load(row)) is not None]
        return write_bundle(chosen, redact=self._redact(share=share))

    def _current(self) -> list[TemplateRow]:
        latest = {row.name: row for row in self._shelf.find() if row.status != "retired"}
        return list(latest.values())

    # Looking

    def find(
        self, status: TemplateStatus | None = None, category: str | None = None, task_type: str | None = None
    ) -> list[tuple[TemplateRow, Template]]:
        """Templates with their examples; those whose record cannot be read are told in `problems`."""
        rows = self._shelf.find(status, category, task_type)
        return [(row, template) for row in rows if (template := self._shelf.load(row)) is not None]

    def show(self, name: str) -> tuple[TemplateRow, Template, list[Decision]]:
        row = self.latest(name)
        return row, self._load(row), self._shelf.decisions(row.name)

    def stats(self) -> dict[str, Any]:
        """Totals, by type and category, examples, uses, recent provisions."""
        totals = self._shelf.totals()
        arms = self._ledger.totals()

        def by(place: int) -> dict[str, int]:
            found: dict[str, int] = {}
            for row in totals:
                found[str(row[place])] = found.get(str(row[place]), 0) + row[3]
            return found

        return {
            "templates": sum(row[3] for row in totals),
            "by_status": by(0),
            "by_category": by(1),
            "by_type": by(2),
            "examples": sum(row[5] for row in totals),
            "uses": sum(row[4] for row in totals),
            "provisions": sum(arms.values()),
            "recent": [
                {"session": t.session, "arm": t.arm, "at": t.at, "templates": self._shown(t)}
                for t in self._ledger.recent_trials(10)
            ],
        }

    def _shown(self, trial: TrialRow) -> list[str]:
        return [] if trial.arm == COLD else _given(self._ledger.picks(trial) or ())

    @property
    def problems(self) -> list[Problem]:
        return [*self._shelf.problems, *self._ledger.problems]

    def latest(self, name: str) -> TemplateRow:
        """The latest version of NAME, or the one that NAME@VERSION names."""
        return self.versions(name)[0]

    def versions(self, name: str) -> list[TemplateRow]:
        """Of NAME all versions, the latest first; of NAME@VERSION that one. A name may have an @ of its own."""
        if found := self._shelf.versions(name_key(name)):
            return found
        own, _, version = name.rpartition("@")
        found = self._shelf.versions(name_key(own)) if own and version.isdecimal() else []
        if not found:
            raise NotFound(f"no template {name}; see: warmstart templates list")
        wanted = [row for row in found if row.version == int(version)]
        if not wanted:
            raise NotFound(f"no version {version} of template {own}")
        return wanted

    def _row(self, one: LearnedTemplate) -> TemplateRow:
        return next(row for row in self._shelf.versions(name_key(one.name)) if row.version == one.version)

    def _redact(self, *, share: bool = False) -> Callable[[Any], Any]:
        """One scope: the same secret gets the same placeholder."""
        return Redactor(self._settings.secrets, share=share).scope().value

    def _load(self, row: TemplateRow) -> Template:
        template = self._shelf.load(row)
        if template is None:
            raise Refused(f"{row.name}@{row.version}: {self._shelf.problems[-1].reason}")
        return template

    def _told(self, template: Template, row: TemplateRow, change: str) -> LearnedTemplate:
        return LearnedTemplate(
            name=row.name,
            version=row.version,
            status=row.status,
            change=change,
            category=row.category,
            task_type=row.task_type,
            examples=len(template.examples),
            sessions=len(template.source_sessions),
            tokens=sum(cost(example, "openai", estimate) for example in template.examples),
            reason=row.reason,
        )

    def _fresh(self, one: LearnedTemplate) -> LearnedTemplate:
        """As it stands after all others were kept too."""
        row = self._row(one)
        return structs.replace(one, status=row.status, reason=row.reason)


def _session_name(key: str) -> str:
    """What a decision about a session is filed under; no template can be called so."""
    return f"session:{key}"


def _refuse(session: PastSession) -> str | None:
    return gate(session.verdict, session.quality, session.results)


def _project(template: Template) -> str:
    project = template.provenance.project or ""
    return "" if project == EVERYWHERE else project


def _strength(template: Template) -> float:
    """More sessions, better kept promises, then more examples."""
    tries = sum(e.successes + e.failures for e in template.examples)
    worked = sum(e.successes for e in template.examples) / tries if tries else 0.5
    return round(len(template.source_sessions) * worked + 0.01 * len(template.examples), 4)


def _digest(template: Template) -> str:
    """Of what a session would see or a person would decide on."""
    shown = [(e.tool, e.arguments, e.result, e.intent, e.correction) for e in template.examples]
    said = [template.description, template.addendum, sorted(template.tags), shown, template.provenance.origin]
    return hashlib.blake2b(_encode(said), digest_size=16).hexdigest()


def _given(picks: Iterable[Pick]) -> list[str]:
    return list(dict.fromkeys(f"{pick.template}@{pick.version}" for pick in picks))
