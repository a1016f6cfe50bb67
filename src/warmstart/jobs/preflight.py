"""Every job of every source, checked before its next run."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from warmstart.errors import SourceError
from warmstart.jobs.check import JobCheck, check_job
from warmstart.jobs.sources import JobSource


class JobsReport(Struct, frozen=True):
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


def check_jobs(sources: Iterable[JobSource]) -> JobsReport:
    """Every job of every source."""
    read = list(sources)
    return JobsReport(
        tuple(check_job(job, source.runtime) for source in read for job in source.jobs),
        tuple(problem for source in read for problem in source.problems),
    )
