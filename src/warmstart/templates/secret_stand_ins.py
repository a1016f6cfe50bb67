"""Put made-up values in the place of masked secrets, so that no placeholder stands in a call that a model may copy.

`{{SECRET:token#1}}` becomes `EXAMPLE-TOKEN-1` in the request, in the calls and in their results alike, so that the example
still shows where the value comes from. An example whose call uses a secret that neither its request nor an earlier result
gave is of no use: nobody could say what belongs there.
"""

from __future__ import annotations

import re

from msgspec import structs

from warmstart.calls.shapes import canonical
from warmstart.model import Example, ExampleCall, Template
from warmstart.templates.stand_ins import replace_in

MARK = "{{SECRET:"
_MADE_UP = "EXAMPLE-"
_NAMED = re.compile(r"(?i)(?:token|pass(?:word|phrase|code|key)|secret|credential|\bkey|\bpin|access code)s?\b")
_ARGUMENT = re.compile(r"(?i)(?:token|pass(?:word|phrase|code)|secret|credential|api[_-]?key|access[_-]?code)s?$")
_PLACEHOLDER = re.compile(r"\{\{SECRET:([a-z0-9-]{1,24})#([0-9]{1,9})\}\}")


def put_secret_stand_ins(example: Example) -> Example | None:
    """Return the example without placeholders; None if a call uses a secret whose source the example does not show."""
    texts = (example.intent, example.closing, example.correction or "", example.task)
    if not any(MARK in text for text in (*texts, *map(_write_call, example.shown))):
        return example
    given = set(_PLACEHOLDER.findall(example.intent))
    for call in example.shown:
        if not set(_PLACEHOLDER.findall(canonical(call.arguments).decode("utf-8", "replace"))) <= given:
            return None
        given |= set(_PLACEHOLDER.findall(call.result))
    names = {name for call in example.shown for name in _PLACEHOLDER.findall(canonical(call.arguments).decode())}
    return structs.replace(
        example,
        arguments=replace_in(example.arguments, _replace),
        result=_replace(example.result),
        intent=_replace(example.intent),
        task=_replace(example.task),
        correction=_replace(example.correction) if example.correction else example.correction,
        calls=tuple(map(_replace_call, example.calls)),
        closing=_replace(example.closing),
        stand_ins=tuple(dict.fromkeys((*example.stand_ins, *sorted(_name(*name) for name in names)))),
    )


def lacks_secret(example: Example, request: str) -> bool:
    """Return whether an example shows what to do with a secret that its request gave, and this request names none.

    A model that is given no secret copies the made-up one. A short one may stand there unmasked: its argument's name tells.
    """
    secrets = (name for name in example.stand_ins if name.startswith(_MADE_UP))
    given = [value for value in (*secrets, *_list_named(example)) if value in example.intent]
    kinds = (value.removeprefix(_MADE_UP).rpartition("-")[0].casefold() for value in given if _MADE_UP in value)
    return bool(given) and not _NAMED.search(request) and not any(kind in request.casefold() for kind in kinds)


def _list_named(example: Example) -> list[str]:
    """Return the values of arguments whose names are those of secrets."""
    pairs = (pair for call in example.shown if isinstance(call.arguments, dict) for pair in call.arguments.items())
    return [value for name, value in pairs if isinstance(value, str) and value and _ARGUMENT.search(name)]


def put_stand_ins_in(template: Template) -> Template:
    """Return a template whose examples show stand-ins where that is possible; the others stay, and are not shown."""
    return structs.replace(
        template, examples=tuple(put_secret_stand_ins(example) or example for example in template.examples)
    )


def _name(kind: str, number: str) -> str:
    return f"{_MADE_UP}{kind.upper()}-{number}"


def _replace(text: str) -> str:
    return _PLACEHOLDER.sub(lambda match: _name(match[1], match[2]), text) if MARK in text else text


def _replace_call(call: ExampleCall) -> ExampleCall:
    return structs.replace(
        call,
        arguments=replace_in(call.arguments, _replace),
        result=_replace(call.result),
        correction=_replace(call.correction) if call.correction else call.correction,
    )


def _write_call(call: ExampleCall) -> str:
    return f"{canonical(call.arguments).decode('utf-8', 'replace')} {call.result} {call.correction or ''}"
