"""Scheduled jobs in the files of a sealed Hermes home, and Warmstart's commands about them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from click.testing import CliRunner

from hermes.running import TASK, Hermes
from warmstart.doors.cli.main import main

SETTINGS = """
model: {{default: {model}, provider: custom, base_url: "{url}/v1", api_key: none{more}}}
security: {{allow_lazy_installs: false}}
plugins: {{enabled: [warmstart]}}
auxiliary: {{title_generation: {{enabled: false}}}}
"""
LISTED = 'custom_providers: [{{name: lab, base_url: "{url}/v1", models: {{small: {{context_length: 32768}}}}}}]\n'


def configure(hermes: Hermes, model: str, more: str = "", providers: str = "") -> None:
    url = hermes.server.url
    text = SETTINGS.format(model=model, url=url, more=more) + providers.format(url=url)
    (hermes.home / "config.yaml").write_text(text)


def write_jobs(hermes: Hermes, models: dict[str, str], prompts: dict[str, str]) -> None:
    """Write jobs as `hermes cron create` does, all of them due now."""
    now = datetime.now(UTC).isoformat()
    schedule = {"kind": "interval", "minutes": 60, "display": "every 60m"}
    job = {"schedule": schedule, "enabled": True, "state": "scheduled", "deliver": "local", "next_run_at": now}
    jobs = [
        job | {"id": id, "name": id, "model": model, "prompt": prompts.get(id, TASK), "created_at": now}
        for id, model in models.items()
    ]
    (hermes.home / "cron").mkdir(exist_ok=True)
    (hermes.home / "cron" / "jobs.json").write_text(json.dumps({"jobs": jobs}))


def run_outside(hermes: Hermes, *words: str) -> dict[str, Any]:
    """`warmstart ...` where no Hermes is installed."""
    done = CliRunner().invoke(main, [*words, "--json"], env={**hermes.environ, "WARMSTART_INSIDE": ""})
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    assert isinstance(answer, dict)
    return answer


def read_jobs(hermes: Hermes) -> dict[str, dict[str, Any]]:
    return {job["id"]: job for job in json.loads((hermes.home / "cron" / "jobs.json").read_text())["jobs"]}
