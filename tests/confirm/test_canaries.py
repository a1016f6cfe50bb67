"""Secrets sent in every field and to every route appear nowhere: not in files, answers or the log."""

from __future__ import annotations

import json
import logging
import random
import string
import subprocess
import sys
from typing import Any

import pytest

from confirm.serving import House

pytestmark = pytest.mark.slow


def make_canary(dice: random.Random) -> str:
    return "ghp_" + "".join(dice.choices(string.ascii_letters + string.digits, k=36))


def test_no_secret_is_kept_or_shown(open_house, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    dice = random.Random(3)
    own = "correct-horse-battery-staple"
    canaries = {name: make_canary(dice) for name in ("details", "key", "description", "requester", "session", "reason")}
    canaries |= {"whitelist": make_canary(dice), "nested": make_canary(dice), "execute": make_canary(dice), "own": own}
    house = open_house(secrets={"SHOP_PASSWORD": own})
    body: dict[str, Any] = {
        "action": "delete_data",
        "description": f"use {canaries['description']} and {own}",
        "details": {
            "token": canaries["details"],
            canaries["key"]: 1,
            "deep": [{"env": f"GITHUB_TOKEN={canaries['nested']} {own}"}],
            "password": "hunter2!",
        },
        "requester": canaries["requester"],
        "session_key": canaries["session"],
    }
    receipt = house.submit(body, headers={"Idempotency-Key": "k"}).body
    id = receipt["id"]
    house.call("POST", "/whitelist", {"action": "x", "session_key": canaries["whitelist"]}, house.admin)
    house.approve(id, body={"reason": f"because {canaries['reason']}"})
    shown = house.get(id)
    wrong = {"token": "x", "action": "delete_data", "details": {"token": canaries["execute"]}}
    house.execute(id, wrong)
    done = house.execute(id, {"token": shown["execution"]["token"], **{k: body[k] for k in ("action", "details")}})
    assert done.status == 200, "the exact details are what was approved"
    assert shown["masked"] >= 4
    answers = [
        receipt,
        shown,
        house.call("GET", "/confirm", token=house.approver).body,
        house.audit(),
        house.call("GET", "/whitelist", token=house.admin).body,
    ]
    outputs = json.dumps(answers) + caplog.text
    house.stop()
    data = b"".join(file.read_bytes() for file in house.database.parent.iterdir())
    house.start()
    for name, canary in {**canaries, "password": "hunter2!"}.items():
        assert canary not in outputs, name
        assert canary.encode() not in data, name
        assert canary[4:20].encode() not in data, name


def test_tokens_of_the_daemon_are_in_no_answer_or_file(house: House, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    person = house.log_in()
    id = house.submit().body["id"]
    person.call("POST", f"/confirm/{id}/approve")
    outputs = json.dumps([house.audit(), house.get(id, house.approver)]) + caplog.text
    execution = house.get(id)["execution"]["token"]
    house.stop()
    data = b"".join(file.read_bytes() for file in house.database.parent.iterdir())
    house.start()
    for secret in (house.agent, house.approver, house.admin, person.cookie.partition("=")[2], person.csrf, execution):
        assert secret not in outputs
        assert secret.encode() not in data


def test_the_first_secrets_are_masked_whoever_comes_first() -> None:
    """Rules are compiled on first use; a second thread must not find an incomplete set."""
    code = """
import sys, threading
from warmstart.confirm.masking.masker import Masker
sys.setswitchinterval(1e-6)
masker, start, shown = Masker(), threading.Barrier(12), []
def mask(n):
    start.wait()
    shown.append(masker.mask_details({"note": "use ghp_" + "a1B2c3D4" * 4 + f"{n:04d}", "password": "hunter2!"})[0])
threads = [threading.Thread(target=mask, args=(n,)) for n in range(12)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sum("a1B2c3D4" in text or "hunter2" in text for text in shown), len(shown))
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert (done.stdout.split(), done.stderr) == (["0", "12"], "")
