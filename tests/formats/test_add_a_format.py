"""The reader printed in docs/howto/add-a-format.md reads the sample printed there as the page says."""

from __future__ import annotations

import importlib.util
import json
import re

from formats.describing import describe
from places import HOWTO
from warmstart import formats
from warmstart.formats.source import Source
from warmstart.judging.outcome import judge_result
from warmstart.model import ToolResult

PAGE = (HOWTO / "add-a-format.md").read_text()


def read_block(language: str) -> str:
    (block,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.S | re.M)
    return block


def test_the_printed_reader_reads_the_printed_sample(tmp_path):
    module = tmp_path / "acme.py"
    module.write_text(read_block("python"))
    spec = importlib.util.spec_from_file_location("acme", module)
    assert spec and spec.loader
    acme = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(acme)
    case = tmp_path / "case.jsonl"
    case.write_text(read_block("jsonl"))
    source = Source(case)
    assert acme.sniff(source.head)
    assert not [known.NAME for known in formats.FORMATS if known.sniff(source.head)]
    sessions = list(acme.read(source, judge_result))
    assert [describe(session) for session in sessions] == json.loads(read_block("json"))
    assert not source.problems
    (result,) = [step for step in sessions[0].steps if isinstance(step, ToolResult)]
    assert (result.outcome.status, result.outcome.basis) == ("error", "exit_code")


def test_the_page_names_every_method_and_field():
    for name in ("message", "call", "result", "spend", "close", "records", "walk", "decode", "report"):
        assert re.search(rf"`[^`]*\b{name}\(", PAGE), name
    for name in json.loads(read_block("json"))[0]:
        assert f"`{name}`" in PAGE or f'"{name}"' in PAGE
