"""Forget a session: delete it, the templates mined from it alone, and its examples in other templates."""

from __future__ import annotations

import msgspec
from msgspec import Struct, structs

from warmstart.store import Store, TemplateRow, TemplateStore, TrialStore


class Forgotten(Struct, frozen=True, kw_only=True):
    """The result of deleting a session."""

    key: str
    id: str  # the agent's own id
    calls: int  # number of calls deleted
    templates: tuple[str, ...]  # NAME@VERSION of the deleted templates, which were mined from it alone
    examples: int  # number of its examples removed from templates that other sessions support too
    archived: int = 0  # number of its archived transcripts deleted
    still_archived: tuple[str, ...] = ()  # ids of archived transcripts that hold other sessions too, so that they stay


def forget_session(store: Store, name: str, now: float) -> Forgotten:
    """Delete a session for good, in one transaction. Ingest never stores its transcript again.

    Trials keep their arm and their numbers: removing a session from a comparison after its outcome is known would bias it.
    """
    templates, trials = TemplateStore(store), TrialStore(store)
    with store.writing():
        session = store.find_session(name)
        deleted: list[str] = []
        examples = 0
        for template, version in templates.from_session(session.key):
            row = templates.version(template, version)
            if _is_mined_alone(templates, row, session.key):
                templates.delete_version(row)
                deleted.append(f"{row.name}@{row.version}")
            else:
                examples += _remove_examples(templates, row, session.key)
        for further in templates.further_from_session(session.key):
            templates.delete_example(further)
        for trial in trials.mentioning(session.key):
            picks = trials.picks(trial)
            if picks is not None:
                trials.set_picks(trial.session, [pick for pick in picks if pick.example.session != session.key])
        store.forget_session(session.key, now)
    store.erase()
    return Forgotten(
        key=session.key, id=session.id, calls=session.calls, templates=tuple(sorted(deleted)), examples=examples
    )


def _is_mined_alone(templates: TemplateStore, row: TemplateRow, key: str) -> bool:
    template = templates.load(row)
    return template is None or all(example.session == key for example in template.examples)


def _remove_examples(templates: TemplateStore, row: TemplateRow, key: str) -> int:
    template = templates.facts(row.name, row.version, row.body)
    if template is not None:
        sources = tuple(session for session in template.source_sessions if session != key)
        body = msgspec.json.encode(structs.replace(template, source_sessions=sources), order="deterministic")
        templates.set_body(row, body.decode())
    stored = templates.examples(row.name, row.version)
    examples = [example for example, value in stored if value.session == key and not example.further]
    for example in examples:
        templates.delete_example(example.id)
    return len(examples)
