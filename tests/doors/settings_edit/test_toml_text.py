"""TOML that another program owns: a table added at the end, and removed again; all else stays byte for byte."""

from __future__ import annotations

import sys

import pytest

from warmstart.doors.settings_edit import toml_text
from warmstart.errors import Refused

OURS = ("mcp_servers", "warmstart")
VALUES = {"command": "w", "args": ["mcp", "a b"]}
BEFORE = '# mine\nmodel = "o3" # the best\n\n[mcp_servers.other]\ncommand = "x"\n'


@pytest.mark.parametrize(
    "before",
    [
        "",
        BEFORE,
        "[mcp_servers]\n",
        "[[x]]\na = 1\n[[x]]\nb = 1\n",
        'a = """\n[mcp_servers.warmstart]\n"""\r\n[x]\r\ny = 1\r\n',
    ],
)
def test_in_and_out_again(before: str) -> None:
    after = toml_text.put_entry(before, *OURS, VALUES).apply(before)
    assert after.startswith(before) and toml_text.parse(after)["mcp_servers"]["warmstart"] == VALUES
    assert ("\r\n" in before) == ("\r\n" in after.removeprefix(before))
    assert toml_text.remove_entry(after, *OURS) == before
    assert toml_text.remove_entry(before, *OURS) == before


@pytest.mark.parametrize(
    "more",
    [
        '\n[mcp_servers.warmstart.env]\nA = "1"\n',
        "\n[[mcp_servers.warmstart.tools]]\na = 1\n",
        "# only a comment\n",
        "",
    ],
)
def test_subtables_go_too_and_comments_of_others_stay(more: str) -> None:
    text = toml_text.put_entry(BEFORE, *OURS, VALUES).apply(BEFORE) + more + "\n# theirs\n[mcp_servers.z]\nx = 1\n"
    kept = more if more.startswith("#") else ""
    assert toml_text.remove_entry(text, *OURS) == BEFORE + kept + "\n# theirs\n[mcp_servers.z]\nx = 1\n"


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = {other = {command = "x"}}\n',
        "mcp_servers = {}\n",
        "[mcp_servers]\nwarmstart = 1\n",
        "[[mcp_servers]]\na = 1\n",
        "a = \n",
    ],
)
def test_what_cannot_take_a_table_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        toml_text.put_entry(text, *OURS, VALUES)


@pytest.mark.parametrize(
    "text",
    [
        '[mcp_servers]\nwarmstart = {command = "w"}\n',
        "[mcp_servers.warmstart.env]\na = [1,\n 2]\n",
        "mcp_servers.warmstart.a = 1\n",
        "[mcp_servers.warmstart]\na = 1\n[x]\nb = 1\n[mcp_servers.warmstart.env]\nc = 1\n",
    ],
)
def test_what_cannot_be_cut_safely_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="remove it by hand"):
        toml_text.remove_entry(text, *OURS)


def test_a_header_inside_a_text_is_no_header() -> None:
    text = 'x = """\n[mcp_servers.warmstart]\n"""\n'
    assert toml_text.remove_entry(text + "[mcp_servers.warmstart]\na = 1\n", *OURS) == text


def test_without_tomlkit_nothing_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tomlkit.items", None)
    with pytest.raises(Refused, match=r"pip install -e '\.\[mcp\]'"):
        toml_text.put_entry("", *OURS, VALUES)
