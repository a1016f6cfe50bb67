"""Notes and templates travel between people: signed, waiting for a decision, never overwriting anything."""

from __future__ import annotations

import json
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from bundles.team import PROJECT, Member, git, list_changes, list_files, make_repository, make_team, rewrite
from loopback import serving
from notes.stored import GONE, RIGHT, THERE, WRONG
from transcripts import CART
from warmstart.bundles.git import PushRejected
from warmstart.bundles.places import name_place
from warmstart.errors import ConfigError, Refused, SourceError
from warmstart.store.occurrences import NoteOccurrence, OccurrenceStore

OTHER = ("Bash", {"command": "bun test"}, "3 pass\n0 fail")


@pytest.fixture
def team(tmp_path):
    return make_team(tmp_path)


def only_note(member: Member, **filters: object):
    with member.open() as ws:
        (note,) = ws.notes.list(kind="command", **filters)
        return note


def find_file(checkout: Path) -> Path:
    (file,) = (checkout / "notes").rglob("command-*.json")
    return file


def read_note(repository: Path) -> dict[str, Any]:
    (path,) = [path for path in list_files(repository) if "/command-" in path]
    return json.loads(git("show", f"main:{path}", folder=repository))


def measure(member: Member, note: str) -> None:
    """Record that calls failed in 30 of 40 occurrences without the note, and in none of 40 with it."""
    with member.open() as ws, ws.store.writing():
        for number in range(80):
            withheld = number % 2 == 1
            drawn = NoteOccurrence(
                note=note,
                session=f"o-{number}",
                experiment="e",
                share=0.5,
                action="stop",
                withheld=withheld,
                at=float(number),
                failed=withheld and number % 8 != 7,
                worked=True,
            )
            OccurrenceStore(ws.store).put([drawn])
            OccurrenceStore(ws.store).close(drawn, f"k-{number}", "d")


def commands(result: Any) -> list[str]:
    """Return what became of the note about the wrong command."""
    return [item.change for item in result.items if "/command-" in item.file]


class TestFlow:
    def test_an_item_waits_then_helps_somebody_who_never_met_it(self, team):
        anna, ben, repository = team
        anna.work(*CART, count=3, first=10)
        pushed = anna.push(repository)
        assert {item.type for item in pushed.items} == {"note", "template"}
        pulled = ben.pull(repository)
        assert {item.change for item in pulled.items} == {"new"}
        assert {item.status for item in pulled.items} == {"proposed"}
        assert not pulled.problems
        with ben.open() as ws:
            assert ws.brief_project(None, ben.checkout).notes == ()
            for item in ws.bundles.waiting():
                (ws.notes if item.type == "note" else ws.templates).approve(item.name)
            assert not ws.bundles.waiting()
            ws.learn()
            assert "bun run test" in ws.brief_project(None, ben.checkout).text
            assert ws.templates.find("active")
        note = only_note(ben)
        assert (note.status, note.source.signer, note.source.place) == ("active", "anna", str(repository))

    def test_pulling_and_pushing_twice_changes_nothing(self, team):
        anna, ben, repository = team
        anna.push(repository)
        commit = git("rev-parse", "main", folder=repository)
        again = anna.push(repository)
        assert again.where == ""
        assert {item.change for item in again.items} == {"same"}
        assert git("rev-parse", "main", folder=repository) == commit
        ben.pull(repository)
        with ben.open() as ws:
            before = (ws.notes.list(), ws.templates.find(), ws.store.rows("note_decisions", (only_note(ben).id,)))
        assert {item.change for item in ben.pull(repository).items} == {"same"}
        with ben.open() as ws:
            assert (
                ws.notes.list(),
                ws.templates.find(),
                ws.store.rows("note_decisions", (only_note(ben).id,)),
            ) == before

    def test_approving_at_the_pull_is_a_decision_on_the_record(self, team):
        anna, ben, repository = team
        anna.push(repository)
        pulled = ben.pull(repository, approve=True)
        assert {item.status for item in pulled.items} == {"active"}
        with ben.open() as ws:
            decision = ws.notes.show(only_note(ben).id).decisions[-1]
            assert (decision.by, decision.reason) == ("person", "approved: approved at pull, signed by anna")
            ws.learn()  # no session of Ben's supports it, and it stays
        assert only_note(ben).status == "active"

    def test_learning_keeps_what_waits(self, team):
        anna, ben, repository = team
        anna.push(repository)
        ben.work(*CART)
        ben.pull(repository)
        with ben.open() as ws:
            ws.learn()
        assert only_note(ben).status == "proposed"

    def test_my_own_items_come_back_as_mine(self, team):
        anna, _ben, repository = team
        anna.push(repository)
        assert {item.change for item in anna.pull(repository).items} == {"yours"}

    def test_the_measured_effect_travels(self, team):
        anna, ben, repository = team
        anna.push(repository)
        assert read_note(repository)["evidence"]["effect"] is None  # nothing was measured, and it says so
        measure(anna, only_note(anna).id)
        anna.push(repository)
        effect = read_note(repository)["evidence"]["effect"]
        assert effect["n"] == {"shown": 40, "withheld": 40}
        assert effect["difference"] == -0.75
        assert effect["low"] < effect["difference"] < effect["high"] < 0
        assert effect["verdict"] == "works"
        ben.pull(repository)
        with ben.open() as ws:
            (waiting,) = [item for item in ws.bundles.waiting() if item.name == only_note(ben).id]
        assert waiting.effect.startswith("works: failure rate")
        assert "-0.75 [" in waiting.effect


class TestUpdates:
    def test_a_signers_change_replaces_what_you_did_not_touch(self, team):
        anna, ben, repository = team
        anna.push(repository)
        ben.pull(repository, approve=True)
        first = only_note(ben)
        with anna.open() as ws:
            ws.notes.edit(only_note(anna).id, "use bun here")
        anna.push(repository)
        assert commands(ben.pull(repository)) == ["updated"]
        assert only_note(ben, status="active").text == first.text  # until Ben decides
        with ben.open() as ws:
            (waiting,) = [item for item in ws.bundles.waiting() if item.title == "use bun here"]
            assert waiting.reason == f"replaces note {first.id}: {first.text}"
        assert commands(ben.pull(repository, approve=True)) == ["approved"]
        note = only_note(ben)
        assert (note.id, note.text, note.status) == (first.id, "use bun here", "active")
        assert commands(ben.pull(repository)) == ["same"]

    def test_a_change_that_is_taken_back_no_longer_waits(self, team):
        anna, ben, repository = team
        anna.push(repository)
        ben.pull(repository, approve=True)
        old = only_note(anna)
        for text in ("use bun here", "always use bun here", old.text):
            with anna.open() as ws:
                ws.notes.edit(old.id, text)
            anna.push(repository)
            ben.pull(repository)
        assert only_note(ben).text == old.text

    def test_your_own_edit_is_kept_and_shared_as_yours(self, team):
        anna, ben, repository = team
        anna.push(repository)
        ben.pull(repository, approve=True)
        with ben.open() as ws:
            ws.notes.edit(only_note(ben).id, "bun works, rtk does not")
        assert commands(ben.push(repository)) == ["beside"]
        assert commands(ben.push(repository)) == ["same"]
        anna.trust(ben)
        changes = {item.signer: item.change for item in anna.pull(repository).items if "/command-" in item.file}
        assert changes == {"you": "yours", "ben": "conflict"}
        with anna.open() as ws:
            (theirs,) = [note for note in ws.notes.list(kind="command") if note.source]
            assert (theirs.text, theirs.support) == ("bun works, rtk does not", 0)  # Anna's counts are not Ben's
        with ben.open() as ws:
            ws.notes.edit(only_note(ben).id, "bun works, rtk never")
        ben.push(repository)
        anna.pull(repository, approve=True)
        with anna.open() as ws:
            assert [note.text for note in ws.notes.list(kind="command") if note.source] == ["bun works, rtk never"]

    def test_one_repository_has_one_name(self, team, monkeypatch):
        anna, ben, repository = team
        with anna.open() as ws:
            ws.capture("anna-0", name="cart", approve=True, anyway=True)
        anna.push(repository)
        ben.pull(repository, approve=True)
        monkeypatch.chdir(repository.parent)
        for address in ("team.git", "./team", f"{repository}/", f"file://{repository}"):
            pulled = ben.pull(address)
            assert pulled.place == str(repository)
            assert {item.change for item in pulled.items} == {"same"}

    def test_an_item_is_its_signers_wherever_it_lies(self, team, tmp_path):
        anna, ben, repository = team
        with anna.open() as ws:
            ws.capture("anna-0", name="cart", approve=True, anyway=True)
        anna.push(repository)
        ben.pull(repository, approve=True)
        git("clone", "--quiet", "--bare", repository, tmp_path / "moved.git")
        assert {item.change for item in ben.pull(tmp_path / "moved.git").items} == {"same"}


@pytest.mark.parametrize(
    "address",
    ["git@github.com:acme/notes.git", "https://github.com/acme/notes", "ssh://git@github.com/acme/notes.git/"],
)
def test_addresses_of_one_repository_have_one_name(address):
    assert name_place(address) == "github.com/acme/notes"


class TestConflicts:
    def test_two_fixes_for_one_cause_are_both_kept(self, team):
        anna, ben, repository = team
        ben.work(WRONG, OTHER)
        anna.trust(ben)
        anna.push(repository)
        assert commands(ben.push(repository)) == ["beside"]
        assert len([path for path in list_files(repository) if "/command-" in path]) == 2
        changes = {item.signer: item.change for item in ben.pull(repository).items if "/command-" in item.file}
        assert changes == {"anna": "conflict", "you": "yours"}
        with ben.open() as ws:
            own, theirs = sorted(ws.notes.list(kind="command"), key=lambda note: note.source is not None)
            assert (own.fix, own.status, theirs.fix, theirs.status) == (
                "bun test",
                "active",
                "bun run test",
                "proposed",
            )
            assert own.id in theirs.decision
            ws.projects.alias("other-name", PROJECT)
        again = {item.signer: item.change for item in ben.pull(repository).items if "/command-" in item.file}
        assert again == {"anna": "same", "you": "yours"}

    def test_the_same_fact_of_two_people_is_one_file(self, team):
        anna, ben, repository = team
        ben.work(WRONG, RIGHT)
        anna.push(repository)
        assert commands(ben.push(repository)) == ["known"]
        assert commands(ben.pull(repository)) == ["known"]
        assert only_note(ben).source is None

    def test_templates_of_one_name_are_both_kept(self, team):
        anna, ben, repository = team
        ben.work(*CART)
        for member in (anna, ben):
            with member.open() as ws:
                ws.capture(f"{member.name}-0", name="cart", approve=True, anyway=True)
        anna.push(repository)
        (received,) = [item for item in ben.pull(repository).items if item.title == "cart"]
        assert (received.change, received.name) == ("conflict", "cart-anna")
        with ben.open() as ws:
            kept = {row.name: (row.status, template.provenance.origin) for row, template in ws.templates.find()}
        assert kept["cart"] == ("active", "captured")
        assert kept["cart-anna"] == ("proposed", "imported")
        assert "template same" in list_changes(ben.pull(repository))


class TestRetirement:
    def test_it_is_proposed_and_a_persons_no_is_kept(self, team):
        anna, ben, repository = team
        anna.push(repository)
        ben.pull(repository, approve=True)
        with anna.open() as ws:
            ws.notes.retire(only_note(anna).id, reason="bun was removed")
        assert commands(anna.push(repository)) == ["retired"]
        proposed = [item for item in ben.pull(repository).items if item.change == "retirement proposed"]
        assert [item.reason for item in proposed] == ["retired by anna: retired by a person"]
        note = only_note(ben)
        assert note.status == "active"
        with ben.open() as ws:
            assert [item.waits_for for item in ws.bundles.waiting()] == ["retirement"]
            ws.notes.approve(note.id, reason="still needed here")
            assert not ws.bundles.waiting()
        assert not [item for item in ben.pull(repository).items if item.change == "retirement proposed"]
        assert only_note(ben).status == "active"

    def test_a_deleted_file_is_a_proposal_too(self, team):
        anna, ben, repository = team
        anna.work(GONE, THERE, count=2, first=5)
        anna.push(repository)
        ben.pull(repository, approve=True)

        def delete(checkout: Path) -> None:
            find_file(checkout).unlink()

        rewrite(repository, delete)
        proposed = [item for item in ben.pull(repository).items if item.change == "retirement proposed"]
        assert [(item.title.split()[0], item.reason) for item in proposed] == [
            ("`rtk", "it is no longer in the bundle")
        ]

    def test_a_file_that_cannot_be_read_retires_nothing(self, team):
        anna, ben, repository = team
        anna.push(repository)
        ben.pull(repository, approve=True)
        rewrite(repository, lambda checkout: find_file(checkout).write_text("{"))
        pulled = ben.pull(repository)
        assert not [item for item in pulled.items if item.change == "retirement proposed"]
        assert len(pulled.problems) == 1


class TestSignatures:
    def test_an_unknown_signer_is_refused_and_named(self, team, tmp_path):
        anna, _ben, repository = team
        cleo = Member(tmp_path, "cleo")
        anna.push(repository)
        pulled = cleo.pull(repository)
        assert pulled.items == ()
        assert all(f"bundle trust {anna.key}" in problem.reason for problem in pulled.problems)
        with cleo.open() as ws:
            assert not ws.notes.list()

    def test_a_changed_file_is_refused(self, team):
        anna, ben, repository = team
        anna.push(repository)
        original = json.dumps(read_note(repository), indent=2)
        changes = {
            "bun run test": "bun run evil",
            '"sessions": 2': '"sessions": 200',
            '"status": "active"': '"status": "retired"',
            '"revision": 1': '"revision": 9',
        }
        for old, new in changes.items():
            assert old in original
            changed = original.replace(old, new)
            rewrite(repository, lambda checkout, changed=changed: find_file(checkout).write_text(changed))
            pulled = ben.pull(repository)
            assert commands(pulled) == []
            assert "changed after anna signed it" in pulled.problems[0].reason

    def test_the_name_beside_a_signature_proves_nothing(self, team):
        anna, ben, repository = team
        anna.push(repository)
        boss = json.dumps(read_note(repository)).replace('"by": "anna"', '"by": "boss"')
        rewrite(repository, lambda checkout: find_file(checkout).write_text(boss))
        assert {item.signer for item in ben.pull(repository).items} == {"anna"}

    def test_another_signature_does_not_fit(self, team, tmp_path):
        anna, ben, repository = team
        anna.push(repository)

        def unsign(checkout: Path) -> None:
            file = find_file(checkout)
            facts = json.loads(file.read_text())
            del facts["signature"]
            file.write_text(json.dumps(facts))

        rewrite(repository, unsign)
        assert [problem.reason for problem in ben.pull(repository).problems] == ["it is not signed"]

    def test_an_older_revision_put_back_does_not_return(self, team):
        anna, ben, repository = team
        anna.push(repository)
        old = git("rev-parse", "main", folder=repository).strip()
        anna.work(WRONG, RIGHT, count=3, first=10)
        assert commands(anna.push(repository)) == ["updated"]
        ben.pull(repository)
        assert only_note(ben).support == 5
        git("update-ref", "refs/heads/main", old, folder=repository)
        assert commands(ben.pull(repository)) == ["older"]
        assert only_note(ben).support == 5

    def test_trust_is_by_key(self, team):
        anna, ben, _repository = team
        with ben.open() as ws:
            with pytest.raises(Refused, match="another trusted key"):
                ws.bundles.trusted.add(ben.key, "anna")
            with pytest.raises(ConfigError, match="not a public key"):
                ws.bundles.trusted.add("ed25519:short", "cleo")
            assert ws.bundles.trusted.remove("anna") == anna.key
            assert ws.bundles.trusted.list() == {}
        assert (ben.home / "bundles" / "signing.key").stat().st_mode & 0o777 == 0o600


def _pack_nothing(folder: Path) -> bytes:
    with tarfile.open(folder / "empty.tar.gz", "w:gz"):
        pass
    return (folder / "empty.tar.gz").read_bytes()


class TestPlaces:
    def test_a_folder_and_its_archives(self, team, tmp_path):
        anna, ben, _repository = team
        folder = tmp_path / "shared"
        pushed = anna.push(folder)
        assert pushed.where == f"folder {folder}"
        assert anna.push(folder).where == ""
        with tarfile.open(tmp_path / "b.tar.gz", "w:gz") as tar:
            tar.add(folder, "team-notes-main")
        with zipfile.ZipFile(tmp_path / "b.zip", "w") as packed:
            for file in sorted(folder.rglob("*.json")):
                packed.write(file, file.relative_to(folder))
        for address in (tmp_path / "b.tar.gz", tmp_path / "b.zip", folder):
            with ben.open() as ws:
                checked = ws.bundles.check(str(address))
            assert len(checked.items) == len(pushed.items)
            assert {item.state for item in checked.items} == {"trusted"}
        anna.work(GONE, THERE, count=2, first=5)
        with pytest.raises(Refused, match="is an archive"):
            anna.push(tmp_path / "b.zip")
        with pytest.raises(Refused, match="is a folder"):
            anna.push(folder, branch="x")

    def test_an_archive_on_the_web(self, team, tmp_path):
        anna, ben, _repository = team
        anna.push(tmp_path / "shared")
        with tarfile.open(tmp_path / "b.tar.gz", "w:gz") as tar:
            tar.add(tmp_path / "shared", ".")
        data = (tmp_path / "b.tar.gz").read_bytes()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_HEAD(self) -> None:
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()

            def log_message(self, *_words: object) -> None:
                pass

        with serving(Handler) as url:
            assert "note new" in list_changes(ben.pull(f"http://{url}/team/b.tar.gz"))
            data = _pack_nothing(tmp_path)
            assert "note retirement proposed" in list_changes(ben.pull(f"http://{url}/team/b.tar.gz"))

    def test_a_branch_is_for_a_pull_request(self, team):
        anna, ben, repository = team
        anna.push(repository)
        anna.work(GONE, THERE, count=2, first=5)
        anna.push(repository, branch="anna/more")
        assert len(list_files(repository, "anna/more")) > len(list_files(repository))
        assert git("rev-parse", "anna/more^", folder=repository) == git("rev-parse", "main", folder=repository)
        assert len(ben.pull(repository).items) < len(ben.pull(repository, branch="anna/more").items)

    def test_addresses_that_are_none(self, team, tmp_path):
        anna, _ben, _repository = team
        for address in ("ext::sh -c true", "--upload-pack=x", "https://127.0.0.1:9/x.git"):
            with pytest.raises((Refused, SourceError)):
                anna.pull(address)
        with anna.open() as ws, pytest.raises(ConfigError, match=r"bundle\.url"):
            ws.bundles.pull()
        with pytest.raises(Refused, match="not the name of a branch"):
            anna.push(make_repository(tmp_path / "x.git"), branch="--force")


class TestTogether:
    @pytest.mark.slow
    def test_six_push_at_once_and_nothing_is_lost(self, tmp_path):
        repository = make_repository(tmp_path / "team.git")
        members = [Member(tmp_path, f"m{number}") for number in range(6)]
        for number, member in enumerate(members):
            wrong = (
                "Bash",
                {"command": f"rtk{number} bun test"},
                f"Exit code 2\nerror: unrecognized subcommand 'bun{number}'",
            )
            member.work(wrong, RIGHT)
        failures: list[Exception] = []

        def push(member: Member) -> None:
            try:
                member.push(repository)
            except PushRejected as error:  # a bounded number of tries; the command can be run again
                failures.append(error)

        threads = [threading.Thread(target=push, args=(member,)) for member in members]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        signers = {
            json.loads(git("show", f"main:{path}", folder=repository))["signature"]["by"]
            for path in list_files(repository)
        }
        assert signers == {member.name for member in members}
