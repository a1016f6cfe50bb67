"""Choose the stored sessions that a named template is built from: by source, project, length and description."""

from __future__ import annotations

from msgspec import Struct, structs

from warmstart.errors import NotFound
from warmstart.plurals import format_count
from warmstart.projects.resolve import find_project
from warmstart.scopes import Border
from warmstart.store import ProjectStore, SessionRow, Store
from warmstart.templates.build import rank_by_description

MIN_MESSAGES, MAX_SESSIONS = 4, 20
_COMPARED = 500  # latest sessions whose requests are compared with a description
_INTENTS = 40  # calls of a session whose purposes are compared


class BuildSources(Struct, frozen=True, kw_only=True):
    """The stored sessions that a template may be built from."""

    source: str = ""  # an agent, or a place that agents run sessions for (cli, telegram ...); empty: see `agent`
    agent: str | None = None  # where no source is named; None: every agent
    min_messages: int = MIN_MESSAGES  # with calls and results
    max_sessions: int = MAX_SESSIONS
    project: str | None = None  # its name, the end of it, or a folder; None: every project
    border: Border | None = None  # nothing beyond it exists; None: the machine's owner asks


def find_build_sources(store: Store, wanted: BuildSources, description: str = "") -> list[SessionRow]:
    """Return the sessions to build from: the latest, or those that a description is about.

    Raises NotFound, with what is there instead, if there are none.
    """
    if wanted.project is not None:
        wanted = structs.replace(wanted, project=find_project(ProjectStore(store), wanted.project).name)
    rows = _list_of_source(store, wanted)
    long_enough = [row for row in rows if row.length >= wanted.min_messages]
    if not long_enough:
        longest = max((row.length for row in rows), default=0)
        where = f" of the project {wanted.project}" if wanted.project is not None else ""
        there = (
            f"the longest of {format_count(len(rows), 'session')} has {longest}"
            if rows
            else f"no session{where} is stored"
        )
        raise NotFound(f"no session with {wanted.min_messages} messages or more: {there}")
    if description:
        long_enough = long_enough[:_COMPARED]
        near = rank_by_description([_describe(store, row) for row in long_enough], description)
        if not near:
            latest = long_enough[0].task or "(no request)"
            raise NotFound(
                f"none of {format_count(len(long_enough), 'session')} is about {description!r}; "
                f"the latest is about {' '.join(latest.split())[:80]!r}"
            )
        long_enough = [long_enough[at] for at in near]
    return long_enough[: wanted.max_sessions]


def _list_of_source(store: Store, wanted: BuildSources) -> list[SessionRow]:
    """Return the sessions of a source within the border, the latest first."""
    if not wanted.source:
        return _admit(store.list_sessions(None, agent=wanted.agent, project=wanted.project), wanted.border)
    of_agent = store.list_sessions(None, agent=wanted.source, project=wanted.project)
    of_place = store.list_sessions(None, source=wanted.source.lower(), project=wanted.project)
    rows = _admit(of_agent, wanted.border) or _admit(of_place, wanted.border)
    if not rows:
        known = _admit(store.list_sessions(None, project=wanted.project), wanted.border)
        agents = ", ".join(sorted({row.agent for row in known})) or "none yet"
        places = ", ".join(sorted({row.source for row in known if row.source})) or "none yet"
        raise NotFound(
            f"no sessions of the source {wanted.source!r}; agents with sessions: {agents}; their sources: {places}"
        )
    return rows


def _admit(rows: list[SessionRow], border: Border | None) -> list[SessionRow]:
    return [row for row in rows if border is None or border.admits(row.scope, row.project or "")]


def _describe(store: Store, row: SessionRow) -> str:
    """Return a session's request, and what its calls were for: the first request of a chat may be a greeting."""
    intents = [call.intent for call in store.calls_of(row.key)[:_INTENTS] if call.intent]
    return "\n".join(dict.fromkeys((row.task or "", *intents)))
