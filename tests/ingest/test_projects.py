"""Sessions of one repository are one project, in whatever folder, clone or worktree they ran."""

from __future__ import annotations

import hashlib
import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import warmstart
from homes import read_everything
from projects.repositories import git, make_repository
from template_files import example, template, write_bundle
from transcripts import teach, work_lines, write_jsonl
from warmstart import store
from warmstart.errors import NotFound, Refused
from warmstart.model import LiveUsage, Task, Usage
from warmstart.pipeline import Warmstart
from warmstart.projects.resolve import resolve_project
from warmstart.store import ProjectStore, TemplateStore, TrialStore
from warmstart.store.notes import NoteDecision, NoteRow, NoteStore, Showing, make_note_id

REMOTE, NAME = "git@github.com:Org/Shop.git", "github.com/org/shop"


@pytest.fixture
def ws() -> Iterator[Warmstart]:
    with warmstart.open() as opened:
        yield opened


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    return folder


def work(
    session: str, cwd: Path | str, files: tuple[str, ...] = ("src/cart.py",), day: int = 1
) -> list[dict[str, Any]]:
    """Return a session in a folder that reads and edits files and runs its tests from the root."""
    calls: list[tuple[Any, ...]] = []
    for file in files:
        calls.append(("Read", {"file_path": f"{cwd}/{file}"}, f"1 # {cwd}/{file}"))
        calls.append(("Edit", {"file_path": f"{cwd}/{file}", "old_string": "a", "new_string": "b"}, "updated"))
        calls.append(("mcp__ide__check", {"file_path": f"{cwd}/{file}"}, f"no problems in {cwd}/{file}"))
    calls.append(("Bash", {"command": f"cd {cwd} && uv run pytest -q tests/test_cart.py"}, "3 passed in 0.12s"))
    calls.append(("Bash", {"command": f"uv run ruff check {cwd}/src"}, "All checks passed!"))
    return work_lines(session, *calls, cwd=str(cwd), day=day)


def projects_of(ws: Warmstart) -> dict[str, str | None]:
    return {row.id: row.project for row in ws.sessions(limit=None)}


FILES = tuple(f"src/{name}/{name}_rules.py" for name in ("cart", "voucher", "refund", "invoice", "tariff", "stock"))


class TestFromTheDisk:
    def test_clones_worktrees_and_subfolders_are_one_project(self, ws, code):
        repo = make_repository(code / "shop", REMOTE)
        git(repo, "worktree", "add", "-q", str(code / "shop-fix"))
        git(code, "clone", "-q", str(repo), "copy")
        git(code / "copy", "remote", "set-url", "origin", "https://me:hunter2secret@github.com/org/shop")
        folders = [repo, repo / "src", code / "shop-fix", code / "copy"]
        teach(ws, *(work(f"s-{n}", folder) for n, folder in enumerate(folders)))
        assert set(projects_of(ws).values()) == {NAME}
        roots = {row.folder: row.root for row in ws.sessions()}
        assert roots[str(repo / "src")] == str(repo)
        assert roots[str(code / "shop-fix")] == str(code / "shop-fix")
        assert b"hunter2secret" not in read_everything(ws.settings.home)

    def test_repositories_without_a_remote_are_known_by_their_first_commit(self, ws, code):
        repo = make_repository(code / "shop")
        git(repo, "worktree", "add", "-q", str(code / "fix"))
        other = make_repository(code / "elsewhere" / "shop")
        (other / "src" / "extra.py").write_text("")
        git(other, "add", ".")
        git(other, "commit", "-q", "--amend", "-m", "Another beginning")
        teach(ws, work("a", repo), work("b", code / "fix"), work("c", other))
        projects = projects_of(ws)
        assert projects["a"] == projects["b"] == f"shop@{git(repo, 'rev-list', '--max-parents=0', 'HEAD')[:12]}"
        assert projects["c"] != projects["a"]

    def test_what_was_known_of_a_deleted_checkout_stays_known(self, ws, code):
        repo = make_repository(code / "shop", REMOTE)
        teach(ws, work("a", repo))
        shutil.rmtree(repo)
        teach(ws, work("b", repo, day=2))
        assert set(projects_of(ws).values()) == {NAME}

    def test_a_remote_that_appears_moves_sessions_templates_trials_and_live_usage(self, ws, code):
        repo = make_repository(code / "shop")
        shutil.rmtree(repo / ".git")
        teach(ws, *(work(f"s-{n}", repo, day=n + 1) for n in range(3)))
        assert set(projects_of(ws).values()) == {str(repo)}
        ws.learn()
        ws.provision(Task(text="fix the failing cart tests", session="next", project=str(repo)))
        ws.usage.set(LiveUsage(session="next", usage=Usage(input=5), project=str(repo)))
        assert any(row.project == str(repo) for row in TemplateStore(ws.store).find())

        git(repo, "init", "-q")
        git(repo, "remote", "add", "origin", REMOTE)
        teach(ws, work("s-4", repo, day=9))
        assert set(projects_of(ws).values()) == {NAME}
        assert {row.project for row in TemplateStore(ws.store).find()} == {NAME}
        trial = TrialStore(ws.store).trial("next")
        assert trial is not None and NAME in trial.task and str(repo) not in trial.task
        assert {row.name for row in ws.usage.report("project", project="shop").rows} == {NAME}
        found = ws.provision(Task(text="fix the failing cart tests", project=str(repo)))
        assert found.templates, "the moved templates are found by words"

    def test_a_renamed_repository_takes_its_sessions_along(self, ws, code):
        repo = make_repository(code / "shop", REMOTE)
        teach(ws, work("a", repo))
        git(repo, "remote", "set-url", "origin", "git@github.com:Org/Store.git")
        teach(ws, work("b", repo, day=2))
        assert set(projects_of(ws).values()) == {"github.com/org/store"}


class TestFromTranscripts:
    def test_codex_records_the_remote(self, ws, tmp_path):
        for number, folder in enumerate(("/Users/me/src/shop", "/Users/me/.codex/worktrees/04ef/shop")):
            meta = {
                "id": f"c-{number}",
                "cwd": folder,
                "git": {"repository_url": "https://tok:en@github.com/Org/Shop.git"},
            }
            message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "fix it"}]}
            lines = [{"type": "session_meta", "payload": meta}, {"type": "response_item", "payload": message}]
            write_jsonl(
                tmp_path / "codex" / f"{number}.jsonl", [{"timestamp": "2026-10-01T10:00:00Z"} | x for x in lines]
            )
        ws.ingest(tmp_path / "codex")
        assert {(row.project, row.remote) for row in ws.sessions()} == {(NAME, NAME)}

    def test_the_same_files_under_the_same_name_are_one_project(self, ws):
        teach(ws, work("a", "/Users/ann/code/shop", FILES), work("b", "/home/bob/shop", FILES, day=2))
        assert set(projects_of(ws).values()) == {"/home/bob/shop"}

    def test_other_files_under_the_same_name_are_not(self, ws):
        other = tuple(path.replace("rules", "view").replace("src", "web") for path in FILES)
        teach(ws, work("a", "/Users/ann/code/app", FILES), work("b", "/home/bob/app", other, day=2))
        assert set(projects_of(ws).values()) == {"/Users/ann/code/app", "/home/bob/app"}

    def test_a_single_folder_is_its_own_name(self, ws):
        teach(ws, work("a", "/home/dev/shop"), work("b", "/home/dev/hotel"))
        assert projects_of(ws) == {"a": "/home/dev/shop", "b": "/home/dev/hotel"}

    def test_the_order_of_reading_changes_nothing(self, tmp_path):
        sessions = [
            work("a", "/Users/ann/code/shop", FILES, day=1),
            work("b", "/home/bob/shop", FILES[:4], day=2),
            work("c", "/home/bob/shop/.claude/worktrees/fix", day=3),
            work("d", "/home/cid/shop", ("src/hotel/room_rules.py",), day=4),
        ]
        results = set()
        for number, order in enumerate(itertools.permutations(sessions)):
            with warmstart.open(tmp_path / f"home-{number}") as ws:
                for lines in order:
                    teach(ws, lines, folder=f"in-{number}-{lines[0]['sessionId']}")
                results.add(tuple(sorted(projects_of(ws).items())))
        assert len(results) == 1
        assert dict(results.pop())["c"] == "/home/bob/shop"


class TestPersons:
    def test_merge_and_split(self, ws):
        teach(ws, work("a", "/home/ann/shop"), work("b", "/home/ann/store", day=2), work("c", "/home/ann/store", day=3))
        ws.learn()
        templates = {(row.name, row.project) for row in TemplateStore(ws.store).find()}
        change = ws.projects.merge("shop", "/home/ann/store")
        assert (change.project, change.moved) == ("/home/ann/shop", 2)
        assert set(projects_of(ws).values()) == {"/home/ann/shop"}
        assert {row.project for row in TemplateStore(ws.store).find()} == {"/home/ann/shop"}
        teach(ws, work("d", "/home/ann/store", day=4))
        assert set(projects_of(ws).values()) == {"/home/ann/shop"}, "new sessions follow"
        [listed] = ws.projects.list()
        assert (listed.by, listed.sessions, len(listed.folders), listed.names) == ("person", 4, 2, ("/home/ann/store",))

        assert ws.projects.split("/home/ann/store").moved == 3
        assert projects_of(ws)["b"] == projects_of(ws)["d"] == "/home/ann/store"
        assert {(row.name, row.project) for row in TemplateStore(ws.store).find()} == templates

    def test_merging_back_is_no_circle(self, ws):
        teach(ws, work("a", "/home/ann/shop"), work("b", "/home/ann/store", day=2))
        ws.projects.merge("/home/ann/shop", "/home/ann/store")
        ws.projects.split("/home/ann/store")
        ws.projects.merge("/home/ann/store", "/home/ann/shop")
        assert set(projects_of(ws).values()) == {"/home/ann/store"}
        with pytest.raises(Refused, match="one project already"):
            ws.projects.merge("/home/ann/shop", "/home/ann/store")

    def test_an_alias_is_a_folder_or_a_word(self, ws, code):
        repo = make_repository(code / "shop", REMOTE)
        teach(ws, work("a", repo), work("b", "/old/laptop/store/src", day=2))
        ws.projects.alias("/old/laptop/store", "shop")
        ws.projects.alias("till", NAME)
        assert set(projects_of(ws).values()) == {NAME}
        assert [row.id for row in ws.sessions(project="till")] == ["b", "a"]
        assert [row.id for row in ws.sessions(project="org/shop")] == ["b", "a"]
        assert [row.id for row in ws.sessions(project=str(repo / "src"))] == ["b", "a"]

    def test_a_folder_that_was_joined_by_its_files_can_be_split_off(self, ws):
        teach(ws, work("a", "/Users/ann/code/shop", FILES), work("b", "/home/bob/shop", FILES, day=2))
        ws.projects.split("/Users/ann/code/shop")
        assert projects_of(ws)["a"] == "/Users/ann/code/shop"
        teach(ws, work("c", "/Users/ann/code/shop", FILES, day=3))
        assert projects_of(ws)["c"] == "/Users/ann/code/shop", "it stays apart"

    def test_projects_that_are_no_folders_are_merged_and_split_too(self, ws, tmp_path):
        for name in ("airline", "retail"):
            record = {"id": name, "project": name, "messages": [{"role": "user", "content": "hi"}]}
            (tmp_path / f"{name}.json").write_text(json.dumps(record))
            ws.ingest(tmp_path / f"{name}.json")
        before = projects_of(ws)
        assert ws.projects.merge("airline", "retail").moved == 1
        assert set(projects_of(ws).values()) == {"airline"}
        ws.projects.split("retail")
        assert projects_of(ws) == before

    def test_a_renamed_folder_is_suggested_and_not_merged(self, ws):
        files = tuple(f"src/{name}/{name}_rules.py" for name in "ant bee cat dog eel fox gnu hen ibis jay".split())
        teach(ws, work("a", "/home/ann/shop", files), work("b", "/home/ann/store", (*files, "src/kiwi/kiwi.py"), day=2))
        teach(ws, work("c", "/home/ann/hotel", FILES, day=3))
        assert ws.projects.suggest() == (("/home/ann/store", "/home/ann/shop", 11),)  # ten and the test
        assert len(set(projects_of(ws).values())) == 3
        ws.projects.merge("store", "shop")
        assert ws.projects.suggest() == ()

    def test_mistakes_say_what_to_do(self, ws):
        teach(ws, work("a", "/home/ann/x/shop"), work("b", "/home/bob/y/shop"))
        with pytest.raises(NotFound, match="warmstart projects list"):
            ws.projects.merge("/home/ann/x/shop", "nothing")
        with pytest.raises(Refused, match="several projects"):
            ws.sessions(project="shop")
        with pytest.raises(Refused, match="no usable name"):
            ws.projects.alias("a\x1b[31mb", "/home/ann/x/shop")
        with pytest.raises(Refused, match="of its own already"):
            ws.projects.split("/home/ann/x/shop")


class TestExamples:
    def test_examples_name_no_folder_of_the_machine_they_come_from(self, ws, code):
        repo = make_repository(code / "shop", REMOTE)
        teach(ws, *(work(f"s-{n}", repo, day=n + 1) for n in range(3)))
        ws.learn()
        [row] = TemplateStore(ws.store).find(status="active")
        shown = str(ws.templates.show(row.name))
        assert str(repo) not in shown
        assert "'src/cart.py'" in shown and "uv run pytest -q tests/test_cart.py" in shown

    def test_nor_do_the_requests_that_are_searched(self, ws, code):
        repo = make_repository(code / "shop", REMOTE)
        for n in range(3):
            lines = work(f"s-{n}", repo, day=n + 1)
            lines[0]["message"]["content"] = f"work in {repo} only: fix the failing cart tests"
            teach(ws, lines)
        ws.learn()
        assert str(repo) not in str(ws.store.rows("examples_of", (TemplateStore(ws.store).find()[0].name, 1)))

    def test_they_are_written_for_the_session_s_own_root(self, ws, code):
        repo = make_repository(code / "shop", REMOTE)
        teach(ws, *(work(f"s-{n}", repo, day=n + 1) for n in range(3)))
        ws.learn()
        git(code, "clone", "-q", str(repo), "copy")
        task = Task(text="fix the failing cart tests", project=str(code / "copy" / "src"), examples=9, budget=9_000)
        text = str(ws.provision(task).messages)
        assert f"{code}/copy/src/cart.py" in text
        assert str(repo) not in text
        assert f"cd {code}" not in text

    def test_an_older_template_with_absolute_paths_is_written_for_it_too(self, ws, code, tmp_path):
        repo = make_repository(code / "shop", REMOTE)
        teach(ws, work("a", repo))
        command = f"cd {repo} && uv run pytest -q tests/cart"
        old = example("Bash", command, "run the cart tests", result=f"{repo}/tests/cart.py passed")
        provenance = {"project": NAME, "agent": "claude-code"}
        bundle = write_bundle(tmp_path / "t.json", template("cart", old, provenance=provenance))
        ws.templates.import_(bundle, approve=True)
        git(code, "clone", "-q", str(repo), "copy")
        seed = ws.provision(Task(text="run the cart tests", project=str(code / "copy"), session="s"))
        assert "uv run pytest -q tests/cart" in str(seed.messages)
        assert str(repo) not in str(seed.messages)

    def test_a_seeded_call_is_not_mined_back_from_another_clone(self, ws, code):
        repo = make_repository(code / "shop", REMOTE)
        teach(ws, *(work(f"s-{n}", repo, day=n + 1) for n in range(3)))
        ws.learn()
        git(code, "clone", "-q", str(repo), "copy")
        task = Task(
            text="fix the failing cart tests", project=str(code / "copy"), examples=9, budget=9_000, session="warm"
        )
        assert ws.provision(task).templates
        teach(ws, work("warm", code / "copy", day=9))
        with pytest.raises(Refused):
            ws.capture("warm")


class TestResolving:
    def test_a_fresh_clone_and_a_new_worktree_are_the_known_project(self, ws, code):
        repo = make_repository(code / "shop", REMOTE)
        teach(ws, work("a", repo))
        git(code, "clone", "-q", str(repo), "copy")
        git(repo, "worktree", "add", "-q", str(code / "fix"))
        known = ProjectStore(ws.store)
        for folder in (code / "copy", code / "fix", code / "fix" / "src"):
            assert resolve_project(known, str(folder)).name == NAME
        assert resolve_project(known, str(code / "fix" / "src")).root == str(code / "fix")

    def test_a_folder_whose_ingest_is_still_to_come_keeps_its_templates(self, ws, code):
        repo = make_repository(code / "shop", REMOTE)
        known = ProjectStore(ws.store)
        assert resolve_project(known, str(repo)).name == NAME
        teach(ws, work("a", repo))
        with ws.store.writing():  # as a store of before this version holds it
            ws.store.run("place_sessions", (str(repo), None, str(repo)))
            ws.store.run("delete_project_name", (str(repo),))
        assert resolve_project(known, str(repo)).name == str(repo)

    def test_a_new_folder_beside_others_is_not_the_one_that_holds_them(self, ws):
        teach(ws, work("a", "/home/ann/code"))
        assert resolve_project(ProjectStore(ws.store), "/home/ann/code/new").name == "/home/ann/code/new"

    def test_worktrees_that_are_not_readable(self, ws):
        teach(ws, work("a", "/nowhere/shop"), work("b", "/nowhere/conductor/workspaces/hotel/oslo"))
        known = ProjectStore(ws.store)
        assert resolve_project(known, "/nowhere/shop/.claude/worktrees/new").name == "/nowhere/shop"
        lima = resolve_project(known, "/nowhere/conductor/workspaces/hotel/lima")
        assert lima.name == projects_of(ws)["b"]
        assert lima.root == "/nowhere/conductor/workspaces/hotel/lima"

    @pytest.mark.parametrize("text", ["", "airline", "job:nightly", "/", "/tmp", "/a\nb", "*", "~/x"])
    def test_strange_folders_are_their_own_names(self, ws, text):
        assert resolve_project(ProjectStore(ws.store), text).name == text


class TestMoving:
    def test_notes_move_with_the_decisions_of_a_person(self, ws, code):
        notes = NoteStore(ws.store)
        repo = code / "shop"
        teach(ws, work("a", repo))
        for project in (str(repo), "/elsewhere"):
            name = make_note_id(project, "", "path:x")
            body = {"id": name, "project": project, "key": "path:x", "text": "x is not here"}
            with ws.store.writing():
                notes.put(NoteRow(name, project, "", "path", "active", json.dumps(body), 1.0))
                notes.decide(NoteDecision(name, "active", "person", "right", 1.0))
                notes.put_showings([Showing(name, "s", "brief", 1.0)])
        make_repository(repo, REMOTE)
        teach(ws, work("b", repo, day=2))
        [(moved, body)] = notes.bodies(project=NAME)
        assert moved == make_note_id(NAME, "", "path:x") == json.loads(body)["id"]
        assert json.loads(body)["project"] == NAME
        assert [decision.by for decision in notes.decisions(moved)] == ["person"]
        assert [showing.session for showing in notes.showings(moved)] == ["s"]
        assert notes.bodies(project=str(repo)) == []
        assert len(notes.bodies(project="/elsewhere")) == 1

    def test_no_commit_stands_in_the_name_of_a_template(self, ws, code):
        repo = make_repository(code / "bookshop")
        teach(ws, *(work(f"s-{n}", repo, day=n + 1) for n in range(3)))
        [learned] = ws.learn().templates
        assert git(repo, "rev-list", "HEAD")[:6] not in learned.name

    def test_gemini_names_a_folder_by_its_hash(self, ws, tmp_path):
        folder = "/home/ann/shop"
        teach(ws, work("a", folder))
        record = {
            "sessionId": "g-1",
            "projectHash": hashlib.sha256(folder.encode()).hexdigest(),
            "startTime": "2026-10-02T10:00:00Z",
            "messages": [{"id": "1", "type": "user", "content": "fix it", "timestamp": "2026-10-02T10:00:00Z"}],
        }
        (tmp_path / "gemini.json").write_text(json.dumps(record))
        ws.ingest(tmp_path / "gemini.json")
        assert projects_of(ws) == {"a": folder, "g-1": folder}


def test_a_store_of_an_older_version_is_placed_by_the_next_ingest(tmp_path, code):
    repo = make_repository(code / "shop", REMOTE)
    with warmstart.open() as ws:
        teach(ws, work("a", repo), work("b", "/home/ann/hotel"), work("c", "/home/ann/hotel", day=2))
        path = ws.store.path
    with apsw.Connection(str(path)) as db:  # as the schema before this version held it
        db.execute("UPDATE sessions SET project = folder, folder = NULL, root = NULL, remote = NULL")
        db.execute("DELETE FROM project_names")
        script = (Path(store.__file__).parent / "migrations" / "0007_what_happened.sql").read_text()
        [update] = [line for line in script.splitlines() if line.startswith("UPDATE sessions SET folder")]
        db.execute(update)
    with warmstart.open() as ws:
        assert projects_of(ws)["a"] == str(repo)
        ws.ingest(ws.settings.home.parent / "in")  # nothing new to read
        assert projects_of(ws) == {"a": NAME, "b": "/home/ann/hotel", "c": "/home/ann/hotel"}
