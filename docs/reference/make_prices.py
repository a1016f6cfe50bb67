"""Make `src/warmstart/usage/prices.json` from litellm's table of public list prices (MIT).

    pip download litellm --no-deps -d FOLDER && python docs/reference/make_prices.py FOLDER/litellm-*.whl

The table holds the makers' own prices for chat models. Where a maker has retired a model, a cloud that sells at the maker's
prices stands in, because old transcripts still name the model. Free models, tiered prices without a base price and models
that are not text models are left out.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src"))

from warmstart.usage.prices import MILLION, TABLE, parse_name, strip_snapshot  # noqa: E402

INSIDE = "litellm/model_prices_and_context_window_backup.json"
COSTS = (
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_read_input_token_cost",
    "cache_creation_input_token_cost",
)
SOURCES = (  # maker, litellm's providers (the maker's own first), what its models are called
    ("anthropic", ("anthropic", "bedrock_converse", "bedrock", "vertex_ai-anthropic_models"), r"claude-"),
    ("openai", ("openai",), r"gpt-[3-9]|o[1-9]|chatgpt-|codex-"),
    ("google", ("gemini", "vertex_ai-language-models"), r"gemini-|gemma-"),
    ("xai", ("xai",), r"grok-"),
    ("deepseek", ("deepseek",), r"deepseek-"),
    ("mistral", ("mistral",), r"mistral-|ministral-|codestral-|devstral-|magistral-|pixtral-|open-mi"),
    ("qwen", ("dashscope",), r"qwen|qwq"),
    ("moonshot", ("moonshot",), r"kimi-|moonshot-"),
    ("zhipu", ("zai",), r"glm-"),
    ("minimax", ("minimax",), r"minimax-"),
)
OTHER = re.compile(r"audio|image|tts|realtime|search|embedding|live|lyria|robotics|omni|deep-research|transcribe|:")
WRONG = frozenset(("claude-3-7-sonnet-20240620",))  # there was no such snapshot

Row = list[float | int | None]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("wheel", type=Path)
    wheel = parser.parse_args().wheel
    with zipfile.ZipFile(wheel) as package:
        offered = json.loads(package.read(INSIDE))
    version = wheel.name.split("-")[1]
    table = {
        "source": f"litellm {version}",
        "file": INSIDE,
        "license": "MIT",
        "date": datetime.now(UTC).date().isoformat(),
        "models": {maker: take(offered, providers, re.compile(names)) for maker, providers, names in SOURCES},
    }
    TABLE.write_text(layout(table), encoding="utf-8")
    counted = sum(map(len, table["models"].values()))
    sys.stdout.write(f"{TABLE.name}: {counted} models, {TABLE.stat().st_size} bytes\n")


def take(offered: dict[str, Any], providers: tuple[str, ...], names: re.Pattern[str]) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for provider in providers:
        known = {strip_snapshot(model) for model in found}  # with the maker or a cloud before this one
        for model, row in named(offered, provider):
            if names.match(model) and strip_snapshot(model) not in known:
                found.setdefault(model, row)
    return without_snapshots(found)


def named(offered: dict[str, Any], provider: str) -> list[tuple[str, Row]]:
    """Return the provider's priced text models, under the names that `parse_name` gives them."""
    rows: list[tuple[str, Row]] = []
    for text, facts in sorted(offered.items()):
        if facts.get("litellm_provider") != provider or facts.get("mode") not in ("chat", "responses"):
            continue
        name = parse_name(text)
        row: Row = [per_million(facts.get(cost)) for cost in COSTS]
        if name is None or OTHER.search(name.model) or name.model in WRONG:
            continue
        if row[0] and row[1]:
            rows.append((name.model, [*row, facts.get("max_input_tokens")]))
    return rows


def per_million(cost: float | None) -> float | None:
    return None if cost is None else round(cost * MILLION, 6)


def without_snapshots(rows: dict[str, Row]) -> dict[str, Row]:
    """Drop snapshots that cost the same as their model."""
    plain: dict[str, Row] = {model: row for model, row in rows.items() if strip_snapshot(model) == model}
    for model in sorted(rows):
        short = strip_snapshot(model)
        others = [row for other, row in rows.items() if strip_snapshot(other) == short]
        if short not in plain and all(row[:4] == others[0][:4] for row in others):
            plain[short] = rows[model]
        elif rows[model][:4] != plain.get(short, [])[:4]:
            plain[model] = rows[model]
    return dict(sorted(plain.items()))


def layout(table: dict[str, Any]) -> str:
    """Write one model per line, so that changes can be read."""
    makers = [
        f"  {json.dumps(maker)}: {{\n"
        + ",\n".join(f"   {json.dumps(model)}: {json.dumps(row)}" for model, row in models.items())
        + "\n  }"
        for maker, models in table["models"].items()
    ]
    facts = [f" {json.dumps(key)}: {json.dumps(table[key])}" for key in ("source", "file", "license", "date")]
    return "{\n" + ",\n".join([*facts, ' "models": {\n' + ",\n".join(makers) + "\n }"]) + "\n}\n"


if __name__ == "__main__":
    main()
