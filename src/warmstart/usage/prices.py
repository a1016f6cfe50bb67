"""What tokens cost: the makers' public list prices, where a transcript does not say.

A model's name is taken apart carefully (who hosts it, where, which snapshot) and then has to be in the table: a similar
name is another model, and a host that we do not know has prices that we do not know. `prices.json` says where the prices
come from and of which day they are; `docs/reference/make_prices.py` makes it.
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
_MAKERS = {  # how hosts and gateways write them
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
    """The file: prices for a million tokens by maker and model, in the order of Price's fields."""

    source: str  # whose prices
    file: str  # and where they stand there
    license: str
    date: str  # when it was made
    models: dict[str, dict[str, tuple[float | None, float | None, float | None, float | None, int | None]]]


class Name(NamedTuple):
    """A model's name taken apart."""

    maker: str | None  # None: not told, so any
    model: str


def parse_name(text: str) -> Name | None:
    """`bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0` is Anthropic's claude-sonnet-4-5-20250929.

    None where a part before the model is neither a maker nor a gateway that sells at the makers' prices.
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
    model = _VERTEX.sub(lambda found: "" if found[0] == "@default" else "-", model)
    if model.startswith("claude-"):
        model = _POINT.sub("-", model)
    return Name(maker, model)


def strip_snapshot(model: str) -> str:
    """Without the day of a snapshot: a model's snapshots cost the same unless the table has the snapshot itself."""
    return _SNAPSHOT.sub("", model)


def find_cost(usage: Usage, price: Price) -> float | None:
    """What tokens cost; None where tokens of a kind are not known or have no price."""
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
    """The table and what the user's settings put above it."""

    def __init__(self, own: Mapping[str, Price] | None = None, table: Path = TABLE) -> None:
        self._file = table
        self._table: Table | None = None
        self._own = {name.strip().lower(): price for name, price in (own or {}).items()}
        self._own |= {model: price for name, price in self._own.items() for model in _own_names(name)}
        self._known: dict[str, Price | None] = {}

    @property
    def table(self) -> Table:
        """Read when first needed."""
        if self._table is None:
            self._table = msgspec.json.decode(self._file.read_bytes(), type=Table)
        return self._table

    def find(self, model: str) -> Price | None:
        """The price of a model by the name that a transcript gives it; None where it is not known."""
        if model not in self._known:
            self._known[model] = next(self._candidates(model), None)
        return self._known[model]

    def cost(self, usage: Usage, model: str) -> float | None:
        """What tokens cost at list prices; None where that is not known."""
        price = self.find(model)
        return None if price is None else find_cost(usage, price)

    def _candidates(self, text: str) -> Iterator[Price]:
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
