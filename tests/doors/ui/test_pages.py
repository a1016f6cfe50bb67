"""Every page and its JSON: the same as the command line prints; faults of the store are shown, and the rest works."""

from __future__ import annotations

import json
import threading
from importlib import util
from pathlib import Path
from typing import Any

import apsw
import httpx
import pytest
from click.testing import CliRunner
from msgspec import structs

from ui_home import SAMPLES, log_in, make_call, make_session, make_settings
from warmstart.doors.cli.main import main
from warmstart.doors.ui.server import UiServer
from warmstart.pipeline import Warmstart


def run(server: UiServer, *words: str) -> list[Any]:
    """Return the JSON lines that a command prints on the server's home."""
    home = str(server.parts.stores.settings.home)
    done = CliRunner().invoke(main, ["--home", home, *words, "--json"])
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/sessions.json?q=pytest", ("sessions", "list", "--search", "pytest")),
        (
            "/sessions.json?verdict=success&agent=codex",
            ("sessions", "list", "--verdict", "success", "--agent", "codex"),
        ),
        ("/errors.json", ("insights",)),
        ("/errors/1.json", ("insights", "--show", "1")),
        ("/templates.json", ("templates", "list")),
        ("/usage.json?by=model", ("usage", "--by", "model")),
        ("/projects.json", ("projects", "list")),
    ],
)
def test_pages_say_what_commands_print(
    server: UiServer, owner: httpx.Client, path: str, words: tuple[str, ...]
) -> None:
    shown = owner.get(path).json()
    (printed,) = run(server, *words)
    for listed in printed if words[0] == "templates" else ():
        del listed["sources"]  # the page about one template lists them
    assert (shown["sessions"] if path.startswith("/sessions") else shown) == printed
    assert printed


def test_notes_and_effects_too(server: UiServer, owner: httpx.Client) -> None:
    assert owner.get("/notes.json").json() == run(server, "notes", "list")
    note = owner.get("/notes.json").json()[0]["id"]
    assert [owner.get(f"/notes/{note}.json").json()] == run(server, "notes", "show", note)
    effect = owner.get("/effect/october.json").json()
    (printed,) = run(server, "report", "october")
    for name in ("report", "templates", "outlook", "notes"):
        assert effect[name] == printed[name]
    assert effect["courses"][0]["looks"][-1]["low"] == printed["report"]["effects"][0]["low"]
    name = owner.get("/templates.json").json()[0]["name"]
    assert [owner.get(f"/templates/{name}.json").json()] == run(server, "templates", "show", name)


def test_a_session_is_shown_with_each_call(server: UiServer, owner: httpx.Client) -> None:
    key = owner.get("/sessions.json").json()["sessions"][0]["key"]
    shown = owner.get(f"/sessions/{key}.json").json()
    (printed,) = run(server, "sessions", "show", key)
    assert {name: shown[name] for name in printed} == printed
    page = owner.get(f"/sessions/{key}").text
    for call in printed["tool_calls"]:
        assert f'id="call-{call["ordinal"]}"' in page
    assert "known by" in page and "cost" in page
    errors = owner.get(f"/sessions/{key}?errors=1").text
    assert errors.count('id="call-') == sum(call["outcome"] == "error" for call in printed["tool_calls"])


def test_a_session_says_what_it_was_shown(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    with Warmstart(settings) as ws:
        ws.ingest(SAMPLES)
        ws.learn()
        row, note = ws.sessions()[0], ws.notes.list()[0]
        with ws.store.writing():
            ws.store.run("put_showing", (note.id, row.id, "tell", row.started))
    with UiServer(settings, port=0) as server, log_in(server) as client:
        page = client.get(f"/sessions/{row.key}").text
        assert "What it was shown" in page and note.id in page and "before a call" in page


def test_a_project_is_shared_and_taken_back_by_recorded_decisions(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    with Warmstart(settings) as ws:
        for number, scope in enumerate(("", "", "profile:work", "profile:work")):
            row = make_session(number, "do it", scope=scope)
            call = make_call(row, 0, f"open: of-{scope[8:] or 'mine'}.txt: No such file", words=None, findings=None)
            ws.store.put_session(row, [call], [])
        ws.learn()
        before = {note.id: note.scope for note in ws.notes.list()}
        assert set(before.values()) == {"", "profile:work"}
    project, scope = "/srv/shop", "profile:work"
    with UiServer(settings, port=0) as server, log_in(server) as client:
        address = "/projects/%2Fsrv%2Fshop"
        page = client.get(address).text
        assert "Share those of profile:work" in page and "Share those of own" in page
        (printed,) = run(server, "projects", "scopes", project)
        assert client.get(f"{address}.json").json()["scopes"] == printed
        assert {one["scope"]: one["sessions"] for one in printed} == {"": 2, scope: 2}
        body = {"project": project, "scope": scope, "reason": "one team"}
        assert "shared" in client.post("/do/projects/share", json=body).json()["said"]
        nothing = client.post("/do/projects/share", json=body)
        assert nothing.status_code == 400 and "to share" in nothing.json()["error"]
        notes = {one["id"]: one for one in client.get("/notes.json").json()}
        assert all((notes[id]["scope"] == "*") == (own == scope) for id, own in before.items())
        shared = next(id for id, own in before.items() if own == scope)
        last = client.get(f"/notes/{shared}.json").json()["decisions"][-1]
        assert last["by"] == "person" and last["reason"] == "shared: one team"
        assert "Keep it to its scope again" in client.get(f"/notes/{shared}").text
        (change,) = run(server, "projects", "unshare", project)
        assert set(change["notes"]) == {id for id, own in before.items() if own == scope}
        assert {one["id"]: one["scope"] for one in client.get("/notes.json").json()} == before, "each in its own scope"
        assert client.get("/projects/nowhere").status_code == 404


def test_a_note_lists_the_sessions_that_met_it(server: UiServer, owner: httpx.Client) -> None:
    note = next(one for one in owner.get("/notes.json").json() if one["support"] > 1 and one["kind"] != "works")
    shown = owner.get(f"/notes/{note['id']}.json").json()
    assert shown["met"]
    page = owner.get(f"/notes/{note['id']}").text
    for session in shown["met"]:
        assert f'href="/sessions/{session}"' in page
        assert owner.get(f"/sessions/{session}").is_success
    printed = CliRunner().invoke(main, ["--home", str(server.parts.stores.settings.home), "notes", "show", note["id"]])
    assert f"met by     {shown['met'][0]}" in printed.output


@pytest.mark.parametrize(
    ("path", "status", "why"),
    [
        ("/nothing", 404, "no page"),
        ("/sessions/ffffff", 404, "no session"),
        ("/notes/ffffff", 404, "no note"),
        ("/templates/nope", 404, "no template"),
        ("/effect/nope", 404, "nope"),
        ("/errors?since=yesterday", 400, "neither a number of days nor a date"),
        ("/sessions?since=yesterday", 400, "neither a number of days nor a date"),
        ("/sessions?verdict=maybe", 400, "maybe"),
        ("/sessions?offset=-1", 400, "offset"),
        ("/sessions?q=---", 400, "no word"),
        ("/usage?by=moon", 400, "moon"),
        ("/notes?status=odd", 400, "odd"),
    ],
)
def test_wrong_addresses_are_explained(owner: httpx.Client, path: str, status: int, why: str) -> None:
    place, _, query = path.partition("?")
    for address in (path, f"{place}.json?{query}"):
        answer = owner.get(address)
        assert answer.status_code == status, address
        assert why in answer.text
        has_form = place in ("/sessions", "/errors") and status == 400 and address == path
        assert ('class="filter"' in answer.text) == has_form, "what was asked for can be corrected"


def test_a_row_that_is_not_there(owner: httpx.Client) -> None:
    answer = owner.get("/errors/99.json")
    assert answer.status_code == 404 and "row 99" in answer.text
    assert owner.get("/errors/99").status_code == 404, "computed by now"
    assert owner.get("/errors/x").status_code == 404


def damage(path: Path) -> None:
    body = bytearray(path.read_bytes())
    body[4096:] = b"\xde\xad" * ((len(body) - 4096) // 2)
    path.write_bytes(body)


def make_newer(path: Path) -> None:
    db = apsw.Connection(str(path))
    db.pragma("user_version", 999)
    db.close()


@pytest.mark.parametrize(("spoil", "why"), [(damage, "damaged"), (make_newer, "newer Warmstart")])
def test_a_store_that_cannot_be_read_is_named_and_the_rest_works(tmp_path: Path, spoil: Any, why: str) -> None:
    settings = make_settings(tmp_path)
    with Warmstart(settings) as ws:
        ws.ingest(SAMPLES)
        ws.learn()
        path = ws.store.path
    spoil(path)
    with UiServer(settings, port=0) as server, log_in(server) as client:
        for section in ("", "sessions", "notes", "errors", "effect", "usage"):
            answer = client.get(f"/{section}")
            assert answer.status_code == 503, section
            assert why in answer.text and "<nav" in answer.text
        settings_page = client.get("/settings")
        assert settings_page.status_code == 200 and why in settings_page.text and "Hooks" in settings_page.text
        assert client.get("/assets/ui.js").status_code == 200
        refused = client.post("/do/notes/approve", json={"note": "a"})
        assert refused.status_code == 503 and why in refused.json()["error"]


def test_pages_are_read_while_another_process_writes(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    with Warmstart(settings) as ws:
        ws.ingest(SAMPLES)
        ws.learn()
        note = ws.notes.list(status="proposed")[0]
        path = ws.store.path
    with UiServer(settings, port=0, patience=0.2) as server, log_in(server) as client:
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")
        assert client.get("/notes").status_code == 200
        assert client.get("/sessions?q=pytest").status_code == 200
        busy = client.post("/do/notes/approve", json={"note": note.id})
        assert busy.status_code == 503 and "busy" in busy.json()["error"]
        other.execute("ROLLBACK")
        other.close()
        assert client.post("/do/notes/approve", json={"note": note.id}).status_code == 200
        assert client.get(f"/notes/{note.id}.json").json()["status"] == "active"


def test_decisions_are_recorded_with_their_reasons(tmp_path: Path) -> None:
    settings = structs.replace(make_settings(tmp_path), secrets={"KEY": "hunter2-hunter2-hunter2"})
    with Warmstart(settings) as ws:
        ws.ingest(SAMPLES)
        ws.learn()
        note, template = ws.notes.list(status="proposed")[0], ws.templates.find("proposed")[0][0]
    with UiServer(settings, port=0) as server, log_in(server) as client:
        why = "the file has moved, said hunter2-hunter2-hunter2"
        assert client.post(
            "/do/notes/edit", json={"note": note.id, "text": "It moved to lib/", "reason": why}
        ).is_success
        assert client.post("/do/notes/retire", json={"note": note.id}).status_code == 400, "a reason is needed"
        assert client.post("/do/notes/retire", json={"note": note.id, "reason": "wrong"}).is_success
        assert client.get(f"/notes/{note.id}.json").is_success  # waits until it is computed
        page = client.get(f"/notes/{note.id}").text
        assert "the file has moved" in page and "retired: wrong" in page and "hunter2" not in page
        assert "<del>" in page and "<ins>" in page, "the change of the sentence is shown"
        name = f"{template.name}@{template.version}"
        assert client.post("/do/templates/approve", json={"template": name, "reason": "good"}).is_success
        assert client.get(f"/templates/{name}.json").json()["status"] == "active"
        again = client.post("/do/templates/approve", json={"template": name})
        assert again.status_code == 400 and "already active" in again.json()["error"]
    with Warmstart(settings) as ws:
        decisions = ws.notes.show(note.id).decisions
        assert [one.by for one in decisions[-2:]] == ["person", "person"]


def test_work_goes_on_without_the_page(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    folder = settings.user_home / ".claude" / "projects" / "x"
    folder.mkdir(parents=True)
    for file in (SAMPLES / "claude_code").rglob("*.jsonl"):
        (folder / file.name).write_bytes(file.read_bytes())
    with UiServer(settings, port=0) as server:
        with log_in(server) as client:
            assert "No session is stored yet" in client.get("/").text
            assert client.post("/do/work/ingest", json={}).is_success
        server.parts.work.wait(60)  # the browser has gone
        with log_in(server) as client:
            page = client.get("/").text
            assert "ingest has ended" in page and "new" in page
            assert client.get("/sessions.json").json()["total"] > 0
            assert client.post("/do/work/learn", json={}).is_success
            server.parts.work.wait(60)
            state = client.get("/pending.json").json()["work"]
            assert state["kind"] == "learn" and state["ended"] and not state["problem"]


def test_figures_are_never_older_than_the_store(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    with Warmstart(settings) as ws:
        ws.ingest(SAMPLES / "codex")
        with UiServer(settings, port=0) as server, log_in(server) as client:
            before = client.get("/errors.json").json()["sessions"]
            made = server.parts.figures.get(("owner", "insights", None, None, None, 10, None), lambda *_: None).made
            assert client.get("/errors.json").json()["sessions"] == before
            same = server.parts.figures.get(("owner", "insights", None, None, None, 10, None), lambda *_: None)
            assert same.made == made and same.is_current, "computed once while nothing changes"
            ws.ingest(SAMPLES / "claude_code")
            assert client.get("/errors.json").json()["sessions"] > before
            ws.close()


def test_a_slow_figure_is_announced(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    began, ending = threading.Event(), threading.Event()

    def compute(_ws: Warmstart, report: Any) -> str:
        report(3, 10, "")
        began.set()
        ending.wait(60)
        return "done"

    with UiServer(settings, port=0) as server, log_in(server) as client:
        figures = server.parts.figures
        slow = figures.get("slow", compute, wait=0.01)
        assert slow.made is None and not slow.is_current, "nobody waits for it"
        began.wait(60)
        told = client.get("/pending.json", params={"key": slow.key}).json()["figure"]
        assert (told["done"], told["total"], told["is_current"]) == (3, 10, False)
        ending.set()
        assert figures.get("slow", lambda *_: "never", wait=None).value == "done"
        broken = figures.get("broken", lambda *_: 1 / 0, wait=None)
        assert "ZeroDivisionError" in broken.problem and not broken.is_current


def test_the_benchmark_asks_for_pages_and_queries_that_exist(server: UiServer, owner: httpx.Client) -> None:
    found = util.spec_from_file_location("bench_ui", Path(__file__).parents[3] / "bench" / "ui.py")
    assert found is not None and found.loader is not None
    bench = util.module_from_spec(found)
    found.loader.exec_module(bench)
    note, template = owner.get("/notes.json").json()[0]["id"], owner.get("/templates.json").json()[0]["name"]
    with Warmstart(server.parts.stores.settings) as ws:
        for name, (path, query, values) in bench.list_pages(10, note, template).items():
            assert owner.get(path).is_success or name == "session", name
            ws.store.rows(query, values)


def test_calls_that_a_person_cancelled_did_not_fail(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    with Warmstart(settings) as ws:
        row = make_session(1, calls=2, errors=1)
        calls = [make_call(row, 0, "it failed"), make_call(row, 1, "it was stopped", status="cancelled")]
        ws.store.put_session(row, calls, [])
    with UiServer(settings, port=0) as server, log_in(server) as client:
        whole = client.get(f"/sessions/{row.key}").text
        assert "Only the 1 that failed" in whole and whole.count('class="failed"') == 1
        only = client.get(f"/sessions/{row.key}?errors=1").text
        assert only.count('id="call-') == 1 and 'id="call-0"' in only


def test_a_project_may_be_called_like_a_file(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    with Warmstart(settings) as ws:
        ws.store.put_session(make_session(1, project="/srv/shop.json", folder="/srv/shop.json"), [], [])
    with UiServer(settings, port=0) as server, log_in(server) as client:
        page = client.get("/projects/%2Fsrv%2Fshop.json")
        assert page.is_success and "Scopes and sharing" in page.text
        assert client.get("/projects/%2Fsrv%2Fshop.json.json").json()["project"] == "/srv/shop.json"
        missing = client.get("/projects/%2Fsrv%2Fother.json")
        assert missing.status_code == 404 and "no project" in missing.json()["error"]
