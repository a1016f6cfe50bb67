"""Templates in the store: versions, decisions, and the word index of the active ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from warmstart.errors import NotFound
from warmstart.model import Decision, Effect, Example, Problem, Template, TemplateStatus
from warmstart.store.rows import ExampleRow, FoundRow, TemplateRow
from warmstart.store.sqlite import SqliteStore

EVERYWHERE = "*"  # the scope of all examples together

_template = msgspec.json.Decoder(Template)
_example = msgspec.json.Decoder(Example)
_effect = msgspec.json.Decoder(Effect)
_costs = msgspec.json.Decoder(dict[str, int])
_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class TemplateStore:
    """The templates of a store. Changes are made inside the store's `writing()`."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.problems: list[Problem] = []  # records that could not be read; the rest is served

    # Reading

    def versions(self, name_key: str) -> list[TemplateRow]:
        """Every version of a name, the latest first."""
        return [TemplateRow.from_columns(row) for row in self.store.rows("template_versions", (name_key,))]

    def find(
        self, status: TemplateStatus | None = None, category: str | None = None, task_type: str | None = None
    ) -> list[TemplateRow]:
        return [
            TemplateRow.from_columns(row) for row in self.store.rows("list_templates", (status, category, task_type))
        ]

    def best(self, category: str | None, task_type: str | None, project: str | None, most: int) -> list[TemplateRow]:
        return [
            TemplateRow.from_columns(row)
            for row in self.store.rows("best_templates", (category, task_type, project, most))
        ]

    def active_of_kind(self, category: str, project: str) -> list[TemplateRow]:
        return [TemplateRow.from_columns(row) for row in self.store.rows("active_of_kind", (category, project))]

    def version(self, name: str, version: int) -> TemplateRow:
        """Return one version of a template."""
        (columns,) = self.store.rows("template", (name, version))
        return TemplateRow.from_columns(columns)

    def load(self, row: TemplateRow) -> Template | None:
        """The whole template, or None (told in `problems`) where its record cannot be read."""
        template = self.facts(row.name, row.version, row.body)
        if template is None:
            return None
        examples = tuple(example for _row, example in self.examples(row.name, row.version))
        return msgspec.structs.replace(
            template, version=row.version, status=row.status, created=row.created, used=row.used, examples=examples
        )

    def facts(self, name: str, version: int, body: str) -> Template | None:
        """A template without its examples, or None (told in `problems`)."""
        try:
            return _template.decode(body)
        except _BROKEN as error:
            self._complain(name, version, error)
            return None

    def examples(self, name: str, version: int) -> list[tuple[ExampleRow, Example]]:
        rows = [ExampleRow.from_columns(row) for row in self.store.rows("examples_of", (name, version))]
        return [(row, example) for row in rows if (example := self.decode(row)) is not None]

    def decode(self, row: ExampleRow) -> Example | None:
        try:
            return _example.decode(row.body)
        except _BROKEN as error:
            self._complain(row.name, row.version, error)
            return None

    def cost(self, row: ExampleRow, dialect: str) -> int | None:
        try:
            return _costs.decode(row.costs).get(dialect)
        except _BROKEN:
            return None

    def decisions(self, name: str) -> list[Decision]:
        found = self.store.rows("decisions_of", (name,))
        return [
            Decision(template=name, version=version, status=status, by=by, reason=reason, at=at)
            for name, version, status, by, reason, at in found
        ]

    def from_session(self, session: str) -> list[tuple[str, int]]:
        """The templates that show a call of this session: what a revoke must follow."""
        return [(name, version) for name, version in self.store.rows("templates_from_session", (session,))]

    # Searching

    def frequencies(self, scopes: Sequence[str], terms: Iterable[str]) -> dict[str, int]:
        """In how many examples of these scopes each word stands; under "" how many there are."""
        found: dict[str, int] = {}
        wanted = json.dumps(["", *terms])
        for _scope, term, count in self.store.rows("frequencies", (json.dumps(list(scopes)), wanted)):
            found[term] = found.get(term, 0) + count
        return found

    def postings(self, scopes: Sequence[str], term: str, most: int) -> list[tuple[int, float]]:
        return [pair for scope in scopes for pair in self.store.rows("postings_of", (scope, term, most))]

    def templates_of(self, ids: Sequence[int]) -> dict[int, tuple[str, int]]:
        """Name and version of the templates that examples stand in."""
        return {id: (name, version) for id, name, version in self.store.rows("templates_of", (json.dumps(list(ids)),))}

    def shortlist(self, templates: Sequence[tuple[str, int]]) -> list[FoundRow]:
        """The examples of some templates, with what filters need to know."""
        return [FoundRow.from_columns(row) for row in self.store.rows("examples_with_kind", (json.dumps(templates),))]

    # Writing

    def put(self, row: TemplateRow, examples: Sequence[tuple[Example, Mapping[str, int]]]) -> None:
        """A new version."""
        self.store.run("put_template", row.to_columns())
        for ordinal, (example, costs) in enumerate(examples):
            body = msgspec.json.encode(example).decode()
            self.store.run(
                "put_example", (row.name, row.version, ordinal, example.tool, body, json.dumps(dict(costs)))
            ).fetchall()

    def decide(self, row: TemplateRow, status: TemplateStatus, by: str, reason: str, at: float) -> None:
        """Change a status, on the record."""
        self.store.run("set_status", (status, reason, row.name, row.version))
        self.store.run("put_decision", (row.name, row.version, status, by, reason, at))

    def put_effect(self, name: str, version: int, effect: Effect) -> None:
        """What was measured of a version, for choosing and for people."""
        self.store.run("put_effect", (msgspec.json.encode(effect).decode(), name, version))

    def effect(self, body: str | None) -> Effect | None:
        """The measured effect of a row, or None where there is none or it cannot be read."""
        try:
            return _effect.decode(body) if body else None
        except _BROKEN:
            return None

    def note(self, name: str, status: TemplateStatus, by: str, reason: str, at: float) -> None:
        """A decision about something that is no template."""
        self.store.run("put_decision", (name, 0, status, by, reason, at))

    def index(self, row: TemplateRow, weights: Iterable[Mapping[str, float]]) -> None:
        """Make the examples of a version findable; `weights` in their order."""
        for (example, _value), found in zip(self.examples(row.name, row.version), weights, strict=False):
            if not found:
                continue  # counted without a word it could not be uncounted
            for scope in (row.project, EVERYWHERE):
                self.store.run("count_term", (scope, ""))
                for term, weight in found.items():
                    self.store.run("put_posting", (scope, term, example.id, weight))
                    self.store.run("count_term", (scope, term))

    def unindex(self, row: TemplateRow) -> None:
        for columns in self.store.rows("examples_of", (row.name, row.version)):
            self._unindex_example(row, columns[0])

    def _unindex_example(self, row: TemplateRow, example: int) -> None:
        if self.store.rows("is_indexed", (example,))[0][0]:
            self.store.run("uncount_terms", (example,))
            self.store.run("uncount_example", (row.project,))
            self.store.run("delete_postings", (example,))

    def delete_example(self, row: TemplateRow, example: int) -> None:
        """Delete one example of a version, and its words from the index."""
        self._unindex_example(row, example)
        self.store.run("delete_example", (example,))

    def set_body(self, row: TemplateRow, body: str) -> None:
        """Replace the JSON of a version."""
        self.store.run("set_body", (body, row.name, row.version))

    def delete_version(self, row: TemplateRow) -> None:
        """Delete one version with its examples."""
        self.unindex(row)
        self.store.run("delete_version", (row.name, row.version))

    def delete(self, name_key: str) -> list[tuple[str, Any]]:
        """Every version of a name, with all that hangs on it."""
        for row in self.versions(name_key):
            self.unindex(row)
        gone = [(str(name), version) for name, version in self.store.run("delete_template", (name_key,)).fetchall()]
        if not gone:
            raise NotFound(f"no template {name_key}")
        return gone

    # Counting

    def totals(self) -> list[tuple[str, str, str, int, int, int]]:
        """`(status, category, task_type, templates, uses, examples)`."""
        found: list[tuple[str, str, str, int, int, int]] = self.store.rows("template_totals")
        return found

    def _complain(self, name: str, version: int, error: Exception) -> None:
        self.problems.append(Problem(f"template {name}@{version}", f"its record cannot be read: {error}"))
