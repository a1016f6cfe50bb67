"""Whether two folders hold the same project, by the files that their sessions touched. Pure.

Shared files prove little where every project has them: `README.md`, `src/index.ts`, `components/ui/button.tsx`. Only
specific files count. Two sessions of one project seldom touch the same files, so a file also fits where the other folder's
sessions touched its neighbours.
"""

from __future__ import annotations

from collections.abc import Set

from msgspec import Struct

from warmstart import lazy_regex as re

FILES, SHARED = 3, 5  # specific files, and specific files and folders, that two folders of one name share at least
ALIKE_FILES, ALIKE_FITTING = 10, 0.75  # folders of different names that may be one: a person decides
FITTING = 0.5  # share of the smaller folder's specific files that fit into the other one

_GENERIC_WORDS = frozenset(
    "index main app page layout util utils helper helpers config configuration types type constants globals global setup "
    "test tests conftest init mod lib libs routes route router models model views view urls settings admin schema schemas "
    "seed server client db database auth api middleware package readme changelog license licence contributing dockerfile "
    "makefile compose docker tsconfig jsconfig vite next nuxt tailwind postcss eslint prettier jest vitest babel webpack "
    "rollup playwright manage wsgi asgi celery requirements pyproject poetry cargo go gemfile rakefile build gradle pom "
    "gradlew composer style styles theme home login logout register user users error errors loading favicon logo store "
    "context hooks hook provider providers service services controller controllers base common core shared agents claude "
    "gemini copilot skill todo notes plan hello example examples demo version env gitignore gitattributes editorconfig "
    "ci release deploy publish lint codeowners biome turbo lerna pnpm yarn bun mise justfile taskfile lefthook "
    "src source cmd pkg packages apps modules internal components pages docs doc scripts tools bin spec specs unit e2e "
    "integration fixtures data forms form lists list items item widgets layouts templates static web frontend backend mobile "
    "concerns mailers jobs channels serializers tasks utils commands handlers middlewares entities repositories dto dtos "
    "renovate dependabot vercel netlify robots sitemap manifest application program startup".split()
)
_GENERIC_FOLDERS = re.compile(
    r"(?:^|/)(?:components/ui|node_modules|\.git|\.venv|venv|site-packages|dist|build|target|__pycache__|vendor|public|"
    r"assets|migrations|\.claude|\.codex|\.cursor|\.github|\.vscode|\.idea|tmp)(?:/|$)"
)
_WORDS = re.compile(r"[a-z]+")


class SharedPaths(Struct, frozen=True):
    """How far the files of two folders agree."""

    files: int  # specific files that sessions of both folders touched
    folders: int  # specific folders in which both touched files
    fitting: float  # 0-1: of the smaller folder's specific files, those whose folder the other one's sessions know

    @property
    def is_enough(self) -> bool:
        """Whether two folders of the same name hold the same project."""
        return self.files >= FILES and self.files + self.folders >= SHARED and self.fitting >= FITTING

    @property
    def is_striking(self) -> bool:
        """Whether folders of different names may hold the same project, such as a renamed one."""
        return self.files >= ALIKE_FILES and self.fitting >= ALIKE_FITTING


def compare_paths(one: Set[str], other: Set[str]) -> SharedPaths:
    """Compare the relative paths of two folders' sessions."""
    return compare_specific(keep_specific(one), keep_specific(other))


def compare_specific(mine: Set[str], theirs: Set[str]) -> SharedPaths:
    """Compare files that hardly any other project has."""
    if len(theirs) < len(mine):
        mine, theirs = theirs, mine
    if not mine:
        return SharedPaths(0, 0, 0.0)
    known = {_parent(path) for path in theirs}
    fitting = sum(path in theirs or _parent(path) in known for path in mine)
    folders = {folder for path in mine if (folder := _parent(path)) in known and _is_specific_folder(folder)}
    return SharedPaths(len(mine & theirs), len(folders), fitting / len(mine))


def keep_specific(paths: Set[str]) -> set[str]:
    """Return the files that hardly any other project has."""
    return {path for path in paths if is_specific(path)}


def is_specific(path: str) -> bool:
    """Return whether a path is a file in a folder, with a name of its own."""
    folder, _, file = path.rpartition("/")
    if not folder or "." not in file or "*" in path or _GENERIC_FOLDERS.search(folder):
        return False
    return _has_own_name(file.lstrip(".").partition(".")[0])


def _is_specific_folder(folder: str) -> bool:
    parts = folder.split("/")
    return len(parts) > 2 and any(map(_has_own_name, parts))


def _has_own_name(text: str) -> bool:
    words = _WORDS.findall(text.lower())
    return any(word not in _GENERIC_WORDS for word in words)


def _parent(path: str) -> str:
    return path.rpartition("/")[0]
