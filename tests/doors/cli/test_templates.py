"""The commands about templates, as a person or a program calls them."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from command_line import run, run_json
from hermes_databases import write_weather_chats
from places import SRC
from template_files import old_template, write_bundle
from transcripts import GITHUB, cart_sessions, work_lines, write_jsonl

LEARNED = {"name", "status", "category", "task_type", "examples", "sessions", "tokens"}
TASK = "fix the failing cart tests"


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    for lines in cart_sessions(3):
        write_jsonl(tmp_path / "in" / f"{lines[0]['sessionId']}.jsonl", lines)
    run("ingest", tmp_path / "in")
    return tmp_path / "in"


@pytest.fixture
def name(sessions: Path) -> str:
    return str(run_json("learn")["templates"][0]["name"])


def test_learn(sessions):
    first = run_json("learn")
    assert {"considered", "refused", "templates"} <= set(first)
    assert (first["considered"], first["refused"]) == (3, {})
    (template,) = first["templates"]
    assert set(template) >= LEARNED
    assert (template["status"], template["category"], template["examples"], template["sessions"]) == ("active", "coding", 1, 3)  # fmt: skip
    assert template["tokens"] > 0
    (again,) = run_json("learn")["templates"]
    assert again["change"] == "same"
    shown = run("learn").stdout
    assert "3 sessions considered" in shown
    assert template["name"] in re.sub(r"\s", "", shown) or template["name"][:12] in shown


def test_learn_filters(sessions):
    assert run_json("learn", "--agent", "codex")["considered"] == 0
    assert run_json("learn", "--since", "2026-10-02")["considered"] == 2
    assert run_json("learn", "--project", "/nowhere")["considered"] == 0
    assert run_json("learn", "--project", "/home/dev/shop")["considered"] == 3
    assert "Invalid value" in run("learn", "--since", "yesterday", code=2).stderr


def test_learn_limits(sessions):
    assert run_json("learn", "--min-calls", 99)["refused"] == {
        "fewer than 99 calls worked, and none corrects a failure": 3
    }
    assert run_json("learn", "--verdict", "success")["considered"] <= 3
    assert run("learn", "--max-error-rate", 2, code=2).stderr


def test_learn_without_anything_says_what_to_do():
    assert "warmstart ingest" in run("learn").stdout


def test_capture(sessions):
    made = run_json("capture", "cart-1", "--name", "mine", "--type", "file", "--max-examples", 2, "--description", "how we do it", "--tags", "a, b,")  # fmt: skip
    assert (made["name"], made["status"], made["examples"], made["task_type"]) == ("mine", "proposed", 1, "file")
    shown = run_json("templates", "show", "mine")
    assert (shown["description"], shown["tags"]) == ("how we do it", ["a", "b"])
    assert "templates approve" in run("capture", "cart-2").stdout
    assert run("capture", "nonsense", code=1).stderr.startswith("Error: ")
    assert run("capture", "cart", code=1).stderr.startswith("Error: cart matches several"), "a beginning that fits many"
    assert run("capture", "cart-1", "--name", "../x", code=1).stderr.count("\n") == 1
    for wrong in (("--type", "poetry"), ("--max-examples", "0"), ("--unknown", "x")):
        assert run("capture", "cart-1", *wrong, code=2).stderr
    assert run("capture", code=2).stderr


def test_capture_says_why_not(tmp_path):
    run("ingest", write_jsonl(tmp_path / "a.jsonl", work_lines("talk")))
    assert "no tool was called" in run("capture", "talk", code=1).stderr


def test_list_and_show(name):
    (one,) = run_json("templates", "list")
    assert {"name", "version", "status", "reason", "category", "task_type", "description", "tags", "examples", "sessions", "created", "used", "provenance"} <= set(one)  # fmt: skip
    assert (one["name"], one["version"], one["status"], one["examples"]) == (name, 1, "active", 1)
    for flag, value, fits in (
        ("--category", "coding", True),
        ("--category", "ops", False),
        ("--type", one["task_type"], True),
        ("--type", "research", False),
        ("--tags", f"nothing,{one['tags'][0]}", True),
        ("--tags", "nothing", False),
        ("--status", "retired", False),
    ):
        assert bool(run_json("templates", "list", flag, value)) == fits, (flag, value)
    assert "coding" in run("templates", "list").stdout
    assert "none of the templates (1 active) matches" in run("templates", "list", "--status", "retired").stdout
    shown = run_json("templates", "show", name)
    assert [decision["by"] for decision in shown["decisions"]] == ["policy:own-sessions"]
    assert {"tool", "arguments", "result", "intent", "why", "support"} <= set(shown["examples"][0])
    text = run("templates", "show", name).stdout
    assert "uv run pytest" in text
    assert "why:" in text
    assert run("templates", "show", "nonsense", code=1).stderr.startswith("Error: no template nonsense")
    assert run("templates", "show", f"{name}@9", code=1).stderr
    assert run("templates", "list", "--category", "x", code=2).stderr


def test_approve_and_retire(name):
    assert run_json("templates", "retire", name, "--reason", "for now") == {"retired": [f"{name}@1"]}
    assert run_json("templates", "list")[0]["reason"] == "for now"
    decision = run_json("templates", "approve", name, "--reason", "back again")
    assert (decision["status"], decision["by"], decision["reason"]) == ("active", "person", "back again")
    assert run("templates", "approve", name, code=1).stderr.startswith("Error: ")
    assert f"retired: {name}@1" in run("templates", "retire", "--from", "cart-2").stdout
    assert run("templates", "retire", "--from", "cart-2").stdout == "retired: nothing\n"
    assert f"{name}@1 is active" in run("templates", "approve", f"{name}@1").stdout
    for wrong in ((), (name, "--from", "cart-2")):
        assert "NAME or --from" in run("templates", "retire", *wrong, code=2).stderr
    assert run("templates", "retire", "nonsense", code=1).stderr
    assert run("templates", "approve", "nonsense", code=1).stderr


def test_delete_needs_a_yes(name):
    assert "--yes" in run("templates", "delete", name, code=2).stderr
    assert run_json("templates", "list")
    assert run("templates", "delete", "nonsense", "--yes", code=1).stderr
    assert run_json("templates", "delete", name, "--yes") == {"deleted": [f"{name}@1"]}
    assert run_json("templates", "list") == []


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "left"), [(b"n\n", 1), (b"y\n", 0)])
def test_delete_asks_on_a_terminal(name, answer, left):
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "warmstart", "templates", "delete", name],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": SRC},
    )
    os.write(ours, answer)
    _out, said = child.communicate(timeout=30)
    os.close(ours)
    os.close(theirs)
    assert b"delete every version" in said
    assert child.returncode == (1 if left else 0)
    assert len(run_json("templates", "list")) == left


def test_export_and_import(name, tmp_path):
    said = run("templates", "export", name).stdout
    assert [one["name"] for one in json.loads(said)["templates"]] == [name]
    file = tmp_path / "bundle.json"
    done = run("templates", "export", "--private", "-o", file)
    assert (done.stdout, "written" in done.stderr) == ("", True)
    elsewhere = ("--home", tmp_path / "elsewhere")
    imported_there = run_json(*elsewhere, "templates", "import", file)
    assert set(imported_there) == {"templates", "problems"}
    assert [(one["name"], one["status"]) for one in imported_there["templates"]] == [(name, "proposed")]
    assert run_json(*elsewhere, "templates", "import", file, "--approve")["templates"][0]["status"] == "active"
    again = json.loads(run(*elsewhere, "templates", "export", "--private").stdout)
    before = json.loads(file.read_text())
    for one in (*again["templates"], *before["templates"]):
        one["created"] = None
    assert again == before
    assert run("templates", "export", "nonsense", code=1).stderr
    assert run("templates", "export", "-o", tmp_path / "no" / "folder" / "x", code=1).stderr.startswith("Error: ")


def test_import_of_what_cannot_be_read(tmp_path):
    good = write_bundle(tmp_path / "good.json", old_template("good"))
    bad = tmp_path / "bad.json"
    bad.write_text("rubbish")
    both = run("templates", "import", bad, good)
    assert "good" in both.stdout
    assert "bad.json" in both.stderr
    assert "bad.json" in run("templates", "import", bad, code=1).stderr
    assert "no such file" in run("templates", "import", tmp_path / "missing.json", code=1).stderr
    assert run_json("templates", "import", bad, code=1)["problems"]
    assert run("templates", "import", code=2).stderr
    assert "Traceback" not in both.stderr


def test_stats(name):
    run("provision", TASK, "--session", "new-1", "--project", "/home/dev/shop")
    stats = run_json("templates", "stats")
    assert {"templates", "by_status", "by_category", "by_type", "examples", "uses", "provisions", "recent"} <= set(
        stats
    )
    assert (stats["templates"], stats["examples"], stats["uses"], stats["provisions"]) == (1, 1, 1, 1)
    assert stats["recent"][0]["session"] == "new-1"
    assert stats["recent"][0]["at"].endswith("+00:00")
    shown = run("templates", "stats").stdout
    assert "new-1" in shown
    assert "active 1" in shown


SEED = {"seed_id", "arm", "tokens", "budget", "templates", "omitted", "reason"}


def test_provision(name):
    preview = run_json("provision", TASK)
    assert set(preview) >= SEED | {"messages"}
    assert "text" not in preview
    assert (preview["arm"], preview["budget"], preview["templates"]) == (None, 1500, [f"{name}@1"])
    assert 0 < preview["tokens"] <= 1500
    text = run_json("provision", TASK, "--dialect", "text")
    assert set(text) >= SEED | {"text"}
    assert "messages" not in text
    first = run("provision", TASK, "--session", "new-1", "--json").stdout
    assert json.loads(first)["arm"] == "warm"
    assert run("provision", "other", "--session", "new-1", "--json").stdout == first
    assert run_json("provision", name)["templates"] == [f"{name}@1"]
    assert run_json("provision", "coding")["templates"] == [f"{name}@1"]
    assert run_json("provision")["templates"] == [f"{name}@1"]
    left = run_json("provision", TASK, "--tools", "Bash,nothing", "--budget", "1")
    assert (left["messages"], left["tokens"]) == ([], 0)
    assert set(left["omitted"][0]) == {"template", "reason"}
    for wish in (("--category", "ops"), ("--type", "research"), ("--tags", "x"), ("--tools", ""), ("--examples", "0"), ("--project", "/nowhere")):  # fmt: skip
        empty = run_json("provision", TASK, *wish)
        assert empty["messages"] == [], wish
        assert empty["reason"], wish
    shown = run("provision", TASK).stdout
    assert "why:" in shown and "preview (no trial)" in shown
    assert "uv run pytest" in shown
    assert "Recorded in earlier sessions" in run("provision", TASK, "--dialect", "text").stdout
    for dialect in ("anthropic", "responses", "gemini"):
        assert "uv run pytest" in run("provision", TASK, "--dialect", dialect).stdout
        assert run_json("provision", TASK, "--dialect", dialect)["messages"]


def test_provision_settings_and_usage(name):
    home = Path(os.environ["WARMSTART_HOME"])
    (home / "config.toml").write_text("budget = 333\nexamples = 1\n")
    seed = run_json("provision", TASK)
    assert seed["budget"] == 333
    assert sum("tool_calls" in message for message in seed["messages"]) == 1
    for wrong in (("--dialect", "x"), ("--budget", "-1"), ("--budget", "many"), ("--category", "x"), ("--unknown",)):
        assert run("provision", TASK, *wrong, code=2).stderr
    assert "empty" in run("provision", TASK, "--session", "", code=1).stderr


def test_a_corrupt_entry_is_told_and_the_rest_served(name, tmp_path):
    run("templates", "import", write_bundle(tmp_path / "a.json", old_template("fruit")), "--approve")
    db = apsw.Connection(str(Path(os.environ["WARMSTART_HOME"]) / "warmstart.db"))
    db.execute("UPDATE templates SET body = 'rubbish' WHERE name = ?", (name,))
    db.close()
    done = run("templates", "list", "--json")
    assert [one["name"] for one in json.loads(done.stdout)] == ["fruit"]
    assert "cannot be read" in done.stderr
    exported = run("templates", "export")
    assert [one["name"] for one in json.loads(exported.stdout)["templates"]] == ["fruit"]
    assert "cannot be read" in exported.stderr
    assert run_json("provision", "fruit")["messages"]
    assert run_json("provision", TASK)["messages"] == []
    assert "cannot be read" in run("templates", "show", name, code=1).stderr
    assert run_json("templates", "delete", name, "--yes")["deleted"], "what cannot be read can still be deleted"


def test_hostile_text_cannot_drive_the_terminal(tmp_path):
    hostile = old_template(
        "fine", description="\x1b]0;owned\x07 x", system_prompt_addendum="\x1b[31m\u202e", tags=["\x1b[2J"]
    )
    hostile["examples"][0] |= {
        "result": "\x1b[2J\x07",
        "context_hint": "\x1b[31mlist \u202efruit",
        "tool_name": "t\x1b[1m",
    }
    shown = run("templates", "import", write_bundle(tmp_path / "a.json", hostile), "--approve").stdout
    for words in (("list",), ("show", "fine"), ("stats",)):
        shown += run("templates", *words).stdout
    shown += run("provision", "fine").stdout + run("provision", "fine", "--dialect", "text").stdout
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", shown)


def test_no_secret_is_printed(tmp_path):
    example = {"tool_name": "t", "arguments": {"x": GITHUB}, "result": GITHUB, "success": True}
    path = write_bundle(tmp_path / "a.json", old_template("x", description=GITHUB, examples=[example]))
    said = run("templates", "import", path, "--approve").stdout
    for words in (("list", "--json"), ("show", "x"), ("show", "x", "--json"), ("export",), ("export", "--private")):
        said += run("templates", *words).stdout
    said += run("provision", "x", "--json", "--session", GITHUB).stdout + run("templates", "stats").stdout
    assert GITHUB not in said


def test_build(sessions):
    built = run_json(
        "templates", "build", "carts", "--description", "cart tests", "--tags", "cart,tests", "--addendum", "Use pytest.",
        "--source", "claude-code", "--max-sessions", "2",
    )  # fmt: skip
    assert (built["considered"], built["template"]["sessions"], built["template"]["status"]) == (2, 2, "active")
    shown = run_json("templates", "show", "carts")
    assert (shown["tags"], shown["addendum"]) == (["cart", "tests"], "Use pytest.")
    assert "carts@" in run("templates", "build", "carts", "--min-messages", "1").stdout
    about = run("templates", "build", "x", "--description", "bake a cake", code=1).stderr
    assert "none of 3 sessions is about 'bake a cake'" in about and "warmstart sessions list" in about
    assert "their sources: none yet" in run("templates", "build", "x", "--source", "fax", code=1).stderr


def test_build_of_one_project(sessions, tmp_path):
    """A template is of one project; the sessions of another are named, not dropped silently."""
    for lines in cart_sessions(2):
        moved = json.loads(json.dumps(lines).replace("/home/dev/shop", "/home/dev/bakery").replace("cart-", "bread-"))
        write_jsonl(tmp_path / "more" / f"{moved[0]['sessionId']}.jsonl", moved)
    run("ingest", tmp_path / "more")
    both = run_json("templates", "build", "most")
    assert (both["considered"], both["template"]["sessions"]) == (5, 3)
    assert both["refused"] == {"of another project than most: /home/dev/bakery": 2}
    own = run_json("templates", "build", "breads", "--project", "bakery")
    assert (own["considered"], own["template"]["sessions"], own["refused"]) == (2, 2, {})
    assert "of the project /nowhere" in run("templates", "build", "x", "--project", "/nowhere", code=1).stderr


def test_what_a_person_sees_of_an_older_file(sessions, tmp_path):
    old = old_template("older") | {"source_session": "cart-1", "usage_count": 17, "created_at": "2025-03-04T05:06:07Z"}
    old["tags"] = ["shop", "old"]
    run("templates", "import", write_bundle(tmp_path / "old.json", old))
    (listed,) = run_json("templates", "list")
    assert (listed["used"], listed["sessions"], listed["created"]) == (17, 1, "2025-03-04T05:06:07+00:00")
    table = " ".join(run("templates", "list").stdout.split())
    assert "17" in table and "shop, old" in table and "cart-1" in table
    assert [source["id"] for source in listed["sources"]] == ["cart-1"]
    shown = run("templates", "show", "older").stdout
    assert "tags: shop, old" in shown and "used 17 times" in shown and "created 2025-03-04" in shown
    assert "cart-1 (claude-code)" in shown, "by the id that a person typed"
    assert run_json("templates", "show", "older")["sources"][0]["id"] == "cart-1"


def test_learn_from_one_source(tmp_path):
    write_weather_chats(tmp_path / "state.db", 3)
    run("ingest", tmp_path / "state.db")
    assert run_json("learn", "--source", "cli")["considered"] == 0
    learned = run_json("learn", "--source", "Telegram")
    assert (learned["considered"], learned["templates"][0]["sessions"]) == (3, 3)
    listed = run_json("sessions", "list", "--source", "telegram")
    assert [session["source"] for session in listed] == ["telegram"] * 3
    assert run_json("sessions", "list", "--source", "cli") == []
