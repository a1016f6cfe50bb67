"""The templates of a store, and every decision about them.

A template becomes active only by a decision: of a person, or of the local policy for templates mined from your own
sessions with enough support and nothing suspicious. A change and its decision are committed together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, structs

from warmstart.config import Settings
from warmstart.dialects.compose import cost, name_form
from warmstart.dialects.tokens import estimate
from warmstart.errors import Refused
from warmstart.model import DIALECTS, Decision, Effect, Example, Origin, Problem, Template, TemplateStatus
from warmstart.names import check_name, name_key
from warmstart.plurals import format_count
from warmstart.redact import Redactor
from warmstart.scopes import EVERYWHERE, SHARED, mark_name
from warmstart.store import Store, TemplateRow, TemplateStore, TrialStore
from warmstart.templates.search import index_weights
from warmstart.templates.versions import find_versions

POLICY = "policy:own-sessions"
MEASURED = "policy:measured-effect"
PERSON = "person"
_BY_HAND = ("imported", "written")  # origins that no session of this store supports
_encode = msgspec.json.Encoder(order="deterministic").encode


class LearnedTemplate(Struct, frozen=True, kw_only=True):
    """A template after learning, capture or import."""

    name: str
    version: int
    status: TemplateStatus
    change: str  # new, updated, same
    category: str
    task_type: str
    examples: int  # number of examples
    sessions: int  # number of source sessions
    tokens: int  # of all its examples, in the openai dialect
    reason: str  # why it has its status


class StoredVersion(NamedTuple):
    """A version in the store, with the draft that it was made of."""

    row: TemplateRow
    template: Template
    change: str  # new, updated, same


class TemplateRegister:
    """The templates of a store, with versions and recorded decisions."""

    def __init__(self, store: Store, settings: Settings, clock: Callable[[], float]) -> None:
        self._store = store
        self._templates = TemplateStore(store)
        self._trials = TrialStore(store)
        self._settings = settings
        self._clock = clock

    # Storing

    def _keep(self, draft: Template) -> LearnedTemplate:
        """Store a draft as a new version and decide its status, unless its content is already stored."""
        stored = self._put_version(draft)
        row = stored.row
        if stored.change != "same" and not self._why_waiting(stored.template):
            row = self._activate(row, stored.template, POLICY, explain_support(stored.template))
        return self._summarise(stored.template, row, stored.change)

    def _put_version(self, draft: Template) -> StoredVersion:
        """Store a draft as a proposed new version; return the stored one if its content is the same."""
        scope = draft.provenance.scope
        name = check_name(mark_name(draft.name, scope))
        versions = self._templates.versions(name_key(name))
        if any(self._scope_of(row) != scope for row in versions):
            raise Refused(f"the name {name} is taken in another scope; choose another name")
        digest = _digest(draft)
        alike = next((row for row in versions if self._origin(row) in (draft.provenance.origin, None)), None)
        if alike is not None and alike.digest == digest:
            return StoredVersion(alike, structs.replace(draft, name=alike.name, version=alike.version), "same")
        parent = f"{versions[0].name}@{versions[0].version}" if versions else draft.provenance.parent
        template = structs.replace(
            draft,
            name=versions[0].name if versions else name,
            version=self._templates.next_version(name_key(name)),
            provenance=structs.replace(draft.provenance, parent=parent),
        )
        row = TemplateRow(
            name=template.name,
            version=template.version,
            name_key=name_key(template.name),
            status="proposed",
            reason=self._why_waiting(template) or "just learned",
            category=template.category,
            task_type=template.task_type,
            project=project_of(template),
            strength=_strength(template),
            body=_encode(structs.replace(template, examples=(), further=())).decode(),
            digest=digest,
            created=self._find_created(template),
            used=template.used if template.provenance.origin == "imported" else 0,
            scope=scope,
        )
        self._templates.put(row, _count_costs(template.examples))
        self._templates.put_further(row, _count_costs(template.further))
        return StoredVersion(row, template, "updated" if versions else "new")

    def _find_created(self, template: Template) -> float:
        """Return when a version was made: an imported one keeps the date of its file, unless that is yet to come."""
        now, known = self._clock(), template.created
        return known if template.provenance.origin == "imported" and known is not None and 0 < known <= now else now

    def _update_facts(self, stored: StoredVersion) -> StoredVersion:
        """Replace the numbers and sources of a stored version by those of a draft that shows the same."""
        row, template = stored.row, stored.template
        known = self._templates.facts(row.name, row.version, row.body)
        parent = known.provenance.parent if known else None
        template = structs.replace(template, provenance=structs.replace(template.provenance, parent=parent))
        body = _encode(structs.replace(template, examples=(), further=())).decode()
        self._templates.update(row, body, _strength(template), template.examples)
        self._update_further(row, template)
        return StoredVersion(structs.replace(row, body=body, strength=_strength(template)), template, stored.change)

    def _update_further(self, row: TemplateRow, template: Template) -> None:
        """Replace the further exchanges of a stored version, also in the word index, if they are others now."""
        stored = [example for known, example in self._templates.examples(row.name, row.version) if known.further]
        if tuple(stored) == template.further:
            return
        self._templates.unindex(row)
        self._templates.put_further(row, _count_costs(template.further))
        if row.status == "active":
            self._index(row, template)
            why = f"{format_count(len(template.further), 'further exchange')} of its sessions, nothing suspicious"
            self._templates.decide(row, "active", POLICY, why, self._clock())

    def _index(self, row: TemplateRow, template: Template) -> None:
        """Make the examples of a version findable. Further exchanges stay in the scope that they were made in."""
        shown = template.examples if _is_shared(row) else (*template.examples, *template.further)
        self._templates.index(row, [index_weights(example, template) for example in shown])

    def _why_waiting(self, template: Template) -> str | None:
        """Return why a person must decide; None if the local policy may."""
        if template.provenance.origin in _BY_HAND:
            return f"{template.provenance.origin}: a person decides"
        if template.provenance.suspicions:
            return "a person should look first: " + "; ".join(template.provenance.suspicions)
        support = max(
            (example.support for example in template.examples), default=0
        )  # does not count forks and subagents
        if min(support, len(template.source_sessions)) < self._settings.min_support:
            return f"seen in fewer than {self._settings.min_support} sessions"
        last = self._find_verdict(template.name)
        if last is not None and last.status == "retired":
            if last.by == MEASURED:
                return f"version {last.version} was {last.reason}"
            return f"a person retired version {last.version}"
        if shared := [row for row in self._templates.versions(name_key(template.name)) if _is_shared(row)]:
            return f"a person shared version {shared[0].version}: a person decides about the next"
        return None

    def _find_verdict(self, name: str) -> Decision | None:
        """Return the last decision about a template that a person or a measurement made."""
        decisions = self._templates.decisions(name)
        return next((decision for decision in reversed(decisions) if decision.by != POLICY), None)

    def _scope_of(self, row: TemplateRow) -> str:
        """Return the scope that a version was made in; sharing it does not change that."""
        template = self._templates.facts(row.name, row.version, row.body)
        return template.provenance.scope if template else row.scope

    def _origin(self, row: TemplateRow) -> Origin | None:
        template = self._templates.facts(row.name, row.version, row.body)
        return template.provenance.origin if template else None

    def _activate(self, row: TemplateRow, template: Template, by: str, reason: str) -> TemplateRow:
        for older in self._templates.versions(row.name_key):
            if older.status == "active" and older.version != row.version:
                self._retire(older, by, f"replaced by version {row.version}")
        self._templates.decide(row, "active", by, reason, self._clock())
        self._index(row, template)
        return structs.replace(row, status="active", reason=reason)

    def _retire(self, row: TemplateRow, by: str, reason: str) -> None:
        self._templates.unindex(row)
        self._templates.decide(row, "retired", by, reason, self._clock())

    def _make_room(self, kinds: set[tuple[str, str, str]], wanted: Collection[str] = ()) -> None:
        """Retire the weakest templates of a category, project and scope beyond the limit; those in `wanted` last."""
        limit = self._settings.max_active
        for category, project, scope in sorted(kinds):
            rows = self._templates.active_of_kind(category, project, scope)
            rows.sort(key=lambda row: (row.name not in wanted, not self._is_proven(row)))
            for row in rows[limit:]:
                self._retire(row, POLICY, f"weaker than {limit} others of its category and project")

    def find_effect(self, row: TemplateRow) -> Effect | None:
        """Return the measured effect of a version; None if it was not measured."""
        return self._templates.effect(row.effect)

    def _is_proven(self, row: TemplateRow) -> bool:
        effect = self.find_effect(row)
        return effect is not None and effect.verdict == "better"

    # Deciding

    def approve(self, name: str, *, reason: str = "", by: str = PERSON, share: bool = False) -> Decision:
        """Activate the latest version, as a person's decision. `share`: every profile, person and project may use it."""
        with self._store.writing():
            row = self.latest(name)
            template = self._load(row)
            if row.status == "active" and not share:
                raise Refused(f"{row.name}@{row.version} is already active")
            if row.status != "active":
                self._activate(row, template, by, self._redact()(reason) or "approved")
                self._make_room({(row.category, row.project, row.scope)}, {row.name})
            if share:
                self.share(name, reason=reason)
        return self._templates.decisions(row.name)[-1]

    def share(self, name: str, *, reason: str = "") -> Decision:
        """Let every profile, person and project use a template: a person's decision. It does not activate it."""
        return self._move(name, SHARED, "shared with every profile, person and project", reason)

    def unshare(self, name: str, *, reason: str = "") -> Decision:
        """Take a template back into the scope that it was made in."""
        return self._move(name, None, "no longer shared", reason)

    def _move(self, name: str, scope: str | None, action: str, reason: str) -> Decision:
        with self._store.writing():
            row = self.latest(name)
            target = self._scope_of(row) if scope is None else scope
            if _is_shared(row) == (target == SHARED):
                raise Refused(f"{row.name}@{row.version} is {'already' if _is_shared(row) else 'not'} shared")
            template = self._load(row)
            self._templates.unindex(row)
            row = self._templates.set_scope(row, target)
            why = ": ".join(filter(None, (action, self._redact()(reason))))
            self._templates.decide(row, row.status, PERSON, why, self._clock())
            if row.status == "active":
                self._index(row, template)
        return self._templates.decisions(row.name)[-1]

    def promote(self, name: str, *, reason: str, by: str) -> Decision:
        """Activate a template that was measured to help. Such templates are retired last for lack of room."""
        with self._store.writing():
            row = self.latest(name)
            if row.status == "active":
                self._templates.decide(row, "active", by, reason, self._clock())
            else:
                self._activate(row, self._load(row), by, reason)
        return self._templates.decisions(row.name)[-1]

    def retire(self, name: str, *, reason: str = "", by: str = PERSON) -> list[Decision]:
        """Take a template out of use. Nothing is deleted."""
        with self._store.writing():
            wanted = [row for row in self.versions(name) if row.status != "retired"]
            if not wanted:
                raise Refused(f"{name} is already retired")
            for row in wanted:
                self._retire(row, by, self._redact()(reason) or "retired")
        return self._templates.decisions(wanted[0].name)[-len(wanted) :]

    def revoke(self, session: str, *, reason: str = "") -> list[str]:
        """Retire every version that shows a call of this session, and never learn from the session again."""
        row = self._store.find_session(session)
        why = self._redact()(reason) or f"shows calls of session {row.id}"
        retired = []
        with self._store.writing():
            showing = set(self._templates.from_session(row.key))
            for further in self._templates.further_from_session(row.key):
                self._templates.delete_example(further)
            self._templates.note(_session_name(row.key), "retired", PERSON, why, self._clock())
            for name in sorted({name for name, _version in showing}):
                for version in self._templates.versions(name_key(name)):
                    if (version.name, version.version) in showing and version.status != "retired":
                        self._retire(version, PERSON, why)
                        retired.append(f"{version.name}@{version.version}")
        return retired

    def delete(self, name: str) -> list[str]:
        """Delete every version of a template for good."""
        with self._store.writing():
            deleted = self._templates.delete(self.latest(name).name_key)
        self._store.erase()
        return [f"{own}@{version}" for own, version in deleted]

    # Looking

    @property
    def problems(self) -> list[Problem]:
        """The records that could not be read so far."""
        return [*self._templates.problems, *self._trials.problems]

    def latest(self, name: str) -> TemplateRow:
        """Return the latest version of NAME, or the one that NAME@VERSION names."""
        return self.versions(name)[0]

    def versions(self, name: str) -> list[TemplateRow]:
        """Return all versions of NAME, latest first; or the one of NAME@VERSION. A name may itself contain an @."""
        return find_versions(self._templates, name)

    def _row(self, learned: LearnedTemplate) -> TemplateRow:
        versions = self._templates.versions(name_key(learned.name))
        return next(row for row in versions if row.version == learned.version)

    def _redact(self, *, share: bool = False) -> Callable[[Any], Any]:
        """Return a redacting function that gives the same secret the same placeholder."""
        return Redactor(self._settings.secrets, share=share).scope().value

    def _load(self, row: TemplateRow) -> Template:
        template = self._templates.load(row)
        if template is None:
            raise Refused(f"{row.name}@{row.version}: {self._templates.problems[-1].reason}")
        return template

    def is_revoked(self, key: str) -> bool:
        """Return whether a person ruled this session out."""
        return bool(self._templates.decisions(_session_name(key)))

    def _summarise(self, template: Template, row: TemplateRow, change: str) -> LearnedTemplate:
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

    def _refresh(self, learned: LearnedTemplate) -> LearnedTemplate:
        """Return it with its current status, which other templates may have changed."""
        row = self._row(learned)
        return structs.replace(learned, status=row.status, reason=row.reason)


def _count_costs(examples: Iterable[Example]) -> list[tuple[Example, dict[str, int]]]:
    """Return examples with their tokens per dialect."""
    return [
        (example, {name_form(dialect): cost(example, dialect, estimate) for dialect in DIALECTS})
        for example in examples
    ]


def _session_name(key: str) -> str:
    """Return the name for decisions about a session. No template can have such a name."""
    return f"session:{key}"


def _is_shared(row: TemplateRow) -> bool:
    return row.scope == SHARED


def kind_of(template: Template) -> tuple[str, str, str]:
    """Return the category, project and scope within which templates compete for room."""
    return template.category, project_of(template), template.provenance.scope


def project_of(template: Template) -> str:
    """Return the project whose sessions see the template; empty for any project."""
    project = template.provenance.project or ""
    return "" if project == EVERYWHERE else project


def explain_support(template: Template) -> str:
    """Return why the policy uses a template."""
    return f"mined from {format_count(len(template.source_sessions), 'session')}, nothing suspicious"


def _strength(template: Template) -> float:
    """Rank by number of sessions and success rate, then by number of examples."""
    tries = sum(e.successes + e.failures for e in template.examples)
    worked = sum(e.successes for e in template.examples) / tries if tries else 0.5
    return round(len(template.source_sessions) * worked + 0.01 * len(template.examples), 4)


def _digest(template: Template) -> str:
    """Return a hash of everything that a session would see or a person would decide on."""
    shown: list[tuple[Any, ...]] = []
    for e in template.examples:
        exchange = (e.calls, e.closing, e.stand_ins) if e.calls else ()
        shown.append((e.tool, e.arguments, e.result, e.intent, e.correction, e.task, *exchange))
    content = [template.description, template.addendum, sorted(template.tags), shown, template.provenance.origin]
    content += [template.category, template.task_type, project_of(template)]
    return hashlib.blake2b(_encode(content), digest_size=16).hexdigest()
