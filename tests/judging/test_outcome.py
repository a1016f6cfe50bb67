"""Each tool result gets the outcome that a careful reader would give it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmstart.calls.shell import command_in, read_line
from warmstart.judging.outcome import judge_result
from warmstart.model import Signal, ToolCall


def call(tool: str = "Bash", command: str | list[str] = "", **arguments: object) -> ToolCall:
    return ToolCall("c1", tool, {**({"command": command} if command else {}), **arguments})


REJECTION = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, ...)"
)

SIGNALLED = [
    (
        call("Edit"),
        "<tool_use_error>File has not been read yet.</tool_use_error>",
        Signal(failed=True),
        "error",
        "flag",
    ),
    (call("Read"), "1\tdef error(): raise Exception('failed')", Signal(failed=False), "ok", "flag"),
    (call("Edit"), REJECTION, Signal(failed=True), "rejected", "flag"),
    (
        call("Read"),
        "<tool_use_error>Sibling tool call errored</tool_use_error>",
        Signal(failed=True),
        "cancelled",
        "flag",
    ),
    (call("Bash"), "[Request interrupted by user for tool use]", Signal(failed=True), "cancelled", "flag"),
    (call("shell"), "all fine: 0 errors", Signal(exit_code=0), "ok", "exit_code"),
    (call("shell", "make"), "ok so far", Signal(exit_code=2), "error", "exit_code"),
    (call("shell", "rg foo src"), "", Signal(exit_code=1), "ok", "exit_code"),
    (call("shell", ["bash", "-lc", "cat a | grep foo"]), "", Signal(exit_code=1), "ok", "exit_code"),
    (call("shell", "rg foo src"), "rg: src: No such file or directory", Signal(exit_code=2), "error", "exit_code"),
    (call("shell", "pytest"), "", Signal(exit_code=1), "error", "exit_code"),
    (call("run"), "", Signal(status="cancelled"), "cancelled", "flag"),
]


@pytest.mark.parametrize(("call", "text", "signal", "status", "basis"), SIGNALLED)
def test_the_flag_of_the_transcript_decides(call, text, signal, status, basis):
    outcome = judge_result(call, text, signal)
    assert (outcome.status, outcome.basis) == (status, basis)


SPOKEN = [
    ("Exit code 1\nboom", "error"),
    ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nerror: nothing really", "ok"),
    ("Exit code: 127\nWall time: 0.1 seconds\nOutput:\nfoo", "error"),
    ("Process exited with code 3\nwhatever", "error"),
    ("<returncode>0</returncode>\n<output>\nTraceback (most recent call last):\n  quoted\n</output>", "ok"),
    ("<returncode>1</returncode>\n<output>\nfine\n</output>", "error"),
    ("some output\n[Command finished with exit code 2]", "error"),
    ("Command: ls /x\nDirectory: /tmp\nOutput: nothing\nError: (none)\nExit Code: 1\nSignal: 0", "error"),
]


@pytest.mark.parametrize(("text", "status"), SPOKEN)
def test_exit_codes_printed_in_the_text(text, status):
    outcome = judge_result(call(command="something"), text)
    assert (outcome.status, outcome.basis) == (status, "exit_code")


def test_a_command_that_echoes_an_exit_code_is_not_judged_by_it():
    assert judge_result(call(command='./run; echo "Exit code: $?"'), "usage: run\nExit code: 1").status == "ok"


HERMES = [  # the table of Hermes' result shapes
    ("terminal", {"output": "", "exit_code": 3, "error": None}, "error"),
    ("terminal", {"output": "hi", "exit_code": 0, "error": None}, "ok"),
    (
        "terminal",
        {"output": "", "exit_code": 1, "error": None, "exit_code_meaning": "No matches found (not an error)"},
        "ok",
    ),
    ("terminal", {"output": "", "exit_code": -1, "error": "blocked by the user", "status": "blocked"}, "rejected"),
    ("execute_code", {"status": "success", "output": "Error: printed by the program", "exit_code": 0}, "ok"),
    ("execute_code", {"status": "error", "output": "", "exit_code": 1, "error": "NameError"}, "error"),
    ("read_file", {"content": "raise Error('failed')", "total_lines": 1}, "ok"),
    ("read_file", {"error": "File not found: /x"}, "error"),
    ("write_file", {"bytes_written": 5, "files_modified": ["a"], "lint": {"status": "ok", "error": None}}, "ok"),
    ("patch", {"success": False, "error": "Could not find match"}, "error"),
    ("search_files", {"total_count": 0, "matches": []}, "ok"),
    ("memory", {"success": True, "error": ""}, "ok"),
    ("web_extract", {"results": [{"url": "http://x", "error": "timeout"}]}, "ok"),
    ("process", {"status": "exited", "error": None}, "ok"),
    ("clarify", {"error": {"message": "Unknown tool"}}, "error"),
    ("x", {"ok": False}, "error"),
    ("x", {"status": "error", "message": "no such thing", "code": 4, "id": 1}, "error"),
    ("x", {"result": {"success": False}}, "error"),
]


@pytest.mark.parametrize(("tool", "value", "status"), HERMES)
def test_json_fields(tool, value, status):
    for text in (json.dumps(value), json.dumps(value) + "\n\n[guardrail: note]"):
        outcome = judge_result(call(tool), text)
        assert (outcome.status, outcome.basis) in {(status, "structure"), (status, "exit_code")}


def test_an_untrusted_wrapper_is_looked_into():
    text = '<untrusted_tool_result source="web">\n{"success": false, "error": "HTTP 404"}\n</untrusted_tool_result>'
    assert judge_result(call("web_extract"), text).status == "error"


def test_json_that_a_program_printed_is_data():
    assert judge_result(call(command="curl -s http://x"), '{"message": "error", "code": 7}').status == "ok"
    assert judge_result(call("get_order"), '{"order_id": "1", "status": "cancelled", "items": []}').status == "ok"


FAILED = [
    (call("Edit"), "String to replace not found in file.\nString: foo", "precondition"),
    (call("Edit"), "Found 2 matches of the string to replace, but replace_all is false.", "precondition"),
    (call("Read"), "File does not exist.", "precondition"),
    (call("Read"), "EISDIR: illegal operation on a directory, read", "precondition"),
    (call("Read"), "File content (31233 tokens) exceeds maximum allowed tokens (25000).", "semantic"),
    (call("Read"), "InputValidationError: Read failed due to the following issue:\nmissing file_path", "arguments"),
    (call("WebFetch"), "Request failed with status code 403", "permission"),
    (call("Task"), "Agent type 'x' not found. Available agents: a, b" + ", c" * 400, "arguments"),
    (call("mcp__db__query"), "MCP error -32602: Invalid arguments for tool query", "arguments"),
    (call("book"), "Error: gift card balance is not enough", "semantic"),
    (call("book"), "payment amount does not add up, total price is 375, but paid 299", "semantic"),
    (call("mcp__probe__run"), "probe internal error", "other"),
    (call("Bash", "foo"), "bash: foo: command not found", "environment"),
    (call("Bash", "foo"), "zsh:1: command not found: foo", "environment"),
    (call("Bash", "cat nope.txt"), "cat: nope.txt: No such file or directory", "precondition"),
    (call("Bash", "git push"), "fatal: 'main' is already used by worktree at '/x'", "precondition"),
    (
        call("Bash", "git merge x"),
        "Auto-merging a\nCONFLICT (content): Merge conflict in a\nAutomatic merge failed; fix it.",
        "precondition",
    ),
    (call("Bash", "git commit -m x"), "On branch x\nnothing to commit, working tree clean", "precondition"),
    (
        call("Bash", "python x.py"),
        'Traceback (most recent call last):\n  File "x.py", line 1\nNameError: name',
        "other",
    ),
    (
        call("Bash", "python x.py"),
        "Traceback (most recent call last):\n  ...\nModuleNotFoundError: No module named 'erfa'",
        "environment",
    ),
    (call("Bash", "pytest -q"), "F.\n=== 1 failed, 1 passed in 0.1s ===", "other"),
    (call("Bash", "npm test"), "Tests: 1 failed, 3 passed, 4 total", "other"),
    (call("Bash", "go test ./..."), "ok  \ta\t0.1s\n--- FAIL: TestX (0.00s)\nFAIL", "other"),
    (call("Bash", "cargo build"), "error[E0308]: mismatched types\nerror: could not compile `x`", "other"),
    (call("Bash", "tsc"), "src/a.ts(1,2): error TS2322: Type 'x' is not assignable", "other"),
    (call("Bash", "make"), "cc -c a.c\nmake: *** [a.o] Error 1", "other"),
    (call("Bash", "curl http://x"), "curl: (6) Could not resolve host: x", "environment"),
    (call("Bash", "cd a && ls (x)"), "bash: -c: line 0: syntax error near unexpected token `('", "arguments"),
    (call("shell", ["bash", "-lc", "ls"]), "execution error: No such file or directory (os error 2)", "precondition"),
    (call("Bash", "a && b && echo done"), "sh: 1: a: Permission denied", "permission"),
    (call("Bash", "mytool --nope"), "Usage: mytool\n\nError: unknown option --nope", "arguments"),
]


@pytest.mark.parametrize(("call", "text", "kind"), FAILED)
def test_failures_reported_in_text(call, text, kind):
    outcome = judge_result(call, text)
    assert (outcome.status, outcome.basis, outcome.error_kind) == ("error", "text", kind)


FINE = [
    (
        call("Read"),
        "     1\timport errors\n     2\traise ValueError('failed: not found')\n     3\t# Error: this is documentation",
    ),
    (call("Grep"), "No matches found"),
    (call("Glob"), "No files found"),
    (call("Grep"), "src/a.py:12: error: something failed\nsrc/b.py:1: Traceback (most recent call last)"),
    (call("Bash", "cat build.log"), "ERROR: build failed\nmake: *** [all] Error 2"),
    (call("Bash", "git log --oneline"), "abc1234 fix: error handling failed\ndef5678 Fatal error page"),
    (call("Bash", "git status"), "On branch x\nnothing to commit, working tree clean"),
    (call("Bash", "ls nope || true"), "ls: cannot access 'nope': No such file or directory"),
    (call("Bash", "pytest -q"), "..\n2 passed, 0 failed in 0.1s"),
    (call("Bash", "ruff check"), "All checks passed!"),
    (call("Bash", "python run.py"), "epoch 1 error 0.25\nepoch 2 error 0.12\nmean error: 0.1"),
    (call("Bash", "mkdir x"), ""),
    (call("Bash", "mytool --help"), "Usage: mytool [OPTIONS]\n\nOptions:\n  --help  Show this message."),
    (call("get_build"), '{"id": 7, "status": "failed", "branch": "main", "started": "now"}'),
    (call("Bash", "docker logs web"), "ERROR 500 internal\nTraceback (most recent call last):\nValueError: x"),
    (call("Bash", "zsh -lc ls"), "/opt/brew/shellenv.sh: line 18: /bin/ps: Operation not permitted\nREADME.md\nsrc"),
    (call("Bash", "python -c 'try: f()\nexcept E as e: print(e)'"), "Error: handled by the program"),
    (call("Task"), "Error handling in this code base lives in errors.py. " * 30),
    (call("WebFetch"), "The page explains error codes: 404 means not found, 500 means the server failed."),
    (call("transfer"), "Transfer successful"),
    (call("status"), "delayed"),
    (call("list"), "[]"),
    (call("update_plan"), "Plan updated"),
]


@pytest.mark.parametrize(("call", "text"), FINE)
def test_text_that_only_mentions_errors_is_fine(call, text):
    assert judge_result(call, text).status == "ok"


def test_an_empty_answer_of_an_unknown_tool_is_unknown():
    assert judge_result(call("cancel_order"), "").status == "unknown"
    assert judge_result(None, "  ").status == "unknown"


@pytest.mark.parametrize("text", [REJECTION, "patch rejected by user", "User rejected the command"])
def test_a_rejection_by_a_person_is_no_error(text):
    assert judge_result(call("Bash", "rm x"), text).status == "rejected"


LINES = [
    ("make", "whole", "make"),
    ("cd x && make", "whole", "make"),
    ("make | tail -5", "none", "tail"),
    ("set -o pipefail; make | tail -5", "last", "tail"),
    ("make 2>&1 | tee log", "none", "tee"),
    ("a; b", "last", "b"),
    ("a\nb", "last", "b"),
    ("a || true", "none", "true"),
    ("FOO=1 sudo env BAR=2 make", "whole", "make"),
    ("cat <<'EOF' > f\nx | y; z\nEOF\npython f", "last", "python"),
    ("echo 'a | b; c'", "none", "echo"),
    ("timeout 10 /usr/bin/pytest -q", "whole", "pytest"),
    ("(cd x; make)", "last", "make"),
    ("", "whole", ""),
]


@pytest.mark.parametrize(("command", "reach", "program"), LINES)
def test_whose_exit_code_counts(command, reach, program):
    line = read_line(command)
    assert (line.reach, line.program) == (reach, program)


def test_commands_are_found_however_they_are_passed():
    assert command_in({"command": ["bash", "-lc", "ls -l"]}) == "ls -l"
    assert command_in({"cmd": "ls"}) == "ls"
    assert command_in("ls") == "ls"
    assert command_in({"command": "bash -lc 'ls -l'"}) == "ls -l"
    assert command_in({"other": 1}) == ""


@given(st.text(max_size=400), st.text(max_size=200), st.sampled_from(["Bash", "Read", "x", ""]))
def test_the_judge_never_raises(text, command, tool):
    assert judge_result(call(tool, command), text).status in ("ok", "error", "rejected", "cancelled", "unknown")


@pytest.mark.parametrize(
    "text", ["(" * 200_000, "error: " * 100_000, "\x1b[" * 100_000, "[" * 100_000, "{" * 100_000, "\\" * 300_000]
)
def test_hostile_text_takes_no_time(text):
    import time

    started = time.process_time()
    judge_result(call("Bash", text[:20_000]), text)
    judge_result(call("x"), text)
    assert time.process_time() - started < 2.0


@pytest.mark.parametrize("tool", ["shell_command", "Read", "lookup"])
@pytest.mark.parametrize(
    "answer",
    [
        "unsupported call: {}",
        "unsupported custom tool call: {}",
        'Tool "{}" not found in registry. Tools must use the exact names that are registered.',
        "Unknown tool: {}",
        "Tool '{}' does not exist. Available tools: terminal, patch",
        "Model tried to call unavailable tool '{}'. Available tools: bash, edit.",
        "{} is not a valid tool, try one of [search].",
        "<tool_use_error>Error: No such tool available: {}</tool_use_error>",
        '{{"error": "Unknown tool: {}"}}',
    ],
)
def test_a_tool_that_does_not_exist_is_an_error(tool, answer):
    assert judge_result(call(tool, "ls | head"), answer.format(tool)).status == "error"


@pytest.mark.parametrize("text", ["Unknown tool: hammer", "Tool 'hammer' not found\nin the shed"])
def test_another_tool_in_the_output_is_no_error(text):
    assert judge_result(call("Bash", "cat shed.log | head"), text).status == "ok"


@pytest.mark.parametrize(
    "text",
    [
        "Chunk ID: 1a\nWall time: 1.0 seconds\nProcess running with session ID 7\nOriginal token count: 4\nOutput:\nCompiling a",
        "Script running with cell ID 7\nWall time 10.0 seconds\nOutput:\n",
        'Script completed\nWall time 1.0 seconds\nOutput:\n\n{"chunk_id":"1a","session_id":7,"output":"Compiling a"}',
    ],
)
def test_a_command_that_has_not_ended_is_no_success(text: str) -> None:
    assert judge_result(ToolCall("1", "exec_command", {"cmd": "cargo test"}), text).status == "unknown"
    ended = text.replace('"session_id":7', '"exit_code":0').replace("running with session ID 7", "exited with code 0")
    assert (
        judge_result(ToolCall("1", "exec_command", {"cmd": "cargo test"}), ended.replace("running", "completed")).status
        == "ok"
    )


BROUGHT_ABOUT = [  # the status is what the call asked for, or that of the thing it read
    ("cancel_membership", {}, {"status": "cancelled"}),
    ("cancel_membership", {}, {"status": "canceled"}),
    ("cancelReservation", {}, {"status": "CANCELED"}),
    ("CANCEL_ORDER_V2", {}, {"status": "cancelled"}),
    ("mcp__shop__cancel-order", {}, {"id": 5, "status": "cancelled"}),
    ("cancel_order", {}, {"status": "cancelled", "message": "Order W1 was cancelled."}),
    ("cancel_order", {}, {"result": {"status": "cancelled"}}),
    ("block_card", {}, {"status": "blocked"}),
    ("freeze_card", {}, {"status": "blocked"}),
    ("delete_booking", {}, {"status": "cancelled"}),
    ("end_subscription", {}, {"status": "cancelled"}),
    ("reject_request", {}, {"status": "rejected", "reason": "duplicate"}),
    ("deny_claim", {}, {"status": "denied", "message": "Claim denied."}),
    ("decline_invitation", {}, {"status": "declined"}),
    ("abortUpload", {}, {"status": "aborted"}),
    ("update_membership", {"action": "cancel"}, {"status": "cancelled"}),
    ("set_state", {"id": 5, "status": "declined"}, {"id": 5, "status": "declined"}),
    ("get_order", {}, {"id": 5, "status": "cancelled"}),
    ("getOrder", {}, {"order_id": "W1", "status": "cancelled", "reason": "no longer needed"}),
    ("get_request", {}, {"request_id": 5, "status": "rejected"}),
    ("check_order_status", {}, {"status": "blocked"}),
]
STOPPED = [  # the status is the call's own
    ("Bash", {"command": "cancel"}, {"status": "cancelled"}, "cancelled"),
    ("exec", {"action": "cancel"}, {"status": "cancelled"}, "cancelled"),
    ("update_membership", {"note": "cancel it soon"}, {"status": "cancelled"}, "cancelled"),
    ("cancel_order", {}, {"status": "rejected", "reason": "too late"}, "rejected"),
    ("cancel_order", {}, {"status": "cancelled", "message": "User cancelled the call"}, "cancelled"),
    ("cancel_order", {}, {"status": "approval_required", "approval": "pending"}, "rejected"),
    ("block_card", {}, {"status": "blocked", "error": "not in this profile"}, "denied"),
    ("block_card", {}, {"status": "blocked", "message": "This tool is not allowed here."}, "denied"),
    ("unblock_card", {}, {"status": "blocked"}, "denied"),
    ("mcp__cancel__pay", {}, {"status": "cancelled"}, "cancelled"),
    ("get_order", {}, {"status": "cancelled"}, "cancelled"),
    ("get_order", {}, {"call_id": "c1", "status": "cancelled"}, "cancelled"),
    ("cancel_order", {}, {"status": "failed"}, "error"),
    ("cancel_order", {}, {"success": False, "status": "cancelled"}, "error"),
]


@pytest.mark.parametrize(("tool", "arguments", "value"), BROUGHT_ABOUT)
def test_a_status_that_the_call_brought_about_or_read_stops_no_call(tool, arguments, value):
    outcome = judge_result(ToolCall("c", tool, arguments), json.dumps(value))
    assert (outcome.status, outcome.basis) == ("ok", "structure")


@pytest.mark.parametrize(("tool", "arguments", "value", "status"), STOPPED)
def test_the_status_of_the_call_itself_stops_it(tool, arguments, value, status):
    assert judge_result(ToolCall("c", tool, arguments), json.dumps(value)).status == status


def test_a_flag_overrules_the_status_that_a_tool_asks_for():
    outcome = judge_result(ToolCall("c", "cancel_order", {}), '{"status": "cancelled"}', Signal(status="cancelled"))
    assert (outcome.status, outcome.basis) == ("cancelled", "flag")
