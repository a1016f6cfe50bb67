"""Asking a model server how large its models' context windows are. Only ever done when a person asked for it."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from typing import Any

import msgspec

_KEYS = (  # how servers call it, in the order in which Hermes looks
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
_PATIENCE = 10  # seconds
_MOST_BYTES = 20_000_000


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A key is for the address that it was given for."""

    def redirect_request(self, *_args: Any) -> None:
        return None


def ask_window(base_url: str, api_key: str, model: str) -> int | None:
    """What `/models` says about the model; None where nothing is said or nobody answers."""
    if not base_url.lower().startswith(("http://", "https://")):
        return None
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        request = urllib.request.Request(f"{base_url.rstrip('/')}/models", headers=headers)
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=_PATIENCE) as response:
            body = msgspec.json.decode(response.read(_MOST_BYTES))
    except (OSError, ValueError, HTTPException, msgspec.DecodeError):
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
