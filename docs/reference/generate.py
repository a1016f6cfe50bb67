"""Writes the reference pages from the code: `python docs/reference/generate.py`. A test checks that they are current."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import click

import warmstart
from warmstart import config, formats
from warmstart.doors.cli.main import main

HERE = Path(__file__).parent
NOTE = "<!-- made by docs/reference/generate.py; do not edit -->\n"


def commands() -> str:
    """Every command with its help."""
    parts = ["# The command line\n", NOTE]

    def walk(command: click.Command, path: list[str]) -> None:
        # Commands keep the names of the help option that they are first asked with.
        context = click.Context(
            command,
            info_name=" ".join(path),
            max_content_width=100,
            terminal_width=100,
            help_option_names=main.context_settings["help_option_names"],
        )
        parts.append(f"\n## `{' '.join(path)}`\n\n```\n{command.get_help(context)}\n```\n")
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                assert child is not None
                walk(child, [*path, name])

    walk(main, ["warmstart"])
    return "".join(parts)


def settings() -> str:
    """The keys of config.toml."""
    source = inspect.getsource(config.Settings)
    keys = set(config._File.__struct_fields__)
    rows = ["# Settings\n", NOTE, "\n`config.toml` under the home (`WARMSTART_HOME`, default `~/.warmstart`):\n"]
    rows.append("\n| key | type | meaning |\n|---|---|---|\n")
    for name, kind, why in re.findall(r"^    (\w+): ([^=#\n]+?)(?: =[^#\n]*)?  # (.*)$", source, re.M):
        if name in keys:
            rows.append(f"| `{name}` | `{kind.strip()}` | {why} |\n")
    rows.append(
        "\nThe environment: `WARMSTART_HOME` is the home, `WARMSTART_STORE` another store, `WARMSTART_HOLDOUT` another "
        "holdout; `WARMSTART_OFF=1` tells agents' hooks to do nothing; `CLAUDE_CONFIG_DIR`, `CODEX_HOME` and "
        "`HERMES_HOME` say where those agents keep their files. The values of variables whose names speak of keys, "
        "tokens, passwords and the like are never stored or printed.\n"
        "\nThe confirmation daemon: `CONFIRMATION_HOST`, `CONFIRMATION_PORT` and `CONFIRMATION_RATE_LIMIT` are its address and "
        "limit, `CONFIRMATION_NOTIFY` apprise addresses with spaces between. Who asks it: `WARMSTART_CONFIRM_URL` (default "
        "`http://127.0.0.1:6000`) and `WARMSTART_CONFIRM_TOKEN`; without a token the private files `confirm-agent.token` and "
        "`confirm.token` under the home. Its [policy and database](confirm-policy.md).\n"
    )
    return "".join(rows)


def readers() -> str:
    """The formats that are read."""
    parts = ["# Transcript formats\n", NOTE, "\nRecognised by content, whatever the file is called, in this order.\n"]
    for known in formats.FORMATS:
        parts.append(f"\n## `{known.NAME}`\n\n{inspect.getdoc(known)}\n")
    parts.append(NOT_YET)
    return "".join(parts)


NOT_YET = """
## Not read yet

OpenCode, Pi and OpenClaw, Copilot CLI, Qwen, Cursor, Droid, Kimi, Grok, Antigravity; OpenTelemetry GenAI spans, LangChain and
OpenAI Agents sessions, OpenHands, Inspect logs, SWE-agent `.traj`. Such files are passed over in folders and named as unknown
when asked for outright.
"""


def library() -> str:
    """The public names."""
    parts = ["# The library\n", NOTE, "\n`import warmstart` and:\n\n| name | what it is |\n|---|---|\n"]
    for name in warmstart.__all__:
        if name not in ("__version__", "Step"):
            doc = (inspect.getdoc(getattr(warmstart, name)) or "").split("\n\n")[0].replace("\n", " ")
            parts.append(f"| `{name}` | {doc} |\n")
    parts.append("\n## `Warmstart`\n")
    for name, member in vars(warmstart.Warmstart).items():
        if not name.startswith("_"):
            doc = inspect.getdoc(member.fget if isinstance(member, property) else member) or ""
            signature = (
                ""
                if isinstance(member, property)
                else str(inspect.signature(member)).replace("self, ", "").replace("self", "")
            )
            parts.append(f"\n- `{name}{signature}`: {doc}".replace("\n  ", " "))
    return "".join(parts) + "\n"


PAGES = {"cli.md": commands, "settings.md": settings, "formats.md": readers, "library.md": library}

if __name__ == "__main__":
    for page, make in PAGES.items():
        (HERE / page).write_text(make())
