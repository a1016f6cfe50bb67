"""`warmstart projects`."""

from __future__ import annotations

import warmstart
from command_line import run, run_json
from transcripts import TEST as CALL
from transcripts import teach, work_lines


def ingest_two() -> None:
    with warmstart.open() as ws:
        teach(
            ws, work_lines("a", CALL, CALL, cwd="/home/ann/shop"), work_lines("b", CALL, cwd="/home/ann/store", day=2)
        )


def test_an_empty_list_says_the_next_step():
    assert run("projects", "list").stdout == "no projects; run: warmstart ingest\n"
    assert run_json("projects", "list") == []


def test_list_merge_alias_and_split():
    ingest_two()
    rows = run_json("projects", "list")
    assert [(row["project"], row["sessions"], row["folders"], row["by"]) for row in rows] == [
        ("/home/ann/store", 1, ["/home/ann/store"], "folder"),
        ("/home/ann/shop", 1, ["/home/ann/shop"], "folder"),
    ]
    assert rows[0]["last_seen"].startswith("2026-10-02T")
    assert run_json("projects", "merge", "shop", "store", "--yes")["moved"] == 1
    assert [row["project"] for row in run_json("sessions", "list", "--project", "shop")] == ["/home/ann/shop"] * 2
    assert "belongs to the project /home/ann/shop" in run("projects", "alias", "till", "shop").stdout
    assert len(run_json("sessions", "list", "--project", "till")) == 2
    assert run_json("projects", "list")[0]["names"] == ["/home/ann/store", "till"]
    assert run_json("projects", "split", "/home/ann/store")["moved"] == 1
    assert "/home/ann/store" in run("projects", "list").stdout


def test_merging_asks_unless_told():
    ingest_two()
    assert "add --yes" in run("projects", "merge", "shop", "store", code=2).stderr
    assert len(run_json("projects", "list")) == 2


def test_scopes_of_an_unknown_project_are_an_error():
    ingest_two()
    assert run_json("projects", "scopes", "shop")
    assert "no project 'nope'" in run("projects", "scopes", "nope", code=1).stderr


def test_usage_and_insights_take_the_end_of_a_name():
    ingest_two()
    assert run_json("usage", "--by", "project", "--project", "shop")["rows"][0]["name"] == "/home/ann/shop"
    assert run_json("insights", "--project", "shop")
    assert "several projects" not in run("learn", "--project", "shop").stderr
