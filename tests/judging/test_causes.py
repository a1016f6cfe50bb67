"""The cause of an error is the line that names it, whatever is printed around it; findings keep the names of tools."""

from __future__ import annotations

import json

import pytest

from warmstart.judging.causes import explain
from warmstart.judging.outcome import judge_result
from warmstart.model import Signal, ToolCall

BAD = Signal(failed=True)


def cause_of(text: str, command: str = "make all") -> str | None:
    return explain(ToolCall("1", "Bash", {"command": command}), text)[0]


def findings_of(text: str, command: str = "make all") -> tuple[str, ...]:
    return explain(ToolCall("1", "Bash", {"command": command}), text)[1]


CAUSES = [
    ("python run.py", "Exit code 127\nbash: python: command not found", "bash: python: command not found"),
    (
        "python3 run.py",
        'Traceback (most recent call last):\n  File "run.py", line 3, in <module>\n    import yaml\n'
        "ModuleNotFoundError: No module named 'yaml'",
        "ModuleNotFoundError: No module named 'yaml'",
    ),
    (
        "python3 run.py",
        'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    x()\nKeyError: \'a\'\n\nDuring handling of '
        'the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File "a.py", line 9, in x\n'
        "    raise ValueError('no a')\nValueError: no a",
        "ValueError: no a",
    ),
    (
        "pytest -q",
        "=================== FAILURES ===================\n_____ test_total _____\n\n    def test_total():\n>       assert "
        "total() == 3\nE       assert 2 == 3\nE        +  where 2 = total()\n\ntests/test_a.py:4: AssertionError\nFAILED "
        "tests/test_a.py::test_total - assert 2 == 3\n1 failed, 4 passed in 0.30s",
        "assert 2 == 3",
    ),
    (
        "go test ./...",
        "=== RUN   TestTotal\n    total_test.go:12: got 2, want 3\n--- FAIL: TestTotal (0.00s)\nFAIL\nFAIL\tshop/orders\t0.01s",
        "total_test.go:12: got 2, want 3",
    ),
    (
        "go test ./...",
        "--- FAIL: TestTotal (0.00s)\n    total_test.go:9: step 1: order\n    total_test.go:11: step 2: tax\n        net 2\n"
        "    total_test.go:12: got 2, want 3\nFAIL",
        "total_test.go:12: got 2, want 3",
    ),
    (
        "pnpm exec biome check",
        'undefined\n/w/apps/web:\n ERR_PNPM_RECURSIVE_EXEC_FIRST_FAIL  Command "biome" not found',
        'ERR_PNPM_RECURSIVE_EXEC_FIRST_FAIL Command "biome" not found',
    ),
    (
        "node upload.js",
        "Error: Upload failed: Request failed with status code 500\n    at send (/w/upload.js:3:9)",
        "Error: Upload failed: Request failed with status code 500",
    ),
    (
        "go build ./...",
        "# shop/orders\norders/total.go:12:2: undefined: sum",
        "orders/total.go:12:2: undefined: sum",
    ),
    (
        "git fetch origin && git rebase origin/main",
        "Exit code 1\nFrom github.com:shop/orders\n * branch            main       -> FETCH_HEAD\nRebasing (1/2)\n"
        "Auto-merging a.py\nCONFLICT (content): Merge conflict in a.py\nerror: could not apply 1a2b3c4... Add total\nhint: ...",
        "CONFLICT (content): Merge conflict in a.py",
    ),
    (
        "git push",
        "To github.com:shop/orders.git\n ! [rejected]        main -> main (fetch first)\nerror: failed to push some refs to "
        "'github.com:shop/orders.git'",
        "[rejected] main -> main (fetch first)",
    ),
    (
        "mise run lint",
        "[lint] $ golangci-lint run\n[lint] orders/total.go:9:10: Error return value is not checked (errcheck)\n"
        "[lint] 1 issues:\n[lint] * errcheck: 1\n[lint] ERROR task failed",
        "orders/total.go:9:10: Error return value is not checked (errcheck)",
    ),
    (
        "make all",
        "cc -c a.c\na.c:3:5: error: unknown type name 'Foo'\n    3 |     Foo x;\n      |     ^~~\nmake: *** [Makefile:4: a.o] Error 1",
        "a.c:3:5: error: unknown type name 'Foo'",
    ),
    (
        "npm run build",
        "> shop@1.0.0 build\n> tsc\n\nsrc/a.ts(3,1): error TS2307: Cannot find module 'b'.\nnpm ERR! code ELIFECYCLE\nnpm ERR! errno 2",
        "src/a.ts(3,1): error TS2307: Cannot find module 'b'.",
    ),
    (
        "npm install left-pad@9",
        "npm error code ETARGET\nnpm error notarget No matching version found for left-pad@9.\nnpm error A complete log of this "
        "run can be found in: /w/.npm/_logs/x.log",
        "npm error notarget No matching version found for left-pad@9.",
    ),
    (
        "bun run test",
        "$ bun test\nbun test v1.2.0\n\na.test.ts:\n3 |   expect(total()).toBe(3)\n                        ^\nerror: "
        "expect(received).toBe(expected)\n\nExpected: 3\nReceived: 2\n\n      at <anonymous> (/w/a.test.ts:3:19)\n(fail) adds "
        '[0.42ms]\n\n 1 pass\n 1 fail\nerror: script "test" exited with code 1',
        "error: expect(received).toBe(expected) Expected: 3 Received: 2",
    ),
    (
        "npx jest",
        "FAIL src/a.test.ts\n  ● orders › totals\n\n    expect(received).toBe(expected) // Object.is equality\n\n    Expected: 3\n"
        "    Received: 2\n\n      at Object.<anonymous> (src/a.test.ts:4:17)\n\nTests:       1 failed, 1 total",
        "expect(received).toBe(expected) // Object.is equality Expected: 3 Received: 2",
    ),
    (
        "npx jest",
        "FAIL src/a.test.ts\n  ● orders › totals\n\n    Nest can't resolve dependencies of the OrdersService (?).\n\nTests: 1 failed",
        "Nest can't resolve dependencies of the OrdersService (?).",
    ),
    (
        "cargo test",
        "   Compiling shop v0.1.0 (/w)\nwarning: unused variable: `x`\n --> src/a.rs:3:9\nrunning 1 test\ntest total ... FAILED\n\n"
        "failures:\n\n---- total stdout ----\nthread 'total' panicked at src/a.rs:9:5:\nassertion `left == right` failed\n"
        "  left: 2\n right: 3\n\ntest result: FAILED. 0 passed; 1 failed\nerror: test failed, to rerun pass `--lib`",
        "assertion `left == right` failed left: 2 right: 3",
    ),
    (
        "cargo check",
        "error[E0308]: mismatched types\n --> src/a.rs:3:9\n  |\n3 |     1\n  |     ^ expected `()`\nerror: could not compile `shop`",
        "error[E0308]: mismatched types",
    ),
    (
        "mvn -q test",
        "[INFO] Compiling 3 files\n[ERROR] /w/src/A.java:[3,4] cannot find symbol\n[ERROR] Failed to execute goal org.apache:x: "
        "Compilation failure",
        "[ERROR] /w/src/A.java:[3,4] cannot find symbol",
    ),
    (
        "bun run lint",
        "$ biome check\nsrc/a.ts:95:17 lint/style/noNonNullAssertion ━━━━━━━━━━\n\n  ! Forbidden non-null assertion.\n\n"
        "Found 1 error.\n  × Some errors were emitted while running checks.\n",
        "src/a.ts:95:17 lint/style/noNonNullAssertion Forbidden non-null assertion.",
    ),
    (
        "turbo run build",
        "shop:build: src/a.ts(3,1): error TS2304: Cannot find name 'x'.\n Tasks:    1 successful, 2 total\nFailed:    shop#build\n"
        " ERROR  run failed: command  exited (2)",
        "src/a.ts(3,1): error TS2304: Cannot find name 'x'.",
    ),
    ("terraform plan", "╷\n│ Error: Unsupported argument\n│ \n│   on a.tf line 3\n╵", "Error: Unsupported argument"),
    ("rg -n total src tests", "src/a.py:3:error: total\nrg: tests: No such file or directory (os error 2)",
     "rg: tests: No such file or directory (os error 2)"),
    ("node a.js", "node:internal/modules/cjs/loader:1143\n  throw err;\n  ^\n\nError: Cannot find module './b'\nRequire stack:\n- "
     "/w/a.js\n    at Module._load (node:internal/modules/cjs/loader:985:27)\n\nNode.js v20.0.0", "Error: Cannot find module './b'"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "text", "cause"), CAUSES)
def test_the_cause_is_the_line_that_names_it(command: str, text: str, cause: str) -> None:
    call = ToolCall("1", "Bash", {"command": command})
    outcome = judge_result(call, text, BAD)
    assert (outcome.status, outcome.cause) == ("error", cause)


@pytest.mark.parametrize(
    "text",
    [
        "Exit code 1",
        "=== RUN   TestTotal\nFAIL",
        "make: *** [Makefile:4: a.o] Error 1",
        'error: script "lint" exited with code 1',
        "npm ERR! code ELIFECYCLE",
        "[lint] ERROR task failed",
        "# shop/orders",
        "From github.com:shop/orders",
        "╭──────╮\n╰──────╯",
        " 12 pass\n 3 fail\nRan 15 tests across 2 files. [9.00ms]",
        "one\ntwo\nthree\nfour",
        "",
    ],
)
def test_a_summary_or_a_heading_is_no_cause(text: str) -> None:
    assert cause_of(text) is None


def test_errors_that_passing_tests_log_are_not_the_cause() -> None:
    log = "error: queue is full\n      at push (/w/queue.ts:3:9)\n" + "(pass) refuses when full\n" * 30
    failed = "error: Cannot find package 'zod'\n(fail) parses orders [1.00ms]\n 30 pass\n 1 fail"
    assert cause_of(log + failed, "bun test") == "error: Cannot find package 'zod'"
    assert cause_of(log + " 30 pass\n 1 fail\nRan 31 tests across 2 files.", "bun test") is None
    broken = "# Unhandled error between tests\n-------\nerror: Cannot find module 'b'\n 30 pass\n 1 fail"
    assert cause_of(log + broken, "bun test") == "error: Cannot find module 'b'"


def test_text_that_a_reader_prints_is_not_the_cause() -> None:
    printed = "import sys\nraise ValueError('x')\nerror: not this\ndef a(): ...\n"
    assert cause_of(f"Exit code 1\n{printed}", "cat a.py missing.py") is None
    assert cause_of("docs/a.md:64:scala", "rg scala docs missing 2>/dev/null") is None
    assert cause_of("run 288 is still in progress", "gh run view 288 --log") == "run 288 is still in progress"
    named = cause_of(f"Exit code 1\n{printed}cat: missing.py: No such file or directory", "cat a.py missing.py")
    assert named == "cat: missing.py: No such file or directory"


STRUCTURES = [
    ("terminal", {"output": "bash: python: command not found", "exit_code": 127, "error": None},
     "bash: python: command not found"),
    ("terminal", {"output": "python3: No module named pytest", "exit_code": 1, "error": None}, "python3: No module named pytest"),
    ("terminal", {"output": "", "exit_code": 124, "error": "Command timed out after 60s"}, "Command timed out after 60s"),
    ("patch", {"success": False, "error": "Could not find a match for old_string in the file"},
     "Could not find a match for old_string in the file"),
    ("read_file", {"error": "File not found: /w/a.py"}, "File not found: /w/a.py"),
    ("create_issue", {"error": {"code": 404, "message": "Team 'Troy' not found"}}, "Team 'Troy' not found"),
    ("create_issue", {"errors": [{"path": ["team", "id"], "message": "Required"}]}, "team.id: Required"),
    ("create_issue", {"success": False, "result": {"message": "Quota exceeded"}}, "Quota exceeded"),
    ("create_issue", {"isError": True, "content": [{"type": "text", "text": '{"error": "Team is archived"}'}]}, "Team is archived"),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "value", "cause"), STRUCTURES)
def test_a_structure_is_opened_first(tool: str, value: dict[str, object], cause: str) -> None:
    outcome = judge_result(ToolCall("1", tool, {"command": "python a.py"}), json.dumps(value))
    assert (outcome.status, outcome.cause) == ("error", cause)


WRAPPED = [
    ("Edit", "<tool_use_error>File has not been read yet. Read it first.</tool_use_error>", "File has not been read yet. Read it first."),
    (
        "AskUser",
        '<tool_use_error>InputValidationError: [\n  {\n    "code": "invalid_type",\n    "expected": "array",\n    "path": [\n'
        '      "questions"\n    ],\n    "message": "Expected array, received string"\n  }\n]</tool_use_error>',
        "InputValidationError: questions: Expected array, received string",
    ),
    (
        "Grep",
        "<tool_use_error>InputValidationError: Grep failed due to the following issue:\nThe required parameter `pattern` is "
        "missing</tool_use_error>",
        "InputValidationError: Grep failed due to the following issue: The required parameter `pattern` is missing",
    ),
    ("browser_upload", "### Error\nError: no file chooser is open\n### Page\n- Page URL: http://localhost/", "Error: no file chooser is open"),
    (
        "exec_command",
        "Chunk ID: 8a1b2c\nWall time: 0.1000 seconds\nProcess exited with code 1\nOriginal token count: 9\nOutput:\n"
        "error: unexpected argument '--json' found\n\nUsage: gh pr",
        "error: unexpected argument '--json' found",
    ),
    (
        "exec",
        'Script completed\nWall time 0.1 seconds\nOutput:\n\n{"chunk_id":"39a0e5","exit_code":127,"output":"zsh:1: command not '
        'found: hk\\n"}',
        "zsh:1: command not found: hk",
    ),
    ("bash", "<returncode>1</returncode>\n<output>\nsed: can't read a.py: No such file or directory\n</output>",
     "sed: can't read a.py: No such file or directory"),
    ("Bash", "Exit code 1\n\x1b[31m\x1b[1merror\x1b[0m: \x1b[1munused import\x1b[0m", "error: unused import"),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "text", "cause"), WRAPPED)
def test_wrappers_and_headers_are_taken_off(tool: str, text: str, cause: str) -> None:
    assert judge_result(ToolCall("1", tool, {"command": "build"}), text, BAD).cause == cause


def test_a_long_cause_is_cut_at_a_word() -> None:
    cause = cause_of("error: " + "expected one of these " * 30)
    assert cause is not None
    assert len(cause) <= 200
    assert cause.endswith(("one...", "of...", "these...", "expected..."))


FINDINGS = [
    ("a/b.go:9:10: Error return value is not checked (errcheck)\nc.go:1:2: unused (unused)\nd.go:3:1: x (errcheck)",
     ("rule:errcheck", "rule:unused")),
    ("/w/a.ts\n  3:10  error  Unexpected any  @typescript-eslint/no-explicit-any\n  4:1  warning  Console  no-console",
     ("rule:@typescript-eslint/no-explicit-any",)),
    ("/w/a.ts\n  4:1  warning  Unexpected console  no-console\n\n✖ 1 problem (0 errors, 1 warning)", ("rule:no-console",)),
    ("a.py:3:1: F401 [*] `os` imported but unused\nFound 1 error.", ("rule:F401",)),
    ("F401 [*] `os` imported but unused\n --> a.py:1:8\n  |\n1 | import os", ("rule:F401",)),
    ("a.py:1:0: C0114: Missing module docstring (missing-module-docstring)", ("rule:missing-module-docstring",)),
    ('a.py:3: error: Argument 1 to "f" has incompatible type "str"  [arg-type]', ("rule:arg-type",)),
    ("  /w/a.py:3:5 - error: Import \"x\" could not be resolved (reportMissingImports)", ("rule:reportMissingImports",)),
    ("error: empty line after doc comment\n  = note: `-D clippy::empty-line-after-doc-comments` implied by `-D warnings`",
     ("rule:clippy::empty-line-after-doc-comments",)),
    ("src/a.ts:3:1 lint/style/useConst ━━━━\n at src/b.ts format ━━━━\n", ("rule:lint/style/useConst", "rule:format")),
    ("a.css\n  3:1  ✖  Unexpected empty block  block-no-empty", ("rule:block-no-empty",)),
    ("In a.sh line 3:\necho $x\n     ^-- SC2086 (info): Double quote", ("rule:SC2086",)),
    ("a.rb:3:1: C: [Correctable] Style/StringLiterals: Prefer single quotes", ("rule:Style/StringLiterals",)),
    ("docs/a.md:3 error MD040/fenced-code-language Fenced code blocks", ("rule:MD040",)),
    ("src/a.ts(3,1): error TS2345: Argument\nsrc/b.ts:3:1 - error TS2345: Argument\nsrc/c.ts(1,1): error TS2304: Name",
     ("code:TS2345", "code:TS2304")),
    ("error[E0308]: mismatched types", ("code:E0308",)),
    ("A.cs(3,4): error CS1002: ; expected [/w/a.csproj]", ("code:CS1002",)),
    ("a.c:3:5: warning: unused variable 'x' [-Wunused-variable]", ("rule:unused-variable",)),
    ("FAILED tests/test_a.py::TestX::test_y[a b] - assert 1 == 2\nERROR tests/test_b.py", ("test:tests/test_a.py::TestX::test_y[a b]",
     "test:tests/test_b.py")),
    ("--- FAIL: TestTotal (0.00s)\n    --- FAIL: TestTotal/empty (0.00s)", ("test:TestTotal", "test:TestTotal/empty")),
    ("FAIL: test_total (shop.tests.OrderTest)", ("test:shop.tests.OrderTest.test_total",)),
    ("ERROR: test_total (shop.tests.OrderTest.test_total)", ("test:shop.tests.OrderTest.test_total",)),
    ("FAIL src/a.test.ts\n  orders\n    ✕ totals (12 ms)", ("test:totals",)),
    (" FAIL  src/a.test.ts > orders > totals", ("test:src/a.test.ts > orders > totals",)),
    (" FAIL   client  src/a.test.tsx > initials", ("test:src/a.test.tsx > initials",)),
    ("FAIL src/a.test.ts\n  ● Test suite failed to run", ("test:src/a.test.ts",)),
    ("(fail) orders > totals [0.42ms]", ("test:orders > totals",)),
    ("test orders::total ... FAILED\ntest orders::tax ... ok", ("test:orders::total",)),
    ("  1 failed\n    [chromium] › a.spec.ts:3:1 › opens ─────", ("test:a.spec.ts:3:1 › opens",)),
    ("rspec ./spec/a_spec.rb:3 # Order totals", ("test:Order totals",)),
    ("1) Shop\\OrderTest::testTotal\nFailed asserting that 2 is 3.", ("test:Shop\\OrderTest::testTotal",)),
    ("  3 passing (4ms)\n  1 failing\n\n  1) orders\n       totals:\n     AssertionError: 2", ("test:orders totals",)),
    ("ok 1 - a\nnot ok 2 - totals\nnot ok 3 - tax # TODO later", ("test:totals",)),
    ("OrderTest > totals() FAILED", ("test:OrderTest > totals()",)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "findings"), FINDINGS)
def test_findings_keep_the_names_of_rules_codes_and_tests(text: str, findings: tuple[str, ...]) -> None:
    assert findings_of(text) == findings


@pytest.mark.parametrize(
    "text",
    [
        "error: failed (see the log)",
        "The plan:\n  1) orders\n  2) totals",
        "2024-01-02 10:11:12: started (worker)",
        "test orders::total ... ok",
        "✓ totals (3 ms)",
        "a.go:3: look here",
        "    total_test.go:9: step 2 (incremental)",
        "ERROR: e2e test of orders failed: exited with status code 1",
        "E0308 is a code",
        "Fixed F401 in a.py",
    ],
)
def test_other_text_holds_no_findings(text: str) -> None:
    assert findings_of(text) == ()


def test_findings_are_at_most_twenty_and_the_most_frequent_come_first() -> None:
    rows = [f"a.py:{n}:1: E{n:03} x" for n in range(100, 140)] + ["a.py:9:1: F401 x"] * 3
    findings = findings_of("\n".join(rows))
    assert len(findings) == 20
    assert findings[0] == "rule:F401"


def test_a_check_behind_a_pipe_has_a_cause_and_findings() -> None:
    call = ToolCall("1", "Bash", {"command": "npx tsc --noEmit | head -5"})
    outcome = judge_result(call, "src/a.ts(3,1): error TS2307: Cannot find module 'b'.", Signal(failed=False))
    assert (outcome.status, outcome.flagged) == ("error", False)
    assert outcome.cause == "src/a.ts(3,1): error TS2307: Cannot find module 'b'."
    assert outcome.findings == ("code:TS2307",)


def test_a_call_that_worked_has_neither() -> None:
    outcome = judge_result(ToolCall("1", "Bash", {"command": "cat a.log"}), "error: x", Signal(failed=False))
    assert (outcome.status, outcome.cause, outcome.findings) == ("ok", None, ())


def test_the_cause_is_found_where_the_excerpt_has_a_gap() -> None:
    text = "Exit code 1\n" + "progress\n" * 3_000 + "fatal: no such ref\n" + "progress\n" * 3_000
    assert cause_of(text, "git gc") == "fatal: no such ref"
