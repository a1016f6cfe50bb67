"""The agent's closing words as one line: items of a list stay apart, a table is left out where more is said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from warmstart import lazy_regex as re
from warmstart.calls.prose import count_wide, iterate_sentences, join_sentences, strip_markup

_FENCED = re.compile(r"\s*```[ \t]*(\w*)[^\n]*\n((?:(?!```).)*)(?:```\s*)?\Z", re.S)  # a text that is one code block
_PROSE_TAGS = frozenset(("", "text", "txt", "plaintext", "plain", "markdown", "md"))
_CODE = re.compile(
    r"[{};\\]\s*$|^\s*(?:[{\[<$#>@]|//|--)|[=<>]|\w(?!\(s\))[(\[]|&&|\|\|"
    r"|\b(?:SELECT|INSERT|UPDATE|DELETE|CREATE|FROM|RUN|COPY)\b",
    re.M,
)
_LEAST_WORDS, _WORD_SHARE = 3, 0.7  # of a code block that reads as prose
_AROUND = ".,;:!?\"'“”‘’()*_-–—"  # signs around a word
_ITEM = re.compile(r"\s*(?:[-*•+]|\d{1,2}[.)])\s+(?=\S)")
_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*\Z")  # between the head of a table and its rows
_BREAK = re.compile(r"\s*(?:-{3,}|\*{3,}|_{3,})\s*\Z")
_SIGNS = {
    (True, True): ";",
    (True, False): ".",
    (False, True): ":",
    (False, False): "",
}  # is it an item, is the next one?
_ENDED = tuple(".;:,!?…。；：，、！？")
_CUT_LIST = re.compile(r";(?: \d{1,2}\.)?\Z")


class _Closing(NamedTuple):
    """The lines of a closing, and the rows of its tables."""

    lines: list[str]
    rows: list[str]


def write_closing_line(text: str, limit: int) -> str:
    """Return the first closing sentences and items, as many as fit; empty if there is only code or data."""
    closing = _take_tables(strip_markup(_open_fence(text)).splitlines())
    sentences = iterate_sentences("\n".join(_end_items(closing.lines)))
    line = join_sentences(_add_rows(list(sentences), closing.rows) if closing.rows else sentences, limit)
    return _CUT_LIST.sub("", line)


def _open_fence(text: str) -> str:
    """Return the prose inside the code block that a text consists of; any other text as it is."""
    fenced = _FENCED.match(text) if "```" in text else None
    return fenced[2] if fenced and fenced[1].lower() in _PROSE_TAGS and _reads_as_prose(fenced[2]) else text


def _reads_as_prose(text: str) -> bool:
    if _CODE.search(text) or text.lstrip()[:1].islower():
        return False
    if count_wide(text) > _LEAST_WORDS:
        return True
    tokens = text.split()
    words = sum(token.strip(_AROUND).replace("-", "").replace("'", "").isalpha() for token in tokens)
    return words >= max(_LEAST_WORDS, _WORD_SHARE * len(tokens))


def _take_tables(lines: list[str]) -> _Closing:
    closing = _Closing([], [])
    in_table = False
    for line in lines:
        if "|" not in line:
            in_table = False
            closing.lines.append(line)
        elif _RULE.match(line):
            if not in_table and closing.lines and "|" in closing.lines[-1]:  # the head of a table without outer bars
                closing.rows.append(closing.lines.pop())
            in_table = True
            closing.lines.append("")
        elif in_table or _has_bars(line):
            in_table = True
            closing.rows.append(line)
        else:
            closing.lines.append(line)
    return closing


def _has_bars(line: str) -> bool:
    bare = line.strip()
    return len(bare) > 2 and bare[0] == bare[-1] == "|"


def _add_rows(sentences: list[str], rows: list[str]) -> list[str]:
    """Return the sentences, and the rows of tables as items of a list where nothing is said but what announces them."""
    if sentences and not sentences[-1].endswith(":"):
        return sentences
    cells = ([part.strip(" \t*") for part in row.strip(" \t|").split("|")] for row in rows)
    items = [item for row in cells if (item := ", ".join(filter(None, row)))]
    return [*sentences, *(f"{item};" for item in items[:-1]), *items[-1:]]


def _end_items(lines: list[str]) -> Iterator[str]:
    """Yield the lines; what precedes a list ends in a colon, an item before another in a semicolon, the last in a stop."""
    before, in_item, apart = "", False, False
    for line in lines:
        if not line.strip() or _BREAK.match(line):
            apart = True
            continue
        is_item = _ITEM.match(line) is not None
        goes_on = in_item and not is_item and not apart and not line.startswith("#")
        if before:
            yield before if goes_on or before.startswith("#") else _end(before, _SIGNS[in_item, is_item])
        if apart:
            yield ""
        before, in_item, apart = line, is_item or goes_on, False
    yield before


def _end(line: str, sign: str) -> str:
    bare = line.rstrip()
    return bare if bare.rstrip("*_`\"'”’").endswith(_ENDED) else f"{bare}{sign}"
