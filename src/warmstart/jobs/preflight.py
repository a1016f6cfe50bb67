"""Check every job of every source before its next run."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from warmstart.errors import SourceError
from warmstart.jobs.check import JobCheck, check_job
from warmstart.jobs.sources import JobSource


class JobsReport(Struct, frozen=True):
    """The checks of all jobs, and the files that could not be read."""

    jobs: tuple[JobCheck, ...]
    problems: tuple[SourceError, ...]

    @property
    def failing(self) -> list[JobCheck]:
        return [job for job in self.jobs if job.verdict == "fails"]

    @property
    def is_fine(self) -> bool:
        """Whether no job fails and every file could be read: an unreadable file may hold anything."""
        return not self.failing and not self.problems


def check_jobs(sources: Iterable[JobSource]) -> JobsReport:
    """Check every job of every source."""
    known = list(sources)
    return JobsReport(
        tuple(check_job(job, source.runtime) for source in known for job in source.jobs),
        tuple(problem for source in known for problem in source.problems),
    )
