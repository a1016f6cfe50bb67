"""Write templates as a bundle that `bundles.read_bundle` reads back the same; redact templates."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import structs

from warmstart.errors import BadName
from warmstart.formats.lenient import scrub
from warmstart.model import Example, Template
from warmstart.names import check_name, name_key
from warmstart.templates.bundle_records import clean_value
from warmstart.templates.bundles import VERSION

_PLACEHOLDER = re.compile(r"\{\{SECRET:([^#{}]*)#(\d+)\}\}")


def write_bundle(templates: Iterable[Template], *, redact: Callable[[Any], Any] | None) -> bytes:
    """Return the bytes of a bundle, in a stable order. `redact` hides values that must not leave the machine."""
    chosen = list(templates)
    if redact is not None:
        chosen = _redact_all(chosen, redact)
    chosen.sort(key=lambda template: (name_key(template.name), template.name, template.version))
    document = {"warmstart": VERSION, "templates": [to_record(template) for template in chosen]}
    return (json.dumps(scrub(document), ensure_ascii=False, indent=2, allow_nan=False) + "\n").encode()


def to_record(template: Template) -> dict[str, Any]:
    """Return the JSON of a template, without what describes its place in this store."""
    fields = structs.asdict(template)
    del fields["status"], fields["used"]
    del fields["further"]  # nobody has looked at those one by one
    fields["examples"] = [_write_example(example) for example in template.examples]
    fields["provenance"] = structs.asdict(template.provenance)
    for local in ("origin", "source", "scope", "partial"):
        del fields["provenance"][local]
    return {key: list(value) if isinstance(value, tuple) else value for key, value in fields.items()}


def _write_example(example: Example) -> dict[str, Any]:
    fields = structs.asdict(example) | {"arguments": clean_value(example.arguments)}
    fields["calls"] = [structs.asdict(call) | {"arguments": clean_value(call.arguments)} for call in example.calls]
    return {key: list(value) if isinstance(value, tuple) else value for key, value in fields.items()}


def _redact_all(templates: list[Template], redact: Callable[[Any], Any]) -> list[Template]:
    """Redact templates. Names stay valid and distinct, and parents get their new names."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted({template.name for template in templates}):
        base = hidden = _hide_name(name, redact)
        count = 1
        while name_key(hidden) in taken:
            count += 1
            hidden = f"{base} {count}"
        taken.add(name_key(hidden))
        names[name] = hidden
    redacted = []
    for template in templates:
        safe = redact_template(structs.replace(template, name=names[template.name]), redact)
        name, at, version = (template.provenance.parent or "").rpartition("@")
        if name in names:
            provenance = structs.replace(safe.provenance, parent=names[name] + at + version)
            safe = structs.replace(safe, provenance=provenance)
        redacted.append(safe)
    return redacted


def redact_template(template: Template, redact: Callable[[Any], Any]) -> Template:
    """Return the template with every text redacted.

    A project whose name changes by that is left out: a path of another machine would keep the template from being chosen.
    """
    known = template.provenance
    provenance = structs.replace(
        known,
        project=known.project if redact(known.project) == known.project else None,
        agent=redact(known.agent),
        parent=redact(known.parent),
        source=redact(known.source),
        suspicions=tuple(map(redact, known.suspicions)),
    )
    return structs.replace(
        template,
        name=_hide_name(template.name, redact),
        description=redact(template.description),
        tags=tuple(map(redact, template.tags)),
        addendum=redact(template.addendum),
        examples=tuple(_redact_example(example, redact) for example in template.examples),
        further=tuple(_redact_example(example, redact) for example in template.further),
        source_sessions=tuple(map(redact, template.source_sessions)),
        provenance=provenance,
    )


def _redact_example(example: Example, redact: Callable[[Any], Any]) -> Example:
    """Redact field by field: under a key like `session` the redactor would take a plain id for a secret."""
    written = ("tool", "arguments", "result", "intent", "task", "correction", "why", "session", "closing")
    calls = tuple(
        structs.replace(call, **{name: redact(getattr(call, name)) for name in call.__struct_fields__})
        for call in example.calls
    )
    stand_ins = tuple(map(redact, example.stand_ins))
    plain = {field: redact(getattr(example, field)) for field in written}
    return structs.replace(example, **plain, calls=calls, stand_ins=stand_ins)


def _hide_name(name: str, redact: Callable[[Any], Any]) -> str:
    """Redact a name. `{{SECRET:email#1}}` is not allowed in a name; `email-1` is."""
    hidden = redact(name)
    if hidden == name:
        return name
    try:
        return check_name(_PLACEHOLDER.sub(r"\1-\2", hidden))
    except BadName:
        return "shared template"
