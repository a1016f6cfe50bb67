"""Delivered, silent or failed: real phrasings, most of them tricky. `bench/jobs.py` prints the table."""

from __future__ import annotations

import json

import pytest

from places import DATA
from warmstart import classify_job_output

OUTPUTS = [json.loads(line) for line in (DATA / "jobs/outputs.jsonl").read_text().splitlines()]


def test_the_list_is_long_enough_and_half_of_it_tricky() -> None:
    assert len(OUTPUTS) >= 60 and 2 * sum(output["tricky"] for output in OUTPUTS) >= len(OUTPUTS)
    texts = [output["text"] for output in OUTPUTS if output["expected"] != "silent"]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda output: " ".join(output["text"].split())[:40])
def test_labelled_outputs(output: dict[str, str]) -> None:
    found = classify_job_output(output["text"])
    assert found.status == output["expected"], found
    assert bool(found.reason) == (found.status == "failed")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[SCRIPT_FAILED]: no key\nand more", "no key"),
        ("**[SCRIPT_FAILED]: no key**", "no key"),
        ("I tried.\n[SCRIPT_FAILED]: no key", "no key"),
        ("[SCRIPT_FAILED]", "the run says so and gives no reason"),
        ("[SCRIPT_FAILED]: a\n[SILENT]", "a"),
        ("Hello.\n\nThe script failed with exit code 1. More.", "The script failed with exit code 1."),
    ],
)
def test_the_reason(text: str, reason: str) -> None:
    found = classify_job_output(text)
    assert (found.status, found.reason) == ("failed", reason)


def test_an_empty_answer_is_silence() -> None:
    assert classify_job_output(" \n").status == "silent"


@pytest.mark.parametrize(
    "part", ["the ", "`x` ", "no x ", "I could not ", '"', "a\n", "the script ", "```\n", "(", "exit "]
)
def test_long_answers_take_no_time(part: str) -> None:
    """A pattern with quadratic time would hang here."""
    assert classify_job_output(part * (200_000 // len(part))).status in ("delivered", "failed")
