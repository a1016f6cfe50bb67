"""The readable text of a result: structures opened, wrappers and report headers taken off, as rows.

Tools answer in JSON, agents wrap results in tags, task runners put the name of a task before each line. What a person
would read stands inside.
"""

from __future__ import annotations

import re
from json import JSONDecodeError, JSONDecoder
from typing import Any

import msgspec

from warmstart.judging.text import clear

_END = 64_000  # characters read at each end of a long result
_WIDTH = 600  # characters of a row
_MAX_JSON = 2_000_000
_MAX_VALUES = 40  # JSON values opened in one result
_DEPTH = 6
_ITEMS = 30

_decoder = JSONDecoder(strict=False)
_WRAPPED = re.compile(r"^\s*<untrusted_tool_result[^>]*>\s*(?:.*\n)??\s*(?=[{\[])")
_TAGS = re.compile(
    r"</?(?:tool_use_error|tool_error|error|output|stdout|stderr|returncode|exception|untrusted_tool_result)"
    r"(?: [^<>\n]{0,200})?>"
)
_RETURN_CODE = re.compile(r"<returncode>-?\d+</returncode>")
_HEADER = re.compile(  # Codex: what precedes the output of a command
    r"(?:(?:Chunk ID|Wall time|Process exited with code|Process running with session ID|Original token count|Script "
    r"\w+|Exit code|Total output lines|Warning: truncated output)\b[^\n]*\n|Output:[ ]*\n|\s*\n)+"
)
_NAMED = re.compile(r"(?m)^(\w*Error): (?=[\[{])")
_OPENING = re.compile(r"^[ \t]*(?=[{\[])", re.M)
_TELLING_KEYS = (
    *("error", "errors", "stderr", "message", "msg", "error_message", "error_description", "detail", "details"),
    *("reason", "output", "stdout", "content", "text", "result", "results", "data", "aggregated_output"),
)
_NO_MESSAGES = frozenset(("", "none", "null", "false", "true", "error", "failed", "ok"))
_PREFIX = re.compile(  # a task runner's name of the task: turbo, mise, pnpm, docker compose, docker build
    r"(?!(?:zsh|bash|sh|dash|fish|ksh|npm|git|gh|error|fatal|warning|Error)\b)"
    r"(?:@?[\w-]+(?:/[\w-]+)?:[a-z][\w:-]*: "
    r"|\[(?!(?i:error|warn|warning|info|fatal|debug|fail|failed)\])[a-z][\w:./-]*\] "
    r"|@?(?:[\w.-]+/)+[\w-]+ [a-z][\w:-]*: "
    r"|[\w-]+-\d+ +\| "
    r"|#\d+ \d+\.\d+ )"
)


_PREFIXED = frozenset("[#")


def parse_json(text: str) -> Any:
    """Return the JSON value that a result begins with, None if it begins with something else."""
    bare = text.lstrip()
    if not bare.startswith(("{", "[", "<")):
        return None
    start = _WRAPPED.match(text[:2_000]) if bare.startswith("<") else None
    if start is None and len(text) <= _MAX_JSON:
        try:
            return msgspec.json.decode(bare)  # the whole text: most results are one value, and it is faster
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            pass
    at = start.end() if start else len(text) - len(bare)
    value = _decode(text, at)
    return value[0] if value else None


def read_rows(text: str) -> list[str]:
    """Return the rows of a result as a person reads them, without blank ones."""
    rows = []
    for row in clear(open_result(text)).split("\n"):
        if "\r" in row:  # a progress bar writes over its own line
            row = next((part for part in reversed(row.split("\r")) if part.strip()), "")
        row = row[:_WIDTH].rstrip()
        if (": " in row or row[:1] in _PREFIXED or "| " in row) and (prefix := _PREFIX.match(row)):
            row = row[prefix.end() :]
        if row and not row.isspace():
            rows.append(row)
    return rows


def open_result(text: str) -> str:
    """Return the text inside a result: without headers and tags, the messages of JSON values in place of the values."""
    wrapped = _WRAPPED.match(text)
    start = wrapped.end() if wrapped else 0
    header = _HEADER.match(text, start)
    body = text[header.end() if header else start :]
    body = _TAGS.sub("\n", _RETURN_CODE.sub("", _shorten(body) if len(body) > _MAX_JSON else body))
    named = _NAMED.search(body[:2_000])
    if named and (value := _decode(body, named.end())):
        return f"{body[: named.end()]}{read_value(value[0]) or ''}{_shorten(body[value[1] :])}"
    return _shorten(_open_values(body))


def _open_values(text: str) -> str:
    """Replace the JSON values that begin a line by the messages in them."""
    pieces: list[str] = []
    at = 0
    for _ in range(_MAX_VALUES):
        opening = _OPENING.search(text, at)
        if opening is None:
            break
        value = _decode(text, opening.end())
        if value is None:
            if opening.end() == 0 and text.startswith('{"'):  # cut in the middle: unquote what is left
                return text.replace("\\n", "\n").replace('\\"', '"')
            end = text.find("\n", opening.end())
            pieces.append(text[at : end + 1] if end >= 0 else text[at:])
            at = end + 1 if end >= 0 else len(text)
            continue
        pieces += (text[at : opening.start()], read_value(value[0]), "\n")
        at = value[1]
    return "".join(pieces) + text[at:] if pieces else text


def read_value(value: Any, depth: int = 0) -> str:
    """Return the messages inside a JSON value, one a line; "" where there are none."""
    if depth > _DEPTH:
        return ""
    if isinstance(value, str):
        text = value.strip()
        if text[:1] in ("{", "[") and (inner := _decode(text, 0)):
            return "\n".join(filter(None, (read_value(inner[0], depth + 1), text[inner[1] :].strip())))
        return "" if text.lower() in _NO_MESSAGES else text
    if isinstance(value, list):
        return "\n".join(filter(None, (read_value(item, depth + 1) for item in value[:_ITEMS])))
    if not isinstance(value, dict):
        return ""
    message, path = value.get("message"), value.get("path") or value.get("loc")
    if isinstance(message, str) and isinstance(path, list):  # a validator's finding
        return f"{'.'.join(map(str, path))}: {message}" if path else message
    return "\n".join(filter(None, (read_value(value.get(key), depth + 1) for key in _TELLING_KEYS)))


def _decode(text: str, at: int) -> tuple[Any, int] | None:
    if text[at : at + 1] not in ("{", "[") or len(text) > _MAX_JSON:
        return None
    try:
        value, end = _decoder.raw_decode(text, at)
    except (JSONDecodeError, RecursionError, ValueError):
        return None
    return (value, end) if isinstance(value, (dict, list)) else None


def _shorten(text: str) -> str:
    return text if len(text) <= 2 * _END else f"{text[:_END]}\n{text[-_END:]}"
