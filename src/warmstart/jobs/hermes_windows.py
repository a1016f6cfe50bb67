"""The context window that Hermes 0.19 takes a model to have, where its settings do not name one.

Hermes asks the model's endpoint, then looks the name up in a table of families, and otherwise assumes 256,000 tokens. This
mirrors it without Hermes and without the network, unless a function that asks the endpoint is given. Inside Hermes its own
function is asked instead (`doors.hermes.windows`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from warmstart.jobs.check import AskWindow, KnownWindow, WindowQuestion, read_tokens
from warmstart.usage.prices import PriceList

ASSUMED = 256_000  # tokens, of a model that Hermes knows nothing about
_HOSTS = {  # part of an endpoint's host -> provider; Hermes trusts no such endpoint's own figures
    "api.openai.com": "openai",
    "chatgpt.com": "openai",
    "api.anthropic.com": "anthropic",
    "openrouter.ai": "openrouter",
    "generativelanguage.googleapis.com": "google",
    "api.deepseek.com": "deepseek",
    "api.x.ai": "xai",
    "api.z.ai": "zai",
    "api.minimax": "minimax",
    "dashscope": "alibaba",
    "githubcopilot.com": "github-copilot",
    "api.fireworks.ai": "fireworks-ai",
    "inference-api.nousresearch.com": "nous",
    "api.moonshot": "kimi-for-coding",
    "api.kimi.com": "kimi-for-coding",
    "integrate.api.nvidia.com": "nvidia",
    "ollama.com": "ollama-cloud",
}
_LISTED_AS = {"openai-codex": "openai", "gemini": "google", "copilot": "github-copilot", "fireworks": "fireworks-ai"}
_FAMILIES = {  # part of a model's name -> tokens; the longest that matches counts
    **dict.fromkeys(("claude-fable", "claude-sonnet-5", "claude-opus-4-8", "claude-opus-4.8"), 1_000_000),
    **dict.fromkeys(("claude-opus-4-7", "claude-opus-4.7", "claude-opus-4-6", "claude-opus-4.6"), 1_000_000),
    **dict.fromkeys(("claude-sonnet-4-6", "claude-sonnet-4.6"), 1_000_000),
    "claude": 200_000,
    **dict.fromkeys(("gpt-5.6-luna", "gpt-5.6-terra", "gpt-5.6-sol", "gpt-5.5", "gpt-5.4"), 1_050_000),
    **dict.fromkeys(("gpt-5.4-nano", "gpt-5.4-mini", "gpt-5"), 400_000),
    **dict.fromkeys(("gpt-5.3-codex-spark", "gpt-5.1-chat", "gpt-4"), 128_000),
    "gpt-4.1": 1_047_576,
    "gemini": 1_048_576,
    **dict.fromkeys(("gemma-4", "gemma4"), 256_000),
    "gemma-3": 131_072,
    "gemma": 8_192,
    **dict.fromkeys(("deepseek-v4-pro", "deepseek-v4-flash", "deepseek-chat", "deepseek-reasoner"), 1_000_000),
    "deepseek": 128_000,
    "llama": 131_072,
    **dict.fromkeys(("qwen3.6-plus", "qwen3.7-plus"), 1_048_576),
    "qwen3-coder-plus": 1_000_000,
    **dict.fromkeys(("qwen3-coder", "qwen3-max"), 262_144),
    "qwen": 131_072,
    "minimax-m3": 1_000_000,
    "minimax": 204_800,
    "glm-5.2": 1_048_576,
    "glm": 202_752,
    "grok-composer": 200_000,
    **dict.fromkeys(("grok-build-latest", "grok-4.5"), 500_000),
    **dict.fromkeys(("grok-build", "grok-code-fast", "grok-4"), 256_000),
    "grok-2-vision": 8_192,
    **dict.fromkeys(("grok-4-fast", "grok-4.20"), 2_000_000),
    "grok-4.3": 1_000_000,
    "grok": 131_072,
    "kimi-k3": 1_048_576,
    "kimi": 262_144,
    "solar-open2": 262_144,
    "solar-pro3": 131_072,
    "solar-pro2": 65_536,
    "solar-mini": 32_768,
    "hy3": 262_144,
    "nemotron": 131_072,
    "trinity": 262_144,
    "elephant": 262_144,
    **dict.fromkeys(("mimo-v2-pro", "mimo-v2.5"), 1_048_576),
    **dict.fromkeys(("mimo-v2-omni", "mimo-v2-flash"), 262_144),
}


class HermesWindows:
    """Finds windows as one Hermes home would."""

    def __init__(self, home: Path, cached: Mapping[str, Any], ask: AskWindow | None = None) -> None:
        """`cached`: what Hermes found before, by `model@base URL`."""
        self._home = home
        self._cached = cached
        self._ask = ask
        self._lists: dict[str, Any] | None = None

    def __call__(self, question: WindowQuestion) -> KnownWindow:
        url, model = question.base_url.rstrip("/"), question.model
        if url and (tokens := self._find_cached(model, url)) is not None:
            return KnownWindow(tokens, "Hermes' cache")
        provider = find_provider(url) if url else _LISTED_AS.get(question.provider, question.provider)
        if url and provider is None:
            return self._find_custom(question)
        tokens = self._find_listed(provider or "", model)
        if tokens is not None:
            return KnownWindow(tokens, "Hermes' list of models")
        price = PriceList().find(model)
        if price is not None and price.window is not None:
            return KnownWindow(price.window, "Warmstart's table")
        tokens = find_family(model)
        return KnownWindow(tokens, "Hermes' table") if tokens else KnownWindow(ASSUMED, "Hermes' assumption")

    def _find_custom(self, question: WindowQuestion) -> KnownWindow:
        """Return the window of a model at an endpoint that Hermes does not know: it asks the endpoint first."""
        tokens = self._ask(question.base_url, question.api_key, question.model) if self._ask else None
        if tokens is not None:
            return KnownWindow(tokens, "the endpoint")
        if (tokens := find_family(question.model)) is not None:
            return KnownWindow(
                tokens, "Hermes' table" if self._ask else "Hermes' table, unless the endpoint reports it"
            )
        if self._ask:
            return KnownWindow(ASSUMED, "Hermes' assumption: the endpoint does not report it")
        return KnownWindow(None, "--ask-endpoint may find it")

    def _find_cached(self, model: str, url: str) -> int | None:
        return read_tokens(self._cached.get(f"{model}@{url}") or self._cached.get(f"{model}@{url}/"))

    def _find_listed(self, provider: str, model: str) -> int | None:
        """Return the window in the list of models.dev that Hermes keeps on disk."""
        if self._lists is None:
            self._lists = _read_lists(self._home / "models_dev_cache.json")
        listed = self._lists.get(provider)
        models = listed.get("models") if isinstance(listed, dict) else None
        entry = models.get(model) if isinstance(models, dict) else None
        limit = entry.get("limit") if isinstance(entry, dict) else None
        return read_tokens(limit.get("context")) if isinstance(limit, dict) else None


def find_provider(url: str) -> str | None:
    """Return the provider that an endpoint belongs to; None for every other endpoint."""
    host = urlsplit(url if "://" in url else f"https://{url}").netloc.lower()
    return next((provider for part, provider in _HOSTS.items() if part in host), None)


def find_family(model: str) -> int | None:
    """Return the window of the model's family; None if the name matches none."""
    name = model.lower()
    matching = [family for family in _FAMILIES if family in name]
    return _FAMILIES[max(matching, key=len)] if matching else None


def _read_lists(path: Path) -> dict[str, Any]:
    try:
        content = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return content if isinstance(content, dict) else {}
