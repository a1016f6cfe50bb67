"""Calls that were stopped: rejected by a person, denied by a hook or a rule, or cancelled. And what the person said."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import structs

from warmstart.model import Message, Session, Step, ToolResult

_WORDS = 300  # characters kept of a person's words
_OPENING = 400  # characters of a result in which an agent says that it was stopped

_TAGS = re.compile(r"^\s*(?:</?(?:tool_use_error|error|tool_error)>\s*|\[error\] |Error: )*")
_REJECTED = re.compile(
    r"The user (?:doesn't|does not) want to |(?:The )?[Uu]ser (?:rejected|denied|declined|did not allow)\b"
    r"|(?:patch |exec command |command |MCP tool call )?rejected by (?:the )?user\b|Tool use was rejected|\[Tool denied"
    r"|The tool call (?:is|was) rejected by the user"
    r"|BLOCKED: (?:(?i:the )?(?i:user) denied|[^.\n]{0,80}\b(?:denied|rejected) by (?:the )?user)"
)
_DENIED = re.compile(  # by a hook or a rule of the agent: neither the agent's error nor a person's word
    r"(?:Command|Tool(?: call| use)?|Call|Edit|Patch|apply_patch) (?:was )?blocked by \w*(?:Use)? ?hook\b"
    r"|(?i:blocked|denied) by \w+ hook\b"
    r"|(?:Hook )?PreToolUse(?::\S+)? (?:hook (?:error|blocking error|blocked|denied|stopped)|blocked|denied)"
    r"|\S* ?operation blocked by hook|(?:Agent )?[Ee]xecution (?:stopped|blocked|denied) by (?:PreToolUse |a )?hook"
    r"|Tool execution (?:denied by policy|blocked: |was blocked\b)"
    r"|Permission (?:to (?:use|read|write|edit) [^\n]{1,300}?|for this [a-z ]{1,20}) (?:has been|was) denied"  # Claude Code's
    r"|Claude requested permissions to [^\n]{1,300}?, but you haven't granted it yet"  # nobody was there to ask
    r"|This (?:Bash )?command (?:requires approval\b|contains multiple operations\. The following parts? requires? approval)"
    r"|File is (?:in a directory that is denied by|covered by a \w+ deny rule in) your permission settings"
    r"|PreToolUse hook for \S+ returned updatedInput that the tool refused"
    r"|The user has specified a rule which prevents you from using"  # OpenCode's
    r"|This action was rejected due to unacceptable risk"  # Codex' automatic review
    r"|BLOCKED: |\[warmstart\] stopped: ",
)
_NEVER_STOPS = frozenset("{<\"'/.-#*0123456789")  # no such message begins so, but that of an operation
_CANCELLED = (
    "Sibling tool call errored",
    "Cancelled: ",
    "[Request interrupted by user",
    "Request interrupted by user",
    "Request was aborted",
    "aborted by user",
    "Interrupted by user",
    "[Operation Cancelled]",
    "Operation cancelled by user",
    "User cancelled",
    "user cancelled",
    "Tool execution was cancelled",
    "[Tool execution cancelled",
)
_SAID = re.compile(  # what precedes the person's words in a result
    r"the user said:|following (?:reason|feedback)\b[^:\n]{0,40}:|(?:user(?:'s)? )?(?:feedback|comment|words)(?: is)?:|\bReason:",
    re.I,
)
_AFTER = re.compile(r"\n\s*Note: The user's next message|\n?</feedback>|\n<environment_details>|\s+Do NOT retry\b")
_BEFORE = re.compile(r"\s*(?:<feedback>)?\s*")
_NOT_WORDS = re.compile(  # written by the agent, not by the person
    r"The user wants to clarify these questions|(?i:the )?(?i:user) (?:cancelled|rejected|denied|declined|did not allow)\b|<[a-z]"
    r"|\[Request interrupted|Implement the following plan:|This session is being continued|STOP what you are doing"
)
_MARKS = ("[Request interrupted", "No response requested")  # messages that stand for the stop itself


def stopped_by(text: str) -> str | None:
    """Return "rejected", "denied" or "cancelled" where a person, a hook or a sibling call ended this one, else None."""
    opening = text[:_OPENING]
    opening = opening[_end_of(_TAGS, opening) :].lstrip()
    if opening[:1] in _NEVER_STOPS and "operation" not in opening:
        return None
    if _REJECTED.match(opening):
        return "rejected"
    if _DENIED.match(opening):
        return "denied"
    if opening.startswith(_CANCELLED):
        return "cancelled"
    return None


def find_words(text: str) -> str | None:
    """Return what a person said when they rejected a call, where the result quotes it."""
    said = _SAID.search(text[:2_000])
    if said is None:
        return None
    rest = text[said.end() :][: 10 * _WORDS]
    rest = rest[_end_of(_BEFORE, rest) :]
    after = _AFTER.search(rest)
    return _clean(rest[: after.start()] if after else rest)


def add_words(session: Session) -> Session:
    """Return the session with the words that a person wrote right after they stopped a call, where it quotes none."""
    steps: list[Step] = []
    stopped: list[int] = []  # results that wait for the person's next message
    spoken = False
    for at, step in enumerate(session.steps):
        steps.append(step)
        if isinstance(step, ToolResult):
            if _awaits_words(step):
                stopped.append(at)
        elif stopped and not _is_mark(step):
            if isinstance(step, Message) and step.role == "user" and (words := _clean(step.text)):
                spoken = True
                _give_words(steps, stopped, words)
            stopped = []
    return structs.replace(session, steps=tuple(steps)) if spoken else session


def _awaits_words(result: ToolResult) -> bool:
    outcome = result.outcome
    if outcome.words is not None or outcome.status not in ("rejected", "cancelled"):
        return False
    return outcome.status == "rejected" or "user" in result.text[:_OPENING].lower()


def _is_mark(step: Step) -> bool:
    """Return whether a step only records the stop: the person's answer is still to come."""
    return isinstance(step, Message) and (step.role == "system" or step.text.startswith(_MARKS))


def _give_words(steps: list[Step], stopped: Sequence[int], words: str) -> None:
    for at in stopped:
        result = steps[at]
        if isinstance(result, ToolResult):
            steps[at] = structs.replace(result, outcome=structs.replace(result.outcome, words=words))


def _clean(text: str) -> str | None:
    """Return a person's words as one line, cut at a word; None for text that the agent wrote."""
    line = " ".join(text[: 10 * _WORDS].split())
    if not line or _NOT_WORDS.match(line):
        return None
    if len(line) <= _WORDS:
        return line
    head = line[: _WORDS - 3].rpartition(" ")[0] or line[: _WORDS - 3]
    return f"{head}..."


def _end_of(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.match(text)
    return match.end() if match else 0
