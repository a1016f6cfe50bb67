"""Read, judge and score transcripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from warmstart import formats
from warmstart.errors import SourceError
from warmstart.formats.openai_chat import from_messages
from warmstart.formats.source import Source
from warmstart.ingest.sources import find_sources
from warmstart.ingest.strip_seed import strip_seed
from warmstart.judging.outcome import judge_result, judge_status
from warmstart.judging.score import score as score_session
from warmstart.judging.stops import add_words
from warmstart.model import Problem, Score, Session, ToolResult

Conversation = Session | Sequence[Mapping[str, Any]]

READER = 9  # raise it when readers, judge or score change their results: files are then read again


class Scored(Struct, frozen=True):
    """A session and its score."""

    session: Session
    score: Score


class Inspection(Struct, frozen=True):
    """The sessions of a file or folder, and the parts that could not be read."""

    sessions: tuple[Scored, ...]
    problems: tuple[Problem, ...]


def judge(conversation: Conversation) -> tuple[ToolResult, ...]:
    """Return the judged tool results of a session or a list of OpenAI-style messages, in order."""
    session = conversation if isinstance(conversation, Session) else from_messages(conversation, judge_result)
    return tuple(step for step in session.steps if isinstance(step, ToolResult))


def score(conversation: Conversation, tools: Mapping[str, str] | None = None) -> Score:
    """Score a session or a list of OpenAI-style messages. `tools` maps your tool names to base tools."""
    session = conversation if isinstance(conversation, Session) else from_messages(conversation, judge_result)
    return score_session(session, tools)


def inspect(path: Path | str, tools: Mapping[str, str] | None = None) -> Inspection:
    """Parse, judge and score a file, folder, archive or address; store nothing. Raises SourceError if it cannot be read."""
    sessions: list[Scored] = []
    problems: list[Problem] = []
    for source in find_sources(path, problems):
        sessions += scan(source, tools)
        problems += source.problems
    return Inspection(tuple(sessions), tuple(problems))


def scan(source: Source, tools: Mapping[str, str] | None = None, *, causes: bool = True) -> Iterator[Scored]:
    """Yield the scored sessions of one file. Parts that cannot be read are in `source.problems` afterwards.

    Without `causes`, outcomes have no cause, no findings and no words of a person: the score needs none of them.
    """
    try:
        for read in formats.read(source, judge_result if causes else judge_status):
            session = add_words(strip_seed(read)) if causes else strip_seed(read)
            yield Scored(session, score_session(session, tools))
    except SourceError as error:
        source.report(error.reason, error.line)
