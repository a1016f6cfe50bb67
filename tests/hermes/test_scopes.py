"""Twelve scopes in the real Hermes, each with a canary: three projects, two profiles, two people of a gateway."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from hermes.running import Hermes
from hermes.scripted_server import Answer, Call, ScriptedServer

pytestmark = pytest.mark.slow

RUNS = Path(__file__).with_name("scopes_runs.py")
SCOPES = ["-".join(scope) for scope in product(("shop", "farm", "bank"), ("default", "work"), ("ann", "ben"))]


def work(canary: str) -> Any:
    """Return a script that calls the terminal once, with the canary."""

    def script(body: dict[str, Any]) -> Answer:
        if not body.get("messages") or body["messages"][-1]["role"] == "tool":  # Hermes also asks about the model
            return Answer("There are 17.")
        return Answer(calls=[Call("terminal", {"command": f"echo 17 open orders canary-{canary}"})])

    return script


@pytest.fixture(scope="module")
def played(hermes_venv: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Hermes, dict[str, Any]]]:
    server = ScriptedServer()
    server.scenes = {f"past-{canary}": work(canary) for canary in SCOPES}
    hermes = Hermes(hermes_venv, tmp_path_factory.mktemp("scopes"), server)
    yield hermes, hermes.script(RUNS, server.url)
    server.close()


@pytest.mark.parametrize("canary", SCOPES)
def test_no_canary_crosses(played: tuple[Hermes, dict[str, Any]], canary: str) -> None:
    hermes, told = played
    (request,) = hermes.server.asked(f"now-{canary}")
    shown = json.dumps([request.body, told[canary]])
    assert {other for other in SCOPES if f"canary-{other}" in shown or f"orders {other}" in shown} == {canary}
    assert f"canary-{canary}" in json.dumps(request.body), "its own work is there"
    assert len(told[canary]["listed"]) == 1 and canary in told[canary]["listed"][0]


def test_every_trial_has_its_project_and_scope(played: tuple[Hermes, dict[str, Any]]) -> None:
    hermes, told = played
    facts = {trial.session: json.loads(trial.task) for trial in hermes.trials()}
    now = {canary: facts[told[canary]["session"]] for canary in SCOPES}
    assert {Path(one["project"]).name for one in now.values()} == {"shop", "farm", "bank"}
    assert len({one["scope"] for one in now.values()}) == 4
    assert not any(person in json.dumps(facts) for person in ("ann", "ben")), "ids of people are hashed"
