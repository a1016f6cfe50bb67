"""`warmstart lab`: try with a real model whether seeds help, before trusting them with one's own agent."""

from __future__ import annotations

import hashlib
import math
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from warmstart.doors.cli.main import PATH, json_option
from warmstart.doors.render.terminal import clean, print_json, progress_bar
from warmstart.endpoints.chat import LLM, Endpoint, EndpointError, HttpLLM, Reply
from warmstart.errors import ConfigError
from warmstart.pipeline import Warmstart

if TYPE_CHECKING:  # else every `warmstart --help` would load the lab, which does not load on every system
    from warmstart.lab.models.facts import ModelFacts
    from warmstart.lab.run.lab import Lab, Plan
    from warmstart.lab.run.summary import LabReport

_ARMS = "cold, warm, random, mismatched, text"
_BUILT_IN = "smollm2"
_SHORT = 20  # tasks by default
_PATIENCE = 120  # seconds for a server's answer


@click.group()
def lab() -> None:
    """Run the same tasks with a real model, cold and warm. Works offline with the model of `warmstart[lab]`."""


def model_options(command: Any) -> Any:
    """Add the options that choose the model."""
    for option in reversed(
        (
            click.option(
                "--model", default=_BUILT_IN, show_default=True, help="With --endpoint: the model's name there."
            ),
            click.option(
                "--gguf", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Another local model."
            ),
            click.option("--endpoint", help="An OpenAI-compatible server, such as http://127.0.0.1:8080/v1."),
            click.option("--api-key-env", help="The environment variable with the server's key."),
            click.option("--text-calls", is_flag=True, help="Write calls as text, for a server without tool calls."),
        )
    ):
        command = option(command)
    return command


def asking_options(command: Any) -> Any:
    """Add the options of a request."""
    timeout = click.option(
        "--timeout",
        type=click.IntRange(1, 86_400),
        default=_PATIENCE,
        show_default=True,
        help="Seconds to wait for an answer.",
    )
    temperature = click.option(
        "--temperature", default="0", show_default=True, help="A number, or none for a model that refuses the field."
    )
    return temperature(timeout(command))


@lab.command()
@click.option("--arms", default="cold,warm", show_default=True, help=f"Two or more of {_ARMS}.")
@click.option(
    "--tasks", type=click.IntRange(1, 1_000), default=_SHORT, show_default=True, help="Tasks, each run in every arm."
)
@click.option(
    "--random-seed",
    type=int,
    default=1,
    show_default=True,
    help="Another number makes other tasks of the same families.",
)
@click.option(
    "--turns", type=click.IntRange(1, 20), default=3, show_default=True, help="The model's answers per session."
)
@click.option(
    "--answer-tokens",
    type=click.IntRange(8),
    help="Limit of an answer.  [default: 96 for a local model, the server's own with --endpoint]",
)
@asking_options
@click.option("--grammar", is_flag=True, help="Restrict a local model to valid calls, in every arm.")
@click.option("--threads", type=click.IntRange(1, 64), help="Of a local model.  [default: one per free core]")
@click.option("--out", type=PATH, help="Folder for transcripts, store, report.json and report.html.")
@click.option("--fresh", is_flag=True, help="Delete the run in the folder instead of going on with it.")
@model_options
@json_option
@click.pass_obj
def run(ws: Warmstart, /, arms: str, out: Path | None, fresh: bool, as_json: bool, **given: Any) -> None:
    """Run the lab. A stopped run goes on where it was."""
    from warmstart.lab.run.agent import AgentLimits
    from warmstart.lab.run.lab import Lab, Plan, clear

    facts, open_llm = choose_model(
        **{name: given[name] for name in ("model", "gguf", "endpoint", "api_key_env", "text_calls", "timeout")}
    )
    if given["grammar"] and given["endpoint"]:
        raise click.UsageError("--grammar works with local models only; leave it out with --endpoint")
    plan = Plan(
        arms=tuple(arm.strip() for arm in arms.split(",") if arm.strip()),
        tasks=given["tasks"],
        random_seed=given["random_seed"],
        model=facts,
        grammar=given["grammar"],
        limits=AgentLimits(
            turns=given["turns"],
            answer_tokens=given["answer_tokens"] or (None if given["endpoint"] else AgentLimits().answer_tokens),
            temperature=_request(given["temperature"]).get("temperature"),
        ),
    )
    plan.check()
    folder = out or ws.settings.home / "lab" / _name(plan)
    if fresh:
        clear(folder)
    lab = Lab(folder, plan, _LazyLLM(lambda: open_llm(given["threads"], given["grammar"])))
    trouble: EndpointError | None = None
    try:
        with progress_bar("lab") as progress:
            lab.run(progress)
    except EndpointError as error:
        trouble = error
    finally:
        report = _write_report(lab, _write_command(plan, given)) if lab.ws.experiments.list() else None
        lab.close()
    if report is not None:
        _show(report, folder, as_json)
    if trouble is not None:
        done = report.done if report else 0
        raise EndpointError(
            f"{trouble}; {done} sessions are kept, and the same command goes on from there"
        ) from trouble


class _LazyLLM:
    """A model that is loaded at the first request: showing a finished run again needs none."""

    def __init__(self, make: Callable[[], LLM]) -> None:
        self._make = make
        self._llm: LLM | None = None

    def ask(self, body: bytes) -> Reply:
        self._llm = self._llm or self._make()
        return self._llm.ask(body)


def choose_model(
    model: str, gguf: Path | None, endpoint: str | None, api_key_env: str | None, text_calls: bool, timeout: int
) -> tuple[ModelFacts, Callable[[int | None, bool], LLM]]:
    """Return the model's facts and a function that opens it."""
    from warmstart.lab.models.facts import ModelFacts
    from warmstart.lab.models.local import LocalLLM, describe_weights, find_weights
    from warmstart.lab.models.text_calls import TextCalls

    if endpoint is not None:
        if gguf is not None:
            raise click.UsageError("--gguf and --endpoint are two models; give one")
        http = HttpLLM(Endpoint(url=endpoint, key=read_key(api_key_env), timeout=timeout))
        runtime = "endpoint, calls as text" if text_calls else "endpoint"
        facts = ModelFacts(name=model, runtime=runtime, endpoint=_name_endpoint(endpoint))
        return facts, lambda _threads, _grammar: TextCalls(http) if text_calls else http
    if api_key_env is not None or text_calls:
        raise click.UsageError("--api-key-env and --text-calls go with --endpoint")
    if gguf is None and model != _BUILT_IN:
        raise click.UsageError(f"there is no built-in model {model}; give --gguf FILE, or --endpoint URL")
    weights = gguf or find_weights()
    facts = describe_weights(weights, gguf.stem if gguf else _BUILT_IN)
    return facts, lambda threads, grammar: LocalLLM(weights, threads=threads, grammar=grammar)


def _name_endpoint(url: str) -> str:
    """Return the address in one spelling and without credentials; another server is another run."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2].lower()}{parts.path.rstrip('/')}"


def _name(plan: Plan) -> str:
    """Return the folder's name for a plan, so that different runs do not share one."""
    from msgspec.json import encode

    digest = hashlib.blake2b(encode(plan), digest_size=4).hexdigest()
    return f"{slug(plan.model.name)}-{len(plan.arms)}x{plan.tasks}-{digest}"


def _write_command(plan: Plan, given: dict[str, Any]) -> str:
    """Return the command that repeats the run. Paths are cut to their last part, because reports are passed around."""
    from warmstart.lab.run.agent import AgentLimits

    words = [
        "warmstart",
        "lab",
        "run",
        "--arms",
        ",".join(plan.arms),
        "--tasks",
        str(plan.tasks),
        "--random-seed",
        str(plan.random_seed),
    ]
    if plan.limits.turns != AgentLimits().turns:
        words += ["--turns", str(plan.limits.turns)]
    for name in ("answer_tokens", "temperature"):
        if given[name] not in (None, "0"):
            words += [f"--{name.replace('_', '-')}", str(given[name])]
    if given["gguf"]:
        words += ["--gguf", given["gguf"].name]
    elif given["endpoint"]:
        words += ["--endpoint", plan.model.endpoint, "--model", plan.model.name]
        words += ["--text-calls"] if given["text_calls"] else []
        words += ["--timeout", str(given["timeout"])] if given["timeout"] != _PATIENCE else []
    return shlex.join([*words, *(["--grammar"] if plan.grammar else [])])


def _write_report(lab: Lab, command: str) -> LabReport:
    from msgspec.json import encode

    from warmstart.atomic_files import write_whole
    from warmstart.doors.pages.lab import render_page
    from warmstart.lab.run.report import report_lab

    report = report_lab(lab, command, time.time())
    write_whole(lab.folder / "report.json", encode(report))
    write_whole(lab.folder / "report.html", render_page(report).encode())
    return report


def _show(report: LabReport, folder: Path, as_json: bool) -> None:
    if as_json:
        print_json(report)
        return
    from warmstart.doors.render.lab import show_lab

    show_lab(report)
    click.echo(f"Page: {clean(folder / 'report.html')}")


@lab.command("replay")
@click.argument("transcripts", nargs=-1, required=True, type=PATH)
@click.option("--endpoint", required=True, help="An OpenAI-compatible server; nothing is sent anywhere else.")
@click.option("--model", required=True, help="The model's name there.")
@click.option("--api-key-env", help="The environment variable with the server's key.")
@click.option(
    "--arms",
    default="cold,warm",
    show_default=True,
    help="cold,warm,mismatched also shows what any example does, fitting or not, for half as many requests more.",
)
@click.option("--out", type=PATH, help="Folder of the run; a stopped run in it goes on.")
@click.option(
    "--random-seed", type=int, default=1, show_default=True, help="Another number splits the sessions differently."
)
@click.option(
    "--turns", type=click.IntRange(1, 50), default=4, show_default=True, help="The model's answers per session."
)
@click.option("--limit", type=click.IntRange(1), help="Sessions to replay, at most.  [default: all]")
@click.option(
    "--examples", type=click.IntRange(1, 50), help="Examples in a seed, at most.  [default: as in config.toml]"
)
@click.option("--budget", type=click.IntRange(0), help="Tokens of a seed.  [default: as in config.toml]")
@asking_options
@json_option
@click.pass_obj
def run_replay(ws: Warmstart, /, transcripts: tuple[Path, ...], as_json: bool, **given: Any) -> None:
    """Send the first requests of recorded sessions to a model, cold and warm, and compare its calls with those that worked.

    TRANSCRIPTS are files or folders of your own agent. Nothing is executed: a call that matches the record gets the
    recorded result.
    """
    from warmstart.doors.render.replay import show_replay
    from warmstart.lab.replay.replay import ReplayPlan, ReplayStopped, replay

    settings = ws.settings
    plan = ReplayPlan(
        paths=tuple(map(str, transcripts)),
        model=given["model"],
        endpoint=given["endpoint"],
        arms=tuple(arm.strip() for arm in given["arms"].split(",") if arm.strip()),
        random_seed=given["random_seed"],
        turns=given["turns"],
        limit=given["limit"],
        examples=settings.examples if given["examples"] is None else given["examples"],
        budget=settings.budget if given["budget"] is None else given["budget"],
        request=_request(given["temperature"]),
    )
    llm = HttpLLM(Endpoint(url=given["endpoint"], key=read_key(given["api_key_env"]), timeout=given["timeout"]))
    folder = given["out"] or settings.home / "lab" / f"replay-{slug(given['model'])}"
    trouble: ReplayStopped | None = None
    try:
        with progress_bar("replay") as progress:
            report = replay(plan, llm, folder, settings=settings, clock=time.time, progress=progress)
    except ReplayStopped as stopped:
        trouble, report = stopped, stopped.report
    if as_json:
        print_json(report)
    else:
        show_replay(report)
        click.echo(f"Folder: {clean(folder)}")
    if trouble is not None:
        raise trouble
    if not report.finished:
        raise EndpointError("some sessions got no answer; run the same command to ask them again")


def _request(temperature: str) -> dict[str, Any]:
    if temperature == "none":
        return {}
    try:
        number = float(temperature)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):  # JSON has no other numbers
        raise click.UsageError(f"--temperature: give a number or none, not {temperature!r}")
    return {"temperature": number}


def slug(name: str) -> str:
    """Return a model's name as part of a folder name."""
    return "".join(sign if sign.isalnum() or sign in "._-" else "-" for sign in name)[:40].strip(".-") or "model"


def read_key(name: str | None) -> str:
    """Read the key from its environment variable; on the command line others would see it."""
    if name is None:
        return ""
    from warmstart.config import read_variable

    key = read_variable(name)
    if not key:
        raise ConfigError(f"--api-key-env: {name} is not set; export it with the key")
    if not (key.isascii() and key.isprintable()):  # a later error would show it
        raise ConfigError(f"--api-key-env: {name} holds no valid key; it must fit into one line of an HTTP header")
    return key
