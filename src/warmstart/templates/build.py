"""Build one named template from several chosen sessions: the request, and how drafts are merged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct, structs

from warmstart.model import Example, Template
from warmstart.templates.mine import RefusedSession
from warmstart.templates.register import LearnedTemplate


class BuildRequest(NamedTuple):
    """The name of a template to build, and the words by which it is found."""

    name: str
    description: str = ""
    tags: tuple[str, ...] = ()


class Built(Struct, frozen=True):
    """The built template, and why sessions contributed nothing to it."""

    template: LearnedTemplate
    refused: dict[str, int]  # number of sessions by reason


def merge_drafts(drafts: Iterable[Template], max_examples: int) -> Template:
    """Return the draft with the most sessions, with the examples of other drafts interleaved.

    Only drafts of the same agent, scope and project are merged: a template of several projects would belong to none.
    """
    ordered = sorted(drafts, key=lambda draft: (-len(draft.source_sessions), draft.name))
    first = ordered[0]
    ordered = [draft for draft in ordered if _came_from(draft) == _came_from(first)]
    examples: list[Example] = []
    for place in range(max(len(draft.examples) for draft in ordered)):
        examples += [draft.examples[place] for draft in ordered if place < len(draft.examples)]
    provenance = structs.replace(
        first.provenance,
        origin="captured",
        suspicions=tuple(dict.fromkeys(reason for draft in ordered for reason in draft.provenance.suspicions)),
    )
    return structs.replace(
        first,
        examples=tuple(examples[:max_examples]),
        source_sessions=tuple(sorted({key for draft in ordered for key in draft.source_sessions})),
        provenance=provenance,
    )


def _came_from(draft: Template) -> tuple[str | None, ...]:
    return draft.provenance.agent, draft.provenance.scope, draft.provenance.project


def explain_refusal(sessions: int, refused: dict[str, int], refusals: Iterable[RefusedSession] = ()) -> str:
    """Return why no template could be built."""
    if not sessions:
        return "no stored session matches; lower min_messages, or read transcripts first: warmstart ingest"
    details = {refusal.reason: refusal.detail for refusal in refusals}
    reasons = "; ".join(_explain(reason, count, details.get(reason, reason)) for reason, count in refused.items())
    return f"none of {sessions} sessions is worth learning from: {reasons or 'they have no call that worked'}"


def _explain(reason: str, count: int, detail: str) -> str:
    if count == 1 or detail == reason:
        return f"{count} because {detail}"
    return f"{count} because {reason} (one of them: {detail})"
