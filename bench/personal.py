"""Measure how much of people's data the examples of learned templates show.

    python bench/personal.py [DIR] [--json]

Customers' transcripts (tau-bench and tau2 in DIR, by default the shared corpus beside the project): the values that belong to a
person or a case are read from the structured results of their tools (users, orders, reservations): user ids, full names, e-mails,
street lines, zip codes, birthdays, order, reservation and payment ids. Templates are learned twice, with plain examples and with
stand-ins; the figure is the share of these distinct values that occurs in the examples, descriptions and names. Only values of
sessions that were learned from count. On the coding sessions (Claude Code, Codex) the figure is the share of examples that
stand-ins change at all.

JSON keys: `values` (distinct), `shown_plain`, `shown` (shares of `values` in examples without and with stand-ins), `by_kind`
{kind: [values, shown_plain, shown]}, `leaked` (kinds and lengths of the first values still shown, not the values),
`of_those_shown` (share that stand-ins leave of what plain examples show), `coding_examples`, `coding_changed` (share).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import msgspec
from msgspec import structs

import warmstart
from warmstart.model import Template
from warmstart.store.history import read_history
from warmstart.templates.mine import MiningOptions, mine

CORPUS = ROOT.parent / "shared" / "corpus"
CUSTOMERS = ("tau2", "openai_chat", "hermes")
CODING = ("claude_code", "codex")
_PERSON = {"email": "email", "dob": "birth", "zip": "zip", "address1": "street", "user_id": "user"}
_CASE = {"order_id": "order", "reservation_id": "reservation"}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("dir", nargs="?", type=Path, default=CORPUS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    report = measure_customers([options.dir / name for name in CUSTOMERS])
    report |= measure_coding([options.dir / name for name in CODING])
    print(json.dumps(report)) if options.json else show(report)


def measure_customers(folders: Iterable[Path]) -> dict[str, Any]:
    """Return the shares of people's values that examples show."""
    paths = [path for path in folders if path.exists()]
    gold = find_gold(paths)
    plain, masked = (write_out(learn(paths, stand_ins)) for stand_ins in (False, True))
    by_kind: dict[str, list[int]] = {}
    leaked = []
    for kind, values in sorted(gold.items()):
        before, after = (count_shown(values, text) for text in (plain, masked))
        by_kind[kind] = [len(values), len(before), len(after)]
        leaked += [f"{kind} of {len(value)} characters" for value in after]
    total, shown_plain, shown = (sum(column) for column in zip(*by_kind.values(), strict=True))
    return {
        "values": total,
        "shown_plain": round(shown_plain / total, 4),
        "shown": round(shown / total, 4),
        "of_those_shown": round(shown / shown_plain, 4) if shown_plain else None,
        "by_kind": by_kind,
        "leaked": leaked[:20],
    }


def measure_coding(folders: Iterable[Path]) -> dict[str, Any]:
    """Return the share of coding examples that stand-ins change."""
    paths = [path for path in folders if path.exists()]
    plain = {example_key(e): e for t in learn(paths, stand_ins=False) for e in t.examples}
    masked = {example_key(e): e for t in learn(paths, stand_ins=True) for e in t.examples}
    both = plain.keys() & masked.keys()
    changed = [key for key in both if write_example(plain[key]) != write_example(masked[key])]
    return {"coding_examples": len(both), "coding_changed": round(len(changed) / max(1, len(both)), 4)}


def find_gold(paths: Iterable[Path]) -> dict[str, set[str]]:
    """Return people's values by kind, from the structured results in the transcripts."""
    gold: defaultdict[str, set[str]] = defaultdict(set)
    for path in paths:
        for file in path.glob("*.json*"):
            lines = [file.read_bytes()] if file.suffix == ".json" else file.read_bytes().splitlines()
            for text in (text for line in lines for text in list_texts(msgspec.json.decode(line))):
                for kind, value in walk(text):
                    gold[kind].add(value)
    return dict(gold)


def list_texts(document: Any) -> Iterator[Any]:
    """Yield the JSON documents inside the texts of a document: the results of tools."""
    pending = [document]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, list):
            pending += value
        elif isinstance(value, str) and value.startswith("{"):
            with suppress(msgspec.DecodeError):
                yield msgspec.json.decode(value)


def walk(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for inner in value:
            if isinstance(inner, str) and key in ("orders", "reservations"):
                yield key.removesuffix("s"), inner
            yield from walk(inner, key)
    if not isinstance(value, dict):
        return
    if isinstance(value.get("first_name"), str) and isinstance(value.get("last_name"), str):
        full = f"{value['first_name']} {value['last_name']}".strip()
        yield from [("name", full)] if " " in full else []
    for name, inner in value.items():
        kind = _PERSON.get(name) or _CASE.get(name)
        if name == "payment_methods" and isinstance(inner, dict):
            yield from (("payment", method) for method in inner)
        if kind and isinstance(inner, str) and inner and (kind == "street" or " " not in inner):
            yield kind, inner
        yield from walk(inner, name)


def learn(paths: list[Path], stand_ins: bool) -> list[Template]:
    """Return the templates that are learned from these transcripts."""
    with tempfile.TemporaryDirectory() as home, warmstart.open(home) as ws:
        ws.ingest(*paths)
        options = structs.replace(MiningOptions(), stand_ins=stand_ins)
        return list(mine((past for past in read_history(ws.store) if past), options).drafts)


def write_out(templates: Iterable[Template]) -> str:
    return "\n".join(
        "\n".join([t.name, t.description, t.addendum, *t.tags, *map(write_example, t.examples)]) for t in templates
    )


def write_example(example: Any) -> str:
    arguments = msgspec.json.encode(example.arguments).decode()
    return "\n".join([arguments, example.result, example.intent, example.task, example.correction or ""])


def example_key(example: Any) -> tuple[str, int | None]:
    return example.session, example.step


def count_shown(values: Iterable[str], text: str) -> list[str]:
    return [value for value in sorted(values) if re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text)]


def show(report: dict[str, Any]) -> None:
    print(f"{report['values']} values of people and cases in the customers' transcripts")
    print(f"shown by plain examples: {report['shown_plain']:.1%}; with stand-ins: {report['shown']:.1%}")
    for kind, (values, before, after) in report["by_kind"].items():
        print(f"  {kind:<12} {values:>5} values, {before:>4} shown by plain examples, {after:>4} with stand-ins")
    print(f"coding examples: {report['coding_examples']}, changed: {report['coding_changed']:.1%}")


if __name__ == "__main__":
    main()
