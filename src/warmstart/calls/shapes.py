"""The shape of a call: the call with its names, numbers, paths and quoted text masked.

Calls of the same shape in several sessions are one pattern. The shape of a command line is its program, subcommand,
flags and kinds of operands (`uv run pytest -q <path>`); for other tools it is the argument names with the kinds of
their values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from warmstart import lazy_regex as re
from warmstart.calls import tools
from warmstart.calls.shell import command_in, split_line
from warmstart.model import Arguments

_COMMENTARY = frozenset(  # arguments that comment on a call and do not change what it does
    "description explanation timeout timeout_ms justification toolsummary toolaction run_in_background "
    "with_escalated_permissions max_output_tokens yield_time_ms is_background requires_approval".split()
)
_FREE_TEXT = frozenset(
    "pattern query old_string new_string content prompt summary title body message thought text code expression "
    "instruction instructions input regex reason diff patch old_str new_str file_text insert_text search replace".split()
)

_SUBCOMMANDS = {  # program -> how many words after it are its subcommand
    **dict.fromkeys(
        "git cargo go make just pip pip3 brew apt apt-get yarn rake conda mvn gradle dotnet mix".split(), 1
    ),
    **dict.fromkeys(
        "npm pnpm bun uv poetry mise terraform systemctl tox nox deno bundle swift flutter rails".split(), 1
    ),
    **dict.fromkeys("gh docker podman kubectl aws gcloud az heroku fly nix helm".split(), 2),
}
_ONE_MORE = frozenset("run exec compose stash remote worktree submodule bisect pip tool workspace dlx".split())
_RUNNERS = re.compile(r"(?:uv run|poetry run|npx|pnpm exec|pnpm dlx|bundle exec|xargs|hatch run|pipenv run|bunx|uvx)$")
_INTERPRETERS = frozenset("python node ruby perl php bash sh zsh deno bun".split())
_PREFIXES = frozenset("sudo time nohup env command exec nice stdbuf builtin".split())
_SILENT = frozenset("cd export source . set unset echo printf true : sleep pwd pushd popd mkdir".split())
COMMONPLACE = frozenset("ls cat pwd cd echo head tail wc which grep rg find sed nl tree stat file sort printf".split())

_WORD = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*'|"(?:\\.|[^"\\])*"|['"])+""", re.S)
_REDIRECT = re.compile(r"(?:\d|&)?>>?(?:&\d|\s*/dev/null)|<\s*/dev/null")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_BARE = re.compile(r"[a-z][\w:.@-]*$")
_NUMBER = re.compile(r"[-+]?\d[\d.,:_]*[a-z%]?$")
_URL = re.compile(r"[a-z][a-z0-9+]*://", re.I)
_EMAIL = re.compile(r"[^\s@/]+@[\w-]+(?:\.[\w-]+)+$")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ][\d:.]+\w*)?$")
_FILE = re.compile(r"[\w.*@+-]+\.[A-Za-z*][A-Za-z0-9*]{0,5}$")
_HEREDOC = re.compile(r"<<[-~]?\s*(['\"]?)\w+\1")
_PUNCTUATION = re.compile(r"[^\w\s]{1,3}")
_STATEMENT = re.compile(
    r"\s*(select(?=\s.*\bfrom\b)|with(?=\s+\w+.*\bas\s*\()|insert\s+into|update(?=\s+\S+\s+set\b)|delete\s+from|"
    r"(?:create|alter|drop)\s+(?:table|index|view)|explain|pragma|truncate\s+table)\b",
    re.I | re.S,
)
_AGGREGATE = re.compile(r"\s+(count|sum|avg|min|max)\s*\(", re.I)
_SPACE, _DIGIT = re.compile(r"\s"), re.compile(r"\d")
_TOKEN = re.compile(r"[A-Za-z0-9_./#@:+*-]+")
_VARYING = re.compile(r"\b(?=[\w-]*\d)[\w-]+|[#@]\w+")  # an id or a number
_STEM = re.compile(r"/[\w-]+(?=(?:\.\w+)+\b)")
_CODE_LIMIT, _LONG, _STAGES, _OPERANDS = 2_000, 500, 4, 4

canonical = msgspec.json.Encoder(order="deterministic").encode


class ShapeCounts(Struct):
    """How often a shape was seen, succeeded and failed. Counts up while sessions are read."""

    sessions: set[str]
    successes: int = 0
    failures: int = 0

    @property
    def fails_mostly(self) -> bool:
        return self.failures > self.successes

    @property
    def rate(self) -> float:
        return self.successes / (self.successes + self.failures or 1)


class Stage(NamedTuple):
    """One command of a command line."""

    head: str  # program and subcommand: `git log`, `uv run pytest`
    lead: str  # the words up to there, with the flags between: `mise exec -- hk`
    program: str  # as the line writes it, with its path
    words: tuple[str, ...]  # flags and operands, with their quotes

    @property
    def flags(self) -> tuple[str, ...]:
        return tuple(word.partition("=")[0] for word in self.words if word.startswith("-") and word not in ("-", "--"))

    @property
    def names(self) -> frozenset[str]:
        """The last parts of the operands: files, branches, names."""
        plain = (word.strip("'\"").replace("\\", "") for word in self.words if not word.startswith("-"))
        names = {word.rstrip("/").rpartition("/")[2] for word in plain if len(word) < 200}
        return frozenset(name for name in names if len(name) > 2 and not name[0].isdigit())


def signature(tool: str, arguments: Arguments) -> tuple[str, str]:
    """Return a call as a key, to compare it with the calls of a seed."""
    return tool, canonical(arguments).decode("utf-8", "replace")


def mask_call(tool: str, arguments: Arguments) -> tuple[str, str]:
    """Return a call as a key that calls share which differ only in an id, a number or the stem of a file's name."""
    if isinstance(arguments, dict):
        arguments = {name: value for name, value in arguments.items() if name.lower() not in _COMMENTARY}
    text = canonical(arguments).decode("utf-8", "replace")
    return tool, _VARYING.sub("#", _STEM.sub("/#", text))


def shape(tool: str, arguments: Arguments) -> str:
    """Return the call with the values masked that belong to one session."""
    line = command_of(tool, arguments)
    if line is not None:
        return f"{tool}: {shape_line(line)}"
    values = sorted(values_of(arguments).items())
    return f"{tool}({', '.join(f'{name}:{form}' for name, (form, _value) in values)})"


def values_of(arguments: Arguments) -> dict[str, tuple[str, Any]]:
    """Return the arguments that matter, each with the form of its value."""
    if isinstance(arguments, str):
        return {"text": ("text", arguments)}
    return {name: (_classify(name, v), v) for name, v in arguments.items() if name.lower() not in _COMMENTARY}


def kind(tool: str, arguments: Arguments) -> str:
    """Return the kind of a call, for variety among examples: the tool, for shells the program, for SQL the statement."""
    line = command_of(tool, arguments)
    if line is not None:
        return f"{tool}: {heads(line)[0]}"
    values = arguments.values() if isinstance(arguments, dict) else ()
    statement = next((name for value in values if isinstance(value, str) and (name := name_statement(value))), None)
    return tool if statement is None else f"{tool}: {statement}"


def name_statement(text: str) -> str | None:
    """Return the verb of an SQL statement (`select count`, `insert into`); None for other text."""
    statement = _STATEMENT.match(text)
    if statement is None:
        return None
    verb = " ".join(statement[1].lower().split())
    aggregate = _AGGREGATE.match(text, statement.end()) if verb == "select" else None
    return f"{verb} {aggregate[1].lower()}" if aggregate else verb


def command_of(tool: str, arguments: Arguments) -> str | None:
    """Return the command line of a shell call; None for other tools."""
    return command_in(arguments) or None if tools.base_tool(tool) == tools.TERMINAL else None


@lru_cache(4_096)
def shape_line(line: str) -> str:
    """Return the shape of a command line."""
    stages = _stages(line)
    shapes = dict.fromkeys(_shape_words(words) for words in stages[:_STAGES])
    return " && ".join(shapes) + (" ..." if len(stages) > _STAGES else "")


@lru_cache(4_096)
def heads(line: str) -> tuple[str, ...]:
    """Return each command of the line as program and subcommand: `git log`, `uv run pytest`, `python -m unittest`."""
    return tuple(dict.fromkeys(" ".join(_head(words)[0]) for words in _stages(line))) or ("",)


@lru_cache(4_096)
def operands(line: str) -> frozenset[str]:
    """Return the words of the line that are not flags, without quotes."""
    words = (word.strip("'\"") for stage in _stages(line) for word in stage)
    return frozenset(word.rstrip("/") for word in words if len(word) > 1 and word[0] not in "-<>" and len(word) < 200)


@lru_cache(4_096)
def split_stages(line: str) -> tuple[Stage, ...]:
    """Return the commands of a line that matter."""
    stages = []
    for words in _stages(line):
        head, rest = _head(words)
        program = words[0].strip("'\"")
        lead = [program.rpartition("/")[2], *words[1 : len(words) - _count_after(words, head)]]
        stages.append(Stage(" ".join(head), " ".join(lead), program, tuple(rest)))
    return tuple(stages)


def _count_after(words: list[str], head: list[str]) -> int:
    """Return how many words of a command stand after its head."""
    at = 0
    for word in head[1:]:
        at = next((i for i in range(at + 1, len(words)) if words[i].rpartition("/")[2] == word), at)
    return len(words) - at - 1


def tokens(arguments: Arguments) -> frozenset[str]:
    """Return the tokens by which two calls are compared."""
    return frozenset(_TOKEN.findall(canonical(arguments)[:_CODE_LIMIT].decode("utf-8", "replace")))


def alike(a: frozenset[str], b: frozenset[str]) -> float:
    """Return the Jaccard similarity of two sets of tokens."""
    return len(a & b) / len(a | b) if a or b else 1.0


def strings_in(value: Any) -> Iterable[str]:
    """Yield every string inside a value, including keys."""
    if isinstance(value, str):
        yield value
    elif value is None or isinstance(value, int | float):
        return
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from strings_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from strings_in(inner)


def _stages(line: str) -> list[list[str]]:
    """Return the commands that matter; those that filter, change folder or print only where there are no others."""
    main: list[list[str]] = []
    rest: list[list[str]] = []
    for pipelines in split_line(_REDIRECT.sub("", line[:_CODE_LIMIT].replace("\\\n", " "))):
        for _operator, pipe in pipelines:
            for at, stage in enumerate(pipe):
                words = _unwrap(_WORD.findall(_HEREDOC.sub(" <<heredoc ", stage).strip("(){}! \t\n")))
                if words:
                    filters = at > 0 and words[0] in COMMONPLACE | {"awk", "jq", "tee", "less", "uniq", "cut", "tr"}
                    (rest if filters or words[0] in _SILENT else main).append(words)
    return main or rest


def _unwrap(words: list[str]) -> list[str]:
    while words:
        if words[0] in _PREFIXES or _ASSIGNMENT.match(words[0]):
            words = words[1:]
        elif words[0] in ("timeout", "gtimeout"):
            words = [word for at, word in enumerate(words[1:]) if at or not _NUMBER.match(word)]
        else:
            return words
    return words


def _head(words: list[str]) -> tuple[list[str], list[str]]:
    """Return program and subcommand, and the words after them."""
    program = words[0].strip("'\"").rpartition("/")[2] or words[0]
    head, rest = [program], words[1:]
    if re.match(r"python[\d.]*$", program) and len(rest) > 1 and rest[0] == "-m":
        return [program, "-m", rest[1]], rest[2:]
    wanted = _SUBCOMMANDS.get(program, 0)
    kept: list[str] = []
    for at, word in enumerate(rest):
        if _RUNNERS.match(" ".join(head)) and not word.startswith("-"):
            inner, after = _head(rest[at:])
            return head + inner, kept + after
        if len(head) > wanted:
            return head, kept + rest[at:]
        if _BARE.match(word) and not (kept and kept[-1] in ("-C", "--filter", "-f", "--prefix", "--repo", "-R")):
            head.append(word)
            wanted += word in _ONE_MORE
        else:
            kept.append(word)
    return head, kept


def _shape_words(words: list[str]) -> str:
    head, rest = _head(words)
    flags: set[str] = set()
    kinds: list[str] = []
    after_flag = ""
    runs_code = head[0].rstrip("0123456789.") in _INTERPRETERS
    for word in rest:
        if word.startswith("-") and len(word) > 1:
            name = word.partition("=")[0]
            after_flag = "-<n>" if name[1:].isdigit() else name[:30]
            flags.add(after_flag)
        else:
            operand = "<code>" if runs_code and after_flag in ("-c", "-e", "-lc") else _classify_word(word)
            after_flag = ""
            if operand not in kinds:
                kinds.append(operand)
    if ">" not in kinds and ">>" not in kinds:
        kinds.sort()
    return " ".join([*head, *sorted(flags), *kinds[:_OPERANDS]])[:160]


def _classify_word(word: str) -> str:
    if word.startswith("<<"):
        return "<<heredoc"
    if word in (">", ">>", "<"):
        return word
    if word[0] in "'\"":
        word = word.strip("'\"")
        return "<path>" if _is_path(word) else "<text>"
    if _URL.match(word):
        return "<url>"
    if _NUMBER.match(word):
        return "<n>"
    return "<path>" if _is_path(word) else "<arg>"


def _is_path(word: str) -> bool:
    return not _SPACE.search(word) and ("/" in word or word in (".", "..") or bool(_FILE.match(word)))


def _classify(name: str, value: Any) -> str:
    if type(value) is str:
        form = "text" if name.lower() in _FREE_TEXT and not name_statement(value) else classify_text(value)
        return "id" if form == "text" and name.lower().endswith(("_id", "_ids")) and " " not in value else form
    match value:
        case None:
            return "none"
        case bool():
            return "yes/no"
        case int() | float():
            return "number"
        case list():
            return f"list of {_classify(name, value[0])}" if value else "empty list"
        case _:
            return "object"


def classify_text(value: str) -> str:
    """Return the form of a value, which tools insist on: `#id` or `digits`, `absolute path` or `relative path`."""
    text = value.strip() if len(value) < _LONG else ""
    if not text:
        return "text" if value.strip() else "nothing"
    if _URL.match(text):
        return "url"
    if _SPACE.search(text):
        statement = name_statement(text)
        return f"sql {statement}" if statement else "text"
    if _EMAIL.match(text):
        return "email"
    if _DATE.match(text):
        return "date"
    if text.isdigit():
        return "digits"
    if _is_path(text):
        return "absolute path" if text[0] in "/~" else "relative path"
    if _DIGIT.search(text):
        prefix = _PUNCTUATION.match(text)
        return f"{prefix[0] if prefix else ''}id"
    return "text"
