"""Read scheduled jobs from Hermes' homes (one per profile) and from a TOML list for every other agent.

A damaged file is reported with its line, and the other files are still read.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from warmstart.errors import SourceError
from warmstart.jobs.check import AskWindow, FindWindow, Job, JobRuntime, read_job, read_string, read_tokens
from warmstart.jobs.hermes_windows import HermesWindows

ReadVariable = Callable[[str], str]

_NO_YAML = (
    "no YAML parser is installed: run `hermes warmstart jobs check`, which uses Hermes' own, or"
    " pip install 'warmstart[hermes]'"
)
_REFERENCE = re.compile(r"\$\{([^}]+)\}")
_LINE = re.compile(r"at line (\d+)")


class JobSource(Struct, frozen=True):
    """The jobs of one file, the defaults they run with, and what could not be read."""

    jobs: tuple[Job, ...]
    runtime: JobRuntime
    problems: tuple[SourceError, ...] = ()


def find_hermes_homes(home: Path) -> list[Path]:
    """Return the home itself and its profiles: each has jobs and settings of its own."""
    profiles = sorted(path for path in (home / "profiles").glob("*") if (path / "cron" / "jobs.json").exists())
    return [home, *profiles]


def read_hermes(
    home: Path, variable: ReadVariable, ask: AskWindow | None = None, find: FindWindow | None = None
) -> JobSource:
    """Read Hermes' cron jobs, with the defaults from its settings and its environment.

    `find` is Hermes' own rule for a model's window; without it, its rule is mirrored.
    """
    problems: list[SourceError] = []
    jobs: tuple[Job, ...] = ()
    path = home / "cron" / "jobs.json"
    try:
        jobs, problems = _read_hermes_jobs(path)
    except SourceError as error:
        problems = [error]
    runtime = JobRuntime(ask=ask)
    try:
        runtime = _read_hermes_runtime(home, variable, ask)
        runtime = structs.replace(runtime, find=find or HermesWindows(home, _read_cached_windows(home), ask))
    except SourceError as error:
        if jobs or problems:
            problems.append(error)
        runtime = JobRuntime(ask=ask, unreadable=str(error))
    folders = (home / "skills",)
    return JobSource(tuple(structs.replace(job, skill_folders=folders) for job in jobs), runtime, tuple(problems))


def _read_cached_windows(home: Path) -> dict[str, Any]:
    """Return the windows that Hermes found out before; none if the file is damaged."""
    try:
        cached = _read_yaml(home / "context_length_cache.yaml").get("context_lengths")
    except SourceError:
        return {}
    return cached if isinstance(cached, dict) else {}


def _read_hermes_jobs(path: Path) -> tuple[tuple[Job, ...], list[SourceError]]:
    text = _read_text(path)
    if text is None:
        return (), []
    try:
        content = json.loads(text, strict=False)  # Hermes accepts raw control characters, too
    except json.JSONDecodeError as error:
        raise SourceError(str(path), f"not valid JSON: {error.msg}", error.lineno) from error
    except RecursionError as error:
        raise SourceError(str(path), "nested too deeply") from error
    listed = content.get("jobs", []) if isinstance(content, dict) else content
    if not isinstance(listed, list):
        raise SourceError(str(path), "must hold a list of jobs", 1)
    return _read_jobs(listed, path)


def _read_jobs(listed: list[Any], path: Path) -> tuple[tuple[Job, ...], list[SourceError]]:
    problems = [
        SourceError(str(path), f"job {number} is not a table")
        for number, fields in enumerate(listed, 1)
        if not isinstance(fields, dict)
    ]
    return tuple(read_job(fields, str(path)) for fields in listed if isinstance(fields, dict)), problems


def _read_hermes_runtime(home: Path, variable: ReadVariable, ask: AskWindow | None) -> JobRuntime:
    """Read the defaults as Hermes 0.19 does: config.yaml overrides HERMES_MODEL, although its comments say otherwise."""
    settings = _expand(_read_yaml(home / "config.yaml"), variable)
    setting = settings.get("model")
    model = setting if isinstance(setting, dict) else {"default": setting}
    default = read_string(model.get("default")) or read_string(model.get("model"))
    named = _read_dotenv(home / ".env", "HERMES_MODEL") or variable("HERMES_MODEL")
    differs = bool(default and named and default != named)
    places, windows = _read_providers(settings)
    provider = read_string(model.get("provider"))
    place = places.get(provider.removeprefix("custom:").lower(), ("", ""))
    return JobRuntime(
        models=(("config.yaml", default), ("HERMES_MODEL", named)),
        provider=provider,
        base_url=read_string(model.get("base_url")).rstrip("/") or place[0],
        api_key=read_string(model.get("api_key")) or place[1],
        context_length=read_tokens(model.get("context_length")),
        context_from="model.context_length",
        trusts_setting=False,
        windows=windows,
        places=places,
        notes=(f"HERMES_MODEL={named} is set, but for jobs config.yaml overrides it",) if differs else (),
        ask=ask,
    )


def _read_providers(settings: Mapping[str, Any]) -> tuple[dict[str, tuple[str, str]], dict[tuple[str, str], int]]:
    places: dict[str, tuple[str, str]] = {}
    windows: dict[tuple[str, str], int] = {}
    for name, entry in _list_providers(settings):
        url = next((read_string(entry[key]) for key in ("base_url", "url", "api") if entry.get(key)), "").rstrip("/")
        if not url:
            continue
        places.setdefault(name.lower(), (url, read_string(entry.get("api_key"))))
        models = entry.get("models")
        for model, facts in models.items() if isinstance(models, dict) else ():
            tokens = read_tokens(facts.get("context_length")) if isinstance(facts, dict) else None
            if tokens is not None:
                windows.setdefault((url, str(model)), tokens)
    return places, windows


def _list_providers(settings: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield Hermes' providers, from its old list and its newer table."""
    listed, keyed = settings.get("custom_providers"), settings.get("providers")
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, dict):
            yield read_string(entry.get("name")), entry
    for name, entry in keyed.items() if isinstance(keyed, dict) else ():
        if isinstance(entry, dict):
            yield str(name), entry


def read_list(path: Path, variable: ReadVariable, ask: AskWindow | None = None) -> JobSource:
    """Read a TOML list: `[[jobs]]` tables, with defaults at the top."""
    try:
        text = _read_text(path)
        if text is None:
            raise SourceError(str(path), "no such file")
        content = tomllib.loads(text)
        listed = content.get("jobs", [])
        if not isinstance(listed, list):
            raise SourceError(str(path), "jobs must be written as [[jobs]] tables")
    except tomllib.TOMLDecodeError as error:
        line = _LINE.search(str(error))
        problem = SourceError(str(path), f"not valid TOML: {error}", int(line[1]) if line else None)
        return JobSource((), JobRuntime(), (problem,))
    except SourceError as error:
        return JobSource((), JobRuntime(), (error,))
    jobs, problems = _read_jobs(listed, path)
    if skills := read_string(content.get("skills_folder")):
        folders = (path.parent / Path(skills).expanduser(),)
        jobs = tuple(structs.replace(job, skill_folders=folders) for job in jobs)
    named, key = read_string(content.get("model_variable")), read_string(content.get("key_variable"))
    runtime = JobRuntime(
        models=((named, variable(named) if named else ""), (path.name, read_string(content.get("model")))),
        provider=read_string(content.get("provider")),
        base_url=read_string(content.get("base_url")).rstrip("/"),
        api_key=variable(key) if key else "",
        context_length=read_tokens(content.get("context_length")),
        minimum=read_tokens(content.get("minimum")) or JobRuntime().minimum,
        ask=ask,
    )
    return JobSource(jobs, runtime, tuple(problems))


# Files


def _read_text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(str(path), f"cannot be read: {error}") from error


def _read_yaml(path: Path) -> dict[str, Any]:
    text = _read_text(path)
    if text is None:
        return {}
    try:
        import yaml
    except ModuleNotFoundError:
        raise SourceError(str(path), _NO_YAML) from None
    try:
        content = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        raise SourceError(str(path), "not valid YAML", mark.line + 1 if mark else None) from error
    if content is not None and not isinstance(content, dict):
        raise SourceError(str(path), "must hold a table of settings", 1)
    return content or {}


def _expand(value: Any, variable: ReadVariable) -> Any:
    """Replace `${NAME}` by the variable of that name, if it is set."""
    if isinstance(value, str):
        return _REFERENCE.sub(lambda match: variable(match[1]) or match[0], value)
    if isinstance(value, dict):
        return {key: _expand(inner, variable) for key, inner in value.items()}
    return [_expand(inner, variable) for inner in value] if isinstance(value, list) else value


def _read_dotenv(path: Path, name: str) -> str:
    """Read one variable of Hermes' .env, which Hermes loads before every job, and nothing else in it."""
    try:
        text = _read_text(path) or ""
    except SourceError:
        return ""
    values = re.findall(rf"^[ \t]*(?:export[ \t]+)?{name}[ \t]*=[ \t]*(.*?)[ \t]*$", text, re.M)
    return values[-1].strip("\"'") if values else ""
