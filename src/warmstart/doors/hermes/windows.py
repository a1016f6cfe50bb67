"""Ask Hermes itself which context window a model has, in a process that runs in Hermes' environment."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from warmstart.jobs.check import FindWindow, KnownWindow, WindowQuestion

INSIDE = "WARMSTART_INSIDE"  # set to "hermes" for the commands that `hermes warmstart ...` starts
_FUNCTION = "agent.model_metadata"


def is_hermes_here() -> bool:
    """Return whether Hermes' own code can be imported."""
    try:
        return find_spec("hermes_constants") is not None and find_spec(_FUNCTION) is not None
    except (ImportError, ValueError):
        return False


def make_finder(home: Path) -> FindWindow:
    """Return a function that asks Hermes as it asks itself when a job of this home runs, its endpoint included."""

    def find(question: WindowQuestion) -> KnownWindow:
        with _in_home(home), contextlib.redirect_stdout(sys.stderr):
            url, key, provider = question.base_url, question.api_key, question.provider
            if not url:
                url, key, provider = _resolve(question)
            tokens = import_module(_FUNCTION).get_model_context_length(
                question.model, base_url=url, api_key=key, provider=provider
            )
        return KnownWindow(int(tokens), "Hermes")

    return find


def _resolve(question: WindowQuestion) -> tuple[str, str, str]:
    """Return address, key and provider that Hermes would use; without them the name alone decides."""
    try:
        resolve = import_module("hermes_cli.runtime_provider").resolve_runtime_provider
        runtime = resolve(requested=question.provider or None, target_model=question.model)
    except Exception:  # of Hermes: no login, for example
        logging.getLogger("warmstart.hermes").debug("the provider cannot be resolved", exc_info=True)
        return "", "", question.provider
    return str(runtime.get("base_url") or ""), str(runtime.get("api_key") or ""), str(runtime.get("provider") or "")


@contextlib.contextmanager
def _in_home(home: Path) -> Iterator[None]:
    """Let Hermes use another home: that of a profile."""
    constants = import_module("hermes_constants")
    token = constants.set_hermes_home_override(str(home))
    try:
        yield
    finally:
        constants.reset_hermes_home_override(token)
