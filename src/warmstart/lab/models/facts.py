"""Which model a run of the lab asked."""

from __future__ import annotations

from msgspec import Struct


class ModelFacts(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """Which model it was. Its repr names the folders of runs: what is not known stays out of it."""

    name: str  # "smollm2", a file's name, or what the endpoint calls it
    digest: str | None = None  # SHA-256 of the weights; None: an endpoint, nobody knows
    runtime: str = ""  # "xllamacpp 2026.10", "endpoint"
    endpoint: str = ""  # its address; empty: a local model
