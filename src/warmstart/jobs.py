"""Scheduled jobs: will they run, what they are told, what became of them.

checked = check_jobs([read_hermes(home, read_variable)])        # before the night
prompt = build_job_prompt(job, runtime_model, runtime_provider)  # for the run
classify_job_output(answer).status                               # delivered, silent or failed
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from warmstart.errors import ModelContextError, SourceError
from warmstart.jobs_check import MINIMUM, Job, JobCheck, Runtime, check_job, read_job, require_context
from warmstart.jobs_endpoint import ask_window
from warmstart.jobs_output import FAILED_MARK, SILENT_MARK, JobOutput, classify_job_output
from warmstart.jobs_prompt import JobPrompt, build_job_prompt, describe_runtime
from warmstart.jobs_sources import Source, find_hermes_homes, read_hermes, read_list

__all__ = [
    "FAILED_MARK",
    "MINIMUM",
    "SILENT_MARK",
    "Checked",
    "Job",
    "JobCheck",
    "JobOutput",
    "JobPrompt",
    "ModelContextError",
    "Runtime",
    "Source",
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


class Checked(Struct, frozen=True):
    """What is known about all jobs."""

    jobs: tuple[JobCheck, ...]
    problems: tuple[SourceError, ...]

    @property
    def failing(self) -> list[JobCheck]:
        return [job for job in self.jobs if job.verdict == "fails"]

    @property
    def is_fine(self) -> bool:
        """A file that cannot be read may hold anything, so it is not fine."""
        return not self.failing and not self.problems


def check_jobs(sources: Iterable[Source]) -> Checked:
    """Every job of every source."""
    read = list(sources)
    return Checked(
        tuple(check_job(job, source.runtime) for source in read for job in source.jobs),
        tuple(problem for source in read for problem in source.problems),
    )
