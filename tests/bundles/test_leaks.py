"""Nothing personal leaves: everything of twelve people is planted in transcripts and searched for in every byte."""

from __future__ import annotations

import base64
import json
import subprocess
import unicodedata
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

import warmstart
from bundles.team import PROJECT, Member, git, list_files, make_repository
from notes.stored import RIGHT, WRONG, flagged
from transcripts import teach, work_lines
from warmstart.bundles.people import PersonalWords
from warmstart.redact import Redactor

# first name, last name, account, mail, phone, machine, secret
PEOPLE = (
    (
        "Marta",
        "Kowalska",
        "mkowalska",
        "marta.kowalska@zielony-sklep.pl",
        "+48 601 234 987",
        "marta-thinkpad.lan",
        "ghp_",
    ),
    ("Björn", "Lindqvist", "bjornl", "bjorn@lindqvist-konsult.se", "+46 70 123 45 67", "lindqvist-mac.corp", "AKIA"),
    (
        "Priya",
        "Raman",
        "praman",
        "priya.raman@fabrikam-labs.in",
        "+91 98765 43210",
        "praman-dev.internal",
        "sk-ant-api03-",
    ),
    ("Ольга", "Петрова", "opetrova", "olga.petrova@severnaya.ru", "+7 921 555 01 23", "opetrova-pc.intra", "glpat-"),
    ("Wei", "Zhang", "weizhang", "wei.zhang@huaxing-soft.cn", "+86 139 1234 5678", "weizhang-box.lan", "xoxb-"),
    ("Aoife", "Ní Bhriain", "anibhriain", "aoife@nibhriain.ie", "+353 86 123 4567", "aoife-nuc.corp", "npm_"),
    (
        "José",
        "Müller-Ortega",
        "jmullerortega",
        "jose.ortega@tienda-azul.es",
        "+34 612 345 678",
        "ortega-xps.lan",
        "hf_",
    ),
    (
        "Nkechi",
        "Okonkwo",
        "nokonkwo",
        "nkechi@okonkwo-systems.ng",
        "+234 803 123 4567",
        "nokonkwo-lap.internal",
        "ghp_",
    ),
    ("Łukasz", "Wiśniewski", "lwisniewski", "lukasz@wisniewski-it.pl", "+48 512 876 345", "lwisniewski-pc.lan", "AKIA"),
    ("Siobhan", "O'Malley", "somalley", "siobhan@omalley-design.ie", "(415) 867-5309", "somalley-air.corp", "glpat-"),
    ("Yuki", "Tanaka", "ytanaka", "yuki.tanaka@aozora-ks.jp", "+81 90-1234-5678", "ytanaka-ws.intra", "hf_"),
    ("Fatima", "al-Zahrani", "falzahrani", "fatima@zahrani-group.sa", "+966 50 123 4567", "falzahrani-vm.lan", "npm_"),
)
TAIL = "9fQ2mZ7xK4wR8tL3vB6nC1pS5dG0hJ2yAqWeRt"


def secret_of(person: tuple[str, ...]) -> str:
    tail = "".join(
        chr((ord(char) - 48 + sum(map(ord, person[2]))) % 26 + 97) if char.isalpha() else char for char in TAIL
    )
    return f"AKIA{tail.upper()[:16]}" if person[6] == "AKIA" else f"{person[6]}{tail[:36]}"


def password_of(person: tuple[str, ...]) -> str:
    return f"Zx7!{person[2][::-1]}#42"


def plant(person: tuple[str, ...], folder: str, number: int) -> list[Any]:
    """Return a session in which a person's data stands wherever real sessions have it."""
    first, last, account, mail, phone, machine, _ = person
    name = f"{first} {last}"
    encoded = base64.b64encode(f"owner={name}".encode()).decode()
    calls = [
        WRONG,
        RIGHT,
        ("Bash", {"command": "git log -1"}, f"commit 1f\nAuthor: {name} <{mail}>\nDate: today\n\n    tests\n"),
        ("Bash", {"command": f"curl -H 'Authorization: Bearer {secret_of(person)}' https://{machine}/api"}, "ok"),
        ("Bash", {"command": f"PGPASSWORD='{password_of(person)}' psql -h {machine} -U {account} shop"}, "1 row"),
        ("Read", {"file_path": f"/home/{account}/notes/{account}.md"}, f"call {first} at {phone} or {mail}"),
        ("Bash", {"command": f"echo {encoded} | base64 -d"}, f"owner={name}"),
        ("Bash", {"command": "gh pr view"}, json.dumps({"assignee": name, "login": account, "email": mail})),
        (
            "Edit",
            {"file_path": f"{folder}/CODEOWNERS", "old_string": "x", "new_string": f"* @{account} {mail}"},
            "updated",
        ),
        ("Bash", {"command": f"grep -rn {last!r} src"}, f"src/a.py:3:# TODO({account}): ask {name}"),
        ("Bash", {"command": "uv run pytest -q"}, f"3 passed in 0.2s on {machine}"),
        (
            "Bash",
            {"command": f"git commit -m 'Thanks to {name}' --author='{name} <{mail}>'"},
            f"[main 1f2] Thanks to {name}",
        ),
    ]
    task = f"Hi, I'm {name} ({phone}). Please fix the failing cart tests, and tell {first} {last} when done. Password: {password_of(person)}"
    return flagged(work_lines(f"{account}-{number}", *calls, task=task, cwd=folder, day=number + 1))


def list_planted(person: tuple[str, ...]) -> set[str]:
    first, last, account, mail, phone, machine, _ = person
    texts = {f"{first} {last}", first, last, account, mail, mail.split("@")[0], mail.split("@")[1], phone}
    texts |= {machine, machine.split(".")[0], secret_of(person), password_of(person), f"/home/{account}"}
    return {text for text in texts if len(text) > 3} | {first, last}


def spell(text: str) -> Iterator[bytes]:
    """Yield a text in every encoding, and in every case."""
    forms = {text, text.lower(), text.upper(), text.swapcase(), text.title()}
    forms |= {unicodedata.normalize("NFD", form) for form in forms}
    for form in forms:
        raw = form.encode()
        yield raw
        yield json.dumps(form)[1:-1].encode()
        yield from (quote(form, safe="").encode(), quote_plus(form).encode())
        for data in (raw, form.encode("utf-16-le"), form.encode("utf-16-be")):
            yield data
            yield from (data.hex().encode(), data.hex().upper().encode())
            if len(data) >= 5:
                for shift in range(3):
                    code = base64.b64encode(b"\0" * shift + data)
                    core = code.rstrip(b"=")[(0, 2, 3)[shift] :]
                    core = core if (len(data) + shift) % 3 == 0 else core[:-1]
                    yield from (core, core.replace(b"+", b"-").replace(b"/", b"_"))
                    yield core[::-1]
        yield raw[::-1]


def find_leaks(exported: dict[str, bytes], texts: set[str]) -> list[str]:
    return [
        f"{text!r} as {form!r} in {name}"
        for text in sorted(texts)
        for form in set(spell(text))
        if len(form) > 3
        for name, data in exported.items()
        if _holds(data, form)
    ]


def _holds(data: bytes, form: bytes) -> bool:
    """Return whether bytes hold a form. A short word inside a longer one (`wei` in `weight`) is no name."""
    at = data.find(form)
    while at >= 0:
        around = data[max(0, at - 1) : at] + data[at + len(form) : at + len(form) + 1]
        if len(form) > 5 or not any(chr(byte).isalpha() for byte in around):
            return True
        at = data.find(form, at + 1)
    return False


def read_objects(repository: Path) -> dict[str, bytes]:
    """Return every object of a repository, unpacked, and every other file of it as it is."""
    names = git("cat-file", "--batch-all-objects", "--batch-check", folder=repository).split("\n")
    objects = {}
    for line in filter(None, names):
        name, kind, _size = line.split()
        content = subprocess.run(["git", "cat-file", kind, name], cwd=repository, capture_output=True, check=True)
        objects[f"{kind} {name[:8]}"] = content.stdout
    files = {str(file.relative_to(repository)): file.read_bytes() for file in repository.rglob("*") if file.is_file()}
    loose = {f"raw {name}": zlib.decompress(data) for name, data in files.items() if data[:2] in (b"x\x01", b"x\x9c")}
    return objects | loose | {name: data for name, data in files.items() if not name.endswith(".sample")}


@pytest.mark.slow
def test_nothing_of_twelve_people_is_in_any_exported_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    member = Member(tmp_path, "pseudonym")
    git("config", "--global", "user.name", "Greta Sommerfeld")
    git("config", "--global", "user.email", "greta@sommerfeld-bau.de")
    with member.open() as ws:
        number = 0
        for person in PEOPLE:
            for _ in range(3):
                teach(ws, plant(person, str(member.checkout), number % 28))
                number += 1
        ws.learn()
        for person in PEOPLE[:6]:
            ws.capture(
                f"{person[2]}-{PEOPLE.index(person) * 3 % 28}", name=f"cart of {person[2]}", approve=True, anyway=True
            )
        note = ws.notes.list(kind="command", status="active")[0]
        ws.notes.edit(note.id, f"ask {PEOPLE[0][0]} {PEOPLE[0][1]}: `rtk bun run test` fails; mail {PEOPLE[0][3]}")
    repository = make_repository(tmp_path / "team.git")
    pushed = member.push(repository)
    folder = tmp_path / "folder"
    member.push(folder)
    shared = [item for item in pushed.items if item.change == "new"]
    assert {item.type for item in shared} == {"note", "template"}  # the test must not pass for want of anything shared
    assert len([item for item in shared if item.type == "template"]) >= 3
    exported = read_objects(repository)
    exported |= {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    exported["paths"] = "\n".join(list_files(repository)).encode()
    texts = set().union(*map(list_planted, PEOPLE)) | {"Greta Sommerfeld", "Sommerfeld", "sommerfeld-bau.de"}
    texts |= {str(tmp_path)}
    leaks = find_leaks(exported, texts)
    assert leaks == []
    log = git("log", "--format=%an %ae %cn %ce %aI", "main", folder=repository)
    assert log.startswith("warmstart bundle@warmstart.invalid warmstart bundle@warmstart.invalid")
    assert log.strip().endswith(("+00:00", "Z"))  # not even the time zone
    store = b"".join(file.read_bytes() for file in member.home.rglob("*.db*"))
    assert b"Kowalska" in store  # the names were there to leak
    assert PROJECT.encode() in b"".join(exported.values())


def test_the_search_finds_what_is_there() -> None:
    """A search that finds nothing proves nothing unless it finds what is planted."""
    for form in spell("Kowalska"):
        assert find_leaks({"x": b"abc " + form + b" def"}, {"Kowalska"}), form


def test_chosen_words_never_leave(tmp_path: Path) -> None:
    member = Member(tmp_path, "anna")
    member.work(
        ("Bash", {"command": "rtk bluebird test"}, "Exit code 2\nerror: unrecognized subcommand 'bluebird'"), RIGHT
    )
    shown = member.push(tmp_path / "open")
    assert any("bluebird" in item.title for item in shown.items)
    hidden = member.push(tmp_path / "hidden", hide=["Bluebird"])
    assert not any("bluebird" in item.title for item in hidden.items)
    assert not find_leaks(
        {file.name: file.read_bytes() for file in (tmp_path / "hidden").rglob("*.json")}, {"bluebird"}
    )
    assert any(item.reason == "its subject names a person, a machine or a secret" for item in hidden.left_out) or any(
        "names a person" in item.reason for item in hidden.left_out
    )


def test_personal_scopes_and_refusals_stay(tmp_path: Path) -> None:
    member = Member(tmp_path, "anna")
    member.work(WRONG, RIGHT)
    with member.open() as ws, ws.store.writing():
        own = ws.notes.list(kind="command")[0]
        from msgspec import structs

        refusal = structs.replace(own, id="1" * 12, kind="refusal", key="refusal:x", text="The user refuses `x`")
        theirs = structs.replace(own, id="2" * 12, scope="telegram:abc", key="command:y")
        for note in (refusal, theirs):
            ws.notes._put(note, None, 0.0)
    pushed = member.push(tmp_path / "b")
    assert not {"1" * 12, "2" * 12} & {item.id for item in pushed.items}
    assert [item.reason for item in pushed.left_out] == ["a person's refusal is theirs; to share it: notes share"]


def test_a_private_host_is_not_named_unless_allowed(tmp_path: Path) -> None:
    member = Member(tmp_path, "anna")
    git("remote", "set-url", "origin", "git@git.zielony-sklep.pl:team/shop.git", folder=member.checkout)
    member.work(WRONG, RIGHT)
    project = "git.zielony-sklep.pl/team/shop"
    with member.open() as ws, pytest.raises(warmstart.Refused, match=r"bundle\.hosts"):
        ws.bundles.push(str(tmp_path / "b"), [project])
    (member.home / "config.toml").write_text('[bundle]\nhosts = ["git.zielony-sklep.pl"]\n')
    with member.open() as ws:
        assert ws.bundles.push(str(tmp_path / "b"), [project]).items


def test_a_folder_without_a_repository_is_not_shared(tmp_path: Path) -> None:
    member = Member(tmp_path, "anna")
    with member.open() as ws, pytest.raises(warmstart.Refused, match="no git remote"):
        ws.bundles.push(str(tmp_path / "b"), ["/home/anna/shop"])


def test_names_are_hidden_in_every_case_and_as_handles() -> None:
    people = PersonalWords()
    people.learn("Author: Björn Lindqvist <b@x.se>\n/home/okonkwo/x")
    people.learn_prose(
        "Hi, I'm Łukasz Wiśniewski. Please tell Ольга Петрова that Shopping Cart tests run. The shopping cart works."
    )
    scope = Redactor({}, share=True).scope()
    for text in ("BJORN", "björn", "lindqvist", "blindqvist", "lukasz_wisniewski", "Okonkwo's", "ОЛЬГА", "Bjo\u0308rn"):
        assert "person#" in people.hide(f"see {text} there", scope), text
    for text in ("shopping cart", "Cart", "lindqvister", "run tests"):
        assert people.hide(text, scope) == text
    assert people.find_encoded(base64.b64encode(b"x Lindqvist").decode()) == "base64"
    assert people.find_encoded("6c696e647176697374") == "hex"
    assert people.find_encoded("nothing here") is None
