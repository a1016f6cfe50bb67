"""The facts of the model that a run of the lab asks."""

from __future__ import annotations

from msgspec import Struct


class ModelFacts(Struct, frozen=True, kw_only=True):
    """The model of a run."""

    name: str  # "smollm2", a file's name, or the endpoint's name for it
    digest: str | None = None  # SHA-256 of the weights; None: unknown, of an endpoint
    runtime: str = ""  # "xllamacpp 2026.10", "endpoint"
    endpoint: str = ""  # its address; empty: a local model
