"""Hermes' scheduled jobs: which job a session is a run of, what it asks for, and the hint of what it runs on."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import Any

from warmstart.formats.hermes_rows import CRON_RUN
from warmstart.jobs.prompt import describe_runtime

log = logging.getLogger("warmstart.hermes")

PLATFORM = "cron"


def find_job(session: str, platform: str) -> str | None:
    """The id of the job that a session is a run of; None for every other session."""
    found = CRON_RUN.fullmatch(session) if platform == PLATFORM else None
    return found[1] if found else None


def find_prompt(job: str) -> str:
    """The job's own words, without what Hermes puts around them; empty where the job is there no longer."""
    said = _find_record(job).get("prompt")
    return said.strip() if isinstance(said, str) else ""


def describe_run(session: str, model: str) -> str:
    """What a scheduled run is told about its model and provider."""
    job = find_job(session, PLATFORM)
    return describe_runtime(model, _find_provider(_find_record(job) if job else {}))


def _find_record(job: str) -> dict[str, Any]:
    try:
        found = import_module("cron.jobs").get_job(job)
    except Exception:  # Hermes' own, of whatever version: the run goes on without
        log.debug("job %s cannot be looked up", job, exc_info=True)
        return {}
    return found if isinstance(found, dict) else {}


def _find_provider(record: dict[str, Any]) -> str:
    """The job's, or the one that Hermes' settings and environment name; empty where Hermes chooses by itself."""
    try:
        found = import_module("hermes_cli.runtime_provider").resolve_requested_provider(record.get("provider"))
    except Exception:  # as above
        log.debug("the provider cannot be looked up", exc_info=True)
        return str(record.get("provider") or "")
    return "" if found == "auto" else str(found)
