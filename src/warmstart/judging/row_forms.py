"""The forms of rows in a failed program's output, ranked by how much they say about the cause."""

from __future__ import annotations

import re
from functools import lru_cache

PLACED, MESSAGE, NAMED, TELLING, SUMMARY, PLAIN = range(6)  # a lower rank says more


def _join(*patterns: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), flags)


# Headings, progress, stack frames, quoted source and advice: never the cause.
_NOISE = _join(
    # git
    r"From \S+$|To \S+$|\* (?:branch|\[new |tag)|\w* ?\[(?:new|deleted) |\+? ?[0-9a-f]{7,}\.{2,3}[0-9a-f]{7,} ",
    r"(?:Auto-merging|Rebasing \(|Switched to|Already on|Cloning into|Branch '|Your branch|Saved working|Updating \w+\.\.)",
    r"remote: (?!error|fatal)|(?:Receiving|Resolving|Counting|Compressing|Unpacking) \w+|Everything up-to-date",
    r"diff --git|index [0-9a-f]+\.\.|@@ |[+-]{1,3} |Diff:",
    # advice and warnings
    r"(?:hint|note|help|info|debug|trace): |= (?:note|help): |Run with |Run '|Try '|[Uu]sage: |For more information",
    r"warning(?:\[|:| )|Warning: |\[?WARN(?:ING)?\b|\[warn(?:ing)?\]|⚠|.{0,60}\b(?:Deprecation|Experimental)Warning\b",
    r"\[INFO\]|INFO\b|DEBUG\b|\[debug\]",
    # stack frames and quoted source
    r"Traceback \(most recent|File \"|During handling of the above|The above exception|\.{3} \d+ more",
    r"at (?!\S+ (?:format|lint/|assist/))(?:async |new )?(?:\S+ \(|/|file:|node:|<|[\w.$/@\[\] ]+\(|\S+:\d+)",
    r"--> |::: |\^(?!-*\^? SC\d)|[~^|]+\s*$|>?\s*\d+(?:\s+\d+)?\s*[|│]|\||In \S+ line \d+:$",
    r"Require stack:|Stack(?: trace)?:|stack backtrace:|goroutine \d+ \[|code: '|errno: |syscall: |- /",
    # tests and builds that go well, and headings
    r"=== (?:RUN|PAUSE|CONT|NAME)\b|# \S+(?: \[\S+\])?$|\?\s+\S+\s+\[no test files\]|failures:$",
    r"\(pass\)|SUCCESS\b|[✓✔√] |✅|PASS(?:ED)?\b|ok\s+\S+\s+|ok \d+|test \S+ \.\.\. (?:ok|ignored)|\.+ *(?:\[ *\d+%\])?$",
    r"\$ |> \S+@\S+ |> [\w./-]+$|> (?:tsc|jest|vitest|eslint|node|next|vite|turbo|bun|npm|pnpm)\b|• ",
    r"(?:Compiling|Downloading|Downloaded|Updating|Blocking|Finished|Checking|Fresh|Locking|Adding|Installing|Fetching|"
    r"Building|Running|Collecting|Using cached|Preparing|Linking|Packages:|Progress:|Resolved|Bundled|transforming|"
    r"rendering|Tasks:|Cached:|Time:|Duration|Start at)(?: (?!.*\b(?i:error|fail))|$)",
    r"0 (?:fail|error|issue|problem)|cache (?:hit|miss)|Node\.js v|Bun v|bun \w+ v|\d{1,3}%|-{3,}|={3,}$|_{3,}|Press Ctrl",
    r"(?:platform|rootdir|plugins|collected|cachedir|configfile)\b|Error Context: |attachment #\d",
    r"npm (?:error|ERR!)\s*(?:A complete log|$)|npm (?:error|ERR!) {4,}",
    # what agents print around an output
    r"(?:Wall time|Chunk ID|Original token count|Total output lines)\b|Exit [Cc]ode:? -?\d+$|Process exited with code",
    r"(?i:output|stdout|stderr|errors?|command|directory|result): ?(?:\((?:empty|none)\))?$|#{1,4} (?:Error|Result|Ran)\b",
    r"\[?\.\.\.|…|\[\d+ lines? |Shell cwd was reset",
)
_PLACED = _join(  # a failed assertion, or a finding with its place
    r"E {2,}(?![+\-\s?])\S",  # pytest
    r"(?:[\w$]+\.)*Assert\w*(?:Error|Exception|ionFailed\w*)\b|assertion .*failed",
    r"(?:error|Error): expect\(|expect\(.*\)\.\w",
    r"Error:\s{2,}\S|\S+_test\.go:\d+: \S",  # go test, testify
    r"thread '.*' (?:\(\d+\) )?panicked at|panic: ",
    r"(?:.*[\s)])?error TS\d+: |error\[[\w-]+\]: |.*[\w)\]] ?: (?:fatal )?error [A-Z]{1,6}\d+\s?: ",
    r"\S+:\d+(?::\d+)?(?: -|:) (?:fatal )?error:? |\S+\(\d+,\d+\): error |e: file:|\[ERROR\] \S+:\[\d+,\d+\] ",
    r"\S+\.(?:go|kt|swift|rs|zig|hs|exs?|scala|dart|py|pyi|rb|sh|ya?ml|tf):\d+:\d+: |\S+\.\w+: error: ",
    r"(?:at )?\S+\.\w+(?::\d+:\d+)? (?:format|(?:lint|assist)/\S+)(?:\s+[A-Z]+)?\s+━|\S+\.\w+:\d+:\d+ (?:lint|assist)/",
    r"\d+:\d+\s+error\s{2,}|[A-Z]{1,4}\d{3,4} (?:\[\*\] )?[A-Z`]|\^-*\^? SC\d+ ",  # eslint, ruff, shellcheck
    r"CONFLICT \(|→ \S",  # git, vitest
)
_EXCEPTION = r"(?:[\w$]+\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Failure|Timeout|Fault|NotFound|DoesNotExist)"
_REASON = (
    r"(?:No such file or directory|Permission denied|[Cc]ommand not found|not found|Is a directory|Not a directory|File exists"
    r"|Operation not permitted|Directory not empty|No space left on device|Read-only file system|Connection refused"
    r"|(?:cannot|can't|invalid|unrecognized|illegal|unknown|missing|no such|unable to|failed to|could not|bad) \w+)"
)
_MESSAGE = _join(  # an error message of a program, a shell or a tool
    rf"(?:Uncaught |Unhandled |Caused by: )?{_EXCEPTION}(?::? \S|$| \[)",
    r"(?:Fatal |Uncaught |Internal |Runtime )?(?:fatal(?: error)?|[Ee]rror|ERROR|FATAL)(?::\s*\S| \w+:|\[\w+\])",
    r"\[(?:ERROR|error|FATAL|Error)\]:? \S|ERROR {1,2}\S|[\w-]+ ERROR \S|│ Error: |##\[error\]",
    r"Error (?:response from|from server|executing|while|loading|reading|parsing)\b|An error occurred|Script error:",
    r"remote: (?:error|fatal): |! \[(?:remote )?rejected\]|.* needs merge$|Your local changes",
    r"The following (?:untracked|paths)|nothing (?:added )?to commit|no changes added to commit",
    r"curl: \(\d+\)|(?:ssh|scp|psql|gh|rg|jq): \S|npm (?:error|ERR!) \S|E: \S|GraphQL: |HTTP \d{3}\b|ERR_\w+ ",
    r"\(eval\):\d+: |zsh(?::\w+)?:\d+: |(?:/\S*/)?(?:ba|z|da|k|fi)?sh(?:: -c)?(?:: line \d+|: \d+)?: \S",
    rf"[\w./+-]{{1,80}}: (?:.{{0,200}}: )?{_REASON}|.*\(os error \d+\)|.*: No module named ",
    r"Cannot find module|Module not found|Command timed out|Code style issues|[Ww]ould reformat|Diff in \S+",
)
_NAMED = _join(  # a failed test or check by its name
    r"(?:---|===) FAIL: \S|FAIL(?:\s+\S+[./]\S+| \[)|(?:FAILED|ERROR) [\w./\\-]+\.py|\(fail\) \S",
    r"[✕×✘●] \S|✖ (?!\d)\S|not ok \d+|test \S+ \.\.\. FAILED|\S+ --- FAILED|(?:FAIL|ERROR): \w+ \([\w.]+\)$",
    r"rspec \S+:\d+ # |\d+\) [\w\\]+::\w+|(?:\d+\) )?\[[\w -]+\] › \S|[\w.$]+ > .+ FAILED$|Failed [\w.]+ \[",
    r"[^\t]{1,80}\tfail\t",  # gh pr checks
)
_SUMMARY = _join(  # says that something failed, not why
    r"\W*(?:fail(?:ed|ures?)?|errors?|command failed|(?:the )?build fail(?:ed|ure)|abort(?:ing|ed)|terminated)\W*$",
    r"error command failed|error: command |compilation failed|failure: build failed|task: failed",
    r"npm (?:error|err!) (?:code|path|command|errno|syscall|lifecycle|workspace|location|dest|signal|sh |in workspace)\b",
    r"npm (?:error|err!) (?:at location|exit status|failed at|this is|node-gyp|gyp|run \"|or, with|options|fix the)\b",
    r"g?make(?:\[\d+\])?: |ninja: build stopped|error: (?:could not compile|aborting due|test failed|script |recipe )",
    r"error: (?:\d+ target|failed to push some refs|process didn't)|\[error\] (?:failures|errors)",
    r"\[error\] (?:failed to execute goal|tests run|there are|build|to see|re-run|for more|->|\[help|compilation error)",
    r"\W*\d+ (?:of \d+ )?(?:fail(?:ed|ing|ures?)?|errors?|problems?|issues?|tests?|examples?)\b",
    r"(?:tests?|test suites|test files)\W+\d|tests: |ran \d+|failed:\s|test result: failed|found \d+ errors?|=+ .* =+$",
    r"\W*(?:error\W+)?(?:[\w-]+ ){1,3}failed[.!]?$",
    r"\W*(?:husky|lefthook|🥊)|\W*(?:one or more|some) \w+|fail(?:ed)?\s+\S+\s+[\d.]+s$",
    flags=re.I,
)
_SUMMARY_INSIDE = _join(  # the same, anywhere in the row
    r"\b(?:exit(?:ed|s)?|failed|terminated|finished|completed|died|killed|ended|errored|returned)\b"
    r"(?: \w+){0,2}? (?:non-zero )?(?:exit )?(?:status code|code|status(?! code)|signal)\b(?! [345]\d\d\b)",
    r"\bexit(?:ed)?:? ?\(?(?:code|status)?:? ?\(?[1-9]\d*\)?\.?$|returned non-zero",
    r"\belifecycle\b|err_pnpm_recursive_\w+_fail(?!.*not found)|execution failed for task",
    r"\b(?:process completed|run failed|(?:tasks?|hook|checks?|commands?) failed|some errors were emitted)\b",
    flags=re.I,
)
_SUMMARY_HINTS = (  # in lower case; a row without any of these has no summary inside
    *("code", "status", "signal", "exit", "non-zero", "elifecycle", "err_pnpm_recursive_", "execution failed"),
    *("process completed", "run failed", "task failed", "tasks failed", "hook failed", "check failed", "checks failed"),
    *("command failed", "commands failed", "were emitted"),
)
_TELLING = _join(  # reads like an error
    r"\b(?:error|exception|denied|invalid|fatal|cannot|can't|unknown|must|required?|requires|missing|unable|already)\b",
    r"\b(?:expected|conflict|undefined|unmatched|unresolved|unsupported|forbidden|unauthori[sz]ed|timed out)\b",
    r"\b(?:no such|no matches|failed to|could not|couldn't|does not|doesn't|did not|(?:is|are|was) not)\b",
    r"\bnot (?:found|permitted|allowed|available|been|defined)\b|unexpected|unrecogni[sz]ed|refus(?:ed|ing)",
)
_FORMS = ((PLACED, _PLACED), (MESSAGE, _MESSAGE), (NAMED, _NAMED))


@lru_cache(2_048)
def is_noise(row: str) -> bool:
    """Return whether a row is a heading, progress, a stack frame, quoted source or advice."""
    return bool(_NOISE.match(row.strip()))


@lru_cache(2_048)
def rank_row(row: str) -> int:
    """Return the rank of a row that is no noise; PLAIN where only `is_telling` can say more."""
    stripped = row.strip()
    lowered = stripped.lower()
    if _SUMMARY.match(stripped):
        return SUMMARY
    if any(hint in lowered for hint in _SUMMARY_HINTS) and _SUMMARY_INSIDE.search(stripped):
        return SUMMARY
    return next((rank for rank, form in _FORMS if form.match(stripped)), PLAIN)


def is_telling(row: str) -> bool:
    """Return whether a row of no known form reads like an error. It is slow: ask only where no other row says more."""
    lowered = row.strip().lower()
    return " " in lowered and _TELLING.search(lowered) is not None
