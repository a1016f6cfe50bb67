"""The prompts of a review: a question for each focus, and the rules for the answer."""

from __future__ import annotations

from typing import Any, Literal

from warmstart.review.snapshot import Snapshot

Focus = Literal["memory", "skills", "both"]

_OPENING = "Look back at the conversation above. This is a review in the background: nobody reads along or answers."

_MEMORY = (
    "Is there something about the user or the surroundings that a later session should know: who they are, how they "
    "want things done, what they corrected, how this machine or project is set up? Keep what lasts, with `memory`. "
    "What holds only for today's task, and what anybody knows, is not worth it."
)
_SKILLS = (
    "Was there a way of doing something that took trial and error, or that the user corrected, and that will be needed "
    "again? Then keep it as a skill, with `skill_manage`: first see whether a skill that exists should be patched; "
    "make a new one only for a kind of work, not for one task. Calls that worked and would help a later session can "
    "be proposed with `template_propose`."
)
QUESTIONS: dict[Focus, str] = {"memory": _MEMORY, "skills": _SKILLS, "both": f"{_MEMORY}\n\n{_SKILLS}"}

_RULES = """Rules:
- Only `memory`, `skill_manage` and `template_propose` run here. Every other tool is denied; do not ask anyone.
- Say only what the steps below show. Every call cites them: "steps": [3, 5] among its arguments, or, where the tool
  takes no such argument, [steps: 3, 5] at the end of the content.
- memory: action add, replace or remove; target memory or user; content; old_text for replace and remove.
- skill_manage: action create, edit, patch or delete; name (small letters, digits, hyphens); content, a whole SKILL.md
  with name and description in its frontmatter, for create and edit; old_string and new_string for patch.
- template_propose: name, description.
- Where one of them is not among your tools, write the call as a block of its own:
```tool_call
{"name": "memory", "arguments": {"action": "add", "target": "memory", "content": "...", "steps": [3]}}
```
- No secrets, no passwords, no keys. If there is nothing worth keeping, answer "Nothing to save." and stop."""


def write_instruction(snapshot: Snapshot, focus: Focus) -> str:
    """Write the last user message of the forked conversation."""
    return f"{write_question(focus)}\n\nThe steps of the conversation:\n{snapshot.list_steps()}"


def write_question(focus: Focus) -> str:
    """Write the part of the message that does not depend on the conversation."""
    return f"{_OPENING}\n\n{QUESTIONS[focus]}\n\n{_RULES}"


def _tool(name: str, description: str, required: tuple[str, ...], /, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties | {"steps": _STEPS}, "required": [*required, "steps"]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


_TEXT: dict[str, Any] = {"type": "string"}
_STEPS = {"type": "array", "items": {"type": "integer"}, "description": "Numbers of the steps that show it."}
TOOLS: tuple[dict[str, Any], ...] = (  # used only without a parent, whose own list must stay
    _tool(
        "memory",
        "Keep, change or remove a lasting note.",
        ("action", "target"),
        action={"type": "string", "enum": ["add", "replace", "remove"]},
        target={"type": "string", "enum": ["memory", "user"]},
        content=_TEXT,
        old_text=_TEXT,
    ),
    _tool(
        "skill_manage",
        "Make, change or delete a skill.",
        ("action", "name"),
        action={"type": "string", "enum": ["create", "edit", "patch", "delete"]},
        name=_TEXT,
        content=_TEXT,
        old_string=_TEXT,
        new_string=_TEXT,
    ),
    _tool("template_propose", "Propose this session's calls as a template.", ("name",), name=_TEXT, description=_TEXT),
)
