"""Warmstart: agents that start experienced, and proof that it helps.

    import warmstart

    warmstart.inspect("session.jsonl")          # parse, judge and score a transcript
    warmstart.judge(messages)                   # which tool calls of a conversation worked
    with warmstart.open() as ws:                # store sessions, learn, start warm
        ws.ingest()
        ws.learn()
        seed = ws.provision(warmstart.Task(text="fix the failing test", session="my-session-1"))
        messages = seed.inject(messages)
        ws.report()                             # the effect of seeds, compared with cold sessions

Names are loaded when first used, so importing the package costs next to nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for true; `typing` alone would cost hooks half an interpreter's start
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from warmstart.dialects.compose import Seed
    from warmstart.dialects.lint import lint
    from warmstart.dialects.lint_calls import Finding
    from warmstart.errors import (
        BadName,
        ConfigError,
        ModelContextError,
        NotFound,
        Refused,
        SourceError,
        StoreError,
        StoreFull,
        StoreTooNew,
        StoreUnreachable,
        UnknownFormat,
        WarmstartError,
    )
    from warmstart.formats.source import Source
    from warmstart.ingest.read import Inspection, Scored, inspect, judge, scan, score
    from warmstart.ingest.records import Record
    from warmstart.ingest.run import Ingested
    from warmstart.insights import Insights
    from warmstart.jobs.prompt import JobPrompt, build_job_prompt
    from warmstart.judging.job_answer import JobOutput, classify_job_output
    from warmstart.model import (
        Brief,
        Counts,
        Decision,
        Effect,
        Evidence,
        Example,
        LiveUsage,
        Measures,
        Message,
        Omission,
        Outcome,
        Problem,
        Score,
        Session,
        Spent,
        Step,
        Task,
        Template,
        ToolCall,
        ToolResult,
        Usage,
    )
    from warmstart.notes.types import Advice, CallEvent, Note
    from warmstart.pipeline import Warmstart
    from warmstart.review import Reviewed, ReviewRuntime, spawn_review
    from warmstart.store.rows import CallRow, SessionRow, TemplateRow, TrialRow
    from warmstart.templates.forget import Forgotten
    from warmstart.templates.library import Imported, Learned
    from warmstart.templates.mine import LearnLimits
    from warmstart.templates.register import LearnedTemplate
    from warmstart.trials.power import Power
    from warmstart.trials.report import Report
    from warmstart.usage.report import UsageReport

__all__ = [
    "Advice",
    "BadName",
    "Brief",
    "CallEvent",
    "CallRow",
    "ConfigError",
    "Counts",
    "Decision",
    "Effect",
    "Evidence",
    "Example",
    "Finding",
    "Forgotten",
    "Imported",
    "Ingested",
    "Insights",
    "Inspection",
    "JobOutput",
    "JobPrompt",
    "LearnLimits",
    "Learned",
    "LearnedTemplate",
    "LiveUsage",
    "Measures",
    "Message",
    "ModelContextError",
    "NotFound",
    "Note",
    "Omission",
    "Outcome",
    "Power",
    "Problem",
    "Record",
    "Refused",
    "Report",
    "ReviewRuntime",
    "Reviewed",
    "Score",
    "Scored",
    "Seed",
    "Session",
    "SessionRow",
    "Source",
    "SourceError",
    "Spent",
    "Step",
    "StoreError",
    "StoreFull",
    "StoreTooNew",
    "StoreUnreachable",
    "Task",
    "Template",
    "TemplateRow",
    "ToolCall",
    "ToolResult",
    "TrialRow",
    "UnknownFormat",
    "Usage",
    "UsageReport",
    "Warmstart",
    "WarmstartError",
    "__version__",
    "build_job_prompt",
    "classify_job_output",
    "inspect",
    "judge",
    "lint",
    "open",
    "scan",
    "score",
    "spawn_review",
]

__version__ = "0.2.0"

_HOMES = {
    "trials.report": "Report",
    "dialects.compose": "Seed",
    "errors": "BadName ConfigError ModelContextError NotFound Refused SourceError StoreError StoreFull StoreTooNew "
    "StoreUnreachable UnknownFormat WarmstartError",
    "trials.power": "Power",
    "insights": "Insights",
    "judging.job_answer": "JobOutput classify_job_output",
    "jobs.prompt": "JobPrompt build_job_prompt",
    "store.rows": "CallRow SessionRow TemplateRow TrialRow",
    "templates.forget": "Forgotten",
    "templates.library": "Imported Learned",
    "templates.mine": "LearnLimits",
    "templates.register": "LearnedTemplate",
    "formats.source": "Source",
    "ingest.records": "Record",
    "dialects.lint": "lint",
    "dialects.lint_calls": "Finding",
    "model": "Brief Counts Decision Effect Evidence Example LiveUsage Measures Message Omission Outcome Problem Score Session "
    "Spent Step Task Template ToolCall ToolResult Usage",
    "notes.types": "Advice CallEvent Note",
    "pipeline": "Warmstart",
    "ingest.read": "Inspection Scored inspect judge scan score",
    "ingest.run": "Ingested",
    "review": "Reviewed ReviewRuntime spawn_review",
    "usage.report": "UsageReport",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    module = _HOME_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'warmstart' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"warmstart.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def open(home: Path | str | None = None, *, store: str | None = None) -> Warmstart:
    """Open Warmstart at `home` (default: WARMSTART_HOME or ~/.warmstart), with its store or another one."""
    from warmstart import config
    from warmstart.pipeline import Warmstart

    return Warmstart(config.load(home, store))
