"""Calls whose arguments a hook replaced: agents record what the model wrote, but the result is that of the replacement."""

from __future__ import annotations

from typing import Any

import msgspec

from warmstart.formats.fields import dict_of
from warmstart.model import Arguments

CORRECTED = "[warmstart] corrected the call: "  # how our own hook announces a replacement
_SHELLS = ("bash", "sh", "zsh")
_COMMANDS = ("cmd", "command")  # arguments that hold a command line

_json = msgspec.json.Decoder()


def find_replacement(attachment: msgspec.Raw) -> tuple[str, dict[str, Any]] | None:
    """Return the call and the arguments that ran, from what Claude Code records of a hook before a call."""
    data = bytes(attachment)
    if b"updatedInput" not in data:
        return None
    record = dict_of(_decode(data))
    call_id, answer = record.get("toolUseID"), record.get("stdout")
    if record.get("hookEvent") != "PreToolUse" or not isinstance(call_id, str) or not isinstance(answer, str):
        return None
    output = dict_of(dict_of(_decode(answer)).get("hookSpecificOutput"))
    arguments = output.get("updatedInput")
    if not isinstance(arguments, dict) or output.get("permissionDecision") == "deny":
        return None
    return call_id, arguments


def find_command_run(item: msgspec.Raw) -> tuple[str, str] | None:
    """Return the call and the command line that ran, from what Codex records of a finished command."""
    record = dict_of(_decode(bytes(item)))
    call_id, words = record.get("id"), record.get("command")
    if record.get("type") != "CommandExecution" or not isinstance(call_id, str) or not isinstance(words, list):
        return None
    if len(words) != 3 or not all(isinstance(word, str) for word in words):
        return None
    return (call_id, words[2]) if words[0].rpartition("/")[2] in _SHELLS else None


def replace_command(arguments: Arguments, command: str) -> Arguments:
    """Return the arguments of a call with another command line."""
    if isinstance(arguments, dict):
        for name in _COMMANDS:
            if isinstance(arguments.get(name), str):
                return arguments | {name: command}
    return arguments


def _decode(data: bytes | str) -> Any:
    try:
        return _json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
