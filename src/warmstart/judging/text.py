"""Recognise failures in plain text by where and how they are reported, never by a single word.

Programs report failure at the end (the last line of a traceback, a test runner's summary); tools report it at once
(`Error: ...` as the first words, or a short sentence that is the whole answer). Text that quotes files, logs or pages
proves nothing.
"""

from __future__ import annotations

import re

from warmstart.calls.shell import read_line
from warmstart.judging.hints import HintGate, PatternGate
from warmstart.model import ErrorKind

_HEAD, _TAIL = 3_000, 4_000
_HEAD_LINES, _TAIL_LINES = 4, 14
_ENDS = _HEAD_LINES + _TAIL_LINES
_WIDTH = 300  # characters of a line; errors stand at its start
_ansi = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")

_ERRNO = (
    r"(?:No such file or directory|Permission denied|Operation not permitted|Is a directory|Not a directory|File exists|"
    r"Directory not empty|No space left on device|Read-only file system|Connection refused|Text file busy|"
    r"Too many open files|Device or resource busy|Argument list too long|Exec format error|cannot execute[\w :]*|"
    r"[Cc]ommand not found|not found|No such process|Input/output error|Broken pipe|Cannot allocate memory)"
)

# Messages of the shell itself.
_SHELL = re.compile(
    rf"^(?:(?:/\w+){{0,3}}/?(?:ba|z|da|k|fi)?sh(?:: -c)?(?:: line \d+|:\d+)?: .*"
    rf"(?:{_ERRNO}|syntax error|parse error|unexpected|bad substitution|unbound variable|event not found|"
    rf"no matches found|ambiguous redirect|numeric argument required|not a valid identifier|bad option|cannot)"
    rf"|\(eval\):\d+: .+|.{{0,40}}command not found: \S+|zsh:\d+: .+)",
    re.M,
)
_SCRIPT = re.compile(
    rf"^\S*?([^\s/:]+): (?:line )?\d+: .*{_ERRNO}", re.M
)  # an error in a line of a script: it counts if the command ran that script

# Messages of the harness around a shell: the command could not be run at all.
_HARNESS = re.compile(
    r"^\s*(?:<exception>|unsupported call: \S+\s*$|failed in sandbox|execution error: |An error occurred while executing|ERROR: Timeout"
    r"|Command timed out|Timed out|Failed to (?:execute|run|start|spawn|create) |spawn \S+ E[A-Z]+)"
)

_PLAIN_ERROR = re.compile(r"^\s*Error(?:: |\s*$)")

# `cat: x: No such file or directory`, `ls: cannot access ...`, `rm: cannot remove ...`
_PROGRAM = re.compile(
    rf"^(?![A-Z]\w*(?:Error|Exception)\b|\S+: (?:line )?\d+: )[\w./+-]{{1,60}}: (?:.*: {_ERRNO}$|cannot \w+|can't \w+|(?:unrecognized|invalid|illegal|unknown|missing) \w+|"
    rf"{_ERRNO}|error[: ]|fatal[: ]|unable to |failed to |could not |no such |no module named |try '.*--help)",
    re.M | re.I,
)

# Errors at the very start or the very end of a program's output.
_EDGE = re.compile(
    r"^(?:\W{0,4}(?i:error|err!|fatal|fatal error|panic|abort(?:ed)?|uncaught|unhandled|critical|exception)\b"
    r"(?:[:!\[(]| -|$| (?:command|code|occurred|in|while|response|from|running|executing|parsing|reading|loading|opening|"
    r"connecting|creating|building|during|processing|task|:))"
    r"|\[?(?:ERROR|FATAL|FAILED|FAILURE)\]?\b(?!\s*[=(]?0)"
    r"|E: \S|e: |ERROR[: ]|\[\w[\w:.-]*\] ERROR\b"
    r"|(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Fault|Failure|Interrupt|Warning: error|NotFound|DoesNotExist|Exit)(?::|$)"
    r"|Exception in thread|thread '[^']*' (?:\(\d+\) )?panicked|goroutine \d+ \[running\]"
    r"|Segmentation fault|Killed$|Terminated$|Bus error|Illegal instruction|Aborted(?: \(core dumped\))?$|Trace/BPT trap"
    r"|Traceback \(most recent call last\)"
    r"|curl: \(\d+\)|ssh: |scp: |rsync error|wget: |psql: error|mysql.*ERROR \d+|ERROR \d+ \("
    r"|Could not |Cannot |Can't |Unable to |Failed to |Failed: |failed to |cannot |could not |unable to "
    r"|No such |Permission denied|Access denied|Command failed|Command timed out|Command terminated|Timed out|timed out"
    r"|Invalid |invalid |Unknown |unknown |Unrecognized |unrecognized |Missing (?:required|argument)|missing required "
    r"|An error occurred|Error response from daemon|Error from server|The connection to the server|HTTP \d{3}: "
    r"|GraphQL: |could not |no test files|no such |not a git repository|Aborting\.?$"
    r"|Sorry: |error\[E\d+\]|error TS\d+|npm ERR!|npm error|╷|│ Error: )",
    re.M,
)

# Unmistakable anywhere near the end.
_MARK = re.compile(  # at the start of a line
    r"^(?:"
    r"(?:fatal: |error: (?!0\b))|CONFLICT \(|Automatic merge failed|! \[(?:remote )?rejected\]|Aborting$"
    r"|error: (?:could not compile|aborting due to|linking with)|make(?:\[\d+\])?: \*\*\* |ninja: build stopped"
    r"|gmake: \*\*\*|Build failed|Compilation failed|error Command failed|Exit status [1-9]"
    r"|husky - .*(?:failed|exited)|\s*=+ .*\b[1-9]\d* (?:failed|errors?)\b.*=+\s*$|FAILED [\w./]+"
    r"|FAILED \((?:failures|errors)|ERROR [\w./-]+\.py|--- FAIL|FAIL(?:\s|$)|\s*FAIL\s+\S+\.\w+"
    r"|Tests?:\s+.*[1-9]\d* failed|\s*Tests?(?: Files| Suites)?:?\s+[1-9]\d* failed|\s*[1-9]\d* failing\b"
    r"|FAILURES!|Failed Tests|Failed!\s+- Failed:|\s+[1-9]\d* failed$|\d+ tests? failed"
    r"|\W{0,3}[1-9]\d* of \d+ failed|not ok \d+|# fail [1-9]|\s*[1-9]\d* fail$"
    r"|Found [1-9]\d* errors?\b(?!.*\(\d+ fixed, 0 remaining\))|(?:\[\S+\] )?[1-9]\d* issues?(?: found)?[:.]?$"
    r"|would reformat|[1-9]\d* errors?(?: and \d+ warnings?)? (?:found|generated)|\s*(?:🥊|✖|×|❌|✘) "
    r"|\[\w[\w:.-]*\] ERROR\b|=+ (?:FAILURES|ERRORS) =+$|Node\.js v\d+|\s+at .+\(?(?:node:internal|file://)"
    r"|panic: |Terminated$|\W{0,3}(?:Some|\d+|One or more)(?: \w+){0,3} tests? failed\b"
    r")",
    re.M,
)
_MARK_INSIDE = re.compile(
    r"error TS\d+: |error\[E\d{3,5}\]|: (?:fatal )?error: |: error C\d+: |undefined reference to|collect2: error"
    r"|ld: symbol\(s\) not found|\*\*\* \[\w.*\] Error \d+|BUILD FAILED|BUILD FAILURE|FAILURE: Build failed"
    r"|Failed to compile|\[build failed\]|npm ERR!|npm error (?:code|command|Lifecycle|Missing|path)|ELIFECYCLE"
    r"|ERR_PNPM_\w+|Command failed with exit code|exited? with (?:code|status|exit code):? [1-9]"
    r"|returned non-zero exit|non-zero exit (?:code|status)|(?:hook|task|job|step) failed|test result: FAILED"
    r"|\d+ examples?, [1-9]\d* failures?|Test(?:s)? failed\.|✖ [1-9]\d* problems? \([1-9]\d* error"
    r"|\b[1-9]\d* (?:file|files) would be reformatted|Code style issues (?:found|were found)|\.{3,}Failed$"
    r"|ERROR task failed|The stash entry is kept|regex parse error|code: '(?:MODULE_NOT_FOUND|ERR_\w+|E[A-Z]{3,})'"
    r"|Segmentation fault|core dumped|panicked at|stack backtrace:|An error occurred \(\w+\) when calling"
    r"|Cannot connect to the Docker daemon|Error response from daemon|Could not resolve host|Connection refused"
    r"|Command timed out|signal: killed|OOMKilled|ModuleNotFoundError: |ImportError: cannot|sandbox denied exec",
    re.M,
)
_INSIDE_HINTS = (  # in lower case; a text without any of these has no mark inside a line
    *(
        "error",
        "fail",
        "undefined reference",
        "symbol(s)",
        "npm err",
        "elifecycle",
        "err_pnpm",
        "exit with ",
        "exited with ",
    ),
    *(
        "non-zero",
        "problem",
        "reformat",
        "code style",
        "stash entry",
        "code: '",
        "segmentation",
        "core dumped",
        "panicked",
    ),
    *("backtrace", "daemon", "resolve host", "refused", "timed out", "killed", "denied exec"),
)
_INSIDE_GATE = HintGate(_INSIDE_HINTS, folded=True)
_NOTHING_TO_COMMIT = re.compile(r"^(?:nothing (?:added )?to commit|no changes added to commit)", re.M)
_NOISE = ("Shell cwd was reset to ", "<output>", "</output>", "<stderr>", "</stderr>", "<stdout>", "</stdout>")
_HINTS = tuple(  # a text without any of these holds no error
    "error|fail|fatal|cannot|can't|could not|unable|denied|not found|no such|invalid|unknown|unrecog|missing|panic|abort|"
    "conflict|reject|refused|traceback|exception|killed|terminated|fault|timed out|usage:|exit|syntax|unexpected|issue|"
    "reformat|unsupported call|not ok|stash entry|commit|permitted|no matches|undefined ref|🥊|✖|×|❌|✘|╷|bad |http |graphql|core dumped|"
    "a directory|exists|node.js v|interrupt|backtrace|node:|stopped|***|illegal|curl: |ssh: |e: |errors|err!|err_|"
    "no module|only file|too many|busy|too long|space left|(eval)|elifecycle|non-zero|# fail|notfound|doesnotexist|warning: ".split(
        "|"
    )
)
_GATE = HintGate(_HINTS, folded=True)
_TRACE = "Traceback (most recent call last)"
_TRACE_END = re.compile(
    r"^(?:[\w.]+\.)?[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|Warning|Failure|Timeout|Fault)(?::|$)"
)
_WINDOW_GATE = (
    PatternGate(  # all that makes an output a failure; rows are matched by themselves and without indentation
        *(_HARNESS, _PLAIN_ERROR, _SHELL, _SCRIPT, _PROGRAM, _MARK, _MARK_INSIDE, _NOTHING_TO_COMMIT),
        re.compile(rf"^\s*{_EDGE.pattern.removeprefix('^')}", re.M),
        re.compile(_TRACE_END.pattern, re.M),
    )
)

# Errors of tools other than shells: how the answer begins ...
_OPENING = re.compile(
    r"^\W{0,6}(?:(?:tool |api |mcp |http |runtime |validation |server |client |internal |unexpected |execution |fatal )?"
    r"error(?:s)?(?:\s*(?:[:!\[(]|-\d|- |\d{3}|$)| (?:executing|calling|running|occurred|while|reading|writing|fetching|"
    r"code|in|editing|searching|parsing|processing|invoking|during|from|performing|loading|creating|updating))"
    r"|[A-Z]\w*(?:Error|Exception)\b\s*(?::|$|\()|traceback \(most recent|exception(?::| in | occurred)"
    r"|(?:failed|failure)(?::|!|$| (?:to|with|in|because|due))|unable to |could not |couldn['’]t |cannot |can['’]t "
    r"|invalid[: ]|unknown (?:tool|skill|command|action|function|agent|parameter|argument|option|model|error|resource|user)"
    r"|request (?:failed|timed out)|http (?:error )?[45]\d\d|status(?: code)?:? [45]\d\d\b|permission (?:denied|to use)"
    r"|access denied|unauthori[sz]ed|forbidden|not (?:found|allowed|permitted|authori[sz]ed|supported|implemented)\b"
    r"|no such |file (?:does not exist|not found|has not been|has been (?:unexpectedly )?modified|content \()|path (?:does|not)|directory (?:does not|not found)"
    r"|(?:\w+ ){1,3}must (?:be|have|not|contain)\b"
    r"|claude requested permissions|claude code is unable|no (?:shell|task|process|job|session|agent|cell) found"
    r"|regex parse error|ripgrep|tool (?:permission|execution|call|use) (?:request )?(?:failed|blocked|denied|error)|blocked by"
    r"|this (?:pdf|image|file) |unsupported |net::err|getaddrinfo|not connected|prompt is too long"
    r"|string to replace|no changes to make|found \d+ matches of the string|old_string|eisdir|enoent|eacces|econn|etimedout"
    r"|inputvalidationerror|mcp error|agent type |timed? ?out\b|timeout(?::| )|operation (?:timed|aborted|failed)"
    r"|command (?:failed|timed out|not found)|missing (?:required|argument|parameter)|unexpected (?:token|end|argument)"
    r"|<(?:tool_use_)?error>|</?tool_error|this (?:tool|command|operation|action) (?:is not|cannot|failed|requires)"
    r"|the (?:operation|request|command|tool|server|file|model) (?:failed|timed out|could not|does not|was not|cannot|is not)"
    r"|you (?:cannot|can['’]t|must|do not have|don['’]t have|are not)|path does not exist|no (?:module|permission))",
    re.I,
)

_OUTRIGHT = re.compile(
    r"^(?:Error(?:: |:\n|\n|$| \(| executing | calling )|error: |ERROR[: ]|<error>|Traceback \(most recent|MCP error |API Error|"
    r"[A-Z]\w+(?:Error|Exception): |### (?:Result|Error)\s*\n+\s*(?:\w*Error)|String to replace not found|Found \d+ matches of the "
    r"string|File content \(|\[?Tool \S+ (?:error|failed)|Tool permission request failed|Permission to use \S+ |Claude requested permissions|PreToolUse:\S+ hook error|Your proposed edit has introduced new syntax error|No replacement was "
    r"performed|No file open\. Use the )"
)

_FIRST_SENTENCE = re.compile(r"^[^.!?\n]{1,120}\b(?:not found|does not exist|is not supported|failed)[.:!](?:\s|$)")

# ... and phrases of a short answer that is a refusal.
_REFUSAL = re.compile(
    r"\bnot found\b|\bunable to\b|\bcould not\b|\bcannot\b|\bwas blocked\b|\bE(?:NOTFOUND|CONN\w+|TIMEDOUT|ACCES|NOENT)\b"
    r"|\berror[.!]?$|\brefusing\b|\bhas expired\b|\btoo many\b|\bhook (?:error|blocked)\b|\bdoes not (?:exist|match|add up|belong|have|support|allow|contain)\b|\bdo(?:es)?n['’]t (?:exist|match)\b"
    r"|\bis not (?:a |an |available|enough|valid|allowed|supported|defined|permitted|in |found|eligible|pending|possible|"
    r"recogni[sz]ed|callable|installed|running|iterable|cancelled|delivered)|\bnot (?:enough|available|eligible|permitted)\b"
    r"|\bcannot be\b|\bcan not be\b|\bcan['’]t be\b|\bnon-\w+ (?:order|item|user)\b.*\bcannot\b|\balready (?:exists|in use|used|been)\b"
    r"|\bfailed\b(?! to fail)|\bdenied\b|\bunauthori[sz]ed\b|\bforbidden\b|\bis required\b|\bmust be\b|\bmust have\b"
    r"|\bshould (?:match|be|have)\b|\btimed out\b|\brefused\b|\bexceed(?:s|ed)\b|\binsufficient\b|\binvalid\b|\bunknown\b"
    r"|\bunexpected\b|\bmissing\b|\bno longer\b|\bnot (?:yet )?been\b|\btoo (?:many|large|long)\b|\bdoesn['’]t\b.*\bsupport",
    re.I,
)
_NO_REFUSAL = re.compile(
    r"\b(?:no (?:files?|matches|results?|issues|errors?|problems?|changes|output) (?:were )?found|0 (?:failed|errors)|"
    r"(?:not found|failed|missing|invalid|unknown|denied): ?0|success(?:ful(?:ly)?)?|completed|passed|has been (?:updated|"
    r"created|saved|deleted|written|approved)|no (?:errors?|problems?|issues))\b",
    re.I,
)

_tags = re.compile(r"^\s*</?(?:tool_use_error|error|tool_error)>\s*")


def plain(text: str) -> str:
    """Return a text without terminal colours; of a long text only its two ends."""
    if len(text) > _HEAD + _TAIL:
        text = text[:_HEAD] + "\n" + text[-_TAIL:]
    return clear(text)


def clear(text: str) -> str:
    """Return a text without terminal colours and carriage returns."""
    if "\x1b" in text:
        text = _ansi.sub("", text)
    return text.replace("\r\n", "\n")


def shell_failed(text: str, command: str) -> bool:
    """Return whether a command's output shows that its exit code was not zero."""
    lines = _take_ends(text)
    window = "\n".join(lines)
    if not _WINDOW_GATE.opens(window) or not _GATE.opens(window):
        return False
    line = read_line(command)
    if _HARNESS.match(text) or (_PLAIN_ERROR.match(text) and not line.handles and line.reach == "whole"):
        return True
    borders = "\n".join(lines[:2] + lines[-3:])
    by_shell = _SHELL.search(borders) if _could_be_shell(borders) else None
    if line.reach == "none":
        return bool(by_shell and "syntax error" in by_shell[0]) or _is_own_error(lines, line.program)
    if by_shell or any(script[1] in line.text for script in _SCRIPT.finditer(borders)):
        return True
    if line.quotes:
        return _is_own_error(lines, line.program) or lines[0].startswith("fatal: ")
    if line.handles:
        return bool(_TRACE_END.match(lines[-1]))
    if line.reach == "last":
        window = "\n".join(lines[-6:])
        return _speaks_shell(window) or _is_marked(window) or _matches(_PROGRAM, lines[-4:]) or _is_edge(lines[-3:])
    if _speaks_shell(window) or _matches(_PROGRAM, lines[:1] + lines[-4:]) or _is_marked(window):
        return True
    if line.commits and _NOTHING_TO_COMMIT.search(window):
        return True
    return _is_edge(lines[:1] + lines[-3:]) or _is_trace(text, lines)


def _take_ends(text: str) -> list[str]:
    """Return the first and the last rows of an output: all of a short one."""
    if "\r" in text:
        text = text.replace("\r", "\n")
    last = _clean_rows(text.rsplit("\n", 2 * _ENDS)[:0:-1], _ENDS)
    if len(last) < _ENDS:
        last = _clean_rows(text.split("\n")[::-1], _ENDS)
    if len(last) < _ENDS:  # those are all
        return last[::-1]
    first = _clean_rows(text.split("\n", 2 * _ENDS)[:-1], _HEAD_LINES)
    if len(first) < _HEAD_LINES:
        first = _clean_rows(text.split("\n"), _HEAD_LINES)
    return first + last[_TAIL_LINES - 1 :: -1]


def _clean_rows(rows: list[str], most: int) -> list[str]:
    """Return the first rows that are neither blank nor written by the agent."""
    kept: list[str] = []
    for row in rows:
        stripped = row.rstrip()
        if stripped and not stripped.startswith(_NOISE):
            kept.append(stripped[:_WIDTH])
            if len(kept) == most:
                break
    return kept


def _could_be_shell(text: str) -> bool:
    """Return whether a text may hold a message of a shell: the search for one is slow."""
    return "sh:" in text or "(eval):" in text or "command not found: " in text


def _speaks_shell(text: str) -> bool:
    return _could_be_shell(text) and _SHELL.search(text) is not None


def _is_marked(text: str) -> bool:
    """Return whether a text holds an unmistakable sign of failure."""
    if _MARK.search(text):
        return True
    return _INSIDE_GATE.opens(text) and _MARK_INSIDE.search(text) is not None


def _is_own_error(lines: list[str], program: str) -> bool:
    """Return whether the program reports an error under its own name: `sed: x: No such file or directory`."""
    prefix = f"{program}: "
    return any(row.startswith(prefix) and _PROGRAM.match(row) for row in lines[:2] + lines[-3:])


def _matches(pattern: re.Pattern[str], rows: list[str]) -> bool:
    return any(pattern.match(row) for row in rows)


def _is_edge(rows: list[str]) -> bool:
    return _matches(_EDGE, [row.lstrip() for row in rows])


def _is_trace(text: str, lines: list[str]) -> bool:
    if lines[0].startswith(_TRACE):
        return True
    if not _TRACE_END.match(lines[-1]) or _TRACE not in text:
        return False
    rows = text.replace("\r", "\n").split("\n")
    return any(_TRACE in row for row in _clean_rows(rows, len(rows)))


def answer_failed(text: str, *, quotes: bool) -> bool:
    """Return whether the answer of a tool other than a shell is an error. `quotes`: the tool returns other text."""
    tag = _tags.match(text)
    body = (text[tag.end() :] if tag else text).strip()
    if not body:
        return False
    first = body.split("\n", 1)[0]
    short = len(body) <= 400 and body.count("\n") <= 4
    if _OUTRIGHT.match(body):
        return True
    if (short or (not quotes and len(body) <= 1_500)) and _OPENING.match(first) and not _NO_REFUSAL.match(first):
        return True
    if quotes:
        return False
    if len(body) <= 20_000 and _FIRST_SENTENCE.match(first):
        return True
    return short and len(first) <= 240 and bool(_REFUSAL.search(first)) and not _NO_REFUSAL.search(first)


_UNKNOWN_TOOL = re.compile(  # the agent called a tool that is not there; \x00 stands for its name
    r"unsupported (?:custom tool )?(?:call|tool):? \x00|(?:unknown|invalid) (?:tool|function)(?: name)?:? \x00|tool not found: \x00"
    r"|no (?:such )?tool (?:available|named|called):? \x00|(?:the )?(?:tool|function) \x00 (?:(?:was |is )?not |does not |isn't )"
    r"|model tried to call unavailable tool \x00|\x00 is not (?:a valid|an available|a known) (?:tool|function)",
    re.I,
)
_QUOTES = "'\"`"


def tool_is_unknown(tool: str, text: str) -> bool:
    """Return whether an answer says that the called tool does not exist."""
    if not tool or tool not in text[:300]:
        return False
    opening = text[:300]
    tag = _tags.match(opening)
    opening = (opening[tag.end() :] if tag else opening).lstrip().removeprefix("Error: ")
    for quote in _QUOTES:
        opening = opening.replace(quote, "")
    return bool(_UNKNOWN_TOOL.match(opening.replace(tool, "\x00")))


_KINDS: tuple[tuple[ErrorKind, re.Pattern[str]], ...] = (
    (
        "permission",
        re.compile(
            r"permission denied|operation not permitted|not permitted|access denied|eacces|eperm\b|unauthori[sz]ed|forbidden"
            r"|status(?: code)? 40[13]|http 40[13]|has been denied|sandbox denied|not allowed|requires approval|read-only file"
        ),
    ),
    (
        "environment",
        re.compile(
            r"command not found|not recognized as an? |no module named|modulenotfound|cannot find module|not installed"
            r"|enotfound|econn\w+|connection (?:refused|reset|closed|error)|could not resolve|timed? ?out|etimedout|network"
            r"|no space left|out of memory|oom|killed|docker daemon|http 5\d\d|status(?: code)? 5\d\d|429|rate limit"
            r"|ssl|certificate verify|no matching distribution|service unavailable|bad gateway|core dumped|segmentation"
        ),
    ),
    (
        "arguments",
        re.compile(
            r"inputvalidation|validation error|invalid (?:argument|option|parameter|input|json|value|type|choice|request)"
            r"|unrecognized (?:argument|option|key|command)|unknown (?:option|command|tool|skill|flag|argument|function|action)"
            r"|missing (?:required|argument|parameter|positional)|is required|required (?:property|argument|parameter)"
            r"|syntax error|parse error|unexpected token|not valid json|jsondecode|bad substitution|agent type .* not found"
            r"|no such tool|usage: |unexpected keyword|must be (?:a|an|one|at|of)|expected \w+, (?:got|received)|mcp error -32602"
            r"|unexpected argument|illegal option|no matches found|-32601|does not support|old_string and new_string"
        ),
    ),
    (
        "precondition",
        re.compile(
            r"no such file|does not exist|not found|enoent|eisdir|enotdir|not been read|to replace not found|already exists"
            r"|modified since|matches of the string|conflict|nothing to commit|not a git repository|no changes|is a directory"
            r"|not a directory|already (?:used|in use|checked)|would be overwritten|no such (?:table|column|process|container)"
            r"|directory not empty|not running|merge|must be run|not pending|is not delivered|no files were processed"
        ),
    ),
    (
        "semantic",
        re.compile(
            r"not enough|insufficient|add up|not available|cannot be|not eligible|refused|rejected|exceed|not valid|\bmismatch\b"
            r"|should match|not match|denied|does not belong|too (?:many|large|long)"
        ),
    ),
)


_KIND_GATE = PatternGate(*(pattern for _kind, pattern in _KINDS))


def error_kind(text: str) -> ErrorKind:
    """Return the kind of error of a failed result, decided by its first two and last four lines."""
    lines = [row[:_WIDTH] for row in text.split("\n") if row and not row.isspace()]
    ends = "\n".join(lines if len(lines) <= 6 else lines[:2] + lines[-4:]).lower()
    for place in sorted(_KIND_GATE.which(ends)):
        kind, pattern = _KINDS[place]
        if pattern.search(ends):
            return kind
    return "other"
