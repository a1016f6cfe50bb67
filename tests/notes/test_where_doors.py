"""Where the work is, through the library, the command line, the brief and the hooks, and never across a border."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import warmstart
from command_line import run, run_json
from doors.hooks.events import answer, prompt, start
from transcripts import teach, work_lines
from warmstart import Task
from warmstart.arms import assign, holdout_shares
from warmstart.pipeline import Warmstart

SHOP, OTHER = "/home/dev/shop", "/home/dev/bar"
REQUEST = "cart totals are rounded wrong when taxes apply"
ASKED = "totals of the cart are wrong once taxes are rounded"
LINE = "Requests like this one edited: `src/cart.py`, `tests/test_cart.py` (3 sessions)"


def edit(folder: str, path: str) -> tuple[str, dict[str, str], str]:
    return ("Edit", {"file_path": f"{folder}/{path}", "old_string": "a", "new_string": "b"}, "The file was updated.")


def cart_work(folder: str = SHOP, *, prefix: str = "s", path: str = "src/cart.py") -> list[list[dict[str, Any]]]:
    edits = (edit(folder, path), edit(folder, "tests/test_cart.py"))
    work = [work_lines(f"{prefix}-{n}", *edits, task=f"{REQUEST} ({n})", cwd=folder, day=n + 5) for n in range(3)]
    mail = [
        work_lines(
            f"{prefix}-m{n}",
            edit(folder, "src/mail.py"),
            task=f"send letters by night, part {n}",
            cwd=folder,
            day=n + 1,
        )
        for n in range(3)
    ]
    return [*mail, *work]


@pytest.fixture
def ws() -> Iterator[Warmstart]:
    with warmstart.open() as opened:
        yield opened


@pytest.fixture
def taught(ws: Warmstart) -> Warmstart:
    teach(ws, *cart_work())
    ws.learn()
    return ws


class TestLibrary:
    def test_similar_requests(self, taught: Warmstart) -> None:
        where = taught.where(ASKED, project=SHOP)
        assert (where.project, where.line, where.sessions) == (SHOP, LINE, 3)
        assert [file.path for file in where.files[:2]] == ["src/cart.py", "tests/test_cart.py"]
        assert "similar requests edited it" in where.files[0].reason

    def test_before_anything_is_learned(self, ws: Warmstart) -> None:
        teach(ws, *cart_work())
        assert ws.where(ASKED, project=SHOP).silent.endswith("run: warmstart learn")

    def test_no_project(self, taught: Warmstart) -> None:
        assert taught.where(ASKED).silent == "the request belongs to no project"

    def test_other_projects_and_scopes_see_nothing_of_it(self, taught: Warmstart) -> None:
        teach(taught, *cart_work(OTHER, prefix="b", path="src/barcart.py"), folder="bar")
        taught.learn()
        assert "src/barcart.py" in taught.where(ASKED, project=OTHER).line
        assert "src/cart.py" not in {file.path for file in taught.where(ASKED, project=OTHER).files}
        assert taught.where(ASKED, project=SHOP).line == LINE
        assert taught.where(ASKED, project=SHOP, scope="profile:work").files == ()
        assert "cart.py" not in taught.brief(Task(text=ASKED, project=SHOP, scope="profile:work")).text

    def test_files_are_looked_for_where_the_folder_is(self, taught: Warmstart, tmp_path: Path) -> None:
        teach(taught, *cart_work(str(tmp_path), prefix="here"), folder="here")
        taught.learn()
        assert taught.where(ASKED, folder=tmp_path).files == ()
        (tmp_path / "src").mkdir()
        (tmp_path / "src/cart.py").touch()
        assert [file.path for file in taught.where(ASKED, folder=tmp_path).files] == ["src/cart.py"]

    def test_a_damaged_digest_is_left_out(self, taught: Warmstart) -> None:
        with taught.store.writing():
            assert taught.store.ask("UPDATE digests SET body = '{' || body RETURNING 1")
        assert taught.where(ASKED, project=SHOP).silent.endswith("run: warmstart learn")


class TestBrief:
    def test_the_line_fits_into_the_budget(self, taught: Warmstart) -> None:
        brief = taught.brief(Task(text=ASKED, project=SHOP))
        assert brief.text.endswith(f"\n- {LINE}")
        assert brief.tokens <= brief.budget == 300
        assert brief.files == ("src/cart.py", "tests/test_cart.py")

    @pytest.mark.parametrize("budget", [0, 10, 40])
    def test_a_small_budget_has_no_room(self, taught: Warmstart, budget: int) -> None:
        brief = taught.brief(Task(text=ASKED, project=SHOP, brief=budget))
        assert LINE not in brief.text
        assert brief.tokens <= budget

    @pytest.mark.parametrize("text", ["", "write a poem about the sea", f"{ASKED}: src/cart.py"])
    def test_silence(self, taught: Warmstart, text: str) -> None:
        assert "Requests like this one" not in taught.brief(Task(text=text, project=SHOP)).text

    def test_a_seed_says_it(self, taught: Warmstart) -> None:
        seed = taught.provision(Task(text=ASKED, project=SHOP, dialect="text", examples=0))
        assert LINE in (seed.text or "")
        assert "2 files of similar requests" in seed.reason


class TestCommand:
    def test_a_table(self, taught: Warmstart) -> None:
        shown = run("where", ASKED, "--project", SHOP).stdout
        assert "src/cart.py" in shown and "3 earlier requests are similar" in shown

    def test_json(self, taught: Warmstart) -> None:
        found = run_json("where", ASKED, "--project", SHOP, "--limit", 1)
        assert found["line"] == LINE
        assert [sorted(file) for file in found["files"]] == [["edited", "path", "reason", "score", "sessions"]]
        assert sorted(found) == ["files", "line", "named", "project", "sessions", "silent", "support"]

    def test_nothing_to_name(self, taught: Warmstart) -> None:
        assert "no earlier request is similar" in run("where", "write a poem", "--project", SHOP).stdout
        assert "names its files: src/cart.py" in run("where", f"{ASKED} in cart.py", "--project", SHOP).stdout
        assert run_json("where", ASKED, "--cwd", "/nowhere")["files"] == []


class TestHooks:
    def test_the_first_prompt_is_told_once_and_again_after_a_compaction(self, taught: Warmstart) -> None:
        opening = answer(start())
        assert LINE not in (opening or "")
        told = answer(prompt(ASKED))
        assert told is not None and told.startswith(f"From earlier sessions in this project:\n- {LINE}")
        assert answer(prompt(ASKED)) is None
        again = answer(start(source="compact"))
        assert again is not None and again.endswith(told)

    def test_another_prompt_is_told_nothing(self, taught: Warmstart) -> None:
        answer(start())
        assert "Requests like this one" not in (answer(prompt("write a poem about the sea")) or "")

    def test_a_cold_session_is_told_nothing(self, taught: Warmstart, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WARMSTART_HOLDOUT", "0.5")
        shares = holdout_shares(0.5)
        cold = next(s for s in (str(uuid.uuid4()) for _ in range(200)) if assign(s, shares) == "cold")
        assert answer(start(cold)) is None
        assert answer(prompt(ASKED, session=cold)) is None

    def test_a_huge_prompt_is_answered(self, taught: Warmstart) -> None:
        assert answer(prompt(f"{ASKED} " + "x" * 500_000)) is not None
