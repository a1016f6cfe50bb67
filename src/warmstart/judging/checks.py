"""Failing checks whose exit code was lost behind a pipe: tests, linters, type checkers and builds.

`mise run lint | tail -20` exits with the code of `tail`. The check has still failed, and its own summary or findings say
so. Only a command line that runs a check is looked at: reading a log that quotes a failure is no failure.
"""

from __future__ import annotations

import re

from warmstart.calls.checks import CHECK_PROGRAMS, CHECK_WORDS, runs_check
from warmstart.judging.hints import PatternGate
from warmstart.judging.text import clear

_SUMMARIES = (  # a check's own word that it failed, at the start of a line
    # Python
    r"=+ .*\b[1-9]\d* (?:failed|errors?)\b.*=+$",
    r"[1-9]\d* failed\b.* in [\d.]+s",
    r"(?:FAILED|ERROR) [\w./\\-]+\.py(?:::|\s|$)",
    r"FAILED \((?:failures|errors)=",
    r"Found [1-9]\d* errors?\b",
    r"\S+\.pyi?:\d+(?::\d+)?: error: ",
    r"\s*\S+\.pyi?:\d+:\d+ - error: ",
    r"\S+\.py:\d+:\d+: [A-Z]{1,4}\d{2,4} ",
    r"\d+ files? would be (?:reformatted|changed)",
    r"would reformat ",
    # JavaScript and TypeScript
    r"Tests?:\s.*\b[1-9]\d* failed\b",
    r"Test Suites:\s.*\b[1-9]\d* failed\b",
    r"\s*(?:Tests|Test Files)\s+[1-9]\d* failed\b",
    r"\s*FAIL\s+\S+\.(?:[cm]?[jt]sx?|vue|svelte)\b",
    r"\s+[1-9]\d* failing$",
    r"\s*[1-9]\d* fail$",
    r"\s*[1-9]\d* failed$",
    r"\s*[1-9]\d* errors?$",
    r"\(fail\) ",
    r"\s*✘\s+\d+ ",
    r"error: script \"[^\"]+\" (?:exited with code [1-9]|was terminated)",
    r"# fail [1-9]",
    r"\s*\S+\(\d+,\d+\): error TS\d+:",
    r"\s*\S+:\d+:\d+ - error TS\d+:",
    r"error TS\d+:",
    r"\s+\d+:\d+\s+error\s{2,}",
    r"\s*× Some (?:errors|warnings) were emitted while running checks",
    r"\[(?:warn|error)\] Code style issues found",
    r"(?:npm ERR!|npm error (?:code|Lifecycle))",
    r"error Command failed with exit code [1-9]",
    r"\s*Failed:\s+\S+#\S+",
    r"\s*ERROR\s+run failed: command",
    # Go, Rust, C and the rest
    r"\s*--- FAIL: ",
    r"FAIL(?:\t|$)",
    r"\s*test result: FAILED",
    r"error\[E\d+\]: |error: (?:could not compile|aborting due to|linking with|test failed)",
    r"\s*Diff in \S+\.rs(?::\d+| at line)",
    r"\S+\.(?:c|cc|cpp|h|hpp|m|swift|java|kt|cs|zig):\d+(?::\d+)?: (?:fatal )?error: ",
    r"\S+\(\d+,\d+\): error [A-Z]{2}\d+: ",
    r"g?make(?:\[\d+\])?: \*\*\* ",
    r"BUILD FAILED\b",
    r"FAILURE: Build failed",
    r"\[(?:INFO|ERROR)\] BUILD FAILURE",
    r"\s*Build FAILED\.",
    r"Failed!\s+- Failed:\s+[1-9]",
    r"\d+ examples?, [1-9]\d* failures?",
    r"(?:FAILURES|ERRORS)!$",
    r"Tests: \d+, .*\b(?:Failures|Errors): [1-9]",
    r"\[[\w:./-]+\] ERROR task failed",
    r"error: Recipe `[^`]+` failed",
    r"task: Failed to run task",
    r"\S+:\d+(?::\d+)?:? error\b",
    r"(?:\S*sh: )?(?:line \d+: )?[\w./@-]+: (?:command )?not found$|\S*sh: command not found: ",
)
_SUMMARY = re.compile(f"^(?:{'|'.join(_SUMMARIES)})", re.M)  # one pattern: a search visits every character once
_INSIDE = re.compile(
    r"✖ [1-9]\d* problems? \([1-9]\d* errors?|✖ [1-9]\d* problems?\b(?! \(0 errors)|\bERR_PNPM_\w+|\bELIFECYCLE\b"
)
_INSIDE_HINTS = ("✖ ", "ERR_PNPM_", "ELIFECYCLE")
_HINTS = (  # a text without any of these has no such summary
    *(
        "fail",
        "FAIL",
        "Fail",
        "rror",
        "RROR",
        "ERR!",
        "would",
        "✘",
        "Diff in",
        "*** ",
        "Code style",
        ".py:",
        "not found",
    ),
    "were emitted",
)
_FINDINGS = re.compile(  # what a check prints of one failure; tests log such lines too, so a passing summary outweighs them
    r"^(?:error: (?!script )|(?:\./)?[\w./-]+\.go:\d+:\d+: |\s*Error: |ERROR: "
    r"|\s*(?:[×✖] Formatter would have printed|at \S+ (?:format|lint|assist)|\S+ (?:format|(?:lint|assist)/\S+) .*━{3}))",
    re.M,
)
_FINDING_HINTS = ("rror: ", "ERROR: ", ".go:", "Formatter would", "format", "lint", "assist")
_TESTS = re.compile(
    r"(?:^|[\s:/._-])(?:tests?|specs?|e2e|pytest|jest|vitest|mocha|unittest|playwright)(?=$|[\s:/._-])", re.I
)
_PASSED = re.compile(
    r"^\s*0 fail$|^=+ \d+ passed\b[^=]*=+$|^\d+ passed\b.* in [\d.]+s|^Tests:\s+(?:\d+ \w+, )*\d+ passed, \d+ total"
    r"|^\s*Tests\s+\d+ passed|^test result: ok|^ok\s+\S+\s+(?:[\d.]+s|\(cached\))|^OK(?: \(|$)|^\s+\d+ pass(?:ing|ed)\b"
    r"|^\d+ examples?, 0 failures|^Found 0 errors|^All checks passed|^Success: no issues found|^0 issues|BUILD SUCCESS"
    r"|^Build succeeded|^\[INFO\] BUILD SUCCESS|^# fail 0$",
    re.M,
)
_TAIL, _HEAD = 24_000, 8_000  # characters looked at: summaries stand at the end, findings anywhere near it


_GATE = PatternGate(_SUMMARY, _INSIDE, _FINDINGS)
_PROGRAMS = "|".join(map(re.escape, sorted(CHECK_PROGRAMS)))
_LONG_COMMAND = 300  # characters in which `runs_check` looks for a word; in a longer line the word may be cut
_LONG_GATE = PatternGate(re.compile(rf"(?:^|[^A-Za-z0-9])(?:{_PROGRAMS}|(?i:{CHECK_WORDS}))", re.M))
_COMMAND_GATE = PatternGate(  # the words of `runs_check`, with what may stand around them in a command line
    re.compile(
        rf"(?:^|[^A-Za-z0-9])(?:(?:{_PROGRAMS})(?:$|[^A-Za-z0-9_.-])|(?i:{CHECK_WORDS})(?:$|[\s:/._;|&)}}-]))", re.M
    )
)


def may_run_check(command: str) -> bool:
    """Return whether a command line may run a check; to know it, the line must be taken apart."""
    return (_LONG_GATE if len(command) > _LONG_COMMAND else _COMMAND_GATE).opens(command)


def may_report_failure(result: str) -> bool:
    """Return whether the output of a check can be that of a failed one."""
    return _GATE.opens(_take_ends(result))


def _take_ends(result: str) -> str:
    output = clear(unquote(result))
    return output if len(output) <= _HEAD + _TAIL else f"{output[:_HEAD]}\n{output[-_TAIL:]}"


def check_failed(command: str, result: str) -> bool:
    """Return whether a check in this command line failed, by its own summary or findings."""
    if not runs_check(command):
        return False
    text = _take_ends(result)
    if any(hint in text for hint in _HINTS) and _SUMMARY.search(text):
        return True
    if any(hint in text for hint in _INSIDE_HINTS) and _INSIDE.search(text):
        return True
    finding = _FINDINGS.search(text) if any(hint in text for hint in _FINDING_HINTS) else None
    if finding is None or _PASSED.search(text):
        return False
    return not text[: finding.start()].strip() or not _TESTS.search(command)  # tests log errors that they expect


def unquote(text: str) -> str:
    """Return the output of a script's commands with the line breaks that JSON hid."""
    return text.replace("\\n", "\n") if text.startswith("Script ") else text
