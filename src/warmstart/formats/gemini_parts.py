"""Parts of messages as Gemini's API has them, which Gemini CLI and Qwen Code record: texts, calls and results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from warmstart.formats.fields import dict_of
from warmstart.model import Signal

_EXIT_CODE = re.compile(r"(?:^|\n|\\n)Exit Code: (-?\d{1,10})(?=\s|\\n|$)")
_REFUSED = re.compile(r"did not allow|(?i:user) denied|was declined by the user")  # the person, not an interruption
_UNTRUSTED = ("<untrusted_context>\n", "\n</untrusted_context>")
_CONTEXT = ("\n\n<hook_context>", "</hook_context>")
_ADDED = re.compile(r"\s*<(hook_context|session_context|qwen:user-prompt-submit-context|system-reminder)>")
_ADVICE = "[warmstart] "
_OPENING = 400  # characters of a result in which an agent says that it was stopped


def list_parts(content: Any) -> Iterator[dict[str, Any]]:
    """Yield the parts of a content that are objects, with texts as parts, too."""
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            yield {"text": part}
        elif isinstance(part, dict):
            yield part


def find_text(content: Any) -> str:
    """Return the text of a content or a result."""
    return "\n".join(text for part in list_parts(content) if (text := _find_part_text(part)) is not None)


def find_spoken_text(content: Any) -> str:
    """Return the text of a message: without thoughts, results of tools, and what hooks and the agent itself added."""
    parts = (part for part in list_parts(content) if not part.get("thought") and "functionResponse" not in part)
    texts = (_strip_added(text) for part in parts if (text := _find_part_text(part)) is not None)
    return "\n".join(text for text in texts if text)


def find_result_text(content: Any) -> str:
    """Return the text of a result without the marks around it, and without what hooks added at its end."""
    text = find_text(content)
    before, after = _CONTEXT
    at = text.rfind(before)
    if at >= 0 and (end := text.find(after, at)) >= 0:
        text = text[:at] + text[end + len(after) :]
    text = _strip_advice(text)
    before, after = _UNTRUSTED
    if text.startswith(before):
        text = text[len(before) :].replace(after, "", 1)
    return text


def make_signal(status: str | None, text: str, *, is_shell: bool) -> Signal | None:
    """Return what a call's status says about its result. A failed command has the status "success" and prints its code."""
    if status == "error":
        return Signal(failed=True)
    if status == "cancelled":
        return Signal(status="rejected" if is_refused(text) else "cancelled")
    if status != "success":
        return None
    codes = _EXIT_CODE.findall(text) if is_shell else []
    return Signal(exit_code=int(codes[-1])) if codes else Signal(status="ok")


def is_refused(text: str) -> bool:
    """Return whether a result says that a person refused the call."""
    return _REFUSED.search(text[:_OPENING]) is not None


def _find_part_text(part: dict[str, Any]) -> str | None:
    response = dict_of(part.get("functionResponse")).get("response")
    if isinstance(response, dict):
        keys = ("output", "error", "content")
        output = next((response[key] for key in keys if response.get(key) is not None), response)
        return output if isinstance(output, str) else msgspec.json.encode(output).decode()
    text = part.get("text")
    return text if isinstance(text, str) else None


def _strip_added(text: str) -> str:
    """Return a text without the elements before it that hooks and the agent itself put there."""
    while match := _ADDED.match(text):
        end = text.find(f"</{match[1]}>", match.end())
        if end < 0:
            return ""
        text = text[end + len(match[1]) + 3 :].lstrip()
    return text


def _strip_advice(text: str) -> str:
    """Return a result without the notes that our hooks added as its last paragraph."""
    before, _, last = text.rpartition("\n\n")
    is_ours = before and all(line.startswith(_ADVICE) for line in last.rstrip().split("\n"))
    return before if is_ours else text
