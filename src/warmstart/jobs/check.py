"""Will a scheduled job run at all? The model that it will really get, that model's context window, and the minimum.

An agent that looks at the window only when the job runs accepts a job today and fails on it at night. Here the same is
asked beforehand. Nothing is asked over a network unless the runtime brings a function that does so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from msgspec import Struct, field

from warmstart.errors import ModelContextError
from warmstart.usage.prices import PriceList

MINIMUM = 64_000  # tokens; below, Hermes refuses to start: its tools and system prompt alone take a large part

Verdict = Literal["ok", "fails", "unknown", "skipped"]
AskWindow = Callable[[str, str, str], int | None]  # base URL, API key, model -> tokens


class Job(Struct, frozen=True, kw_only=True):
    """A scheduled job, whoever schedules it. Empty: not set."""

    id: str
    name: str = ""
    prompt: str = ""  # its own words, which alone are used for routing
    model: str = ""
    provider: str = ""
    base_url: str = ""
    context_length: int | None = None  # set by hand
    skills: tuple[str, ...] = ()
    script_output: str | None = None  # of the script that ran before it; None: there was none
    script_failed: bool = False
    model_before: str = ""  # what the default was when the job was made, where its agent insists on that
    needs_model: bool = True  # False: a script alone
    paused: bool = False
    next_run: str = ""
    source: str = ""  # the file it stands in


class JobRuntime(Struct, frozen=True, kw_only=True):
    """What a job runs in: what it gets where it does not say itself."""

    models: tuple[tuple[str, str], ...] = ()  # (where it is set, model), the first that is set wins
    provider: str = ""
    base_url: str = ""
    api_key: str = ""  # for base_url and nothing else
    context_length: int | None = None  # set by hand, for whatever model
    context_from: str = "context_length"
    trusts_setting: bool = True  # False: the agent holds what was set by hand against the minimum too
    windows: Mapping[tuple[str, str], int] = field(default_factory=dict)  # set by hand, by (base URL, model)
    places: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # provider -> (base URL, API key)
    notes: tuple[str, ...] = ()  # what is worth knowing about it
    unreadable: str = ""  # why the settings are not known
    minimum: int = MINIMUM
    ask: AskWindow | None = None


class JobCheck(Struct, frozen=True, kw_only=True):
    """What will become of a job at its next run."""

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


def read_job(said: Mapping[str, Any], source: str = "") -> Job:
    """A job as Hermes and most others write it: a mapping in which much may be missing or null."""
    text = {name: _text(said.get(name)) for name in ("id", "name", "prompt", "model", "provider", "base_url")}
    state = _text(said.get("state"))
    output = said.get("script_output")
    return Job(
        id=text["id"] or text["name"] or "unknown",
        name=text["name"] or text["prompt"][:50] or text["id"],
        prompt=text["prompt"],
        model=text["model"],
        provider=text["provider"],
        base_url=text["base_url"].rstrip("/"),
        context_length=read_tokens(said.get("context_length")),
        skills=_read_skills(said),
        script_output=None if output is None else str(output),
        script_failed=said.get("script_failed") is True,
        model_before=_text(said.get("model_snapshot")),
        needs_model=not said.get("no_agent"),
        paused=said.get("enabled") is False or said.get("paused") is True or state in ("paused", "completed"),
        next_run=_text(said.get("next_run_at") or said.get("next_run")),
        source=source,
    )


def read_tokens(value: Any) -> int | None:
    """A positive whole number; None for anything else, as agents do that fall back on looking the window up."""
    try:
        number = 0 if isinstance(value, bool) else int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if number > 0 else None


def check_job(job: Job | Mapping[str, Any], runtime: JobRuntime) -> JobCheck:
    """Whether the job's model is large enough. An unknown window passes, with a warning."""
    job = job if isinstance(job, Job) else read_job(job)
    model, origin = _find_model(job, runtime)
    provider = job.provider or runtime.provider

    def tell(verdict: Verdict, reason: str, window: _Window | None = None) -> JobCheck:
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
        return tell("ok", "a script alone: it needs no model")
    if not model:
        if runtime.unreadable:
            return tell("unknown", f"its model is not known: {runtime.unreadable}")
        return tell("fails", "no model is set: give the job one, or set a default")
    if job.model_before and not job.model and job.model_before.lower() != model.lower():
        return tell("fails", _describe_drift(job.model_before, model))
    window = _find_window(job, runtime, model)
    if window.tokens is None:
        return tell("unknown", f"the context window of {model} is not known{window.origin and f' ({window.origin})'}")
    if window.by_hand and runtime.trusts_setting:
        return tell("ok", f"{window.origin} is set by hand, so it is not checked", window)
    try:
        require_context(model, window.tokens, runtime.minimum)
    except ModelContextError as error:
        return tell("fails", str(error), window)
    return tell("ok", "; ".join(runtime.notes), window)


def require_context(model: str, window: int | None, minimum: int = MINIMUM) -> None:
    """Raises ModelContextError if the model is known to be too small."""
    if window is not None and window < minimum:
        raise ModelContextError(model, window, minimum)


def _describe_drift(before: str, now: str) -> str:
    return (
        f"the default model was {before} when the job was made and is {now} now; Hermes then skips a job that has no"
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
    told = ""
    if runtime.ask is not None and place:
        tokens = runtime.ask(place, key, model)
        if tokens is not None:
            return _Window(tokens, "the endpoint")
        told = "the endpoint does not tell it"
    price = PriceList().find(model)
    if price is not None and price.window is not None:
        return _Window(price.window, "Warmstart's table")
    return _Window(None, told or ("--ask-endpoint may find it" if place else ""))


def _find_endpoint(job: Job, runtime: JobRuntime) -> tuple[str, str]:
    """Where the job's model is served, and the key for there: a key never goes to another address."""
    named = runtime.places.get(job.provider.removeprefix("custom:").lower()) if job.provider else None
    if job.base_url:
        known = named or (runtime.base_url, runtime.api_key)
        return job.base_url, known[1] if known[0] == job.base_url else ""
    if named:
        return named
    if job.provider and job.provider.lower() != runtime.provider.lower():
        return "", ""
    return runtime.base_url, runtime.api_key


def _read_skills(said: Mapping[str, Any]) -> tuple[str, ...]:
    """The list, or the single skill of older jobs."""
    skills = said.get("skills")
    if skills is None:
        skills = said.get("skill")
    listed = skills if isinstance(skills, list | tuple) else [skills]
    return tuple(dict.fromkeys(name for one in listed if (name := _text(one))))


def _text(value: Any) -> str:
    return "" if value is None or isinstance(value, dict | list) else str(value).strip()
