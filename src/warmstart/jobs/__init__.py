"""Scheduled jobs: check before they run, build their prompts, classify their answers.

checked = check_jobs([read_hermes(home, read_variable)])        # before the night
prompt = build_job_prompt(job, runtime_model, runtime_provider)  # for the run
classify_job_output(answer).status                               # delivered, silent or failed
"""

from __future__ import annotations

from warmstart.endpoints.context_window import ask_window
from warmstart.errors import ModelContextError
from warmstart.jobs.check import (
    MINIMUM,
    Job,
    JobCheck,
    JobRuntime,
    KnownWindow,
    WindowQuestion,
    check_job,
    read_job,
    require_context,
)
from warmstart.jobs.preflight import JobsReport, check_jobs
from warmstart.jobs.prompt import JobPrompt, build_job_prompt, describe_runtime
from warmstart.jobs.sources import JobSource, find_hermes_homes, read_hermes, read_list
from warmstart.judging.job_answer import FAILED_MARK, SILENT_MARK, JobOutput, classify_job_output

__all__ = [
    "FAILED_MARK",
    "MINIMUM",
    "SILENT_MARK",
    "Job",
    "JobCheck",
    "JobOutput",
    "JobPrompt",
    "JobRuntime",
    "JobSource",
    "JobsReport",
    "KnownWindow",
    "ModelContextError",
    "WindowQuestion",
    "ask_window",
    "build_job_prompt",
    "check_job",
    "check_jobs",
    "classify_job_output",
    "describe_runtime",
    "find_hermes_homes",
    "read_hermes",
    "read_job",
    "read_list",
    "require_context",
]
