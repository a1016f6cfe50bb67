"""Call and result in, Outcome out: decided by the transcript's flag, else exit code, else structure, else text."""

from __future__ import annotations

import re
from typing import Any

from msgspec import structs

from warmstart.calls import tools
from warmstart.calls.shell import ShellLine, command_in, read_line
from warmstart.judging.causes import explain
from warmstart.judging.checks import check_failed, may_report_failure, may_run_check, unquote
from warmstart.judging.messages import open_result, parse_json
from warmstart.judging.status_words import find_stop
from warmstart.judging.stops import find_words, stopped_by
from warmstart.judging.text import answer_failed, error_kind, plain, shell_failed, tool_is_unknown
from warmstart.model import Basis, Outcome, Signal, ToolCall

_OK = {basis: Outcome("ok", basis) for basis in ("flag", "exit_code", "structure", "text")}
_STOPPED = {(s, b): Outcome(s, b) for s in ("rejected", "denied", "cancelled") for b in ("flag", "structure", "text")}
_UNKNOWN = Outcome("unknown", "none")
_NO_MATCH = Outcome(
    "ok", "exit_code", flagged=True
)  # grep, diff and the like: exit 1 without output says "nothing found"

_SHELLS = frozenset((tools.TERMINAL, tools.CODE))
_QUOTERS = frozenset(
    (tools.PROCESS, tools.READ, tools.SEARCH, tools.WEB_READ, tools.WEB_SEARCH, tools.SESSIONS, tools.BROWSE)
)

_PRINTED = re.compile(  # exit codes as agents print them, alone on a line at the start or the end
    r"^\s*(?:<returncode>(-?\d+)</returncode>|\[?(?:Command finished with |Process exited with |Process finished with )?"
    r"[Ee]xit(?:ed)?[ _](?:[Cc]ode|[Ss]tatus)(?: was)?:? ?(-?\d+)\]?\.?|Process exited with code (-?\d+)\.?"
    r"|\[(?:The command|Command) (?:completed|finished|exited|failed) with exit code (-?\d+)\.?\])\s*$",
    re.M,
)
_EMPTY_REPORT = re.compile(  # of Gemini CLI and Qwen Code, about a command that printed nothing
    r"(?:Command: [^\n]*\n)?(?:Directory: [^\n]*\n)?(?:Output|Stdout): \(empty\)\n(?:(?:Error|Stderr): \((?:none|empty)\)\n)?"
    r"(?:Exit Code: |Signal: |Background PIDs: |Process Group PGID: |$)"
)
_NOT_AN_ERROR = re.compile(r"not an error|no match|not found is|differ|informational", re.I)

_FAILED_WORDS = frozenset(
    ("error", "failed", "failure", "fail", "timeout", "timed_out", "errored", "crashed", "exception")
)
_SIMPLE = re.compile(r"[^|&;\n]*")  # one command: its exit code is the line's
_SCRIPT_CODE = re.compile(r'"exit_code":(-?\d+)')
_RUNNING = re.compile(  # Codex: the command goes on in the background, and another call asks for its end
    r"(?:[^\n]{0,200}\n){0,4}(?:Process running with session ID|Script running with cell ID)\b"
)
_CODES = ("exit_code", "exitCode", "returncode", "return_code", "exit_status")
_ANY_CODE = frozenset(_CODES)


def judge_result(call: ToolCall | None, text: str, signal: Signal | None = None) -> Outcome:
    """Return the outcome of one call. `text` is the whole result; `signal` is what the transcript says beside it."""
    outcome = judge_status(call, text, signal)
    if outcome.status == "rejected" and (words := find_words(open_result(text))):
        return structs.replace(outcome, words=words)
    if outcome.status != "error":
        return outcome
    cause, findings = explain(call, text)
    return structs.replace(outcome, cause=cause, findings=findings)


def judge_status(call: ToolCall | None, text: str, signal: Signal | None = None) -> Outcome:
    """Return the outcome of one call without its cause, its findings and the words of a person."""
    if signal is not None:
        outcome = _by_signal(call, text, signal)
        if outcome is not None:
            return _unmask(call, text) or outcome if outcome.status == "ok" else outcome
    stopped = stopped_by(text)
    if stopped:
        return _STOPPED[stopped, "text"]
    if call is not None and tool_is_unknown(call.tool, text):
        return _error(text, "text")
    if _goes_on(text):
        return _UNKNOWN
    base = tools.base_tool(call.tool) if call else None
    outcome = _by_printed_code(call, text) or _by_structure(call, base, text) or _by_text(call, base, text)
    return _unmask(call, text) or outcome if outcome.status == "ok" else outcome


def _goes_on(text: str) -> bool:
    """Return whether a command had not ended yet when its result was written."""
    head = text[:1_000]
    if not head.startswith(("Script ", "Process ", "Chunk ID", "Wall time")):
        return False
    if _RUNNING.match(head):
        return True
    return head.startswith("Script ") and '"session_id":' in text and '"exit_code":' not in text


def _by_signal(call: ToolCall | None, text: str, signal: Signal) -> Outcome | None:
    basis = signal.basis
    if signal.status is not None:
        return _error(text, basis) if signal.status == "error" else Outcome(signal.status, basis)
    if signal.failed:
        stopped = stopped_by(text)
        return _STOPPED[stopped, "flag"] if stopped else _error(text, basis)
    if signal.exit_code is not None:
        return _by_exit_code(call, text, signal.exit_code)
    return _OK["flag"] if signal.failed is False else None


def _unmask(call: ToolCall | None, text: str) -> Outcome | None:
    """Return the failure of a check whose exit code another command of the line replaced, or None."""
    if call is None or tools.base_tool(call.tool) not in _SHELLS:
        return None
    scripted = text.startswith("Script ")
    codes = _SCRIPT_CODE.findall(text) if scripted else ()
    if any(int(code) for code in codes):  # Codex' JavaScript tool: its script ended well, a command in it did not
        return structs.replace(_error(unquote(text), "exit_code"), flagged=False)
    command = command_in(call.arguments)
    if not scripted and _SIMPLE.fullmatch(command):
        return None
    if not may_run_check(command) or not may_report_failure(text):
        return None
    if not scripted and read_line(command).reach == "whole":
        return None
    if not check_failed(command, text):
        return None
    return structs.replace(_error(text, "text"), flagged=False)


def _by_exit_code(call: ToolCall | None, output: str, code: int) -> Outcome:
    if code == 0:
        return _OK["exit_code"]
    stopped = stopped_by(output)
    if stopped:
        return _STOPPED[stopped, "text"]
    if code == 1 and _line_of(call).matches and (not _strip_code(output) or _EMPTY_REPORT.match(output)):
        return _NO_MATCH
    return _error(output, "exit_code")


def _by_printed_code(call: ToolCall | None, text: str) -> Outcome | None:
    head, tail = text[:400], text[-300:] if len(text) > 400 else ""
    match = None
    if "xit" in head or "xit" in tail or "returncode" in head or "returncode" in tail:
        match = _PRINTED.match(head) or _match_first_lines(head) or _match_last_line(tail or head)
    if match is None and head.startswith(
        ("Command: ", "Output: ")
    ):  # Gemini CLI's report has the code on a line of its own
        match = re.search(r"^Exit Code: (-?\d+)$", text[-600:], re.M)
    if match is None or (call is not None and "$?" in command_in(call.arguments)):
        return None
    code = int(next(group for group in match.groups() if group is not None))
    if code == 0:
        return _OK["exit_code"]
    return _by_exit_code(call, _strip_code(text), code)


def _strip_code(text: str) -> str:
    """Return a result without the exit code and the tags that an agent printed around it."""
    return _PRINTED.sub("", text, count=1).replace("<output>", "").replace("</output>", "").strip()


def _match_first_lines(head: str) -> re.Match[str] | None:
    at = 0
    for _ in range(4):
        at = head.find("\n", at) + 1
        if not at:
            return None
        if match := _PRINTED.match(head, at):
            return match
    return None


def _match_last_line(tail: str) -> re.Match[str] | None:
    stripped = tail.rstrip()
    return _PRINTED.match(stripped, stripped.rfind("\n") + 1)


def _by_structure(call: ToolCall | None, base: str | None, text: str) -> Outcome | None:
    if text.lstrip()[:16].startswith("<tool_use_error>"):
        return _error(text, "structure")
    value = parse_json(text)
    if not isinstance(value, dict):
        return _OK["structure"] if isinstance(value, list) and base is None else None
    meaning = value.get("exit_code_meaning")
    for holder in (value, value.get("metadata"), value.get("result")):
        if isinstance(holder, dict) and not _ANY_CODE.isdisjoint(holder):
            for name in _CODES:
                code = holder.get(name)
                if isinstance(code, int) and not isinstance(code, bool):
                    if code != 0 and isinstance(meaning, str) and _NOT_AN_ERROR.search(meaning):
                        return _OK["structure"]
                    if code != 0 and (stopped := find_stop(call, value)):
                        return _STOPPED[stopped, "structure"]
                    output = value.get("output", value.get("stdout", ""))
                    error = value.get("error") or value.get("stderr") or ""
                    return _by_exit_code(call, f"{output if isinstance(output, str) else ''}\n{error}".strip(), code)
    if base in _SHELLS and not (value.keys() & {"output", "success", "tool_calls_made", "error", "status"}):
        return None  # a program printed JSON: its data, not a report about the call
    return _by_fields(call, value, text)


def _by_fields(call: ToolCall | None, value: dict[str, Any], text: str) -> Outcome:
    stopped = find_stop(call, value)
    if stopped:
        return _STOPPED[stopped, "structure"]
    for name in ("success", "ok"):
        if isinstance(value.get(name), bool):
            return _OK["structure"] if value[name] else _stop_or_fail(value, text)
    if value.get("isError") is True or value.get("is_error") is True:
        return _error(text, "structure")
    if _is_error_value(value.get("error")) or _is_error_value(value.get("errors")):
        return _stop_or_fail(value, text)
    status = value.get("status")
    if isinstance(status, str) and status.lower() in _FAILED_WORDS and (len(value) <= 3 or value.get("message")):
        return _error(text, "structure")  # with more fields it is the status of the thing the call asked about
    inner = value.get("result")
    if isinstance(inner, dict) and len(value) <= 4:
        return _by_fields(call, inner, text)
    return _OK["structure"]


def _stop_or_fail(value: dict[str, Any], text: str) -> Outcome:
    message = value.get("error") or value.get("message")
    stopped = stopped_by(message) if isinstance(message, str) else None
    return _STOPPED[stopped, "structure"] if stopped else _error(text, "structure")


def _is_error_value(error: Any) -> bool:
    if isinstance(error, str):
        return bool(error.strip()) and error.strip().lower() not in ("none", "null", "false", "0", "no error")
    if isinstance(error, dict):
        return bool(error.get("message") or error.get("code") or error.get("type") or error)
    return bool(error) if isinstance(error, (bool, list)) else isinstance(error, int) and error != 0


def _by_text(call: ToolCall | None, base: str | None, text: str) -> Outcome:
    shown = plain(text)
    if not shown.strip():
        return _OK["text"] if base is not None else _UNKNOWN
    if base in _SHELLS:
        failed = shell_failed(shown, command_in(call.arguments) if call else "")
    else:
        failed = answer_failed(shown, quotes=base in _QUOTERS)
    return _error(text, "text") if failed else _OK["text"]


def _error(text: str, basis: Basis) -> Outcome:
    return Outcome("error", basis, error_kind(plain(text)))


def _line_of(call: ToolCall | None) -> ShellLine:
    return read_line(command_in(call.arguments) if call else "")
