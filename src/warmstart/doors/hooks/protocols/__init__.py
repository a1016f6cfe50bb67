"""How agents word the events of their hooks, and the answers they take. Most use the words of Claude Code.

An agent with words of its own has a module here, named after it (`_` for `-`):

| name | what it is |
|---|---|
| `translate(event)` | the event in the words of Claude Code: `hook_event_name`, `session_id`, `cwd`, `tool_name` ... |
| `encode(output, event)` | our `hookSpecificOutput`, also in those words, as the agent's answer; None: it takes none |
| `DELIVERS_LATE` | a note cannot be given before a call: it is kept, and given with the result of that call |
| `CORRECTS` | optional; False: a hook cannot replace the arguments of a call, so a correction is only shown |

`translate` leaves `hook_event_name` empty where there is nothing to answer.

The hooks at tool calls load such a module at every call: hardly an import.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Words(Protocol):
        """A module of this package."""

        DELIVERS_LATE: bool

        def translate(self, event: dict[str, Any]) -> dict[str, Any]: ...

        def encode(self, output: dict[str, Any], event: dict[str, Any]) -> dict[str, Any] | None: ...


AGENTS: tuple[str, ...] = ("gemini-cli", "qwen-code", "copilot-cli")  # with words of their own


class ClaudeCodeWords:
    """The words that are ours, too."""

    DELIVERS_LATE = False

    def translate(self, event: dict[str, Any]) -> dict[str, Any]:
        """Return the event as it is."""
        return event

    def encode(self, output: dict[str, Any], event: dict[str, Any]) -> dict[str, Any] | None:
        """Return the output as Claude Code takes it."""
        return {"hookSpecificOutput": output}


def find_words(agent: str) -> Words:
    """Return how an agent words its events."""
    if agent not in AGENTS:
        return ClaudeCodeWords()
    from importlib import import_module

    words: Words = import_module(f"{__name__}.{agent.replace('-', '_')}")
    return words
