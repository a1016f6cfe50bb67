"""Guard rules: which calls they match, and which files are refused."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmstart.doors.guard.rules import GuardedCall, GuardRule, find_rule, load_rules, parse_rules
from warmstart.errors import ConfigError


def fits(text: str, tool: str, arguments: dict[str, Any] | None = None, agent: str = "claude-code") -> bool:
    rules = parse_rules(f'[[rule]]\naction = "x"\n{text}')
    return find_rule(rules, GuardedCall(agent, tool, arguments or {})) is not None


class TestMeaning:
    @pytest.mark.parametrize(
        ("pattern", "tool", "is_meant"),
        [
            ('"Bash"', "Bash", True),
            ('"Bash"', "bash", True),
            ('"bash"', "BASH", True),
            ('"Bash"', "BashOutput", False),
            ('"Bash*"', "BashOutput", True),
            ('"mcp__prod__*"', "mcp__prod__drop", True),
            ('"mcp__prod__*"', "mcp__test__drop", False),
            ('["Write", "Edit"]', "Edit", True),
            ('["Write", "Edit"]', "Read", False),
            ('"*"', "anything", True),
        ],
    )
    def test_tools(self, pattern, tool, is_meant):
        assert fits(f"tool = {pattern}", tool) == is_meant

    @pytest.mark.parametrize(
        ("pattern", "arguments", "is_meant"),
        [
            ("{command = 'git\\s+push'}", {"command": "cd x && git  push"}, True),
            ("{command = 'git\\s+push'}", {"command": "git pull"}, False),
            ("{command = 'git\\s+push'}", {"other": "git push"}, False),
            ("{command = 'git', cwd = 'prod'}", {"command": "git", "cwd": "/prod"}, True),
            ("{command = 'git', cwd = 'prod'}", {"command": "git", "cwd": "/test"}, False),
            ("{'edits.path' = '[.]env$'}", {"edits": [{"path": "a"}, {"path": ".env"}]}, True),
            ("{'edits.path' = '[.]env$'}", {"edits": [{"path": "a"}]}, False),
            ("{'a.b' = 'x'}", {"a.b": "x"}, True),
            ("{'*' = 'secret'}", {"deep": [{"er": {"secret": 1}}]}, True),
            ("{'*' = 'secret'}", {"deep": [{"er": ["no", {"x": "top secret"}]}]}, True),
            ("{'*' = 'secret'}", {"deep": [1, None, True]}, False),
            ("{force = 'true'}", {"force": True}, True),
            ("{text = 'x'}", {"text": "\ud800x"}, True),
            ("{text = 'x'}", {"text": "\ud800"}, False),
            ("{count = '^[0-9]{4,}$'}", {"count": 10_000}, True),
            ("{count = '^[0-9]{4,}$'}", {"count": 10}, False),
        ],
    )
    def test_arguments(self, pattern, arguments, is_meant):
        assert fits(f'tool = "t"\narguments = {pattern}', "t", arguments) == is_meant

    @pytest.mark.parametrize(
        ("command", "is_asked"),
        [
            ("git status", False),
            ("git diff -p", False),
            ("git status; rm -rf /", True),
            ("git status\nrm -rf /", True),
            ("rm -rf /", True),
            ("", True),
        ],
    )
    def test_exceptions_must_fit_the_whole(self, command, is_asked):
        text = "tool = \"Bash\"\nunless = {command = 'git (status|diff)( -[a-z])*'}"
        assert fits(text, "Bash", {"command": command}) == is_asked
        assert fits(text, "Bash", {}), "an exception about something that is not there is none"

    def test_every_exception_must_hold(self):
        text = "tool = \"t\"\nunless = {a = '1', b = '2'}"
        assert not fits(text, "t", {"a": "1", "b": "2"})
        assert fits(text, "t", {"a": "1", "b": "3"})
        assert fits(text, "t", {"a": ["1", "3"], "b": "2"}), "of a list every item"

    def test_agents(self):
        text = 'tool = "*"\nagents = ["hermes"]'
        assert fits(text, "t", agent="hermes") and not fits(text, "t", agent="claude-code")

    def test_the_first_that_fits_counts(self):
        rules = parse_rules("""
            [[rule]]
            tool = "Bash"
            arguments = {command = 'prod'}
            action = "deploy_production"
            timeout_seconds = 900
            [[rule]]
            tool = "Bash"
            action = "run_command"
        """)
        found = [find_rule(rules, GuardedCall("a", "Bash", {"command": c})) for c in ("ls", "ls prod")]
        assert [rule.action for rule in found if rule] == ["run_command", "deploy_production"]
        assert [rule.timeout_seconds for rule in found if rule] == [None, 900], "None: as the daemon's policy says"

    def test_no_text_keeps_it_busy(self):
        """Patterns that backtracking engines take exponential time for."""
        began = time.monotonic()
        assert not fits("tool = \"t\"\narguments = {a = '(x+x+)+y'}", "t", {"a": "x" * 100_000})
        assert time.monotonic() - began < 30


class TestNoRules:
    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("", "rule is missing"),
            ("rule = []", "has no rules"),
            ("[[rule]]", "line 1: rule 1.tool is missing"),
            ("[[rule]]\ntool = 'x'", "line 1: rule 1.action is missing"),
            ("[[rule]]\ntool = ''\naction = 'x'", 'line 2: rule 1.tool = "": must be'),
            ("[[rule]]\ntool = []\naction = 'x'", "a list, not empty"),
            ("[[rule]]\ntool = 'x'\naction = ''", "rule 1: action"),
            ("[[rule]]\ntool = 'x'\naction = 'dеlete'", "rule 1: action"),
            (
                "[[rule]]\ntool = 'x'\naction = 'y'\nargument = {a = 'b'}",
                "rule 1.argument is no setting; did you mean arguments?",
            ),
            ("[[rule]]\ntool = 'x'\naction = 'y'\narguments = {a = '('}", "rule 1: the pattern for a is not valid RE2"),
            ("[[rule]]\ntool = 'x'\naction = 'y'\nunless = {a = '(?=x)'}", "not valid RE2"),
            (
                "[[rule]]\ntool = 'x'\naction = 'y'\narguments = {a = ''}",
                'rule 1.arguments.a = "": must be a text in quotes, not empty',
            ),
            ("[[rule]]\ntool = 'x'\naction = 'y'\ntimeout_seconds = 5", "line 4: rule 1.timeout_seconds = 5: must be"),
            ("[[rule]]\ntool = 'x'\naction = 'y'\nagents = []", "line 4: rule 1.agents: must be a list, not empty"),
            ("[[rule]\n", "not valid TOML"),
            (
                "[[rule]]\ntool = 'x'\naction = 'y'\n[other]\na = 1",
                "other is no setting; known are: defaults, rule, tools",
            ),
        ],
    )
    def test_what_is_not_understood_whole_is_refused(self, text, reason):
        with pytest.raises(ConfigError) as caught:
            parse_rules(text, "guard.toml")
        assert "guard.toml: " in str(caught.value) and reason in str(caught.value)

    def test_files(self, tmp_path: Path):
        with pytest.raises(ConfigError, match="there are no guard rules"):
            load_rules(tmp_path)
        (tmp_path / "guard.toml").write_bytes(b"\xff")
        with pytest.raises(ConfigError, match="cannot be read"):
            load_rules(tmp_path)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.text(), st.dictionaries(st.text(), values, max_size=4), st.text(min_size=1))
def test_any_call_gets_an_answer(tool, arguments, name):
    rule = GuardRule(tool="*", action="x", arguments={name: "a", "*": "."}, unless={name: ".*"})
    assert rule.matches(GuardedCall("a", tool, arguments)) in (True, False)
