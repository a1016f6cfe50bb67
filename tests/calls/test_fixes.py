"""Fixes: what was done about the cause of a failed call, and silence where the cause cannot be told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from insight_sessions import call, session
from warmstart.calls.fixes import REACH, Fix, error_line, find_fix, find_fixes
from warmstart.calls.near_paths import is_near, shorten_pair
from warmstart.model import Outcome, PastSession

Fields = dict[str, Any]


def shell(command: str, said: str | None = None, kind: Any = "other", **facts: Any) -> Fields:
    fields = call("Bash", {"command": command}, said, **facts)
    return fields if said is None else fields | {"outcome": Outcome("error", "flag", kind)}


def read(path: str, said: str | None = None) -> Fields:
    return call("Read", {"file_path": path}, said)


def fix_of(*calls: Fields) -> Fix | None:
    found = find_fix(session(*calls).calls, 0)
    return found[1] if found else None


def pair_of(*calls: Fields) -> tuple[str, str, str] | None:
    fix = fix_of(*calls)
    return (fix.kind, fix.failed, fix.worked) if fix else None


GONE = "File does not exist."


class TestPaths:
    @pytest.mark.parametrize(
        ("wrong", "right"),
        [
            ("/shop/.lint.yml", "/shop/.lint.yaml"),  # another extension
            ("/shop/src/cart.py", "/shop/lib/cart.py"),  # the same name elsewhere
            ("/shop/cli/src/e2e/plugin.test.ts", "/shop/cli/src/plugin.test.ts"),  # a folder too many
            ("/shop/src/logging/logging.go", "/shop/src/logging/logger.go"),  # another spelling
            ("/shop/src/env.rs", "/shop/src/env/mod.rs"),  # a file that became a folder
            ("/shop/src/userService.ts", "/shop/src/user-service.ts"),
        ],
    )
    def test_the_right_path_is_the_fix(self, wrong: str, right: str) -> None:
        assert pair_of(read(wrong, GONE), read(right)) == ("path", wrong, right)

    def test_it_may_be_found_by_a_search_with_another_tool(self) -> None:
        calls = (
            call(
                "Grep",
                {"path": "/shop/web/cart/total.ts", "pattern": "sum"},
                "Path does not exist: /shop/web/cart/total.ts",
            ),
            call("Glob", {"pattern": "**/total.ts"}),
            read("/shop/web/src/components/orders/total.ts"),
        )
        assert pair_of(*calls) == ("path", "/shop/web/cart/total.ts", "/shop/web/src/components/orders/total.ts")

    def test_a_command_may_find_it_too(self) -> None:
        failed = shell("sed -n 1,20p tasks/release.toml", "sed: tasks/release.toml: No such file or directory")
        assert pair_of(failed, shell("rg release tasks xtasks"), shell("sed -n 1,20p xtasks/release")) == (
            "path",
            "tasks/release.toml",
            "xtasks/release",
        )

    @pytest.mark.parametrize(
        ("wrong", "other"),
        [
            ("/shop/src/cart.py", "/shop/src/order.py"),  # another file
            ("/shop/web/services/auth.service.ts", "/shop/api/src/auth/auth.service.ts"),  # its namesake far away
            ("/shop/web/package.json", "/shop/package.json"),  # every folder has one
            ("/shop/plans/12-01-PLAN.md", "/shop/plans/12-02-PLAN.md"),  # the next one
            ("/shop/src/cart.test.ts", "/shop/src/cart.ts"),  # not its test
            ("/shop/src/cart/cart.py", "/shop/src/cart"),  # only its folder
            ("/shop/.env.example", "/shop/.env"),
            (".env.example", ".env"),
        ],
    )
    def test_another_file_is_no_fix(self, wrong: str, other: str) -> None:
        assert fix_of(read(wrong, GONE), read(other)) is None

    def test_a_file_that_was_written_meanwhile_is_no_fix(self) -> None:
        written = call("Write", {"file_path": "/shop/lib/cart.py", "content": "x"})
        assert fix_of(read("/shop/src/cart.py", GONE), written, read("/shop/lib/cart.py")) is None

    def test_one_of_many_guessed_paths_is_no_fix(self) -> None:
        failed = shell("rg x src docs e2e tests lib/total.ts", "rg: lib/total.ts: No such file or directory")
        assert fix_of(failed, shell("cat lib/cart/total.ts")) is None

    def test_the_message_of_a_test_is_not_about_the_call(self) -> None:
        failed = shell("pytest tests/test_a.py", "FileNotFoundError: No such file or directory: 'data/a.json'")
        assert fix_of(failed, shell("pytest tests/data/test_a.py")) is None

    def test_too_late_is_no_fix(self) -> None:
        busy = [shell(f"git log -{n}") for n in range(1, REACH + 1)]
        wrong, right = read("/shop/a/cart.py", GONE), read("/shop/b/cart.py")
        assert fix_of(wrong, *busy[1:], right) is not None
        assert fix_of(wrong, *busy, right) is None

    def test_the_lesson_shows_no_more_of_a_path_than_it_needs(self) -> None:
        fix = fix_of(read("/home/ann/shop/.lint.yml", GONE), read("/home/ann/shop/.lint.yaml"))
        assert fix is not None
        assert fix.lesson == "`shop/.lint.yml` does not exist here, `shop/.lint.yaml` does"


class TestCommands:
    @pytest.mark.parametrize(
        ("failed", "said", "worked", "fix"),
        [
            ("python a.py", "bash: python: command not found", "python3 a.py", ("program", "python", "python3")),
            (
                "pytest -q tests",
                "zsh: command not found: pytest",
                "uv run pytest -q tests",
                ("program", "pytest", "uv run pytest"),
            ),
            (
                "python -m pytest t.py",
                "/usr/bin/python: No module named pytest",
                "uv run pytest t.py",
                ("program", "python -m pytest", "uv run pytest"),
            ),
            (
                "docker-compose up web",
                "bash: docker-compose: command not found",
                "docker compose up web",
                ("program", "docker-compose", "docker compose"),
            ),
            (
                "hk install --all",
                "zsh:1: command not found: hk",
                "mise exec -- hk install --all",
                ("program", "hk", "mise exec -- hk"),
            ),
            (
                "rtk bun run test",
                "error: unrecognized subcommand 'bun'",
                "bun run test",
                ("program", "rtk bun run test", "bun run test"),
            ),
            (
                "npm run type-check",
                'npm error Missing script: "type-check"',
                "npm run check-types",
                ("program", "npm run type-check", "npm run check-types"),
            ),
            (
                "gh pr diff 3 --stat",
                "unknown flag: --stat",
                "gh pr diff 3 --name-only",
                ("option", "gh pr diff --stat", "gh pr diff --name-only"),
            ),
            (
                "git show HEAD --no-stat",
                "fatal: unrecognized argument: --no-stat",
                "git show HEAD",
                ("option", "git show --no-stat", "git show"),
            ),
            (
                "gh pr create --title x",
                "must provide `--body` when not interactive",
                "gh pr create --title x --body y",
                ("option", "gh pr create", "gh pr create --body"),
            ),
            (
                "gh pr view 3 --json number,merged",
                'Unknown JSON field: "merged"',
                "gh pr view 3 --json number,state",
                ("value", "gh pr view --json merged", "gh pr view --json"),
            ),
            (
                "gh issue list --repo ann/shop",
                "Could not resolve to a Repository with the name 'ann/shop'.",
                "gh issue list --repo bob/shop",
                ("value", "gh issue list --repo ann/shop", "gh issue list --repo bob/shop"),
            ),
            (
                "cargo test one two",
                "error: unexpected argument 'two' found",
                "cargo test one",
                ("value", "cargo test", "cargo test"),
            ),
            ("cargo test one --lib", "error: no library targets found", "cargo test one", ("option", "cargo test --lib", "cargo test")),
            ('sqlite3 shop.db "select * from order"', 'Error: near "order": syntax error', 'sqlite3 shop.db "select id from orders"', ("value", "order", "orders")),
            ("npm run lint", 'npm error Missing script: "lint"', "cd /shop/web && npm run lint", ("cwd", "", "/shop/web")),
            ("cat a(b).ts", "syntax error near unexpected token `('", "cat 'a(b).ts'", ("quoting", "", "")),
        ],
    )  # fmt: skip
    def test_a_command_is_corrected(self, failed: str, said: str, worked: str, fix: tuple[str, str, str]) -> None:
        assert pair_of(shell(failed, said), shell(worked)) == fix

    @pytest.mark.parametrize(
        ("failed", "said", "later"),
        [
            ("go list ./...", "zsh:1: command not found: go", "gh release list"),
            ("markdownlint a.md", "zsh:1: command not found: markdownlint", "git diff a.md"),
            ("git cherry-pick abc1234", "The previous cherry-pick is now empty; use --skip", "git cherry-pick --skip"),
            ("sleep 5 & curl -o x http://a", "sleep: invalid option -- 'o'", "curl -H y http://a"),
            ("gh pr view 12", "could not find pull request 12", "gh pr view 13"),
            ("python a.py", "ModuleNotFoundError: No module named 'shop.cart'", "python -m pytest shop/cart.py"),
            (
                "ls /shop/web/node_modules/@shop",
                "ls: /shop/web/node_modules/@shop: No such file or directory",
                "ls /shop/node_modules/@shop",
            ),
            ("docker ps", "command not found: docker", "which docker || /usr/local/bin/docker ps || echo none"),
            ("cargo fmt --check", "Diff in src/a.rs:43", "cargo fmt"),
            ("gh pr edit 3 --title x", "GraphQL: Projects (classic) is deprecated", "gh pr checks 3"),
        ],
    )
    def test_another_command_is_no_fix(self, failed: str, said: str, later: str) -> None:
        assert fix_of(shell(failed, said), shell(later)) is None

    def test_a_check_that_fails_by_its_findings_ran(self) -> None:
        ran = shell("bun run test", "2 fail\n(fail) cart > total", "other")
        assert pair_of(shell("rtk bun run test", "error: unrecognized subcommand 'bun'"), ran) == (
            "program",
            "rtk bun run test",
            "bun run test",
        )

    def test_the_script_was_there_in_another_folder(self) -> None:
        """`lint` ran and failed from the root; `lint:fix` is no correction of its name."""
        failed = shell("bun run lint", 'error: Script not found "lint"')
        ran = shell("cd /shop && bun run lint", "3 errors", "other")
        assert pair_of(failed, ran, shell("bun run lint:fix")) == ("cwd", "", "/shop")

    def test_where_name_and_folder_changed_together_the_cause_cannot_be_told(self) -> None:
        failed = shell("bun verify", 'error: Script not found "verify"')
        again = shell("bun run verify", 'error: Script not found "verify"')
        assert fix_of(failed, again, shell("cd /shop && bun run verify")) is None
        assert fix_of(failed, shell("cd /shop && bun run verify")) is None
        assert fix_of(failed, again, shell("bun run verify")) is None


class TestArguments:
    def test_the_argument_that_the_message_names(self) -> None:
        issue = {"title": "x", "team": "Troy", "labels": ["bug"]}
        failed = call("create_issue", issue, "Team not found: Troy")
        fix = fix_of(failed, call("create_issue", {"title": "x", "team": "Entire"}))
        assert fix is not None
        assert (fix.kind, fix.failed, fix.worked, fix.words) == ("value", "Troy", "Entire", "another value of team")

    def test_an_argument_that_the_message_does_not_name_says_nothing(self) -> None:
        failed = call("create_issue", {"title": "x", "labels": ["bug"]}, "Internal error")
        assert fix_of(failed, call("create_issue", {"title": "x"})) is None

    def test_another_id_is_another_question(self) -> None:
        assert (
            fix_of(call("get_user", {"user_id": "u_12"}, "User not found"), call("get_user", {"user_id": "u_13"}))
            is None
        )

    def test_a_text_that_the_file_does_not_have(self) -> None:
        edit = {"file_path": "/shop/cart.py", "old_string": "total = 0", "new_string": "total = 1"}
        failed = call("Edit", edit, "String to replace not found in file.")
        worked = call("Edit", edit | {"old_string": "total: int = 0", "new_string": "total: int = 1"})
        other = call("Edit", edit | {"old_string": "import os", "new_string": "from pathlib import Path"})
        fix = fix_of(failed, read("/shop/cart.py"), worked)
        assert fix is not None and fix.words == "old_string as the file has it, after another look at the file"
        assert fix_of(failed, read("/shop/cart.py"), other) is None

    def test_a_text_that_occurs_twice(self) -> None:
        edit = {"file_path": "/a.py", "old_string": "x = 1", "new_string": "x = 2", "replace_all": False}
        failed = call("Edit", edit, "Found 2 matches of the string to replace, but replace_all is false.")
        assert pair_of(failed, call("Edit", edit | {"replace_all": True})) == ("option", "", "replace_all")
        longer = {"old_string": "def f():\n    x = 1", "new_string": "def f():\n    x = 2"}
        fix = fix_of(failed, call("Edit", edit | longer))
        assert fix is not None and fix.words == "more of the text in old_string"

    def test_a_file_that_is_too_large(self) -> None:
        failed = read(
            "/shop/log.txt", "File content exceeds maximum allowed tokens. Please use offset and limit parameters."
        )
        assert pair_of(failed, call("Read", {"file_path": "/shop/log.txt", "limit": 50})) == ("option", "", "limit")
        assert pair_of(failed, call("Grep", {"path": "/shop/log.txt", "pattern": "x"})) == ("program", "Read", "Grep")


class TestSameCall:
    def test_a_file_must_be_read_first(self) -> None:
        edit = {"file_path": "/shop/cart.py", "old_string": "a", "new_string": "b"}
        failed = call("Edit", edit, "File has not been read yet. Read it first before writing to it.")
        assert pair_of(failed, read("/shop/cart.py"), call("Edit", edit)) == ("precondition", "Edit", "Read")
        assert fix_of(failed, read("/shop/other.py"), call("Edit", edit | {"file_path": "/shop/other.py"})) is None

    def test_an_installation_that_the_message_asks_for(self) -> None:
        failed = shell("bun run typecheck", "Could not locate executable `turbo` in your project.")
        assert pair_of(failed, shell("bun install"), shell("bun run typecheck")) == ("precondition", "", "bun install")

    def test_of_several_installations_the_one_that_the_message_names(self) -> None:
        failed = shell("python repro.py", "ModuleNotFoundError: No module named 'pytz'", "environment")
        others = (shell("pip install pytz -q"), failed, shell("pip install sqlparse"))
        assert pair_of(failed, *others, shell("python repro.py")) == ("precondition", "", "pip install pytz")
        assert fix_of(failed, shell("pip install sqlparse"), shell("python repro.py")) is None

    def test_a_failing_check_that_passes_after_an_edit_is_work(self) -> None:
        edit = call("Edit", {"file_path": "/a.py", "old_string": "a", "new_string": "b"})
        assert fix_of(shell("make test", "1 failed"), edit, shell("make test")) is None
        assert fix_of(shell("make test", "1 failed"), shell("make test")) is None

    def test_the_same_call_that_works_again_is_a_retry(self) -> None:
        calls = session(shell("curl http://a/b", "connection timed out"), shell("curl http://a/b")).calls
        found = find_fix(calls, 0)
        assert found is not None and found[1].kind == "retry"
        assert find_fixes(calls) == {}  # nothing to correct

    @pytest.mark.parametrize(
        "between", [shell("git push"), call("Task", {"prompt": "fix it"}), shell("npm run typecheck")]
    )
    def test_nothing_is_known_where_something_else_was_done_meanwhile(self, between: Fields) -> None:
        failed = shell("curl http://a/b", "the typecheck failed to push some refs")
        assert fix_of(failed, between, shell("curl http://a/b")) is None

    def test_calls_of_the_same_answer_were_made_before_the_failure_was_known(self) -> None:
        failed, later = read("/shop/src/cart.py", GONE), read("/shop/lib/cart.py")
        assert fix_of(failed, later | {"turn": 1}) is None


def test_the_failed_call_is_named() -> None:
    calls = session(read("/a.py"), read("/shop/a/cart.py", GONE), read("/shop/b/cart.py")).calls
    assert {index: fix.at for index, fix in find_fixes(calls).items()} == {2: 1}


def test_what_an_agent_prints_around_an_output_is_no_error() -> None:
    around = 'Script completed\nWall time 0.1 seconds\nOutput:\n\n{"chunk_id":"8220","exit_code":1,"output":""}'
    (failed,) = session(call("exec", {"code": "run()"}, around)).calls
    assert error_line(failed) == ""


@pytest.mark.parametrize(
    ("wrong", "right", "short"),
    [
        ("/home/ann/shop/a/x.py", "/home/ann/shop/b/x.py", ("shop/a/x.py", "shop/b/x.py")),
        ("a/x.py", "b/x.py", ("a/x.py", "b/x.py")),
    ],
)
def test_paths_are_shortened_alike(wrong: str, right: str, short: tuple[str, str]) -> None:
    assert shorten_pair(wrong, right) == short


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_is_compared(wrong: str, right: str) -> None:
    assert not is_near(wrong, wrong)
    is_near(wrong, right, searched=True)


@given(
    st.lists(
        st.tuples(st.sampled_from(["Read", "Bash", "Edit", "x"]), st.text(max_size=80), st.text(max_size=80)),
        max_size=6,
    )
)
def test_any_session_is_searched(steps: list[tuple[str, str, str]]) -> None:
    arguments = {"Bash": "command", "Read": "file_path", "Edit": "file_path"}
    past: PastSession = session(
        *(
            call(tool, {arguments.get(tool, "x"): text}, said if at % 2 else None)
            for at, (tool, text, said) in enumerate(steps)
        )
    )
    for index, fix in find_fixes(past.calls).items():
        assert fix.at < index
