"""Every third-party module that we import is declared in pyproject.toml."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Collection, Iterator
from pathlib import Path

from places import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
FOR_TESTS = {"dev", "sdks", "loops"}  # extras that users of the package never install
LOOKS_LIKE_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+(\w+)", re.M)
LOOKS_BORROWED = re.compile(r"^[ \t]*from[ \t]+[\w.]*(?:test_\w+|conftest)[ \t]+import", re.M)
OTHER_NAMES = {  # distributions that are not called like their module; asking the environment takes seconds
    "agents": "openai-agents",
    "google": "google-genai",
    "pydantic_ai": "pydantic-ai-slim",
    "re2": "google-re2",
    "yaml": "pyyaml",
}
WITHOUT_DEPENDENCIES = {"bfcl_eval"}  # installed with --no-deps by those who run bench/bfcl.py: its own are heavy
# imported only inside the venv of Hermes
OF_HERMES = {"cron", "gateway", "hermes_cli", "hermes_constants", "hermes_state", "run_agent", "tools"}


def read_name(requirement: str) -> str:
    """Return the normal form of a requirement's distribution name."""
    (name,) = re.findall(r"^[\w.-]+", requirement)
    return normal(name)


def normal(name: str) -> str:
    """Return a distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def list_declared(*, for_tests: bool) -> set[str]:
    """Return the declared distributions, with or without the extras that only tests need."""
    extras = [names for extra, names in EXTRAS.items() if for_tests or extra not in FOR_TESTS]
    return {read_name(requirement) for group in (PROJECT["dependencies"], *extras) for requirement in group}


def find_imports(path: Path) -> Iterator[str]:
    """Yield the top-level name of every absolute import in a file, also of those inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "importorskip":
            yield from (str(word.value).split(".")[0] for word in node.args if isinstance(word, ast.Constant))


def may_import(path: Path, known: Collection[str]) -> bool:
    """Whether some line looks like an import of a module that is not known: only then is the file worth parsing."""
    text = path.read_text()
    return "importorskip" in text or any(name not in known for name in LOOKS_LIKE_IMPORT.findall(text))


def list_own(folder: Path) -> set[str]:
    """Return the modules and packages that lie at the top of a folder."""
    return {path.stem for path in folder.iterdir() if path.suffix == ".py" or path.is_dir()}


def test_every_import_is_declared() -> None:
    known = sys.stdlib_module_names | list_own(ROOT / "src") | list_own(ROOT / "tests") | list_own(ROOT / "bench")
    usual = known | {"msgspec", "pytest", "click", "hypothesis"}  # declared, and imported nearly everywhere
    assert usual - known <= list_declared(for_tests=True)
    undeclared: dict[str, str] = {}
    for folder in ("src", "tests", "bench"):
        declared = list_declared(for_tests=folder != "src")
        for path in sorted((ROOT / folder).rglob("*.py")):
            names = set(find_imports(path)) if may_import(path, usual) else set()
            for name in names - known - OF_HERMES - WITHOUT_DEPENDENCIES:
                if OTHER_NAMES.get(name, normal(name)) not in declared:
                    undeclared[name] = str(path.relative_to(ROOT))
    assert undeclared == {}


def test_no_test_imports_another_test() -> None:
    """Helpers lie in modules of their own and fixtures in conftest.py, where a change breaks no other file."""
    borrowed = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if LOOKS_BORROWED.search(text) else ():
            if isinstance(node, ast.ImportFrom) and re.search(r"(^|\.)(test_\w+|conftest)$", node.module or ""):
                borrowed.append(f"{path.relative_to(ROOT)}:{node.lineno} from {node.module}")
    assert borrowed == []
