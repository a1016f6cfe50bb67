"""Notes are mined from what sessions met: the cause, the trigger, the fix, and what contradicts."""

from __future__ import annotations

import pytest

from notes.past import bash, failed, history, notes_of, ok, past, read
from warmstart.model import Outcome
from warmstart.notes.digest import digest_session
from warmstart.notes.mine import ProjectHistory

MISSING = "File does not exist."
WRONG = "error: unrecognized subcommand 'bun'"


def one(kind, *sessions):
    """Return the only note of a kind."""
    (note,) = notes_of(*sessions, kind=kind)
    return note


class TestPaths:
    def test_a_missing_path_names_the_one_that_was_right(self):
        calls = (read(".golangci.yml", MISSING), read(".golangci.yaml"))
        note = one("path", past(1, *calls), past(2, *calls))
        assert (note.subject, note.fix, note.trigger) == (".golangci.yml", ".golangci.yaml", "path:.golangci.yml")
        assert note.text == "`.golangci.yml` is not here; `.golangci.yaml` is"
        assert note.support == 2

    def test_shell_messages_name_paths_too(self):
        note = one("path", *(past(n, bash("rg foo tests", "rg: tests: No such file or directory")) for n in (1, 2)))
        assert note.subject == "tests"

    def test_other_roots_of_the_project_are_the_same_path(self):
        elsewhere = failed("Read", {"file_path": "/tmp/clone/docs/api.md"}, MISSING)
        note = one(
            "path", past(1, read("docs/api.md", MISSING)), past(2, elsewhere, folder="/tmp/clone", root="/tmp/clone")
        )
        assert note.subject == "docs/api.md"

    def test_a_path_that_exists_now_is_no_note(self):
        missed = [past(n, read("new.py", MISSING)) for n in (1, 2)]
        assert not notes_of(*missed, past(3, read("new.py")), kind="path")

    def test_an_unrelated_file_is_no_fix(self):
        note = one("path", *(past(n, read("a/config.py", MISSING), read("zebra.txt")) for n in (1, 2)))
        assert note.fix == ""


class TestCommands:
    def test_the_wrong_form_and_the_one_that_works(self):
        calls = (bash("rtk bun run test 2>&1", WRONG), bash("bun run test"))
        note = one("command", past(1, *calls), past(2, *calls))
        assert (note.trigger, note.fix) == ("run:rtk bun", "bun run test")
        assert note.certainty > 0.7

    def test_an_option_is_the_trigger_when_the_program_works_without_it(self):
        wrong = bash("sed -n 3p a.txt | cat -A", "cat: illegal option -- A")
        note = one("command", past(1, wrong, bash("cat a.txt")), past(2, wrong, bash("cat b.txt")))
        assert note.trigger == "with:cat -A"

    def test_calls_that_work_count_against(self):
        wrong = bash("make deploy", "error: unknown option --now")
        sessions = [past(1, wrong), past(2, wrong), past(3, bash("make deploy")), past(4, bash("make deploy"))]
        assert one("command", *sessions).against == 2

    def test_a_missing_program_and_the_one_that_is_there(self):
        calls = (bash("python run.py", "zsh:1: command not found: python"), bash("python3 run.py"))
        note = one("environment", past(1, *calls), past(2, *calls))
        assert (note.subject, note.fix) == ("python", "python3 run.py")

    def test_another_program_on_the_same_file_is_no_replacement(self):
        calls = (bash("shellcheck a.sh", "bash: shellcheck: command not found"), bash("git add a.sh"))
        assert one("environment", past(1, *calls), past(2, *calls)).fix == ""

    def test_the_installation_after_which_it_worked(self):
        calls = (bash("bun run test", "Could not locate executable `turbo`"), bash("bun install"), bash("bun run test"))
        assert one("environment", past(1, *calls), past(2, *calls)).fix == "bun install first"


class TestChecks:
    def test_rules_are_counted_and_a_formatter_is_the_fix(self):
        calls = (
            bash("bun run lint", "src/a.ts format ━━━━━━━━━━━━\n× Formatter would have printed"),
            bash("bun run lint:fix"),
        )
        note = one("check", past(1, *calls), past(2, *calls))
        assert (note.subject, note.fix) == ("format", "bun run lint:fix")

    def test_linter_rules_keep_their_names(self):
        lint = bash("mise run lint", "a.go:1:2: Error return value is not checked (errcheck)", "rule:errcheck")
        assert one("check", past(1, lint), past(2, lint)).subject == "errcheck"

    @pytest.mark.parametrize(
        ("line", "blamed"),
        [("cargo fmt --all && cargo test", "cargo test"), ("cargo clippy && cargo fmt --all", "cargo clippy")],
    )
    def test_a_formatter_is_not_blamed_for_the_finding_of_another_check(self, line, blamed):
        note = one("check", *(past(n, bash(line, "error[E0425]: no such value", "code:E0425")) for n in (1, 2)))
        assert note.text == f"`{blamed}` stops on E0425"

    def test_a_finding_of_an_unknown_command_names_no_command(self):
        calls = failed("verify_build", {"target": "all"}, "error[E0382]: moved", "code:E0382")
        assert one("check", past(1, calls), past(2, calls)).text == "Checks stop on E0382"

    def test_a_test_that_fails_everywhere_is_a_baseline(self):
        run = bash("bun test", "(fail) drift > respects policy", "test:drift > respects policy")
        assert one("baseline", past(1, run), past(2, run)).subject == "drift > respects policy"

    def test_merge_conflicts_and_pending_checks_are_no_mistakes(self):
        conflict = bash("git rebase main", "CONFLICT (content): Merge conflict in src/a.py")
        assert not notes_of(past(1, conflict), past(2, conflict))

    def test_the_usual_command_of_a_purpose(self):
        note = next(
            n for n in notes_of(past(1, bash("bun run test")), past(2, bash("bun run test"))) if n.kind == "works"
        )
        assert note.text.startswith("test: `bun run test` (2 of 2 passed")


class TestOtherKinds:
    def test_a_rule_of_the_agents_own_tools(self):
        edit = failed("Edit", {"file_path": "/home/dev/shop/a.py"}, "File has not been read yet. Read it first.")
        calls = (edit, read("a.py"), ok("Edit", {"file_path": "/home/dev/shop/a.py"}))
        note = one("tool", past(1, *calls), past(2, *calls))
        assert note.fix == "Read"
        assert "File has not been read yet" in note.text

    def test_a_file_too_large_for_one_read(self):
        big = "File content (27240 tokens) exceeds maximum allowed tokens (25000)."
        note = one("large", past(1, read("logs/run_10001.log", big)), past(2, read("logs/run_20002.log", big)))
        assert (note.subject, note.trigger) == ("logs/run_*.log", "whole:logs/run_*.log")

    def test_a_person_refuses_and_says_why(self):
        refused = Outcome("rejected", "text", words="too slow")
        call = {"tool": "Bash", "arguments": {"command": "mise run test:ci"}, "excerpt": "", "outcome": refused}
        note = one("refusal", past(1, call), past(2, call))
        assert note.text == 'The user refuses `mise run test:ci`: "too slow"'

    def test_an_approved_plan_is_no_refusal(self):
        call = {
            "tool": "ExitPlanMode",
            "arguments": {"plan": "x"},
            "excerpt": "",
            "outcome": Outcome("rejected", "text"),
        }
        assert not notes_of(past(1, call), past(2, call))

    def test_a_slow_command(self):
        slow = bash("mise run test:integration") | {"at": 0.0, "answered": 300.0}
        note = next(n for n in notes_of(past(1, slow), past(2, slow)) if n.kind == "slow")
        assert "5 min" in note.text


class TestCounting:
    def test_one_session_is_not_enough(self):
        assert not notes_of(past(1, read("a.md", MISSING), read("a.md", MISSING)), kind="path")

    def test_subagents_count_for_their_root(self):
        child = past(2, read("a.md", MISSING), parent="session-1")
        assert not notes_of(past(1, read("a.md", MISSING)), child, kind="path")

    def test_a_fork_does_not_count_copied_calls_again(self):
        first, fork = past(1, read("a.md", MISSING)), past(2, read("a.md", MISSING))
        copied = {call.call_id for call in fork.calls}
        added = ProjectHistory("shop")
        added.add(digest_session(first))
        added.add(digest_session(fork, skip=copied))
        assert not added.make_notes()

    def test_masked_text_alone_is_no_cause(self):
        lost = failed("Bash", {"command": "x"}, "/a/b/c 12 34 '5678'")
        assert not notes_of(past(1, lost), past(2, lost))

    @pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2)])
    def test_the_same_sessions_make_the_same_facts(self, order):
        sessions = {n: past(n, read("a.md", MISSING), bash("rtk bun x", WRONG)) for n in (1, 2, 3)}
        facts = {(n.id, n.support, n.text) for n in history(*(sessions[n] for n in order)).make_notes()}
        assert facts == {(n.id, n.support, n.text) for n in history(*sessions.values()).make_notes()}
