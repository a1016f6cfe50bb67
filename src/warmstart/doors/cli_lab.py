"""`warmstart lab`: try on a real model whether seeds help, before trusting them with one's own agent."""

from __future__ import annotations

import hashlib
import shlex
import time
from pathlib import Path
from typing import Any

import click

from warmstart.doors.cli import PATH, json_option
from warmstart.doors.show import clean, print_json, progress_bar
from warmstart.errors import ConfigError
from warmstart.lab.agent import Limits
from warmstart.lab.local_model import SMOLLM2, LocalLLM, describe_weights, find_weights
from warmstart.lab.reporting import report_lab
from warmstart.lab.running import ARMS, Lab, Plan, clear, write_whole
from warmstart.lab.summary import LabReport, ModelFacts
from warmstart.llm import LLM, Endpoint, EndpointError, HttpLLM
from warmstart.pipeline import Warmstart

_SHORT = 20  # tasks of a first look


@click.group()
def lab() -> None:
    """The same tasks with a real model, cold against warm. Offline with the model that `warmstart[lab]` brings."""


def model_options(command: Any) -> Any:
    """Which model is asked."""
    for option in reversed(
        (
            click.option(
                "--model", default=SMOLLM2, show_default=True, help="With --endpoint: what it calls the model."
            ),
            click.option(
                "--gguf", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Another local model."
            ),
            click.option("--endpoint", help="An OpenAI-compatible server, like http://127.0.0.1:8080/v1."),
            click.option("--api-key-env", help="Name of the environment variable with its key."),
        )
    ):
        command = option(command)
    return command


@lab.command()
@click.option("--arms", default="cold,warm", show_default=True, help=f"Of {', '.join(ARMS)}.")
@click.option(
    "--tasks", type=click.IntRange(1, 1_000), default=_SHORT, show_default=True, help="Tasks, each in every arm."
)
@click.option(
    "--seed", type=int, default=1, show_default=True, help="Another seed makes other tasks of the same families."
)
@click.option("--turns", type=click.IntRange(1, 20), default=3, show_default=True, help="Answers a session has.")
@click.option("--grammar", is_flag=True, help="Let a local model say nothing but a valid call, in every arm.")
@click.option("--threads", type=click.IntRange(1, 64), help="Of a local model.  [default: one a free core]")
@click.option("--out", type=PATH, help="Folder of the run: transcripts, store, report.json, report.html.")
@click.option("--fresh", is_flag=True, help="Forget what the folder has, instead of going on where it stopped.")
@model_options
@json_option
@click.pass_obj
def run(ws: Warmstart, /, arms: str, out: Path | None, fresh: bool, as_json: bool, **given: Any) -> None:
    """Run the lab. A run that was stopped goes on where it was."""
    facts, open_llm = choose_model(ws, **{name: given[name] for name in ("model", "gguf", "endpoint", "api_key_env")})
    if given["grammar"] and given["endpoint"]:
        raise click.UsageError("--grammar works with local models only; leave it out with --endpoint")
    plan = Plan(
        arms=tuple(arm.strip() for arm in arms.split(",") if arm.strip()),
        tasks=given["tasks"],
        seed=given["seed"],
        model=facts,
        grammar=given["grammar"],
        limits=Limits(turns=given["turns"]),
    )
    plan.check()
    folder = out or ws.settings.home / "lab" / _name(plan)
    if fresh:
        clear(folder)
    made = Lab(folder, plan, _Late(lambda: open_llm(given["threads"], given["grammar"])))
    trouble: EndpointError | None = None
    try:
        with progress_bar("lab") as progress:
            made.run(progress)
    except EndpointError as error:
        trouble = error
    finally:
        report = _finish(made, _command(plan, given, out)) if made.ws.experiments.list() else None
        made.close()
    if report is not None:
        _show(report, folder, as_json)
    if trouble is not None:
        done = report.done if report else 0
        raise EndpointError(
            f"{trouble}; {done} sessions are kept, and the same command goes on from there"
        ) from trouble


class _Late:
    """A model that is loaded when first asked: showing a finished run again needs none."""

    def __init__(self, make: Any) -> None:
        self._make = make
        self._llm: LLM | None = None

    def ask(self, body: bytes) -> Any:
        self._llm = self._llm or self._make()
        return self._llm.ask(body)


def choose_model(ws: Warmstart, model: str, gguf: Path | None, endpoint: str | None, api_key_env: str | None) -> Any:
    """Facts of the model, and a function that opens it."""
    if endpoint is not None:
        if gguf is not None:
            raise click.UsageError("--gguf and --endpoint are two models; give one")
        key = ws.settings.secrets.get(api_key_env or "", "") or read_key(api_key_env)
        http = HttpLLM(Endpoint(url=endpoint, key=key))
        return ModelFacts(name=model, runtime="endpoint"), lambda _threads, _grammar: http
    if api_key_env is not None:
        raise click.UsageError("--api-key-env goes with --endpoint")
    if gguf is None and model != SMOLLM2:
        raise click.UsageError(f"there is no built-in model {model}; give --gguf FILE, or --endpoint URL")
    weights = gguf or find_weights()
    facts = describe_weights(weights, gguf.stem if gguf else SMOLLM2)
    return facts, lambda threads, grammar: LocalLLM(weights, threads=threads, grammar=grammar)


def _name(plan: Plan) -> str:
    """One folder a plan, so that runs do not meet by accident."""
    digest = hashlib.blake2b(repr(plan).encode(), digest_size=4).hexdigest()
    return f"{plan.model.name.replace('/', '-')[:40]}-{len(plan.arms)}x{plan.tasks}-{digest}"


def _command(plan: Plan, given: dict[str, Any], out: Path | None) -> str:
    """What a person types to get the same. Paths are told by their last part: a report may be shown around."""
    words = [
        "warmstart",
        "lab",
        "run",
        "--arms",
        ",".join(plan.arms),
        "--tasks",
        str(plan.tasks),
        "--seed",
        str(plan.seed),
    ]
    if plan.limits.turns != Limits().turns:
        words += ["--turns", str(plan.limits.turns)]
    if given["gguf"]:
        words += ["--gguf", given["gguf"].name]
    elif given["endpoint"]:
        words += ["--endpoint", given["endpoint"], "--model", plan.model.name]
    return shlex.join([*words, *(["--grammar"] if plan.grammar else [])])


def _finish(made: Lab, command: str) -> LabReport:
    from msgspec.json import encode

    from warmstart.doors.lab_page.page import render_page

    report = report_lab(made, command, time.time())
    write_whole(made.folder / "report.json", encode(report))
    write_whole(made.folder / "report.html", render_page(report).encode())
    return report


def _show(report: LabReport, folder: Path, as_json: bool) -> None:
    if as_json:
        print_json(report)
        return
    from warmstart.doors.show_lab import show_lab

    show_lab(report)
    click.echo(f"Page: {clean(folder / 'report.html')}")


def read_key(name: str | None) -> str:
    """The key, by the name of its variable: never on the command line, where others see it."""
    if name is None:
        return ""
    from warmstart.config import read_variable

    key = read_variable(name)
    if not key:
        raise ConfigError(f"--api-key-env: the environment has no {name}")
    return key
