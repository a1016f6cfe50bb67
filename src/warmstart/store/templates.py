"""Templates in the store: versions, decisions, and the word index of active templates."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from warmstart.errors import NotFound
from warmstart.model import Decision, Effect, Example, Problem, Template, TemplateStatus
from warmstart.scopes import EVERYWHERE
from warmstart.store.protocol import Store
from warmstart.store.rows import ExampleRow, FoundRow, TemplateRow

_costs = msgspec.json.Decoder(dict[str, int])
_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def name_shelf(scope: str, project: str) -> str:
    """Return the part of the word index that holds the examples of a scope and project."""
    return f"{scope}\x1f{project}" if scope else project


def _shelves_of(row: TemplateRow) -> tuple[str, ...]:
    """Return the shelves that hold a template: its project's, and that of all projects of its scope.

    A shared template is on the shelf of all projects only once, and on its own project's for sessions that want no other.
    """
    return tuple(dict.fromkeys(name_shelf(row.scope, project) for project in (row.project, EVERYWHERE)))


class TemplateStore:
    """The templates of a store. Make changes inside the store's `writing()`."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.problems: list[Problem] = []  # records that could not be read

    # Reading

    def versions(self, name_key: str) -> list[TemplateRow]:
        """Return every version of a template, latest first."""
        return [TemplateRow.from_columns(row) for row in self.store.rows("template_versions", (name_key,))]

    def next_version(self, name_key: str) -> int:
        """Return the number of a template's next version."""
        return int(self.store.rows("latest_version", (name_key,))[0][0] or 0) + 1

    def find(
        self, status: TemplateStatus | None = None, category: str | None = None, task_type: str | None = None
    ) -> list[TemplateRow]:
        """Return the templates that match."""
        return [
            TemplateRow.from_columns(row) for row in self.store.rows("list_templates", (status, category, task_type))
        ]

    def best(
        self, category: str | None, task_type: str | None, project: str | None, scope: str, limit: int
    ) -> list[TemplateRow]:
        """Return active templates that match, strongest first. `project` None: of all projects."""
        return [
            TemplateRow.from_columns(row)
            for row in self.store.rows("best_templates", (category, task_type, project, limit, scope))
        ]

    def active_of_kind(self, category: str, project: str, scope: str) -> list[TemplateRow]:
        """Return the active templates of a category, project and scope, strongest first."""
        return [TemplateRow.from_columns(row) for row in self.store.rows("active_of_kind", (category, project, scope))]

    def version(self, name: str, version: int) -> TemplateRow:
        """Return one version of a template."""
        (columns,) = self.store.rows("template", (name, version))
        return TemplateRow.from_columns(columns)

    def load(self, row: TemplateRow) -> Template | None:
        """Return the whole template; None, and an entry in `problems`, if its record cannot be read."""
        template = self.facts(row.name, row.version, row.body)
        if template is None:
            return None
        stored = self.examples(row.name, row.version)
        return msgspec.structs.replace(
            template,
            version=row.version,
            status=row.status,
            created=row.created,
            used=row.used,
            examples=tuple(example for found, example in stored if not found.further),
            further=tuple(example for found, example in stored if found.further),
        )

    def facts(self, name: str, version: int, body: str) -> Template | None:
        """Return a template without its examples; None, and an entry in `problems`, if it cannot be read."""
        try:
            return msgspec.json.decode(body, type=Template)
        except _BROKEN as error:
            self._report(name, version, error)
            return None

    def examples(self, name: str, version: int) -> list[tuple[ExampleRow, Example]]:
        """Return the readable examples of a version, the further ones last."""
        rows = [ExampleRow.from_columns(row) for row in self.store.rows("examples_of", (name, version))]
        return [(row, example) for row in rows if (example := self.decode(row)) is not None]

    def decode(self, row: ExampleRow) -> Example | None:
        """Return the example of a row; None, and an entry in `problems`, if it cannot be read."""
        try:
            return msgspec.json.decode(row.body, type=Example)
        except _BROKEN as error:
            self._report(row.name, row.version, error)
            return None

    def cost(self, row: ExampleRow, dialect: str) -> int | None:
        """Return the tokens of an example in a dialect, if they were counted."""
        try:
            return _costs.decode(row.costs).get(dialect)
        except _BROKEN:
            return None

    def decisions(self, name: str) -> list[Decision]:
        """Return the decisions about a name, oldest first."""
        return [
            Decision(template=name, version=version, status=status, by=by, reason=reason, at=at)
            for name, version, status, by, reason, at in self.store.rows("decisions_of", (name,))
        ]

    def from_session(self, session: str) -> list[tuple[str, int]]:
        """Return name and version of the templates that show a call of this session; further exchanges do not count."""
        return [(name, version) for name, version in self.store.rows("templates_from_session", (session,))]

    def further_from_session(self, session: str) -> list[int]:
        """Return the ids of the further exchanges that come from this session."""
        return [id for (id,) in self.store.rows("further_from_session", (session,))]

    # Searching: the word index is divided into shelves, one per scope and project

    def frequencies(self, shelves: Sequence[str], terms: Iterable[str]) -> dict[str, int]:
        """Return for each word the number of examples on these shelves that contain it; "" counts all examples."""
        counts: dict[str, int] = {}
        wanted = json.dumps(["", *terms], ensure_ascii=False)
        for _shelf, term, count in self.store.rows(
            "frequencies", (json.dumps(list(shelves), ensure_ascii=False), wanted)
        ):
            counts[term] = counts.get(term, 0) + count
        return counts

    def postings(self, shelves: Sequence[str], term: str, limit: int) -> list[tuple[int, float]]:
        """Return `(example id, weight)` of examples that contain a word."""
        return [pair for shelf in shelves for pair in self.store.rows("postings_of", (shelf, term, limit))]

    def templates_of(self, ids: Sequence[int]) -> dict[int, tuple[str, int]]:
        """Return name and version of each example's template, by example id."""
        return {id: (name, version) for id, name, version in self.store.rows("templates_of", (json.dumps(list(ids)),))}

    def shortlist(self, templates: Sequence[tuple[str, int]]) -> list[FoundRow]:
        """Return the examples of some templates without the further ones, with the columns that filters need."""
        return [
            FoundRow.from_columns(row)
            for row in self.store.rows("examples_with_kind", (json.dumps(templates, ensure_ascii=False),))
        ]

    def found(self, ids: Sequence[int]) -> list[FoundRow]:
        """Return examples by id, with the columns that filters need."""
        return [FoundRow.from_columns(row) for row in self.store.rows("examples_by_id", (json.dumps(list(ids)),))]

    # Writing

    def put(self, row: TemplateRow, examples: Sequence[tuple[Example, Mapping[str, int]]]) -> None:
        """Store a new version with its examples and their tokens per dialect."""
        self.store.run("put_template", row.to_columns())
        for ordinal, (example, costs) in enumerate(examples):
            self._put_example(row, ordinal, example, costs, further=False)

    def put_further(self, row: TemplateRow, examples: Sequence[tuple[Example, Mapping[str, int]]]) -> None:
        """Replace the further exchanges of a version, which must not be indexed."""
        stored = [
            ExampleRow.from_columns(columns) for columns in self.store.rows("examples_of", (row.name, row.version))
        ]
        for old in stored:
            if old.further:
                self.delete_example(old.id)
        first = max((old.ordinal + 1 for old in stored if not old.further), default=0)
        for ordinal, (example, costs) in enumerate(examples, first):
            self._put_example(row, ordinal, example, costs, further=True)

    def _put_example(
        self, row: TemplateRow, ordinal: int, example: Example, costs: Mapping[str, int], *, further: bool
    ) -> None:
        body = msgspec.json.encode(example).decode()
        columns = (row.name, row.version, ordinal, example.tool, body, json.dumps(dict(costs)), int(further))
        self.store.run("put_example", columns)

    def decide(self, row: TemplateRow, status: TemplateStatus, by: str, reason: str, at: float) -> None:
        """Change the status of a version and record the decision."""
        self.store.run("set_status", (status, reason, row.name, row.version))
        self.store.run("put_decision", (row.name, row.version, status, by, reason, at))

    def put_effect(self, name: str, version: int, effect: Effect) -> None:
        """Store the measured effect of a version."""
        self.store.run("put_effect", (msgspec.json.encode(effect).decode(), name, version))

    def effect(self, body: str | None) -> Effect | None:
        """Decode a measured effect; None if there is none or it cannot be read."""
        try:
            return msgspec.json.decode(body, type=Effect) if body else None
        except _BROKEN:
            return None

    def note(self, name: str, status: TemplateStatus, by: str, reason: str, at: float) -> None:
        """Record a decision about something other than a template."""
        self.store.run("put_decision", (name, 0, status, by, reason, at))

    def index(self, row: TemplateRow, weights: Iterable[Mapping[str, float]]) -> None:
        """Add the examples of a version to the word index; `weights` are in their order."""
        for (example, _value), terms in zip(self.examples(row.name, row.version), weights, strict=False):
            if not terms:
                continue  # an example without a word could not be uncounted
            for shelf in _shelves_of(row):
                self.store.run("count_term", (shelf, ""))
                for term, weight in terms.items():
                    self.store.run("put_posting", (shelf, term, example.id, weight))
                    self.store.run("count_term", (shelf, term))

    def unindex(self, row: TemplateRow) -> None:
        """Remove the examples of a version from the word index."""
        for columns in self.store.rows("examples_of", (row.name, row.version)):
            self._unindex_example(columns[0])

    def _unindex_example(self, example: int) -> None:
        if self.store.rows("is_indexed", (example,))[0][0]:
            self.store.run("uncount_terms", (example,))
            self.store.run("uncount_example", (example,))
            self.store.run("delete_postings", (example,))

    def delete_example(self, example: int) -> None:
        """Delete one example of a version, also from the word index."""
        self._unindex_example(example)
        self.store.run("delete_example", (example,))

    def set_scope(self, row: TemplateRow, scope: str) -> TemplateRow:
        """Move a version, which is not indexed, to another scope."""
        self.store.run("set_scope", (scope, row.name, row.version))
        return msgspec.structs.replace(row, scope=scope)

    def set_body(self, row: TemplateRow, body: str) -> None:
        """Replace the JSON of a version."""
        self.store.run("set_body", (body, row.name, row.version))

    def update(self, row: TemplateRow, body: str, strength: float, examples: Sequence[Example]) -> None:
        """Replace the facts of a version and of its examples; what they show stays the same."""
        if body != row.body or strength != row.strength:
            self.store.run("set_facts", (body, strength, row.name, row.version))
        stored = [pair for pair in self.examples(row.name, row.version) if not pair[0].further]
        for (known, value), example in zip(stored, examples, strict=False):
            if value != example:
                self.store.run("set_example", (msgspec.json.encode(example).decode(), known.id))

    def delete_version(self, row: TemplateRow) -> None:
        """Delete one version with its examples."""
        self.unindex(row)
        self.store.run("delete_version", (row.name, row.version))

    def delete(self, name_key: str) -> list[tuple[str, Any]]:
        """Delete every version of a template with its examples. Returns their names and versions."""
        for row in self.versions(name_key):
            self.unindex(row)
        deleted = [(str(name), version) for name, version in self.store.rows("delete_template", (name_key,))]
        if not deleted:
            raise NotFound(f"no template {name_key}")
        return deleted

    # Counting

    def totals(self) -> list[tuple[str, str, str, int, int, int]]:
        """Return `(status, category, task_type, templates, uses, examples)` per kind."""
        totals: list[tuple[str, str, str, int, int, int]] = self.store.rows("template_totals")
        return totals

    def _report(self, name: str, version: int, error: Exception) -> None:
        self.problems.append(Problem(f"template {name}@{version}", f"its record cannot be read: {error}"))
