"""Print a seed for people."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from warmstart.dialects.compose import Seed
from warmstart.doors.render.terminal import clean, print_table


def show_seed(seed: Seed) -> None:
    """Print the seed, why it was chosen, and what was left out."""
    arm = "preview (no trial)" if seed.arm is None else f"arm: {seed.arm}"
    click.secho(f"{seed.tokens} tokens (budget {seed.budget}), {seed.dialect} dialect, {arm}", bold=True)
    click.echo(f"why: {clean(seed.reason)}")
    if seed.text:
        click.echo(clean(seed.text))
    for message in seed.messages:
        for role, text in _split_parts(message):
            click.secho(f"{role:>10}  ", fg="cyan", nl=False)
            click.echo(clean(text)[:700].replace("\n", "\n" + " " * 12))
    if seed.templates:
        click.echo(f"from: {', '.join(map(clean, seed.templates))}")
    if seed.omitted:
        print_table(("left out", "why"), [(o.template, o.reason) for o in seed.omitted])


def _split_parts(message: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the (role, text) parts of a message, whatever its dialect."""
    role = str(message.get("role") or message.get("type") or "")
    if message.get("type") == "function_call":
        return [("call", f"{message.get('name')} {message.get('arguments')}")]
    if message.get("type") == "function_call_output":
        return [("result", str(message.get("output")))]
    content = message.get("content", message.get("parts"))
    parts: list[tuple[str, str]] = []
    if isinstance(content, str) and content:
        parts.append(("result" if role == "tool" else role, content))
    for part in content if isinstance(content, list) else ():
        text = part.get("text") if isinstance(part, dict) else None
        parts.append((role, text if isinstance(text, str) else msgspec.json.encode(part).decode()))
    for call in message.get("tool_calls") or ():
        parts.append(("call", f"{call['function']['name']} {call['function']['arguments']}"))
    return parts
