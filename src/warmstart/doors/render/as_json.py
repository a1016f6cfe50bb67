"""JSON for programs, the same from every door."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from warmstart.doors.render.terminal import format_iso

if TYPE_CHECKING:
    from warmstart.dialects.compose import Seed
    from warmstart.insights.types import Insights
    from warmstart.model import Brief, Decision, Measures, Template
    from warmstart.notes.effect import NoteEffects
    from warmstart.notes.types import Advice, Note
    from warmstart.store import TemplateRow, TrialRow

NOTE_FIELDS = (
    *("id", "project", "kind", "text", "fix", "support", "people", "against"),
    *("first_seen", "last_seen", "status", "shown", "recurred"),
)
_TIMES = ("first", "last", "last_seen", "first_shown", "at")


def describe_seed(seed: Seed) -> dict[str, Any]:
    """Describe a seed, as messages or as text."""
    body = {"text": seed.text} if seed.dialect == "text" else {"messages": seed.messages}
    return {
        "seed_id": seed.id,
        "arm": seed.arm,
        **body,
        "tokens": seed.tokens,
        "budget": seed.budget,
        "templates": seed.templates,
        "omitted": seed.omitted,
        "reason": seed.reason,
        "dialect": seed.dialect,
    }


def summarise_template(row: TemplateRow, template: Template) -> dict[str, Any]:
    """Describe a template without its examples."""
    return {
        "name": row.name,
        "version": row.version,
        "status": row.status,
        "reason": row.reason,
        "category": row.category,
        "task_type": row.task_type,
        "description": template.description,
        "tags": template.tags,
        "examples": len(template.examples),
        "sessions": len(template.source_sessions),
        "created": format_iso(row.created),
        "used": row.used,
        "scope": row.scope,
        "provenance": template.provenance,
    }


def describe_template(row: TemplateRow, template: Template, decisions: Sequence[Decision]) -> dict[str, Any]:
    """Describe a template with its examples and decisions."""
    return summarise_template(row, template) | {
        "examples": template.examples,
        "further": template.further,
        "addendum": template.addendum,
        "source_sessions": template.source_sessions,
        "decisions": decisions,
    }


def describe_trial(trial: TrialRow, measures: Measures | None) -> dict[str, Any]:
    """Describe a closed trial and its measures."""
    return {"session": trial.session, "arm": trial.arm, "transcript": trial.transcript, "measures": measures}


def describe_insights(insights: Insights) -> dict[str, Any]:
    """Describe insights, with times in ISO format."""
    described = _write_times(msgspec.to_builtins(insights))
    assert isinstance(described, dict)
    return {key: value for key, value in described.items() if key not in ("shown", "occurrences")}


def describe_occurrences(insights: Insights) -> dict[str, Any]:
    """Describe the repeated error that was asked for, with its occurrences."""
    described = _write_times(msgspec.to_builtins({"error": insights.shown, "occurrences": insights.occurrences}))
    assert isinstance(described, dict)
    return described


def describe_note_effects(effects: NoteEffects) -> dict[str, Any]:
    """Describe what became of notes that were shown, with times in ISO format."""
    described = _write_times(msgspec.to_builtins(effects))
    assert isinstance(described, dict)
    return described


def describe_brief(brief: Brief) -> dict[str, Any]:
    """Describe a brief, as agents get it: without the notes that it leaves out."""
    return {"text": brief.text, "tokens": brief.tokens, "notes": brief.notes, "project": brief.project}


def describe_whole_brief(brief: Brief) -> dict[str, Any]:
    """Describe a brief with the active notes that it leaves out, and why."""
    return describe_brief(brief) | {
        "omitted": [{"note": one.note, "reason": one.reason} for one in brief.omitted],
    }


def describe_advice(advice: Advice) -> dict[str, Any]:
    """Describe the advice for a call; the arguments only where they are corrected."""
    shown: dict[str, Any] = {"action": advice.action, "text": advice.text, "note": advice.note}
    return shown if advice.arguments is None else shown | {"arguments": advice.arguments}


def summarise_note(note: Note) -> dict[str, Any]:
    """Describe a note in a line."""
    times = {"first_seen": format_iso(note.first_seen), "last_seen": format_iso(note.last_seen)}
    return {name: times[name] if name in times else getattr(note, name) for name in NOTE_FIELDS}


def _write_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: format_iso(inner) if key in _TIMES and isinstance(inner, float) else _write_times(inner)
            for key, inner in value.items()
        }
    return [_write_times(inner) for inner in value] if isinstance(value, list | tuple) else value
