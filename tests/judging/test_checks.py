"""A failing check behind a pipe is a failure; quoting a failure is not. Every rule has cases both ways."""

from __future__ import annotations

import pytest

from warmstart.calls.checks import runs_check
from warmstart.judging.checks import check_failed
from warmstart.judging.outcome import judge_result
from warmstart.model import Signal, ToolCall

FINE = Signal(failed=False)

FAILING = [
    ("pytest -q | tail -3", "FAILED tests/test_a.py::test_x - assert 1 == 2\n1 failed, 4 passed in 0.30s"),
    ("pytest 2>&1 | tail -5", "==== 2 failed, 10 passed in 3.21s ===="),
    ("python -m unittest 2>&1 | tail -4", "Ran 3 tests in 0.001s\n\nFAILED (failures=1)"),
    (
        "npx jest 2>&1 | tail -6",
        "Test Suites: 1 failed, 1 passed, 2 total\nTests:       13 failed, 36 passed, 49 total",
    ),
    ("npx vitest run | tail -8", " Test Files  1 failed (3)\n      Tests  2 failed | 30 passed (32)"),
    ("npx mocha | tail -20", "  12 passing (40ms)\n  1 failing\n\n  1) adds"),
    ("bun test 2>&1 | tail -4", " 159 pass\n 0 fail\n 3 errors\n 649 expect() calls"),
    ("bun run test | grep -A2 fail", "(fail) orders > totals [0.42ms]"),
    ("npx playwright test 2>&1 | tail -3", "  1 failed\n    [chromium] › a.spec.ts:3:1 › opens\n  9 passed (22.3s)"),
    ("go test ./... | tail -5", "--- FAIL: TestTotal (0.00s)\nFAIL\tshop/orders\t0.005s\nFAIL"),
    ("go vet ./... 2>&1 | head", "orders/total.go:12:2: unreachable code"),
    ("cargo test 2>&1 | tail -3", "test result: FAILED. 3 passed; 1 failed; 0 ignored"),
    (
        "cargo check 2>&1 | tail -3",
        "error[E0063]: missing field `x`\nerror: could not compile `shop` due to 1 previous error",
    ),
    ("cargo fmt --check | head -5", "Diff in /w/src/main.rs:190:\n-a\n+b"),
    ("mise run lint 2>&1 | tail -3", "[lint:go] 1 issues:\n[lint:go] * exhaustive: 1\n[lint:go] ERROR task failed"),
    ("ruff check . | tail -2", "a.py:3:1: F401 `os` imported but unused\nFound 1 error."),
    ("mypy src | tail -1", "Found 3 errors in 2 files (checked 40 source files)"),
    (
        "npx eslint . | tail -4",
        "  3:10  error  'x' is defined but never used  no-unused-vars\n\n✖ 1 problem (1 error, 0 warnings)",
    ),
    ("npx tsc --noEmit | head -5", "src/a.ts(3,1): error TS2307: Cannot find module 'b'."),
    (
        "bun run lint 2>&1 | tail -3",
        '  × Some errors were emitted while running checks.\n\nerror: script "lint" exited with code 1',
    ),
    ("make test; echo done", "make: *** [Makefile:3: test] Error 2\ndone"),
    ("./gradlew build | tail -4", "FAILURE: Build failed with an exception.\nBUILD FAILED in 3s"),
    ("mvn -q test | tail -3", "[INFO] BUILD FAILURE"),
    ("dotnet test | tail -2", "Failed!  - Failed:     1, Passed:     9, Skipped:     0"),
    ("bundle exec rspec | tail -2", "12 examples, 2 failures"),
    ("vendor/bin/phpunit | tail -3", "FAILURES!\nTests: 5, Assertions: 9, Failures: 1."),
    (
        "pnpm --filter api test 2>&1 | tail -2",
        " ERR_PNPM_RECURSIVE_RUN_FIRST_FAIL  api@1.0.0 test: `jest`\nExit status 1",
    ),
    ("npm test || true", "npm error code ELIFECYCLE"),
    ("turbo run test | tail -3", "Failed:    shop#test\n\n ERROR  run failed: command  exited (1)"),
    ("just lint 2>&1 | tail -1", "error: Recipe `lint` failed on line 4 with exit code 1"),
    ("npx playwright test 2>&1 | tail -5", "sh: playwright: command not found"),
    ("rtk bun run test 2>&1 | tail -5", "error: unrecognized subcommand 'bun'\n\nUsage: rtk [OPTIONS] <COMMAND>"),
]
PASSING = [
    ("pytest -q | tail -3", "5 passed in 0.30s"),
    (
        "bun run test 2>&1 | tail -20",
        "error: All fail\n[jobs] Task 1 failed\n\n 1309 pass\n 0 fail\n 2849 expect() calls",
    ),
    ("bun run test 2>&1 | head -50", "[routes] POST /api\nerror: Rate limited, as the test expects\n[routes] GET /api"),
    ("npx jest 2>&1 | tail -6", "Tests:       49 passed, 49 total"),
    ("cargo test 2>&1 | tail -3", "test result: ok. 12 passed; 0 failed; 0 ignored"),
    ("go test ./... | tail -3", "ok  \tshop/orders\t0.005s"),
    ("ruff check . | tail -1", "All checks passed!"),
    ("npx eslint . | tail -2", "✖ 2 problems (0 errors, 2 warnings)"),
    ("mypy src | tail -1", "Success: no issues found in 40 source files"),
    ("bundle exec rspec | tail -1", "12 examples, 0 failures"),
    ("make | tail -1", "make: Nothing to be done for 'all'."),
]
QUOTING = [
    ("tail -50 build.log | grep -i fail", "FAILED tests/test_a.py::test_x\n1 failed, 2 passed in 0.3s"),
    ("cat ci.log | tail", "make: *** [Makefile:3: test] Error 2"),
    ("gh run view 12 --log | grep FAIL", "--- FAIL: TestTotal (0.00s)"),
    ("git log --oneline | head -3", "a1b2c3d Fix: 3 tests failed\nb2c3d4e error: wrong total"),
    ("rg -n 'error TS' docs | head", "docs/a.md:3: src/a.ts(3,1): error TS2307: Cannot find"),
    ("docker logs api | tail -5", "Tests:       13 failed, 36 passed, 49 total"),
    ("echo 'npm test' | cat", "Tests: 1 failed"),
]


@pytest.mark.parametrize(("command", "output"), FAILING)
def test_a_failing_check_is_an_error_whatever_the_pipe_says(command, output):
    outcome = judge_result(ToolCall("c", "Bash", {"command": command}), output, FINE)
    assert (outcome.status, outcome.basis, outcome.flagged) == ("error", "text", False)


@pytest.mark.parametrize(("command", "output"), [*PASSING, *QUOTING])
def test_a_passing_check_and_a_quoted_failure_are_fine(command, output):
    outcome = judge_result(ToolCall("c", "Bash", {"command": command}), output, FINE)
    assert (outcome.status, outcome.flagged) == ("ok", None)


@pytest.mark.parametrize(("command", "_output"), QUOTING)
def test_reading_runs_no_check(command, _output):
    assert not runs_check(command)


def test_a_flagged_result_stays_an_error_and_an_exit_code_that_counts_is_believed():
    bash = ToolCall("c", "Bash", {"command": "pytest -q | tail -1"})
    assert judge_result(bash, "Exit code 1\n5 passed in 0.3s", Signal(failed=True)).basis == "flag"
    alone = ToolCall("c", "Bash", {"command": "pytest -q"})
    assert judge_result(alone, "1 failed, 2 passed in 0.3s", FINE).status == "ok", "its own exit code was 0"


def test_colours_hide_nothing():
    assert (
        judge_result(
            ToolCall("c", "Bash", {"command": "npx vitest run | tail -2"}), "\x1b[31m      Tests  2 failed\x1b[0m", FINE
        ).status
        == "error"
    )


def test_a_command_inside_a_script_of_commands():
    script = 'const r = await tools.exec_command({cmd:"cargo test --lib","workdir":"/w"}); text(JSON.stringify(r))'
    text = 'Script completed\nOutput:\n\n{"exit_code":101,"output":"error: no library targets found\\n"}'
    assert judge_result(ToolCall("c", "exec", script), text, FINE).status == "error"
    assert judge_result(ToolCall("c", "exec", script), text.replace("101", "0"), FINE).status == "ok"


def test_long_outputs_are_looked_at_where_summaries_stand():
    noise = "checking a file\n" * 20_000
    assert check_failed("make lint | tee log", noise + "Found 3 errors.")
    assert not check_failed("make lint | tee log", noise)


@pytest.mark.parametrize(
    "text",
    [
        "Command blocked by PreToolUse hook: missing.txt is not here",
        "PreToolUse:Bash hook error: [guard.sh]: not allowed",
        "[warmstart] stopped: `.golangci.yml` is not here; `.golangci.yaml` is",
    ],
)
def test_a_denial_by_a_hook_is_neither_an_error_nor_a_persons_word(text):
    outcome = judge_result(ToolCall("c", "Bash", {"command": "cat missing.txt"}), text, Signal(failed=True))
    assert outcome.status == "denied"
    assert not outcome.counts


def test_a_person_still_rejects():
    text = "The user doesn't want to proceed with this tool use."
    assert judge_result(ToolCall("c", "Bash", {"command": "x"}), text, Signal(failed=True)).status == "rejected"


@pytest.mark.parametrize("command", ["grep -n x a.py", "rg x", "diff a b", "test -f a", "cmp a b", "which uv"])
def test_no_match_is_no_error_also_with_the_code_in_the_text(command):
    bash = ToolCall("c", "bash", {"command": command})
    outcome = judge_result(bash, "<returncode>1</returncode>\n<output>\n</output>", Signal(exit_code=1))
    assert (outcome.status, outcome.flagged) == ("ok", True)
    assert judge_result(bash, "", Signal(failed=True)).status == "error", "an agent's own flag wins"
    assert judge_result(bash, "", Signal(exit_code=2)).status == "error"


def test_a_call_of_a_tool_that_codex_does_not_have_is_an_error():
    assert (
        judge_result(ToolCall("c", "shell_command", {"command": "ls"}), "unsupported call: shell_command").status
        == "error"
    )
