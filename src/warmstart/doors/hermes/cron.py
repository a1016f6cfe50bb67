"""Hermes' scheduled jobs: the job of a session, its prompt, and the hint about its model and a failed run's mark."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import Any

from warmstart.formats.hermes_rows import CRON_RUN
from warmstart.jobs.prompt import FAILED_RULE, describe_runtime

log = logging.getLogger("warmstart.hermes")

PLATFORM = "cron"


def find_job(session: str, platform: str) -> str | None:
    """Return the id of the job that a session runs; None for every other session."""
    run = CRON_RUN.fullmatch(session) if platform == PLATFORM else None
    return run[1] if run else None


def find_prompt(job: str) -> str:
    """Return the job's own prompt, without the text that Hermes adds; empty if the job has been deleted."""
    prompt = _find_record(job).get("prompt")
    return prompt.strip() if isinstance(prompt, str) else ""


def describe_run(session: str, model: str) -> str:
    """Return the hint for a scheduled run: its model and provider, and how to report that it failed.

    Hermes itself explains only the mark of silence, and takes every answer for a success.
    """
    job = find_job(session, PLATFORM)
    runtime = describe_runtime(model, _find_provider(_find_record(job) if job else {}))
    return "\n".join(filter(None, (runtime, FAILED_RULE)))


def _find_record(job: str) -> dict[str, Any]:
    try:
        record = import_module("cron.jobs").get_job(job)
    except Exception:  # of Hermes, in whatever version: the run goes on without it
        log.debug("job %s cannot be looked up", job, exc_info=True)
        return {}
    return record if isinstance(record, dict) else {}


def _find_provider(record: dict[str, Any]) -> str:
    """Return the job's provider, or that of Hermes' settings and environment; empty if Hermes chooses by itself."""
    try:
        provider = import_module("hermes_cli.runtime_provider").resolve_requested_provider(record.get("provider"))
    except Exception:  # as above
        log.debug("the provider cannot be looked up", exc_info=True)
        return str(record.get("provider") or "")
    return "" if provider == "auto" else str(provider)
