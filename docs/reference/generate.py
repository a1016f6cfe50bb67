"""Write the reference pages and the code map from the code: `python docs/reference/generate.py`.

A test checks that the pages are current.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import textwrap
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

import click
import msgspec

import warmstart
from warmstart import config, formats, model
from warmstart.doors.cli.main import main
from warmstart.model import Price
from warmstart.review import Reviews
from warmstart.templates.library import TemplateLibrary
from warmstart.trials.experiments import Experiments
from warmstart.usage.accounts import UsageAccounts

DOCS = Path(__file__).resolve().parents[1]
PACKAGE = Path(warmstart.__file__).parent
NOTE = "<!-- written by docs/reference/generate.py; do not edit -->\n"


# Commands


LINES = "--json Print JSON lines"  # in the help of a command
WITHOUT_JSON = {  # a command without --json needs a reason
    "demo": "is for people",
    "templates export": "writes a bundle, which is JSON already",
    "mcp": "speaks the MCP protocol on standard output",
    "hook run": "answers an agent in the agent's own format",
    "confirm guard claude-code": "answers Claude Code in its own format",
    "confirm guard codex": "answers Codex in its own format",
}


def write_commands() -> str:
    """Every command with its help."""
    known = list(walk_commands(main, ["warmstart"]))
    takes = {" ".join(path[1:]) for path, _help, options in known if options is not None and "--json" in options}
    lacks = {" ".join(path[1:]) for path, _help, options in known if options is not None} - takes
    if lacks != set(WITHOUT_JSON):
        raise SystemExit(f"commands without --json: {sorted(lacks)}; WITHOUT_JSON lists {sorted(WITHOUT_JSON)}")
    parts = ["# The command line\n", NOTE, "\nEvery command takes `--json` and then prints JSON only, except:\n\n"]
    parts += [f"- `warmstart {name}` {reason};\n" for name, reason in WITHOUT_JSON.items()]
    parts[-1] = parts[-1].replace(";\n", ".\n")
    parts.append(
        "\nWith `--json` a command prints one JSON value. These print JSON lines instead, one object per line and"
        "\nperhaps none:\n\n"
    )
    parts += [f"- `{' '.join(path)}`\n" for path, shown, _options in known if LINES in " ".join(shown.split())]
    parts.append(
        "\nExit codes: 0 for success, 1 for a failure (and for a check that found something), 2 for wrong usage. Errors go"
        "\nto standard error.\n"
    )
    parts += [f"\n## `{' '.join(path)}`\n\n```\n{shown}\n```\n" for path, shown, _options in known]
    return "".join(parts)


def walk_commands(command: click.Command, path: list[str]) -> Iterator[tuple[list[str], str, set[str] | None]]:
    """Yield each command's path, help text and options. The options of a group that only holds commands are None."""
    # Commands keep the names of the help option that they are first asked with.
    context = click.Context(
        command,
        info_name=" ".join(path),
        max_content_width=100,
        terminal_width=100,
        help_option_names=main.context_settings["help_option_names"],
    )
    options = {option for parameter in command.params for option in parameter.opts}
    only_holds = isinstance(command, click.Group) and not command.invoke_without_command
    yield path, command.get_help(context), None if only_holds else options
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from walk_commands(child, [*path, name])


# Settings


ENVIRONMENT = """
## Environment variables

| variable | meaning | default |
|---|---|---|
| `WARMSTART_HOME` | folder that holds the data and `config.toml` | `~/.warmstart` |
| `WARMSTART_STORE` | path or URL of another store | `warmstart.db` under the home |
| `WARMSTART_STORE_PROJECTS` | projects that a server's store takes, separated by commas; wins over `store_projects` | |
| `WARMSTART_HOLDOUT` | share of sessions kept cold; wins over `holdout` in `config.toml` | |
| `WARMSTART_OFF` | `1` makes agents' hooks do nothing | |
| `CLAUDE_CONFIG_DIR`, `CODEX_HOME`, `HERMES_HOME` | where those agents keep their files | the agent's own default |
| `CONTINUE_GLOBAL_DIR`, `INSPECT_LOG_DIR` | likewise | the agent's own default, or none |
| `CONFIRMATION_HOST`, `CONFIRMATION_PORT` | where the confirmation daemon listens | `127.0.0.1`, `6000` |
| `CONFIRMATION_RATE_LIMIT` | requests that the daemon accepts per action and hour | 10 |
| `CONFIRMATION_NOTIFY` | apprise addresses, separated by spaces, that the daemon notifies | none |
| `CONFIRMATION_ANCHOR` | addresses elsewhere, separated by spaces, where the daemon also anchors the audit | none |
| `WARMSTART_CONFIRM_URL` | the daemon that agents and commands ask | `http://127.0.0.1:6000` |
| `WARMSTART_CONFIRM_TOKEN` | token that they ask with | private files under the home: `confirm-agent.token`, `confirm.token` |

Values of variables whose names suggest a secret (key, token, password and the like) are never stored or printed.

The confirmation daemon has a [policy file of its own](confirm.md).
"""


LEVELS = '`"off"`, `"tell"`, `"correct"` or `"stop"`'
TOML_TYPES = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "int | None": "integer",
    "float | None": "number",
    "tuple[str, ...]": "list of strings",
    "tuple[Literal['memory', 'skill', 'template'], ...]": 'list of `"memory"`, `"skill"`, `"template"`',
    "dict[str, str]": "table",
    "dict[str, Price]": "table",
    "ReviewSettings": "table",
    "AdviceSettings": "table",
    "BundleSettings": "table",
    "ArchiveMode": '`"off"`, `"plain"` or `"redacted"`',
    "Level": LEVELS,
    "Level | None": LEVELS,
}
TOML_VALUES = {
    "ReviewSettings()": "",
    "AdviceSettings()": "",
    "BundleSettings()": "",
    "field(default_factory=dict)": "",
    "()": "[]",
    "None": "",
    "True": "true",
    "False": "false",
}


def write_settings() -> str:
    """The keys of config.toml with their defaults, and the environment variables."""
    parts = ["# Settings\n", NOTE, "\n`config.toml` under the home (`WARMSTART_HOME`, default `~/.warmstart`).\n"]
    parts.append("Environment variables win over the file; command-line options win over both.\n\n")
    parts.append(describe_keys(config.FileSettings))
    parts.append("\n## `[review]`\n\nThe second look at sessions ([how-to](../howto/review.md)).\n\n")
    parts.append(describe_keys(config.ReviewSettings))
    parts.append("\n## `[advice]`\n\nWhat happens at a call that a note is about.\n\n")
    parts.append(describe_keys(config.AdviceSettings))
    parts.append("\n## `[bundle]`\n\nNotes and templates shared with a team ([how-to](../howto/team.md)).\n\n")
    parts.append(describe_keys(config.BundleSettings))
    parts.append('\n## `[prices."MODEL"]`\n\nUS dollars per million tokens ([details](../insights.md#prices)).\n\n')
    parts.append(describe_keys(Price))
    parts.append(ENVIRONMENT)
    return "".join(parts)


def describe_keys(settings: type[msgspec.Struct]) -> str:
    """A table of a settings struct: each key with its type, limits, default and comment."""
    info = msgspec.inspect.type_info(settings)
    assert isinstance(info, msgspec.inspect.StructType)
    limits = {field.name: describe_limits(field.type) for field in info.fields}
    rows = ["| key | type | default | meaning |\n|---|---|---|---|\n"]
    for field in read_fields(settings):
        kind = TOML_TYPES[re.sub(r"Annotated\[(\w+), Meta\(.*?\)\]", r"\1", field.kind)]
        default = TOML_VALUES.get(field.default, field.default.replace("_", "").replace("'", '"'))
        rows.append(f"| `{field.name}` | {kind}{limits[field.name]} | {code(default)} | {escape(field.comment)} |\n")
    return "".join(rows)


def describe_limits(kind: Any) -> str:
    """The limits of a number in words; empty where it has none."""
    for member in (kind, *getattr(kind, "types", ())):
        least, most = getattr(member, "ge", None), getattr(member, "le", None)
        above = getattr(member, "gt", None)
        if above is not None and most is not None:
            return f", above {above:g} to {most:g}"
        if least is not None and most is not None:
            return f", {least:g} to {most:,.10g}"
        if least is not None:
            return f", at least {least:g}"
    return ""


# Formats


FOUND = """
| agent or format | found in | outcome of a call known by |
|---|---|---|
| Claude Code, with subagents | `~/.claude/projects` | its flag |
| Codex rollouts (`.jsonl`, `.jsonl.zst`), `codex exec --json` | `~/.codex/sessions`, `archived_sessions` | exit code |
| Hermes | `~/.hermes/state.db` and profiles (read-only), `sessions export`, ShareGPT trajectories | structure, exit code, text |
| Gemini CLI | `~/.gemini/tmp/*/chats` | status, exit code |
| Cline, Roo, Anthropic messages | the editors' `globalStorage` | flag, text |
| Cline CLI 3 | `~/.cline/data/sessions` | its flags |
| Continue | `~/.continue/sessions` | status, text |
| OpenHands | `~/.openhands/conversations`; `output.jsonl`, exported events | exit code, flag, text |
| SpecStory, aider | `.specstory/history`, `.aider.chat.history.md` in the current folder | text |
| Inspect `.eval`, `.json` | `INSPECT_LOG_DIR` | its `error`, text |
| OpenInference, OTel GenAI and OpenLLMetry spans, Langfuse, LangSmith | files you name | span status, level, error, text |
| OpenAI chat (lists, JSONL, wrappers), tau-bench, tau2, mini-swe-agent, SWE-agent, ATIF | files you name | any of these |

`warmstart ingest` without a path looks in the places above. A file's content decides its format, not its name; readers are tried
in this order. To add one, see [add a format](../howto/add-a-format.md).
"""
NOT_READ = """
## Not read yet

OpenCode, Pi and OpenClaw, Copilot CLI, Qwen, Cursor, Droid, Kimi, Grok, Antigravity; LangChain and OpenAI Agents sessions; the
single event files of OpenHands V0. In a folder, such files are skipped, and `ingest` says so; given by name, they are reported as
unknown.
"""


def write_formats() -> str:
    """The transcript formats, each with its reader's docstring."""
    parts = [f"\n## `{known.NAME}`\n\n{inspect.getdoc(known)}\n" for known in formats.FORMATS]
    return "".join(["# Transcript formats\n", NOTE, FOUND, *parts, NOT_READ])


# Library


PARTS = {  # attribute of Warmstart -> what it holds
    "templates": TemplateLibrary,
    "experiments": Experiments,
    "usage": UsageAccounts,
    "reviews": Reviews,
}


def write_library() -> str:
    """The public names, the facade's methods, and the fields of every public type."""
    parts = ["# The library\n", NOTE]
    parts.append("\n`import warmstart` and use these names. All types are immutable. None means unknown.\n")
    parts.append("\n- [Functions](#functions)\n- [`Warmstart`](#warmstart)\n- [Types](#types)\n- [Errors](#errors)\n")
    public = {name: getattr(warmstart, name) for name in warmstart.__all__ if name not in ("__version__", "Step")}
    errors = {name: value for name, value in public.items() if is_error(value)}
    types = {name: value for name, value in public.items() if inspect.isclass(value) and name not in errors}
    types.pop("Warmstart")
    parts.append("\n## Functions\n")
    for name, value in public.items():
        if inspect.isfunction(value):
            parts.append(f"\n- `{name}{describe_signature(value)}`{explain(value)}\n")
    parts.append(f"\n## `Warmstart`\n\n{flatten(inspect.getdoc(warmstart.Warmstart))}\n")
    parts.append(describe_members(warmstart.Warmstart))
    for name, kind in PARTS.items():
        parts.append(f"\n### `Warmstart.{name}`\n\n{flatten(inspect.getdoc(kind))}\n{describe_members(kind)}")
    parts.append(
        "\n## Types\n\n`Step` is `Message | ToolCall | ToolResult`. Words that fields and parameters take:\n\n"
    )
    for name, value in vars(model).items():
        if get_origin(value) is Literal:
            parts.append(f"- `{name}`: {', '.join(map(repr, get_args(value)))}\n")
    for name, value in types.items():
        parts.append(f"\n### `{name}`\n\n{flatten(inspect.getdoc(value))}\n")
        parts.append(describe_fields(value))
        parts.append(describe_members(value))
    parts.append("\n## Errors\n\n| name | raised when |\n|---|---|\n")
    parts += [f"| `{name}` | {flatten(inspect.getdoc(value))} |\n" for name, value in errors.items()]
    return "".join(parts)


def is_error(value: Any) -> bool:
    """Whether it is an exception type."""
    return inspect.isclass(value) and issubclass(value, BaseException)


def describe_members(kind: type) -> str:
    """The public methods and properties of a class, with those it inherits from classes of ours."""
    lines = []
    members: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("warmstart"):
            members |= vars(base)
    for name, member in members.items():
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            lines.append(f"- `{name}`{explain(member.fget)}\n")
        elif inspect.isfunction(member) or isinstance(member, classmethod):
            bound = member.__func__ if isinstance(member, classmethod) else member
            lines.append(f"- `{name}{describe_signature(bound)}`{explain(bound)}\n")
    return "\n" + "".join(lines) if lines else ""


def explain(value: Any) -> str:
    """A docstring after a colon; empty where there is none."""
    doc = flatten(inspect.getdoc(value))
    return f": {doc}" if doc else ""


def describe_fields(kind: type) -> str:
    """A table of a type's fields; empty where it has none."""
    rows = [
        f"| `{field.name}` | {escape(code(field.kind))} | {escape(code(field.default))} | {escape(field.comment)} |\n"
        for field in read_fields(kind)
        if not field.name.startswith("_")
    ]
    return "\n| field | type | default | |\n|---|---|---|---|\n" + "".join(rows) if rows else ""


STARS = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}


def describe_signature(function: Callable[..., Any]) -> str:
    """A signature without `self` and without quotes around annotations."""
    words: list[str] = []
    stars = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            stars = True
        elif parameter.kind is parameter.KEYWORD_ONLY and not stars:
            words.append("*")
            stars = True
        word = f"{STARS.get(parameter.kind.name, '')}{parameter.name}"
        if parameter.annotation is not parameter.empty:
            word += f": {name_annotation(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            word += f" = {parameter.default!r}"
        words.append(word)
    returned = inspect.signature(function).return_annotation
    arrow = "" if returned is inspect.Signature.empty else f" -> {name_annotation(returned)}"
    return f"({', '.join(words)}){arrow}"


def name_annotation(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


class Field(NamedTuple):
    name: str
    kind: str
    default: str  # empty where a value is required
    comment: str


def read_fields(kind: type) -> list[Field]:
    """The annotated fields of a class, with the comments beside them in its source."""
    try:
        source = textwrap.dedent(inspect.getsource(kind))
    except (OSError, TypeError):
        return []
    comments: dict[int, str] = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            comments[token.start[0]] = token.string.lstrip("# ")
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.ClassDef)
    fields = []
    for node in definition.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            comment = " ".join(comments[line] for line in lines if line in comments)
            default = ast.unparse(node.value) if node.value is not None else ""
            fields.append(Field(node.target.id, ast.unparse(node.annotation), default, comment))
    return fields


# Code map


def write_code_map() -> str:
    """Every package and module with the first sentence of its docstring."""
    parts = ["# Code map\n", NOTE, "\nFor contributors: where things are under `src/warmstart`. "]
    parts.append("[How it works](how-it-works.md) explains the flow.\n")
    parts.append("\n## `warmstart`\n\n" + list_modules(PACKAGE))
    for folder in sorted(path.parent for path in PACKAGE.rglob("__init__.py")):
        if folder != PACKAGE:
            parts.append(f"\n## `{folder.relative_to(PACKAGE)}/`\n\n{read_first_sentence(folder / '__init__.py')}\n\n")
            parts.append(list_modules(folder))
    return "".join(part for part in parts).replace("\n\n\n", "\n\n")


def list_modules(folder: Path) -> str:
    """The modules that lie in a folder itself, as a list."""
    modules = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
    return "".join(f"- `{path.name}`: {read_first_sentence(path)}\n" for path in modules)


def read_first_sentence(path: Path) -> str:
    """The first sentence of a module's docstring."""
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    if not doc:
        raise SystemExit(f"{path}: a module needs a docstring")
    return re.split(r"(?<=[.!?])\s", flatten(doc.split("\n\n")[0]))[0]


def flatten(text: str | None) -> str:
    """A docstring as one line."""
    return " ".join((text or "").split())


def code(text: str) -> str:
    """Text as code; empty text stays empty."""
    return f"`{text}`" if text else ""


def escape(text: str) -> str:
    """Text that can stand in a table's cell."""
    return text.replace("|", "\\|")


PAGES = {
    "reference/cli.md": write_commands,
    "reference/settings.md": write_settings,
    "reference/formats.md": write_formats,
    "reference/library.md": write_library,
    "code-map.md": write_code_map,
}

if __name__ == "__main__":
    for page, write in PAGES.items():
        (DOCS / page).write_text(write(), encoding="utf-8")
