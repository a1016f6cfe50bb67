"""Where scheduled jobs stand: Hermes' homes (one a profile), and a plain TOML list for every other agent.

A damaged file is told with its line, and what stands in the other files is still read.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from warmstart.errors import SourceError
from warmstart.jobs.check import AskWindow, Job, JobRuntime, read_job, read_tokens

ReadVariable = Callable[[str], str]

_NO_YAML = (
    "there is no YAML parser here: run `hermes warmstart jobs check`, which has Hermes' own, or"
    " pip install 'warmstart[hermes]'"
)
_REFERENCE = re.compile(r"\$\{([^}]+)\}")
_LINE = re.compile(r"at line (\d+)")


class JobSource(Struct, frozen=True):
    """The jobs of one file, what they run in, and what could not be read."""

    jobs: tuple[Job, ...]
    runtime: JobRuntime
    problems: tuple[SourceError, ...] = ()


def find_hermes_homes(home: Path) -> list[Path]:
    """The home itself and its profiles: each has jobs and settings of its own."""
    profiles = sorted(path for path in (home / "profiles").glob("*") if (path / "cron" / "jobs.json").exists())
    return [home, *profiles]


def read_hermes(home: Path, variable: ReadVariable, ask: AskWindow | None = None) -> JobSource:
    """Hermes' cron jobs, with what its settings and its environment give to those that do not say themselves."""
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
    except SourceError as error:
        if jobs or problems:
            problems.append(error)
        runtime = JobRuntime(ask=ask, unreadable=str(error))
    return JobSource(jobs, runtime, tuple(problems))


def _read_hermes_jobs(path: Path) -> tuple[tuple[Job, ...], list[SourceError]]:
    text = _read_text(path)
    if text is None:
        return (), []
    try:
        found = json.loads(text, strict=False)  # Hermes too takes raw control characters
    except json.JSONDecodeError as error:
        raise SourceError(str(path), f"no valid JSON: {error.msg}", error.lineno) from error
    except RecursionError as error:
        raise SourceError(str(path), "nested too deeply") from error
    listed = found.get("jobs", []) if isinstance(found, dict) else found
    if not isinstance(listed, list):
        raise SourceError(str(path), "a list of jobs is expected", 1)
    return _read_jobs(listed, path)


def _read_jobs(listed: list[Any], path: Path) -> tuple[tuple[Job, ...], list[SourceError]]:
    problems = [
        SourceError(str(path), f"job {number} is no table") for number, one in enumerate(listed, 1)
        if not isinstance(one, dict)
    ]  # fmt: skip
    return tuple(read_job(one, str(path)) for one in listed if isinstance(one, dict)), problems


def _read_hermes_runtime(home: Path, variable: ReadVariable, ask: AskWindow | None) -> JobRuntime:
    """As Hermes 0.19 does it: a default in config.yaml goes before HERMES_MODEL, whatever its comments say."""
    settings = _expand(_read_yaml(home / "config.yaml"), variable)
    model = settings.get("model")
    said = model if isinstance(model, dict) else {"default": model}
    default = _text(said.get("default")) or _text(said.get("model"))
    named = _read_dotenv(home / ".env", "HERMES_MODEL") or variable("HERMES_MODEL")
    differs = bool(default and named and default != named)
    places, windows = _read_providers(settings)
    provider = _text(said.get("provider"))
    place = places.get(provider.removeprefix("custom:").lower(), ("", ""))
    return JobRuntime(
        models=(("config.yaml", default), ("HERMES_MODEL", named)),
        provider=provider,
        base_url=_text(said.get("base_url")).rstrip("/") or place[0],
        api_key=_text(said.get("api_key")) or place[1],
        context_length=read_tokens(said.get("context_length")),
        context_from="model.context_length",
        trusts_setting=False,
        windows=windows,
        places=places,
        notes=(f"HERMES_MODEL={named} is set, but for jobs config.yaml goes before it",) if differs else (),
        ask=ask,
    )


def _read_providers(settings: Mapping[str, Any]) -> tuple[dict[str, tuple[str, str]], dict[tuple[str, str], int]]:
    places: dict[str, tuple[str, str]] = {}
    windows: dict[tuple[str, str], int] = {}
    for name, entry in _provider_entries(settings):
        url = next((_text(entry[key]) for key in ("base_url", "url", "api") if entry.get(key)), "").rstrip("/")
        if not url:
            continue
        places.setdefault(name.lower(), (url, _text(entry.get("api_key"))))
        models = entry.get("models")
        for model, facts in models.items() if isinstance(models, dict) else ():
            tokens = read_tokens(facts.get("context_length")) if isinstance(facts, dict) else None
            if tokens is not None:
                windows.setdefault((url, str(model)), tokens)
    return places, windows


def _provider_entries(settings: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The old list and the newer table."""
    listed, keyed = settings.get("custom_providers"), settings.get("providers")
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, dict):
            yield _text(entry.get("name")), entry
    for name, entry in keyed.items() if isinstance(keyed, dict) else ():
        if isinstance(entry, dict):
            yield str(name), entry


def read_list(path: Path, variable: ReadVariable, ask: AskWindow | None = None) -> JobSource:
    """A TOML list: `[[jobs]]` tables, and at the top what holds for those that do not say themselves."""
    try:
        text = _read_text(path)
        if text is None:
            raise SourceError(str(path), "there is no such file")
        found = tomllib.loads(text)
        listed = found.get("jobs", [])
        if not isinstance(listed, list):
            raise SourceError(str(path), "jobs are written as [[jobs]]")
    except tomllib.TOMLDecodeError as error:
        line = _LINE.search(str(error))
        problem = SourceError(str(path), f"no valid TOML: {error}", int(line[1]) if line else None)
        return JobSource((), JobRuntime(), (problem,))
    except SourceError as error:
        return JobSource((), JobRuntime(), (error,))
    jobs, problems = _read_jobs(listed, path)
    named, key = _text(found.get("model_variable")), _text(found.get("key_variable"))
    runtime = JobRuntime(
        models=((named, variable(named) if named else ""), (path.name, _text(found.get("model")))),
        provider=_text(found.get("provider")),
        base_url=_text(found.get("base_url")).rstrip("/"),
        api_key=variable(key) if key else "",
        context_length=read_tokens(found.get("context_length")),
        minimum=read_tokens(found.get("minimum")) or JobRuntime().minimum,
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
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        raise SourceError(str(path), "no valid YAML", mark.line + 1 if mark else None) from error
    if found is not None and not isinstance(found, dict):
        raise SourceError(str(path), "a table of settings is expected", 1)
    return found or {}


def _expand(value: Any, variable: ReadVariable) -> Any:
    """`${NAME}` is the variable of that name; one that is not set stays as it is."""
    if isinstance(value, str):
        return _REFERENCE.sub(lambda found: variable(found[1]) or found[0], value)
    if isinstance(value, dict):
        return {key: _expand(inner, variable) for key, inner in value.items()}
    return [_expand(inner, variable) for inner in value] if isinstance(value, list) else value


def _read_dotenv(path: Path, name: str) -> str:
    """One variable of Hermes' .env, which it loads before every job; nothing else in there is looked at."""
    try:
        text = _read_text(path) or ""
    except SourceError:
        return ""
    found = re.findall(rf"^[ \t]*(?:export[ \t]+)?{name}[ \t]*=[ \t]*(.*?)[ \t]*$", text, re.M)
    return found[-1].strip("\"'") if found else ""


def _text(value: Any) -> str:
    return "" if value is None or isinstance(value, dict | list) else str(value).strip()
