"""Parts of the MCP door that need no server: which files may be read, how answers are cut, what is asked of the SDK."""

from __future__ import annotations

import json
import os
from importlib import metadata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warmstart
from transcripts import claude_lines, write_jsonl
from warmstart.doors.cli.mcp import check_sdk
from warmstart.doors.mcp.answers import MAX_ANSWER, write_answer
from warmstart.doors.mcp.arguments import ProvisionArguments, WrongArguments, read_arguments
from warmstart.doors.mcp.tools import TOOLS
from warmstart.doors.mcp.transcripts import check_transcript, choose_folders
from warmstart.errors import Refused, WarmstartError


def test_without_the_sdk_one_is_told_what_to_install():
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    with pytest.raises(Refused, match=r"pip install -e '\.\[mcp\]'"):
        check_sdk(missing)
    with pytest.raises(Refused, match=r"1\.26\.0 is installed; install Warmstart in an environment of its own"):
        check_sdk(lambda _name: "1.26.0")
    check_sdk(lambda _name: "2.3.0")


# Which files `record` may read


@pytest.fixture
def folders(tmp_path):
    """What a server may read that was started in a project and told of one more folder."""
    home = tmp_path / "user-home"
    for name in ("project", "told", "elsewhere", "user-home/.codex/sessions"):
        write_jsonl(tmp_path / name / "fine.jsonl", claude_lines())
    (home / ".codex" / "auth.json").write_text('{"token": "x"}')
    with warmstart.open() as ws:
        return tmp_path, choose_folders(ws, [tmp_path / "told"], tmp_path / "project")


def test_transcripts_in_allowed_folders_are_read(folders):
    root, allowed = folders
    for name in (
        "project/fine.jsonl",
        "told/../project/fine.jsonl",
        "told/fine.jsonl",
        "user-home/.codex/sessions/fine.jsonl",
    ):
        assert check_transcript(str(root / name), allowed) == (root / name).resolve()


def test_every_other_path_is_refused_and_tells_nothing(folders):
    root, allowed = folders
    (root / "project" / "way-out.jsonl").symlink_to(root / "elsewhere" / "fine.jsonl")
    (root / "project" / "folder-out").symlink_to(root / "elsewhere")
    (root / "project" / "loop").symlink_to(root / "project" / "loop")
    outside = [
        *("/etc/passwd", "/etc/no-such-file", "/dev/zero", "/proc/self/environ", "/", "//etc/passwd"),
        *(
            str(root / name)
            for name in ("elsewhere/fine.jsonl", "elsewhere/no-such", "project/../elsewhere/fine.jsonl")
        ),
        *(str(root / "project" / name) for name in ("way-out.jsonl", "folder-out/fine.jsonl")),
        str(root / "user-home" / ".codex" / "auth.json"),
        str(root / "projects-with-a-longer-name"),
        "/x\0y",
    ]
    said = set()
    for path in outside:
        with pytest.raises(Refused) as error:
            check_transcript(path, allowed)
        said.add(str(error.value))
    assert len(said) == 1, "the same answer whether or not there is such a file"


def test_inside_only_a_regular_file_that_is_a_transcript_counts(folders):
    root, allowed = folders
    project = root / "project"
    (project / "notes.md").write_text("# notes")
    (project / "empty.jsonl").write_text("")
    os.mkfifo(project / "pipe.jsonl")
    for name in ("notes.md", "empty.jsonl", "pipe.jsonl", "no-such.jsonl", "loop", ".", "x" * 300):
        with pytest.raises(WarmstartError):
            check_transcript(str(project / name), allowed)
    for path in ("fine.jsonl", "./fine.jsonl", "~/fine.jsonl", "file:///etc/passwd", ""):
        with pytest.raises(Refused, match="absolute"):
            check_transcript(path, allowed)


def test_started_in_the_home_folder_or_above_nothing_more_is_allowed(tmp_path):
    with warmstart.open() as ws:
        for folder in (tmp_path / "user-home", tmp_path, tmp_path.root):
            assert choose_folders(ws, [], tmp_path / folder) == ()


# Answers

nested = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=60).map(lambda text: text * 40),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=10), inner, max_size=8),
    max_leaves=30,
)


@settings(max_examples=40, deadline=None)
@given(nested)
def test_an_answer_is_always_valid_json_that_says_when_it_is_cut(value):
    body = write_answer(value)
    plain = json.loads(body)
    if plain != json.loads(json.dumps(value)):
        assert "cut" in plain
    assert isinstance(plain, dict) or len(body) <= MAX_ANSWER


def test_a_long_list_is_cut_to_what_fits():
    body = write_answer({"templates": [{"name": f"t{n}", "description": "word " * 200} for n in range(500)]})
    assert len(body) <= MAX_ANSWER and "lists are cut to" in json.loads(body)["cut"]


def test_a_seed_is_never_cut():
    messages = [{"role": "user", "content": "word " * 10_000}]
    assert json.loads(write_answer({"messages": messages, "omitted": ["x" * 50_000]}))["messages"] == messages


# Arguments


def test_every_property_has_a_type_and_every_text_a_limit():
    for name, tool in TOOLS.items():
        for key, facts in tool.schema["properties"].items():
            assert "type" in facts or "anyOf" in facts, (name, key)
            if facts.get("type") == "string" and name != "warm_session":
                assert "enum" in facts or "maxLength" in facts, (name, key)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(st.text(max_size=8) | st.sampled_from(["task", "session", "budget", "tools"]), nested, max_size=6)
)
def test_arguments_are_read_or_refused_in_words(given_arguments):
    try:
        read = read_arguments(ProvisionArguments, given_arguments)
    except WrongArguments as error:
        assert 0 < len(str(error)) <= 600
    else:
        assert isinstance(read.text, str)
