"""Every way in which a session can ask Warmstart for something. A new door is a new asker at the end of the list."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import msgspec
from click.testing import CliRunner
from mcp import Client, MCPError

from borders.world import PLACES, TASK, Place, ask_for, find_missing
from hermes.plugin_calls import make_plugin, make_request, send
from warmstart.doors.cli.main import main as run_cli
from warmstart.doors.hermes.place import SessionPlace
from warmstart.doors.hooks.run import HookCall
from warmstart.doors.hooks.run import run as run_hook
from warmstart.doors.mcp.notes import name_resource as name_notes
from warmstart.doors.mcp.resources import name_resource
from warmstart.doors.mcp.server import McpDoor, build_server
from warmstart.model import DIALECTS, SessionOwner, Task
from warmstart.pipeline import Warmstart
from warmstart.scopes import Border


class Asking(NamedTuple):
    """One asker's situation: a place, and everything that it needs to ask from there."""

    ws: Warmstart
    root: Path
    place: Place
    others: Sequence[Place] = PLACES  # those whose words, templates and sessions it tries to reach

    @property
    def scope(self) -> str:
        return self.place.name_scope(self.ws)

    @property
    def border(self) -> Border:
        return Border(self.scope, self.place.project or None)

    @property
    def names(self) -> list[str]:
        """The names of the others' templates."""
        return [row.name for row, _template in self.ws.templates.find() if self.belongs(row.name)]

    def belongs(self, name: str) -> bool:
        """Whether a template or session is one of the others'; of all places, also whatever an asker has made."""
        return self.others is PLACES or any(place.canary in name for place in self.others)

    @property
    def texts(self) -> list[str]:
        """Requests that try to reach every place: its words, its template's names, no words at all."""
        return [TASK, "", "coding", "ops", *map(ask_for, self.others), *self.names]


class Asker(NamedTuple):
    """One way to ask: it yields answers. `serves` says whether a place can use it and must hear its own canary."""

    ask: Callable[[Asking], Iterator[Any]]
    serves: Callable[[Place], bool] = lambda _place: True


def ask_provision(asking: Asking) -> Iterator[Any]:
    for number, text in enumerate(asking.texts):
        for dialect in DIALECTS:
            task = Task(text=text, scope=asking.scope, project=asking.place.project or None, dialect=dialect)
            yield asking.ws.provision(task)
            session = f"new-{asking.place.canary}-{number}"
            yield asking.ws.provision(msgspec.structs.replace(task, session=session))


def ask_the_hook(asking: Asking) -> Iterator[Any]:
    for number, text in enumerate(asking.texts):
        for agent in ("claude-code", "codex"):
            event = {"session_id": f"h-{number}-{asking.place.canary[0]}{agent[:2]}", "cwd": asking.place.project}
            start = {"hook_event_name": "SessionStart", "source": "resume"}
            for more in (start, {"hook_event_name": "UserPromptSubmit", "prompt": text}):
                stdin = io.BytesIO(msgspec.json.encode(event | more))
                yield run_hook(HookCall(agent, home=str(asking.ws.settings.home)), stdin) or b""


def ask_mcp(asking: Asking) -> Iterator[Any]:
    """Ask every tool, resource and prompt of a server that serves this place."""
    door = McpDoor(asking.ws.settings, started_in=asking.root, border=asking.border)
    yield from anyio.run(_use_mcp, door, asking)


async def _use_mcp(door: McpDoor, asking: Asking) -> list[str]:
    sessions = [row.id for row in asking.ws.sessions(limit=None) if asking.belongs(row.id)]
    calls: list[tuple[str, dict[str, Any]]] = [("templates_list", {}), ("insights", {}), ("learn", {})]
    calls += [("provision", {"task": text}) for text in asking.texts]
    calls += [("brief", {"task": text}) for text in asking.texts]
    calls += [("advise", make_call(place)) for place in asking.others if place.project in ("", asking.place.project)]
    calls += [("template_show", {"name": name}) for name in asking.names]
    calls += [("capture", {"session": session, "name": "kept"}) for session in (*sessions, sessions[0][:1])]
    calls += [("warm_session", {"action": "list"}), ("warm_session", {"action": "build", "name": "built"})]
    calls += [("warm_session", {"action": "load", "name": name}) for name in (*asking.names, "built")]
    answers: list[str] = []
    async with Client(build_server(door)) as client:
        for tool, arguments in calls:
            answer = await client.call_tool(tool, arguments)
            answers.append(_leave_out(answer.model_dump_json(), filter(_is_text, arguments.values())))
        answers.append((await client.list_resources()).model_dump_json())
        for name in asking.names:
            with suppress(MCPError):
                answers.append((await client.read_resource(name_resource(name))).model_dump_json())
        for project in {place.project for place in PLACES}:
            with suppress(MCPError):
                answers.append((await client.read_resource(name_notes(project))).model_dump_json())
        answers.append((await client.get_prompt("start_warm", {"task": TASK})).model_dump_json())
    return answers


def make_call(place: Place) -> dict[str, Any]:
    """Return a call that failed in every session of a place."""
    return {"tool": "terminal", "arguments": {"command": find_missing(place)}, "cwd": place.project or "/srv/none"}


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _leave_out(answer: str, question: Any) -> str:
    """Leave out the asker's own words: an error repeats the name that does not exist."""
    for word in question:
        answer = answer.replace(word, "...") if len(word) > 8 else answer
    return answer


def ask_the_plugin(asking: Asking) -> Iterator[Any]:
    """Ask Hermes' plugin: requests to the model, its tool, and `/warm` in the chat."""
    facts = {name: getattr(asking.place, name) for name in SessionOwner.__struct_fields__}
    place = SessionPlace(SessionOwner(**facts), asking.place.project or None, "asking")
    plugin = make_plugin(place=place)
    for number, text in enumerate(filter(None, asking.texts)):
        request = make_request()
        request["messages"][1]["content"] = text
        sent = send(plugin, request, session_id=f"plugin-{asking.place.canary}-{number}")
        yield [message for message in sent["messages"] if message.get("content") != text]
    for name in asking.names:
        answer = plugin.tool.handle({"action": "load", "name": name}, session_id="asking")
        yield _leave_out(answer, [name])
    yield plugin.tool.handle({"action": "list"}, session_id="asking")
    if place.is_personal:  # the person at the keyboard may see the sessions of all projects
        for words in ("status", "templates", "why", f"why new-{PLACES[6].canary}-0", f"why new-{PLACES[0].canary}-0"):
            yield plugin.command.answer(words)
    plugin.end_process()


def ask_the_command_line(asking: Asking) -> Iterator[Any]:
    home = ("--home", str(asking.ws.settings.home))
    here = ("--scope", asking.scope, "--project", asking.place.project)
    for text in (TASK, ask_for(asking.place), *asking.names):
        done = CliRunner().invoke(run_cli, [*home, "provision", text, *here, "--json"])
        assert done.exit_code == 0, done.output
        yield _leave_out(done.stdout, [text])
    if not asking.place.project:  # a list and an export are of all projects of a scope
        for words in (("templates", "list", "--json"), ("templates", "export")):
            yield CliRunner().invoke(run_cli, [*home, *words, "--scope", asking.scope]).stdout


def ask_for_a_list(asking: Asking) -> Iterator[Any]:
    yield asking.ws.templates.find(border=asking.border)


def ask_for_an_export(asking: Asking) -> Iterator[Any]:
    yield asking.ws.templates.export(share=False, border=asking.border)


ASKERS: dict[str, Asker] = {
    "provision": Asker(ask_provision),
    "hook": Asker(ask_the_hook, lambda place: place.agent == "claude-code"),  # hooks serve the machine's own user
    "mcp": Asker(ask_mcp),
    "hermes": Asker(ask_the_plugin, lambda place: place.agent == "hermes"),
    "cli": Asker(ask_the_command_line),
    "list": Asker(ask_for_a_list),
    "export": Asker(ask_for_an_export),
}
