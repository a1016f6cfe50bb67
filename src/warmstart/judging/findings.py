"""Names in the output of a failed check: linter rules, compiler codes and failing tests.

Each name is bound to the form of the row that its tool prints, so that the same word in other text is no finding.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

_MOST = 20
_NAME = 120  # characters of a finding
_HINTS = (  # a row without any of these, and without a place, holds no finding
    *("error", "ERROR", "FAIL", "fail", "Fail", "warning", "= note", "lint/", "assist/", " format", "SC", "Issue"),
    *("✕", "×", "✖", "●", "✘", "›", "not ok", "rspec", "::", "!", "⚠", ") "),
)
_RULE = r"[A-Za-z@][\w@./:-]{1,80}"


def _compile(*patterns: str) -> re.Pattern[str]:
    """Return one pattern of several alternatives, each with one group: the name."""
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


# A row that begins with a place, `file:3:4: `, and what may follow it.
_PLACE = re.compile(r"\s*(\S{1,240}?):\d+(:\d+)?(?::| -)? ")
_DIGIT_AFTER = re.compile(r":\d")  # every place has one
_AFTER_PLACE = _compile(
    r"[CRWEF]\d{4}: .*\(([a-z][\w-]+)\)$",  # pylint
    r"[CWEFR]: (?:\[\w+\] )?([A-Z]\w+(?:/[A-Z]\w+)+): ",  # rubocop
    r"(?:error )?(MD\d{3})(?:/|\s)",  # markdownlint
    r"(DL\d{4}) ",  # hadolint
    r"((?:lint|assist)/[\w/]+)(?:\s|$)",  # biome
    r"(?:fatal )?(?:error|warning): .*\[-W(?:error=)?([\w+-]+)\]$",  # gcc, clang
    r"(?:error|warning|note|style|info): .*\[(SC\d{4})\]$",  # shellcheck
    rf"(?:fatal )?error: .*\s[\[(]({_RULE})[\])]$",  # mypy, pyright, swiftlint
)
_AFTER_FILE = (  # forms that only the file type distinguishes from other text
    (".go:", re.compile(r".*\s\(([a-z][\w-]{1,40})\)$")),  # golangci-lint; without a column it is a test's log
    (".py", re.compile(r"([A-Z]{1,4}\d{2,4})\b")),  # ruff, flake8
    (".pyi", re.compile(r"([A-Z]{1,4}\d{2,4})\b")),
    (".ipynb", re.compile(r"([A-Z]{1,4}\d{2,4})\b")),
    (".kt", re.compile(r".*[(\[]((?:[a-z]+:)?[A-Za-z][\w-]+)[)\]]$")),  # ktlint, detekt
    (".yml", re.compile(r".*\s\[([a-z][\w-]+)\]$")),  # actionlint
    (".yaml", re.compile(r".*\s\[([a-z][\w-]+)\]$")),
)
_RULES = _compile(
    rf"\s+\d+:\d+\s+error\s+.*\S\s{{2,}}\(?({_RULE})\)?$",  # eslint
    rf"\s+\d+:\d+\s+error\s+.*\s\(({_RULE})\)$",  # yamllint
    rf"\s+\d+:\d+\s+[✖×]\s+.*\S\s{{2,}}({_RULE})$",  # stylelint
    r"\s*[×✖]\s+[a-z-]+\(([\w/-]+)\): ",  # oxlint
    r"error\[([a-z][\w-]{2,60})\]: ",  # ty and others in the style of rustc
    r"\s+= note: .*?`(?:-D |#\[deny\()(clippy::[\w-]+|[a-z][a-z_-]{3,40})",  # rustc, clippy
    r"\s*(?:at )?\S+ (format|(?:lint|assist)/[\w/]+)(?:\s+FIXABLE)?\s+━",  # biome
    r"\s*\^-+\^? (SC\d{4})\b",  # shellcheck
    r">> Issue: \[(B\d{3}):",  # bandit
)
_WARNINGS = _compile(  # these count only where there is no error
    rf"\s+\d+:\d+\s+warning\s+.*\S\s{{2,}}\(?({_RULE})\)?$",
    rf"\S{{1,240}}:\d+(?::\d+)?(?: -|:) warning: .*\s[\[(]({_RULE})[\])]$",
    r"\s*[!⚠]\s+[a-z-]+\(([\w/-]+)\): ",
    r"\s+= note: .*?`#\[warn\((clippy::\w+|\w+)\)",
)
_RUFF = re.compile(r"([A-Z]{1,4}\d{3,4}|invalid-syntax):? \S")  # its long form: the place is in the next row
_ARROW = re.compile(r"\s*--> \S+:\d+:\d+")
_CODES = _compile(
    r"(?:.*[\s)])?error (TS\d{3,5}):",
    r"error\[(E\d{4})\]",
    r".*: (?:fatal )?error ([A-Z]{1,6}\d{3,5})\s?: ",  # C#, F#, MSVC
)
_TESTS = _compile(
    r"(?:FAILED|ERROR) ([\w./\\-]+\.py(?:::.+?)?)(?: - .*)?$",  # pytest
    r"([\w./\\-]+\.py::\S+) (?:FAILED|ERROR)\b",
    r"\s*--- FAIL: (\S+)",  # go test
    r"=== FAIL: \S+ (\S+)",  # gotestsum
    r"\s*✕ (.+?)(?: \(?\d[\d.]* ?m?s\)?)?$",  # jest
    r"\s*● (.+ › .+)$",
    r"\s*(?:FAIL|×)\s+(?:\|[^|]+\|\s+|[\w-]+\s+)?(\S+\.\w+ > .+?)(?: \d+ ?ms)?$",  # vitest
    r"\(fail\) (.+?)(?: \[[\d.]+m?s\])?$",  # bun
    r"test (\S+)(?: - should panic)? \.\.\. FAILED$",  # cargo test
    r"(\w\S*) --- FAILED$",
    r"\s+(?:TRY \d+ )?FAIL \[\s*[\d.]+s\] (?:\([ \d/]+\) )?(\S.*)$",  # cargo nextest
    r"\s*(?:\d+\) |✘\s+\d+ )?\[[\w -]+\] › (.+?)(?: \([\d.]+m?s\))?[ ─]*$",  # playwright
    r"rspec \S+:\d+ # (.+)$",
    r"\d+\) ([\w\\]+::\w+)(?: with data set .*)?$",  # phpunit
    r"not ok \d+ (?:- )?(?!.*# (?:SKIP|TODO))(\S.*)$",  # TAP
    r"\s*✖ (.+?) \([\d.]+m?s\)$",  # node --test
    r"\s*Failed ([\w.]+(?:\([^)]*\))?) \[",  # dotnet test
    r"([\w.$]+ > .+) FAILED$",  # gradle
    r"\[ERROR\]\s+([\w.$]*(?:Test|Tests|IT|Spec)\w*\.\w+):\d+",  # surefire
    r"\s*\d+ - (\S+) \((?:Failed|Timeout|SEGFAULT)\)",  # ctest
    r"Test Case '-?\[?([^']+?)\]?' failed",  # XCTest
    r"\s+\d+\) (?:test|property) (.+) \([A-Z][\w.]+\)$",  # ExUnit
)
_UNITTEST = re.compile(r"(?:FAIL|ERROR): (\w+) \(([\w.]+)\)$")
_TEST_FILE = re.compile(r"\s*FAIL\s+(\S+\.\w+)(?: |$)")  # jest: the file, for runs that name no test
_FAILING = re.compile(r"\s+[1-9]\d* failing$")  # mocha: the failed tests follow
_NUMBERED = re.compile(r"\s+\d+\) (\S.*?):?$")


def find_findings(rows: Sequence[str]) -> tuple[str, ...]:
    """Return the unique findings, the most frequent first: `rule:errcheck`, `code:TS2345`, `test:TestTotal`."""
    text = "\n".join(rows)
    hints = [hint for hint in _HINTS if hint in text]
    hinted = [
        row for row in rows if any(hint in row for hint in hints) or (_DIGIT_AFTER.search(row) and _PLACE.match(row))
    ]
    counts = Counter(filter(None, map(_name_finding, hinted)))
    counts.update(_name_unittests(hinted))
    if "-->" in text:
        counts.update(_name_pairs(rows))
    if "failing" in text:
        counts.update(_name_mocha(rows))
    if not counts:
        counts.update(name for row in hinted if (name := _match(_WARNINGS, "rule", row)))
    if not any(name.startswith("test:") for name in counts):
        counts.update(_format("test", match[1]) for row in hinted if (match := _TEST_FILE.match(row)))
    return tuple(name for name, _times in counts.most_common(_MOST))


@lru_cache(2_048)
def _name_finding(row: str) -> str | None:
    return (
        _match(_CODES, "code", row) or _match_place(row) or _match(_RULES, "rule", row) or _match(_TESTS, "test", row)
    )


def _match_place(row: str) -> str | None:
    place = _PLACE.match(row)
    if place is None:
        return None
    rest = row[place.end() :]
    if rule := _match(_AFTER_PLACE, "rule", rest):
        return rule
    file = f"{place[1]}:" if place[2] and place[1].endswith(".go") else place[1]
    for ending, pattern in _AFTER_FILE:
        if file.endswith(ending) and (match := pattern.match(rest)):
            return _format("rule", match[1])
    return None


def _name_unittests(rows: Iterable[str]) -> Iterable[str]:
    for row in rows:
        if match := _UNITTEST.match(row):
            name, owner = match.groups()
            yield _format("test", owner if owner.endswith(f".{name}") else f"{owner}.{name}")


def _name_pairs(rows: Sequence[str]) -> Iterable[str]:
    """Return the rules of a form that needs two rows: the rule, and below it an arrow with the place."""
    for row, below in pairwise(rows):
        if below.lstrip().startswith("-->") and (match := _RUFF.match(row)) and _ARROW.match(below):
            yield _format("rule", match[1])


def _name_mocha(rows: Sequence[str]) -> Iterable[str]:
    start = next((at for at, row in enumerate(rows) if "failing" in row and _FAILING.match(row)), None)
    for at in range(start + 1 if start is not None else len(rows), len(rows)):
        if match := _NUMBERED.match(rows[at]):
            below = rows[at + 1].strip() if at + 1 < len(rows) and not rows[at].endswith(":") else ""
            yield _format("test", f"{match[1]} {below.rstrip(':') if below.endswith(':') else ''}")


def _match(pattern: re.Pattern[str], kind: str, row: str) -> str | None:
    match = pattern.match(row)
    return _format(kind, match[match.lastindex or 0]) if match else None


def _format(kind: str, name: str) -> str:
    return f"{kind}:{' '.join(name.split())}"[:_NAME].rstrip()
