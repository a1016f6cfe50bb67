"""The kind of work that a call does: running code, handling files, research, or anything else."""

from __future__ import annotations

from warmstart.calls import tools
from warmstart.calls.checks import runs_check
from warmstart.calls.shapes import COMMONPLACE, command_of, split_stages
from warmstart.model import PastCall, TaskType

_KINDS: dict[str | None, TaskType] = {
    tools.CODE: "code",
    **dict.fromkeys((tools.READ, tools.WRITE, tools.PATCH, tools.SEARCH), "file"),
    **dict.fromkeys((tools.WEB_SEARCH, tools.WEB_READ, tools.BROWSE), "research"),
}
_RUNS = frozenset(
    """python python3 pypy node deno bun ruby perl php lua java kotlin scala swift dotnet go cargo rustc npx pnpx bunx tsx
    ts-node npm pnpm yarn uv uvx poetry pdm hatch pipenv tox nox make just task mise rake gradle gradlew mvn mvnw sbt mix
    docker docker-compose podman bash sh zsh xcodebuild zig invoke bundle composer""".split()
)
_HANDLES = COMMONPLACE | frozenset(
    "cp mv rm mkdir touch ln chmod chown tar unzip zip awk jq yq diff du df tee fd less xxd od basename dirname".split()
)
_FETCHES = frozenset("curl wget lynx w3m".split())


def find_work(call: PastCall) -> TaskType:
    """Return the kind of work of a call. A shell call that runs code, tests or builds is code."""
    line = command_of(call.tool, call.arguments)
    if line is None:
        return _KINDS.get(tools.base_tool(call.tool), "mixed")
    programs = [stage.program.rpartition("/")[2] for stage in split_stages(line)]
    if runs_check(line) or any(program in _RUNS for program in programs) or line.lstrip().startswith("./"):
        return "code"
    if programs and all(program in _HANDLES for program in programs):
        return "file"
    return "research" if any(program in _FETCHES for program in programs) else "mixed"
