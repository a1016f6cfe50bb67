"""Ask a model server for the size of a model's context window. Only done when a person requests it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from warmstart.endpoints.http import HttpClient, HttpError
from warmstart.errors import ConfigError

_KEYS = (  # servers' names for it, in Hermes' order
    "context_length",
    "context_window",
    "context_size",
    "max_context_length",
    "max_position_embeddings",
    "max_model_len",
    "max_input_tokens",
    "max_sequence_length",
    "max_seq_len",
    "n_ctx_train",
    "n_ctx",
    "ctx_size",
)
_PLAUSIBLE = range(1_024, 10_000_001)
_PATIENCE = 10.0  # seconds
_LARGEST = 20_000_000  # bytes
_TRIES = 2  # a person waits


def ask_window(base_url: str, api_key: str, model: str) -> int | None:
    """Return the window that the server's `/models` gives for a model; None if it gives none or does not answer."""
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        client = HttpClient(base_url, timeout=_PATIENCE, largest=_LARGEST, tries=_TRIES)
        response = client.send("GET", f"{client.base_path}/models", headers=headers)
        body = msgspec.json.decode(response.body) if response.status == 200 else None
    except (ConfigError, HttpError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    listed = body.get("data") if isinstance(body, Mapping) else None
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, Mapping) and entry.get("id") == model:
            return _find_window(entry)
    return None


def _find_window(entry: Mapping[str, Any]) -> int | None:
    for mapping in _nested(entry, 0):
        for key in _KEYS:
            value = mapping.get(key)
            if isinstance(value, int) and not isinstance(value, bool) and value in _PLAUSIBLE:
                return value
    return None


def _nested(value: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping) and depth < 6:
        yield value
        for inner in value.values():
            yield from _nested(inner, depth + 1)
