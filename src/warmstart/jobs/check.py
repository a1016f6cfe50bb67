"""Check that a scheduled job can run: find the model it will get, and compare that model's context window with the minimum.

An agent that checks the window only when the job runs accepts the job today and fails at night. This check runs beforehand.
It uses no network unless the runtime supplies a function that does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

from warmstart.errors import ModelContextError
from warmstart.usage.prices import PriceList

MINIMUM = 64_000  # tokens; with fewer Hermes refuses to start: its tools and system prompt alone need a large part

Verdict = Literal["ok", "fails", "unknown", "skipped"]
AskWindow = Callable[[str, str, str], int | None]  # base URL, API key, model -> tokens


class WindowQuestion(Struct, frozen=True, kw_only=True):
    """A model whose context window nobody set by hand."""

    model: str
    provider: str = ""
    base_url: str = ""
    api_key: str = ""  # for base_url only

    def __repr__(self) -> str:
        return f"WindowQuestion(model={self.model!r}, provider={self.provider!r}, base_url={self.base_url!r})"


class KnownWindow(Struct, frozen=True):
    """A window that an agent's own rules lead to."""

    tokens: int | None  # None: unknown
    origin: str  # where it is from, or what would help


FindWindow = Callable[[WindowQuestion], KnownWindow]


class Job(Struct, frozen=True, kw_only=True):
    """A scheduled job of any scheduler. An empty string means not set."""

    id: str
    name: str = ""
    prompt: str = ""  # its own words; only these are used for routing
    model: str = ""
    provider: str = ""
    base_url: str = ""
    context_length: int | None = None  # set by hand
    skills: tuple[str, ...] = ()
    script_output: str | None = None  # of the script that ran before it; None: there was none
    script_failed: bool = False
    skill_folders: tuple[Path, ...] = ()  # where its skills are looked up
    model_before: str = ""  # the default model when the job was created, if its agent insists on it
    needs_model: bool = True  # False: the job is only a script
    paused: bool = False
    next_run: str = ""
    last_error: str = ""  # of its latest run, in the scheduler's words
    source: str = ""  # the file that lists it


class JobRuntime(Struct, frozen=True, kw_only=True):
    """The defaults that a job runs with where it sets nothing itself."""

    models: tuple[tuple[str, str], ...] = ()  # (where it is set, model); the first one set wins
    provider: str = ""
    base_url: str = ""
    api_key: str = ""  # for base_url only
    context_length: int | None = None  # set by hand, for every model
    context_from: str = "context_length"
    trusts_setting: bool = True  # False: the agent compares a window set by hand with the minimum too
    windows: Mapping[tuple[str, str], int] = field(default_factory=dict)  # set by hand, by (base URL, model)
    places: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # provider -> (base URL, API key)
    notes: tuple[str, ...] = ()  # remarks for the user
    unreadable: str = ""  # why the settings are unknown
    minimum: int = MINIMUM
    ask: AskWindow | None = None
    find: FindWindow | None = None  # the agent's own rules; None: `ask`, then Warmstart's table


class JobCheck(Struct, frozen=True, kw_only=True):
    """Whether a job can run at its next time."""

    id: str
    name: str
    verdict: Verdict
    reason: str
    model: str = ""
    model_from: str = ""
    provider: str = ""
    window: int | None = None
    window_from: str = ""
    minimum: int = MINIMUM
    next_run: str = ""
    paused: bool = False
    source: str = ""


class _Window(Struct, frozen=True):
    tokens: int | None
    origin: str
    by_hand: bool = False


def read_job(fields: Mapping[str, Any], source: str = "") -> Job:
    """Read a job from a mapping, as Hermes and most others write it; any field may be missing or null."""
    text = {name: read_string(fields.get(name)) for name in ("id", "name", "prompt", "model", "provider", "base_url")}
    state = read_string(fields.get("state"))
    output = fields.get("script_output")
    return Job(
        id=text["id"] or text["name"] or "unknown",
        name=text["name"] or text["prompt"][:50] or text["id"],
        prompt=text["prompt"],
        model=text["model"],
        provider=text["provider"],
        base_url=text["base_url"].rstrip("/"),
        context_length=read_tokens(fields.get("context_length")),
        skills=_read_skills(fields),
        script_output=None if output is None else str(output),
        script_failed=fields.get("script_failed") is True,
        model_before=read_string(fields.get("model_snapshot")),
        needs_model=not fields.get("no_agent"),
        paused=fields.get("enabled") is False or fields.get("paused") is True or state in ("paused", "completed"),
        next_run=read_string(fields.get("next_run_at") or fields.get("next_run")),
        last_error=read_string(fields.get("last_error")),
        source=source,
    )


def read_tokens(value: Any) -> int | None:
    """Return a positive whole number, else None: agents then look the window up, too."""
    try:
        number = 0 if isinstance(value, bool) else int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if number > 0 else None


def check_job(job: Job | Mapping[str, Any], runtime: JobRuntime) -> JobCheck:
    """Check that the job's model is large enough. An unknown window passes, with a warning."""
    job = job if isinstance(job, Job) else read_job(job)
    model, origin = _find_model(job, runtime)
    provider = job.provider or runtime.provider

    def conclude(verdict: Verdict, reason: str, window: _Window | None = None) -> JobCheck:
        return JobCheck(
            id=job.id,
            name=job.name,
            verdict="skipped" if job.paused and verdict == "fails" else verdict,
            reason=f"paused; it would fail: {reason}" if job.paused and verdict == "fails" else reason,
            model=model,
            model_from=origin,
            provider=provider,
            window=window.tokens if window else None,
            window_from=window.origin if window else "",
            minimum=runtime.minimum,
            next_run=job.next_run,
            paused=job.paused,
            source=job.source,
        )

    if not job.needs_model:
        return conclude("ok", "only a script: it needs no model")
    if not model:
        if runtime.unreadable:
            return conclude("unknown", f"its model is unknown: {runtime.unreadable}")
        return conclude("fails", "no model is set: give the job one, or set a default")
    if job.model_before and not job.model and job.model_before.lower() != model.lower():
        return conclude("fails", _describe_drift(job.model_before, model))
    window = _find_window(job, runtime, model)
    if window.tokens is None:
        return conclude("unknown", f"the context window of {model} is unknown{window.origin and f' ({window.origin})'}")
    if window.by_hand and runtime.trusts_setting:
        return conclude("ok", f"{window.origin} is set by hand and not checked", window)
    try:
        require_context(model, window.tokens, runtime.minimum)
    except ModelContextError as error:
        return conclude("fails", str(error), window)
    return conclude("ok", "; ".join(runtime.notes), window)


def require_context(model: str, window: int | None, minimum: int = MINIMUM) -> None:
    """Raise ModelContextError if the model's window is known to be too small."""
    if window is not None and window < minimum:
        raise ModelContextError(model, window, minimum)


def _describe_drift(before: str, now: str) -> str:
    return (
        f"the default model was {before} when the job was made and is {now} now; Hermes then skips a job without a"
        " model of its own: give it one"
    )


def _find_model(job: Job, runtime: JobRuntime) -> tuple[str, str]:
    candidates = (("the job", job.model), *runtime.models)
    return next(((model.strip(), origin) for origin, model in candidates if model.strip()), ("", ""))


def _find_window(job: Job, runtime: JobRuntime, model: str) -> _Window:
    if job.context_length is not None:
        return _Window(job.context_length, "the job's context_length", by_hand=True)
    if runtime.context_length is not None:
        return _Window(runtime.context_length, runtime.context_from, by_hand=True)
    place, key = _find_endpoint(job, runtime)
    if (tokens := runtime.windows.get((place, model))) is not None:
        return _Window(tokens, "custom_providers")
    if runtime.find is not None:
        asked = WindowQuestion(model=model, provider=job.provider or runtime.provider, base_url=place, api_key=key)
        return _find_by_rules(runtime.find, asked)
    hint = "--ask-endpoint may find it" if place else ""
    if runtime.ask is not None and place:
        try:
            tokens = runtime.ask(place, key, model)
        except Exception as error:  # noqa: BLE001  # a caller's function: the other jobs are checked all the same
            tokens, hint = None, f"asking the endpoint failed with {type(error).__name__}"
        else:
            hint = "the endpoint does not report it"
        if tokens is not None:
            return _Window(tokens, "the endpoint")
    price = PriceList().find(model)
    if price is not None and price.window is not None:
        return _Window(price.window, "Warmstart's table")
    return _Window(None, hint)


def _find_by_rules(find: FindWindow, asked: WindowQuestion) -> _Window:
    try:
        known = find(asked)
    except Exception as error:  # noqa: BLE001  # an agent's own code: the other jobs are checked all the same
        return _Window(None, f"looking it up failed with {type(error).__name__}")
    return _Window(known.tokens, known.origin)


def _find_endpoint(job: Job, runtime: JobRuntime) -> tuple[str, str]:
    """Return the address of the job's model and the key for it: a key never goes to another address."""
    named = runtime.places.get(job.provider.removeprefix("custom:").lower()) if job.provider else None
    if job.base_url:
        known = named or (runtime.base_url, runtime.api_key)
        return job.base_url, known[1] if known[0] == job.base_url else ""
    if named:
        return named
    if job.provider and job.provider.lower() != runtime.provider.lower():
        return "", ""
    return runtime.base_url, runtime.api_key


def _read_skills(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Read the list of skills, or the single skill of jobs that older versions of Hermes wrote."""
    skills = fields.get("skills")
    if skills is None:
        skills = fields.get("skill")
    listed = skills if isinstance(skills, list | tuple) else [skills]
    return tuple(dict.fromkeys(name for skill in listed if (name := read_string(skill))))


def read_string(value: Any) -> str:
    """Return a setting as text; empty if it is missing or not a single value."""
    return "" if value is None or isinstance(value, dict | list) else str(value).strip()
