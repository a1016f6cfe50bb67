"""Build one named template from several sessions: the request, which sessions it is about, how drafts are merged."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct, structs

from warmstart.calls.shapes import signature
from warmstart.model import Example, Template
from warmstart.templates.mine import RefusedSession
from warmstart.templates.register import LearnedTemplate
from warmstart.templates.search import search_words

_NEAR = 0.5  # of the nearest session's share of the description; what is farther is about something else


class BuildRequest(NamedTuple):
    """The name of a template to build, and the words by which it is found."""

    name: str
    description: str = ""
    tags: tuple[str, ...] = ()
    addendum: str = ""  # extra guidance for the system prompt


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
        examples=drop_equal(examples)[:max_examples],
        source_sessions=tuple(sorted({key for draft in ordered for key in draft.source_sessions})),
        provenance=provenance,
    )


def count_elsewhere(drafts: Iterable[Template], built: Template) -> dict[str, int]:
    """Return how many sessions the merge left out, by where they are from."""
    home = built.provenance
    left: dict[str, set[str]] = {}
    for draft in drafts:
        if _came_from(draft) == _came_from(built):
            continue
        facts = draft.provenance
        if facts.agent != home.agent:
            reason = f"of another agent than most: {facts.agent}"
        elif facts.scope != home.scope:
            reason = "of another person than most"
        else:
            reason = f"of another project than most: {facts.project or 'none'}"
        left.setdefault(reason, set()).update(draft.source_sessions)
    return {reason: len(sessions) for reason, sessions in left.items()}


def drop_equal(examples: Iterable[Example]) -> tuple[Example, ...]:
    """Return the examples without repetitions of the same call: of two, the first is kept."""
    kept: dict[tuple[str, str], Example] = {}
    for example in examples:
        kept.setdefault(signature(example.tool, example.arguments), example)
    return tuple(kept.values())


def rank_by_description(texts: Sequence[str], description: str) -> list[int]:
    """Return the positions of the texts that a description is about, the nearest first.

    A word counts more the fewer texts contain it; words that none contains say nothing. Without any known word, and for a
    description that names nothing, no text is near.
    """
    wanted = set(search_words(description))
    words = [wanted & set(search_words(text)) for text in texts]
    found = Counter(word for of_one in words for word in of_one)
    rarity = {word: math.log(1 + len(texts) / count) for word, count in found.items()}
    shares = [sum(rarity[word] for word in of_one) for of_one in words]
    nearest = max(shares, default=0.0)
    near = [at for at, share in enumerate(shares) if share and share >= _NEAR * nearest]
    return sorted(near, key=lambda at: -shares[at])


def _came_from(draft: Template) -> tuple[str | None, ...]:
    return draft.provenance.agent, draft.provenance.scope, draft.provenance.project


def explain_refusal(sessions: int, refused: dict[str, int], refusals: Iterable[RefusedSession] = ()) -> str:
    """Return why no template could be built."""
    details = {refusal.reason: refusal.detail for refusal in refusals}
    reasons = "; ".join(_explain(reason, count, details.get(reason, reason)) for reason, count in refused.items())
    return f"none of {sessions} sessions is worth learning from: {reasons or 'they have no call that worked'}"


def _explain(reason: str, count: int, detail: str) -> str:
    if count == 1 or detail == reason:
        return f"{count} because {detail}"
    return f"{count} because {reason} (one of them: {detail})"
