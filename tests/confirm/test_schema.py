"""The served OpenAPI document against the running daemon, by schemathesis: no server error, no drift.

By default a few fixed examples per operation, alone and in sequence; WARMSTART_FULL=1 adds the coverage phase (hundreds
of boundary and invalid values) and fuzzes for minutes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from confirm.serving import House, send
from goldens import check_golden
from warmstart.confirm.desk.decide import DecisionRequest
from warmstart.confirm.errors import ConfirmationError
from warmstart.confirm.model import Identity

pytest.importorskip("schemathesis")
FULL = os.environ.get("WARMSTART_FULL") == "1"
WRITE = os.environ.get("WARMSTART_GOLDENS") == "write"
# Further answers to a valid request: too late, and an idempotency key used twice.
CONFIG = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 403, 404, 409, 410, 422, 429]
"""


@pytest.fixture
def busy(open_house: Callable[..., House]) -> Iterator[House]:
    """A daemon with a bot that decides, so that no long poll lasts."""
    house = open_house()
    ending = threading.Event()
    bot = Identity("bot", "bot", frozenset(["approver:decide"]), "bot")

    def decide() -> None:
        count = 0
        while not ending.wait(0.05):
            for request in house.desk.list_requests(
                status="pending", action=None, subject_key=None, limit=50, before=None
            ):
                count += 1
                try:
                    house.desk.decide(bot, request.id, DecisionRequest("approved" if count % 2 else "denied")).result()
                except ConfirmationError:
                    continue

    thread = threading.Thread(target=decide)
    thread.start()
    yield house
    ending.set()
    thread.join()


def run(url: str, headers: dict[str, str], seconds: int, folder: Path, *more: str) -> None:
    """Run schemathesis: for `seconds` with WARMSTART_FULL=1, else the same few examples each time. A time limit would end
    on a busy machine before it has tried them."""
    (folder / "schemathesis.toml").write_text(CONFIG)
    given = [part for name, value in headers.items() for part in ("-H", f"{name}: {value}")]
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(folder / "schemathesis.toml"), "run"]
    command += [f"{url}/openapi.json", *given, "--checks", "all", "--exclude-path", "/events", "--no-color"]
    short = ["--phases", "fuzzing,stateful", "--max-examples", "3", "--generation-deterministic"]
    command += [*(["--max-time", str(seconds)] if FULL else short), "--request-timeout", "90", *more]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=seconds + 300)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "passed" in done.stdout


@pytest.mark.slow
def test_the_api_is_what_its_document_says(busy: House, tmp_path: Path) -> None:
    run(busy.api, {"Authorization": f"Bearer {busy.admin}"}, 300, tmp_path)
    assert send(busy.api, "GET", "/health").status == 200


@pytest.mark.slow
def test_the_page_is_what_its_document_says(busy: House, tmp_path: Path) -> None:
    """By default only the page's own routes: the others are those of the API."""
    person = busy.log_in()
    # schemathesis sends the cookie with every request, even with those that should lack it
    unfit = "ignored_auth,missing_required_header,negative_data_rejection"
    routes = ("--exclude-path", "/logout") if FULL else ("--include-path", "/login", "--include-path", "/session")
    run(busy.page, person.secrets, 120, tmp_path, *routes, "--exclude-checks", unfit)
    assert person.call("GET", "/session").status == 200


def test_the_page_says_that_it_takes_two_secrets(house: House, open_house: Callable[..., House]) -> None:
    document = send(house.page, "GET", "/openapi.json").body
    schemes = document["components"]["securitySchemes"]
    assert (schemes["session"]["in"], schemes["session"]["name"]) == ("cookie", "warmstart_confirm")
    assert (schemes["csrf"]["in"], schemes["csrf"]["name"]) == ("header", "X-CSRF-Token")
    assert document["security"] == [{"session": [], "csrf": []}], "both, not one of them"
    assert "csrf_token" not in str(document["components"]["schemas"]["WhoView"])
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation.get("security") == [] or "403" in operation["responses"], (method, path)
    secure = send(open_house(public_url="https://box.example").local_page, "GET", "/openapi.json").body
    assert secure["components"]["securitySchemes"]["session"]["name"] == "__Host-warmstart_confirm"


def test_the_document_names_every_route_and_closes_every_body(house: House) -> None:
    document = send(house.api, "GET", "/openapi.json").body
    assert document["openapi"].startswith("3.")
    bodies = {
        part["schema"]["$ref"].rsplit("/", 1)[1]
        for methods in document["paths"].values()
        for operation in methods.values()
        for part in operation.get("requestBody", {"content": {}})["content"].values()
        if "$ref" in part["schema"]
    }
    assert {"SubmitBody", "ExecuteBody", "AllowBody"} <= bodies
    for name in (*bodies, "DecideBody"):
        assert document["components"]["schemas"][name]["additionalProperties"] is False
    assert document["paths"]["/health"]["get"]["security"] == []
    assert "text/event-stream" in document["paths"]["/confirm/{id}"]["get"]["responses"]["200"]["content"]
    for methods in document["paths"].values():
        for operation in methods.values():
            assert operation["description"]


def test_the_documents_are_as_approved(house: House) -> None:
    for name, port in (("api", house.api), ("page", house.page)):
        document = send(port, "GET", "/openapi.json").body
        document["info"].pop("version")
        document.pop("servers", None)
        check_golden(f"openapi-{name}.json", json.dumps(document, indent=1, sort_keys=True) + "\n")
