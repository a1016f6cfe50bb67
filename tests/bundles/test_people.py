"""Names of people are found in what is shared, and ordinary words are left alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bundles.team import Member
from notes.stored import RIGHT, WRONG
from warmstart.bundles.people import PersonalWords, SharingScope
from warmstart.redact import Redactor


def learn(*prose: str, code: str = "") -> PersonalWords:
    people = PersonalWords()
    for text in prose:
        people.learn_prose(text)
    people.learn(code)
    people.learn_code(code)
    return people


def show(people: PersonalWords, text: str) -> str:
    return SharingScope(Redactor({}, share=True), people).sentence(text)


HEADINGS = """
Plan: Group Action Summary by Evaluator Type. Add "Context" Tab with Grouped Sections Layout, from Summary Page.
Rebuild Tailwind. Strip Packmind. Enable Remediation; see Past Remediations and Critical Notes. Check exports from Chakra.
La YAML. Refonte du Menu. Switching from Chakra UI to Acme Grid. Use `@apply flex`, then update @changelog. Hello World.
The evaluator keeps its remediation history.
Co-Authored-By: Claude Opus 4.6 <noreply@anthropic.com>
"""
CODE = """
{"file_path": "/Users/cedricteyton/Code/agents-md-evaluator/frontend/src/RemediateTab.tsx", "owner": "packmind"}
bun add @chakra-ui/react@3.33.0; const packmindUrl = strip_packmind(evaluator_type)
"""


@pytest.mark.parametrize(
    "text",
    [
        "most in `~/Code/agents-md-evaluator/frontend/src/RemediateTab.tsx`",
        "evaluate-tab-display-test",
        "const packmindUrl = strip_packmind(evaluatorType) // Evaluator Type, Grouped Sections Layout",
        "@chakra-ui/react@3.33.0, Chakra UI, Tailwind, Claude Opus, Sonnet, YAML",
        "refonte du menu; remediation history; Past Remediations; apply the changelog; Hello World",
    ],
)
def test_ordinary_words_and_identifiers_are_nobodys_names(text: str) -> None:
    assert show(learn(HEADINGS, code=CODE), text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ask Anna Schmidt or Marie Curie first", "ask a person or a person first"),
        ("Anna says: skills are off here", "a person says: skills are off here"),
        ("build moved, says Bob Miller", "build moved, says a person"),
        ("Ludwig van Beethoven and Ronan McAllister decide", "a person and a person decide"),
        ("the key is with Nkechi Okonkwo", "the key is with a person"),
        ("Please Ask Olga Petrova Before Release", "Please Ask a person Before Release"),
        ("tell Okonkwo; his is /x/agents-md-evaluator", "tell a person; his is /x/agents-md-evaluator"),
        ("cedricteyton/fix-x and /srv/cedricteyton/x", "a person/fix-x and /srv/a person/x"),
    ],
)
def test_people_in_a_persons_own_sentence_are_found(text: str, shown: str) -> None:
    assert show(learn(HEADINGS, text, code=CODE), text) == shown


def test_a_name_that_code_uses_too_is_replaced_where_it_stands_alone() -> None:
    people = learn("TODO(jenkins-smith): ask", code='"login": "packmind" src/packmind/client.py')
    assert show(people, "packmind broke src/packmind/client.py") == "a person broke src/packmind/client.py"


def test_handles_of_projects_and_folders_called_home_are_nobodys() -> None:
    log = "Author: mise-en-dev <release@mise.jdx.dev>\n/tmp/test.cuIh7c/home/workdir/x $TESTDIR/home/tombi.toml\n"
    people = learn("Use mise, or vfox: mise reads a toml file. Valentin Fox knows", code=f"{log} /var/home/jdx/x")
    text = "mise in workdir reads mise.toml; vfox too"
    assert show(people, text) == text
    assert show(people, "jdx/mise by mise-en-dev and Valentin Fox") == "a person/mise by a person and a person"


def test_what_a_person_wrote_is_searched_before_it_leaves(tmp_path: Path) -> None:
    member = Member(tmp_path, "anna")
    member.work(WRONG, RIGHT)
    with member.open() as ws:
        (note,) = ws.notes.list(kind="command")
        ws.notes.edit(note.id, "use bun run test, ask Anna Schmidt or Marie Curie first")
    member.push(tmp_path / "b")
    (file,) = (tmp_path / "b").rglob("command-*.json")
    assert json.loads(file.read_text())["note"]["text"] == "use bun run test, ask a person or a person first"
