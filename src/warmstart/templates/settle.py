"""Bring the store's learned templates in line with the drafts of a `learn`.

A run over the whole history decides the whole learned set: what it drafts is stored and used, what it does not draft is
retired. So the same history leads to the same active set, whatever ran in between. A run with a filter changes nothing
outside it: it adds and replaces only templates all of whose sessions it saw. Templates about which a person or a
measurement decided stay as decided.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct, structs

from warmstart.model import Template
from warmstart.store import TemplateRow
from warmstart.templates import topics
from warmstart.templates.register import POLICY, LearnedTemplate, StoredVersion, TemplateRegister, explain_support

_NOT_MADE = "the stored sessions no longer lead to it"
_WEAKER = "weaker than {limit} others of its category and project"
_NO_ROOM = "there are already {limit} active templates of its category and project"

Kind = tuple[str, str, str]


class EarlierTemplate(Struct, frozen=True):
    """A learned version in the store."""

    row: TemplateRow
    template: Template  # without its examples

    @property
    def sessions(self) -> frozenset[str]:
        return frozenset(self.template.source_sessions)


class LearnedTemplates(TemplateRegister):
    """Settles drafts against the learned templates of a store."""

    def _settle_all(self, drafts: Sequence[Template]) -> list[LearnedTemplate]:
        """Make the learned templates those that the whole history leads to."""
        versions = self._find_learned()
        whole = _latest(version for version in versions if not version.template.provenance.partial)
        taken = self._find_taken({version.row.name for version in versions})
        named = name_drafts(drafts, whole, taken)
        stored = [self._store_whole(draft) for draft in named]
        made = {version.row.name: version.row.version for version in stored}
        self._retire_others(versions, made)
        ready = [version for version in stored if self._may_activate(version)]
        for version in stored:
            if version not in ready and version.row.status == "active" and not self._is_kept(version.row.name):
                self._withdraw(version.row, self._why_waiting(version.template) or "just learned")
        self._activate_strongest(ready, made)
        return [self._refresh(self._summarise(v.template, v.row, v.change)) for v in stored]

    def _retire_others(self, versions: Iterable[EarlierTemplate], made: Mapping[str, int]) -> None:
        """Retire what a whole run does not make: other names, waiting versions, and versions of filtered runs."""
        for version in versions:
            row = version.row
            if row.status == "retired" or made.get(row.name) == row.version:
                continue
            if row.name in made and row.status == "active" and not version.template.provenance.partial:
                continue  # in use until its successor is
            if row.status == "proposed" or not self._is_kept(row.name):
                reason = f"replaced by version {made[row.name]}" if row.name in made else _NOT_MADE
                self._retire(row, POLICY, reason)

    def _settle_some(self, drafts: Sequence[Template], seen: Collection[str]) -> list[LearnedTemplate]:
        """Add and replace templates all of whose sessions are among those that a filtered run has seen."""
        drafts = [structs.replace(d, provenance=structs.replace(d.provenance, partial=True)) for d in drafts]
        live = _latest(version for version in self._find_learned() if version.row.status != "retired")
        free: list[Template] = []
        untouched: dict[str, EarlierTemplate] = {}
        for draft in drafts:
            rivals = [earlier for earlier in live if not earlier.sessions.isdisjoint(draft.source_sessions)]
            fixed = [e for e in rivals if self._is_kept(e.row.name) or not e.sessions <= set(seen)]
            untouched |= {earlier.row.name: earlier for earlier in fixed}
            if not fixed:
                free.append(draft)
        own = [earlier for earlier in live if earlier.sessions & {key for d in free for key in d.source_sessions}]
        own = [earlier for earlier in own if earlier.row.name not in untouched]
        replaceable = {earlier.row.name for earlier in own}
        others = {row.name for row in self._templates.find()} - replaceable
        stored = [self._put_version(draft) for draft in name_drafts(free, own, others)]
        names = {version.row.name for version in stored}
        for earlier in own:
            if earlier.row.name not in names:
                self._retire(earlier.row, POLICY, "replaced by templates of a later run")
        self._activate_if_room([version for version in stored if self._may_activate(version)], names)
        settled = [self._refresh(self._summarise(v.template, v.row, v.change)) for v in stored]
        return settled + [self._summarise(self._load(e.row), e.row, "same") for e in untouched.values()]

    def _store_whole(self, draft: Template) -> StoredVersion:
        stored = self._put_version(draft)
        return self._update_facts(stored) if stored.change == "same" else stored

    def _find_learned(self) -> list[EarlierTemplate]:
        """Return every learned version, by name and version."""
        rows = [(row, self._templates.facts(row.name, row.version, row.body)) for row in self._templates.find()]
        return [EarlierTemplate(row, facts) for row, facts in rows if facts and facts.provenance.origin == "learned"]

    def _find_taken(self, learned: Collection[str]) -> set[str]:
        """Return the names that a draft must not take: of other origins, and of templates that stay as decided."""
        names = {row.name for row in self._templates.find()}
        return {name for name in names if name not in learned or self._is_kept(name)}

    def _is_kept(self, name: str) -> bool:
        """Return whether a person or a measurement activated the template."""
        verdict = self._find_verdict(name)
        return verdict is not None and verdict.status == "active"

    def _may_activate(self, version: StoredVersion) -> bool:
        """Return whether the policy may use a version: no person need decide, and no later version was approved."""
        later = [row for row in self._templates.versions(version.row.name_key) if row.version > version.row.version]
        return self._why_waiting(version.template) is None and not any(row.status == "active" for row in later)

    def _activate_strongest(self, ready: Sequence[StoredVersion], names: Collection[str]) -> None:
        """Activate the strongest versions of each kind, as many as there is room for, and retire the others."""
        limit = self._settings.max_active
        for kind, versions in _by_kind(ready).items():
            others = [row for row in self._templates.active_of_kind(*kind) if row.name not in names]
            by_name = {version.row.name: version for version in versions}
            ranked = sorted([*others, *(version.row for version in versions)], key=self._rank_row)
            for row in ranked[:limit]:
                if row.status != "active" and row.name in by_name:
                    template = by_name[row.name].template
                    self._activate(row, template, POLICY, explain_support(template))
            for row in ranked[limit:]:
                if row.status != "retired" and not self._is_kept(row.name):
                    self._retire(row, POLICY, _WEAKER.format(limit=limit))

    def _activate_if_room(self, ready: Sequence[StoredVersion], names: Collection[str]) -> None:
        """Activate versions while there is room beside the templates of other runs."""
        limit = self._settings.max_active
        for kind, versions in _by_kind(ready).items():
            others = [row for row in self._templates.active_of_kind(*kind) if row.name not in names]
            room = max(0, limit - len(others))
            ranked = sorted(versions, key=lambda version: self._rank_row(version.row))
            for version in ranked[:room]:
                if version.row.status != "active":
                    self._activate(version.row, version.template, POLICY, explain_support(version.template))
            for version in ranked[room:]:
                self._withdraw(version.row, _NO_ROOM.format(limit=limit))

    def _withdraw(self, row: TemplateRow, reason: str) -> None:
        """Make a version wait for a person."""
        self._templates.unindex(row)
        self._templates.decide(row, "proposed", POLICY, reason, self._clock())

    def _rank_row(self, row: TemplateRow) -> tuple[bool, bool, float, str]:
        return not self._is_kept(row.name), not self._is_proven(row), -row.strength, row.name


def name_drafts(
    drafts: Sequence[Template], earlier: Sequence[EarlierTemplate], taken: Collection[str]
) -> list[Template]:
    """Give each draft the name of the earlier template that it continues: most of the smaller one's sessions are shared.

    Other drafts keep their own names, made longer where another template has them.
    """
    pairs = [
        (-len(shared), known.row.created, known.row.name, at)
        for at, draft in enumerate(drafts)
        for known in earlier
        if known.template.provenance.scope == draft.provenance.scope
        and (shared := known.sessions & set(draft.source_sessions))
        and 2 * len(shared) >= min(len(known.sessions), len(draft.source_sessions))
    ]
    names: dict[int, str] = {}
    for _shared, _created, name, at in sorted(pairs):
        if at not in names and name not in names.values():
            names[at] = name
    used = {*taken, *names.values()}
    for at, draft in enumerate(drafts):
        if at not in names:
            extra = (draft.provenance.agent or "", draft.category, draft.task_type)
            names[at] = topics.unique_name((draft.name,), extra, used) if draft.name in used else draft.name
            used.add(names[at])
    return [structs.replace(draft, name=names[at]) for at, draft in enumerate(drafts)]


def _latest(versions: Iterable[EarlierTemplate]) -> list[EarlierTemplate]:
    """Return the latest of the given versions of each name."""
    return list({version.row.name: version for version in versions}.values())


def _by_kind(versions: Iterable[StoredVersion]) -> dict[Kind, list[StoredVersion]]:
    kinds: defaultdict[Kind, list[StoredVersion]] = defaultdict(list)
    for version in versions:
        row = version.row
        kinds[row.category, row.project, row.scope].append(version)
    return dict(sorted(kinds.items()))
