"""Commonplace calls: what every coding agent does by itself, and what only the project knows."""

from __future__ import annotations

import pytest

from warmstart.calls.commonplace import is_commonplace, is_commonplace_line, teaches_nothing


class TestTools:
    @pytest.mark.parametrize(
        "tool", ["Read", "Edit", "Write", "Glob", "Grep", "apply_patch", "read_file", "WebFetch", "Task", "write_stdin"]
    )
    def test_tools_of_the_agent_itself(self, tool: str) -> None:
        assert is_commonplace(tool, {"file_path": "/shop/cart.py"})

    @pytest.mark.parametrize(
        "tool", ["mcp__files__read_file", "mcp__linear__search", "get_order", "find_customer", "deploy"]
    )
    def test_tools_of_the_project(self, tool: str) -> None:
        assert not is_commonplace(tool, {"id": "W1"})


class TestCommands:
    @pytest.mark.parametrize(
        "line",
        [
            "ls -la src",
            "cat cart.py | head -20",
            "cd src && rg -n total .",
            "sed -n 1,20p cart.py",
            "git status --short && git diff HEAD~1 -- src",
            "git -C shop log --oneline",
            'git add -A && git commit -m "Fix the total"',
            "for f in *.py; do wc -l $f; done",
            "if [ -f a.txt ]; then cat a.txt; fi",
            "python3 -c 'print(1)'",
            "python3 - <<'EOF'\nprint(1)\nEOF",
            "mkdir -p build && cp a.txt build/",
        ],
    )
    def test_everyday_commands(self, line: str) -> None:
        assert is_commonplace_line(line)

    @pytest.mark.parametrize(
        "line",
        [
            "mise run test",
            "bun run lint:fix",
            "uv run pytest -q tests",
            "cd shop && pnpm build | tail -5",
            "./scripts/release.sh 1.2",
            "python scripts/seed.py --all",
            "for f in *.py; do uv run ruff check $f; done",
            "gh pr view 12 --json reviews",
            "git lfs pull",
            "make ship",
        ],
    )
    def test_commands_of_the_project(self, line: str) -> None:
        assert not is_commonplace_line(line)

    def test_scripts_of_codex_are_what_they_call(self) -> None:
        wait = 'const r = await tools.write_stdin({session_id: 7, chars: ""}); text(r.output)'
        assert is_commonplace("exec", wait)
        assert is_commonplace("exec", 'const r = await tools.exec_command({cmd: "rg -n total src"}); text(r.output)')
        assert not is_commonplace("exec", 'const r = await tools.exec_command({cmd: "mise run test"}); text(r.output)')
        assert not is_commonplace("exec", "const r = await tools.mcp__linear__search({query: 'x'}); text(r)")


class TestSessions:
    READ = ("Read", {"file_path": "/shop/cart.py"})

    def test_only_coding_agents_at_coding_work_know_it(self) -> None:
        assert teaches_nothing("claude-code", "coding", *self.READ)
        assert teaches_nothing("codex", "ops", "exec_command", {"cmd": "ls"})
        assert not teaches_nothing("claude-code", "general", *self.READ)
        assert not teaches_nothing("openai-chat", "coding", *self.READ)
        assert not teaches_nothing(None, "coding", *self.READ)
