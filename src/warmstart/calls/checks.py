"""Command lines that run a check: tests, linters, type checkers and builds. A check that fails has done its work."""

from __future__ import annotations

import re
from functools import lru_cache

from warmstart.calls.shell import find_program, split_line

# Programs that are checks whatever their arguments are, and words that make a call of a task runner or a tool one.
CHECK_PROGRAMS = frozenset(
    """pytest py.test unittest nose2 tox nox jest vitest mocha ava tap karma cypress playwright rspec phpunit pest ctest
    golangci-lint staticcheck revive ruff flake8 pylint mypy pyright basedpyright pyre ty black isort bandit eslint oxlint
    biome prettier stylelint tsc vue-tsc svelte-check tsd xo standard rubocop brakeman ktlint detekt swiftlint shellcheck
    hadolint yamllint markdownlint actionlint typos codespell cspell semgrep terraform tflint clippy-driver cargo-nextest
    make gmake cmake ninja gradle gradlew mvn mvnw sbt dotnet msbuild xcodebuild gcc g++ cc clang clang++ rustc javac
    webpack rollup esbuild next nest turbo nx lerna pre-commit lefthook husky""".split()
)
_RUNNERS = frozenset(
    "npm pnpm yarn bun deno npx pnpx bunx mise just task make rake uv poetry pdm hatch pipenv composer cargo go "
    "python python3 node ruby php swift zig mix rtk doppler docker-compose invoke bundle".split()
)
CHECK_WORDS = (
    r"tests?|specs?|lint\w*|check\w*|type-?check\w*|types|tsc|vet|clippy|build|compile|fmt|format\w*|verify|"
    r"validate|ci|e2e|unit|integration|coverage|nextest|pytest|unittest|jest|vitest|mocha|playwright|ruff|mypy|pyright|"
    r"eslint|biome|prettier|golangci-lint|rspec|phpunit|cypress"
)
_CHECK_WORDS = re.compile(rf"(?:^|[\s:/._-])(?:{CHECK_WORDS})(?=$|[\s:/._-])", re.I)


@lru_cache(4_096)
def runs_check(command: str) -> bool:
    """Return whether a command line runs a test, a linter, a type checker or a build."""
    return any(_is_check(stages[0]) for pipelines in split_line(command[:6_000]) for _operator, stages in pipelines)


def _is_check(stage: str) -> bool:
    program, rest = find_program(stage)
    return program in CHECK_PROGRAMS or (program in _RUNNERS and bool(_CHECK_WORDS.search(rest[:300])))
