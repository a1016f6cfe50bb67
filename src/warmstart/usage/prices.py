"""Price tokens with the makers' public list prices, for transcripts that report no cost.

A model's name is parsed (host, region, snapshot) and must then match the table exactly: a similar name is another model, and
an unknown host has unknown prices. `prices.json` names the source and the date of the prices;
`docs/reference/make_prices.py` generates it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from warmstart.model import Price, Usage
from warmstart.usage.amounts import COUNTED

TABLE = Path(__file__).with_name("prices.json")
MILLION = 1_000_000

_GATEWAYS = frozenset(("openrouter", "litellm_proxy", "vercel_ai_gateway", "bedrock", "converse", "vertex_ai", "azure"))
_MAKERS = {  # as hosts and gateways write them -> as the table does
    "anthropic": "anthropic",
    "openai": "openai",
    "google": "google",
    "gemini": "google",
    "models": "google",
    "xai": "xai",
    "x-ai": "xai",
    "deepseek": "deepseek",
    "deepseek-ai": "deepseek",
    "mistral": "mistral",
    "mistralai": "mistral",
    "qwen": "qwen",
    "dashscope": "qwen",
    "moonshot": "moonshot",
    "moonshotai": "moonshot",
    "zai": "zhipu",
    "z-ai": "zhipu",
    "zhipuai": "zhipu",
    "minimax": "minimax",
}
_BEDROCK = re.compile(r"\A(?:(?:us|eu|apac|au|jp|ca|global)\.)?anthropic\.(.+?)(?:-v\d+(?::\d+)?)?\Z")
_VERTEX = re.compile(r"@(?:default\Z|(?=\d{8}\Z))")  # claude-sonnet-4-5@20250929
_SNAPSHOT = re.compile(r"-20(?:\d{6}|\d\d-\d\d-\d\d)\Z")
_POINT = re.compile(r"(?<=\d)\.(?=\d)")


class Table(Struct, frozen=True, forbid_unknown_fields=True):
    """The file: prices per million tokens by maker and model, in the order of Price's fields."""

    source: str  # the project that publishes the prices
    file: str  # the file in that project
    license: str
    date: str  # when this table was generated
    models: dict[str, dict[str, tuple[float | None, float | None, float | None, float | None, int | None]]]


class Name(NamedTuple):
    """A parsed model name."""

    maker: str | None  # None: the name does not say
    model: str


def parse_name(text: str) -> Name | None:
    """Parse a name: `bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0` is Anthropic's claude-sonnet-4-5-20250929.

    None if a part before the model is neither a maker nor a gateway that sells at the makers' prices.
    """
    maker = None
    *hosts, model = text.strip().lower().removesuffix("[1m]").split("/")
    for host in hosts:
        if maker is None and host in _MAKERS:
            maker = _MAKERS[host]
        elif maker is not None or host not in _GATEWAYS:
            return None
    if (bedrock := _BEDROCK.match(model)) is not None:
        maker, model = "anthropic", bedrock[1]
    model = _VERTEX.sub(lambda match: "" if match[0] == "@default" else "-", model)
    if model.startswith("claude-"):
        model = _POINT.sub("-", model)
    return Name(maker, model)


def strip_snapshot(model: str) -> str:
    """Remove the date of a snapshot: snapshots cost the same as the model unless the table lists them."""
    return _SNAPSHOT.sub("", model)


def find_cost(usage: Usage, price: Price) -> float | None:
    """Return the cost of tokens; None if some kind of tokens is unknown or has no price."""
    if usage.input is None or usage.output is None:
        return None
    cost = 0.0
    for kind in COUNTED:
        if count := getattr(usage, kind):
            each = getattr(price, kind)
            if each is None:
                return None
            cost += count * each / MILLION
    return cost


class PriceList:
    """The price table, overridden by the user's settings."""

    def __init__(self, own: Mapping[str, Price] | None = None, table: Path = TABLE) -> None:
        self._file = table
        self._table: Table | None = None
        self._own = {name.strip().lower(): price for name, price in (own or {}).items()}
        self._own |= {model: price for name, price in self._own.items() for model in _own_names(name)}
        self._known: dict[str, Price | None] = {}

    @property
    def table(self) -> Table:
        """The table, read when first needed."""
        if self._table is None:
            self._table = msgspec.json.decode(self._file.read_bytes(), type=Table)
        return self._table

    def find(self, model: str) -> Price | None:
        """Return the price of a model by its name in a transcript; None if unknown."""
        if model not in self._known:
            self._known[model] = next(self._find_candidates(model), None)
        return self._known[model]

    def cost(self, usage: Usage, model: str) -> float | None:
        """Return the cost of tokens at list prices; None if unknown."""
        price = self.find(model)
        return None if price is None else find_cost(usage, price)

    def _find_candidates(self, text: str) -> Iterator[Price]:
        if (price := self._own.get(text.strip().lower())) is not None:
            yield price
        name = parse_name(text)
        if name is None:
            return
        for model in dict.fromkeys((name.model, strip_snapshot(name.model), name.model.removesuffix("-latest"))):
            if (price := self._own.get(model)) is not None:
                yield price
            for maker, models in self.table.models.items():
                if name.maker in (None, maker) and model in models:
                    yield Price(*models[model])


def _own_names(name: str) -> tuple[str, ...]:
    parsed = parse_name(name)
    return () if parsed is None else (parsed.model,)
