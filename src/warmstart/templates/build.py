"""Several chosen sessions into one named template: `capture`, but from more than one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct, structs

from warmstart.errors import Refused
from warmstart.ingest.records import past_session
from warmstart.judging.score import gate
from warmstart.model import Example, PastSession, Template
from warmstart.names import check_name
from warmstart.store import SessionRow
from warmstart.templates.library import LearnedTemplate, TemplateLibrary
from warmstart.templates.mine import mine


class BuildRequest(NamedTuple):
    """What a person or an agent wants the template to be called and found by."""

    name: str
    description: str = ""
    tags: tuple[str, ...] = ()


class Built(Struct, frozen=True):
    """The template, and why sessions gave nothing to it."""

    template: LearnedTemplate
    refused: dict[str, int]


class TemplateBuilder(TemplateLibrary):
    """A teacher who is told which sessions to learn from and what to call the result."""

    def build(self, rows: Sequence[SessionRow], wish: BuildRequest) -> Built:
        """The best examples of the sessions. It becomes active by the same rules as any other template."""
        name = check_name(wish.name)
        redact = self._redact()
        if redact(name) != name:
            raise Refused("there is a secret in the name; choose another")
        past = [one for row in rows if (one := past_session(row, self._store.calls_of(row.key))) is not None]
        past = [one for one in past if not self._is_revoked(one.key)]
        options = self._options()
        mined = mine(past, options, _refuse, seeded=self._seeded(past))
        if not mined.drafts:
            raise Refused(_explain(len(rows), mined.refused))
        template = _merge(mined.drafts, options.max_examples)
        changes = {
            "name": name,
            "description": redact(wish.description) or template.description,
            "tags": tuple(map(redact, wish.tags)) or template.tags,
        }
        with self._store.writing():
            kept = self._keep(structs.replace(template, **changes))
            self._make_room({(kept.category, template.provenance.project or "")}, {kept.name})
        return Built(self._fresh(kept), mined.refused)


def _merge(drafts: Iterable[Template], most: int) -> Template:
    """The draft with the most sessions behind it, and the best examples of its agent's others: one of each in turn."""
    ordered = sorted(drafts, key=lambda draft: (-len(draft.source_sessions), draft.name))
    first = ordered[0]
    ordered = [draft for draft in ordered if draft.provenance.agent == first.provenance.agent]
    examples: list[Example] = []
    for place in range(max(len(draft.examples) for draft in ordered)):
        examples += [draft.examples[place] for draft in ordered if place < len(draft.examples)]
    provenance = structs.replace(
        first.provenance,
        origin="captured",
        project=first.provenance.project if len({draft.provenance.project for draft in ordered}) == 1 else None,
        suspicions=tuple(dict.fromkeys(one for draft in ordered for one in draft.provenance.suspicions)),
    )
    return structs.replace(
        first,
        examples=tuple(examples[:most]),
        source_sessions=tuple(sorted({key for draft in ordered for key in draft.source_sessions})),
        provenance=provenance,
    )


def _refuse(session: PastSession) -> str | None:
    return gate(session.verdict, session.quality, session.results)


def _explain(sessions: int, refused: dict[str, int]) -> str:
    if not sessions:
        return "no remembered session fits; lower min_messages, or let Warmstart read some first: warmstart ingest"
    why = "; ".join(f"{count} because {reason}" for reason, count in refused.items())
    return f"none of {sessions} sessions is worth learning from: {why or 'they have no calls that worked'}"
