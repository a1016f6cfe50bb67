"""The store keeps for each call what it was for: its announcement or the latest request, as whole sentences."""

from __future__ import annotations

from typing import Any

import pytest

import warmstart
from transcripts import write_jsonl

FIRST = "Please add a retry to the payment client."
LATER = "Now rename the invoice table to bills in the migration."
READ = ("Read", {"file_path": "/home/dev/shop/payment.py"})
TESTS = ("Bash", {"command": "uv run pytest -q tests/test_payment.py"})


def answer(number: int, *parts: str | tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one answer as Claude Code writes it: a line for each part, all with the same message id; then results."""
    lines, results = [], []
    for at, part in enumerate(parts):
        if isinstance(part, str):
            block: dict[str, Any] = {"type": "text", "text": part}
        else:
            block = {"type": "tool_use", "id": f"toolu_{number}_{at}", "name": part[0], "input": part[1]}
            results.append({"type": "tool_result", "tool_use_id": block["id"], "content": "done"})
        message = {"id": f"msg_{number}", "role": "assistant", "model": "m", "content": [block]}
        lines.append({"type": "assistant", "uuid": f"a{number}-{at}", "message": message})
    return lines + [
        {"type": "user", "uuid": f"r{number}-{at}", "message": {"role": "user", "content": [result]}}
        for at, result in enumerate(results)
    ]


def says(text: str) -> list[dict[str, Any]]:
    return [{"type": "user", "uuid": f"u-{text[:9]}", "message": {"role": "user", "content": text}}]


@pytest.fixture
def intents(tmp_path):
    """Return what the calls of a session were for, as stored."""

    def read(*parts: list[dict[str, Any]]) -> list[str | None]:
        common = {"sessionId": "s1", "cwd": "/home/dev/shop", "timestamp": "2026-10-01T10:00:00.000Z"}
        path = write_jsonl(tmp_path / "s1.jsonl", [common | line for part in parts for line in part])
        with warmstart.open() as ws:
            ws.ingest(path)
            return [call.intent for call in ws.session("s1").calls]

    return read


def test_the_sentence_is_picked_from_the_whole_message_before_it_is_shortened(intents):
    finding = "The client gives up after the first timeout because nothing catches the exception. " * 4
    assert intents(says(FIRST), answer(1, f"{finding}Let me fix the payment client now.", READ)) == [
        "Let me fix the payment client now."
    ]


def test_a_long_sentence_ends_at_a_word_with_an_ellipsis(intents):
    plan = "Let me read the payment client " + " and ".join(f"its helper number {n}" for n in range(40))
    (intent,) = intents(says(FIRST), answer(1, plan, READ))
    assert intent is not None and len(intent) <= 200 and intent.endswith("…")
    assert plan.startswith(intent[:-1]) and plan[len(intent) - 1] == " ", "no word is cut"


def test_a_gap_in_a_long_message_leaves_no_half_sentence(intents):
    wall = "The log shows one more failed payment of an unknown customer. " * 120
    (intent,) = intents(says(FIRST), answer(1, f"{wall}Let me read the payment client.", READ))
    assert intent == "Let me read the payment client."


def test_the_latest_request_counts_and_not_the_first(intents):
    assert intents(says(FIRST), answer(1, READ), says(LATER), answer(2, READ)) == [FIRST, LATER]


@pytest.mark.parametrize(
    "filler",
    ["yes", "ok, continue", "Yes please, go ahead!", "ja, weiter", "oui, merci", "да, продолжай", "好的", "はい"],
)
def test_an_agreement_is_no_request(intents, filler):
    assert intents(says(FIRST), answer(1, READ), says(LATER), answer(2, READ), says(filler), answer(3, READ)) == [
        *(FIRST, LATER, LATER)
    ]


def test_one_word_is_a_request_only_for_the_call_it_names(intents):
    commit = ("Bash", {"command": "git commit -m 'retry payments'"})
    assert intents(says(FIRST), answer(1, READ), says("commit"), answer(2, commit), answer(3, READ)) == [
        *(FIRST, "commit", FIRST)
    ]


def test_an_announcement_belongs_to_its_own_answer(intents):
    assert intents(says(FIRST), answer(1, "Let me read the payment client.", READ), answer(2, TESTS)) == [
        *("Let me read the payment client.", FIRST)
    ]


def test_each_call_of_an_answer_gets_the_sentence_that_fits_it(intents):
    edit = ("Edit", {"file_path": "/home/dev/shop/mail.py", "old_string": "a", "new_string": "b"})
    text = "Let me read payment.py first. Then I'll run the tests to see what fails."
    assert intents(says(FIRST), answer(1, text, READ, TESTS, edit)) == [
        *("Let me read payment.py first.", "Then I'll run the tests to see what fails.", FIRST)
    ]


def test_a_sentence_that_names_another_file_is_not_taken(intents):
    other = ("Read", {"file_path": "/home/dev/shop/colours.css"})
    assert intents(says(FIRST), answer(1, "Let me read payment.py.", READ, other)) == ["Let me read payment.py.", FIRST]


def test_the_note_of_a_command_comes_first(intents):
    command = (TESTS[0], TESTS[1] | {"description": "Run the payment tests"})
    assert intents(says(FIRST), answer(1, "Let me look at the weather.", command)) == ["Run the payment tests"]


def test_a_secret_in_another_part_of_the_sentence_is_redacted(intents):
    (intent,) = intents(says(FIRST), answer(1, "Let me use the password: hunter2-Zx81kQpw9 for payment.py.", READ))
    assert "hunter2" not in (intent or "")


def test_greetings_and_code_are_not_part_of_a_request(intents):
    text = "Good morning! Thanks, hope you are well.\n\n```python\nraise PaymentError\n```\n\nPlease make the refund job idempotent."
    (intent,) = intents(says(text), answer(1, READ))
    assert intent is not None and "idempotent" in intent and "raise" not in intent and "Good morning" not in intent
