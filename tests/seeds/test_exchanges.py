"""Seeds of whole exchanges, end to end: transcripts in, chosen by request, nothing leaked, borders and decisions kept."""

from __future__ import annotations

import json
import random
import string
from pathlib import Path
from typing import Any

import pytest

import warmstart
from warmstart.dialects.lint import lint
from warmstart.model import DIALECTS, Dialect, Task
from warmstart.pipeline import Warmstart


def write(folder: Path, name: str, turns: list[tuple[str, list[tuple[str, dict[str, Any], str]], str]]) -> None:
    """Write a transcript: (request, [(tool, arguments, result)], closing words)."""
    messages: list[dict[str, Any]] = []
    for request, calls, closing in turns:
        messages.append({"role": "user", "content": request})
        for tool, arguments, result in calls:
            id = f"call_{name}_{len(messages)}"
            function = {"name": tool, "arguments": json.dumps(arguments)}
            entry = {"id": id, "type": "function", "function": function}
            messages.append({"role": "assistant", "content": None, "tool_calls": [entry]})
            messages.append({"role": "tool", "tool_call_id": id, "content": result})
        if closing:
            messages.append({"role": "assistant", "content": closing})
    folder.mkdir(exist_ok=True)
    document = {"id": name, "success": True, "messages": messages}
    (folder / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")


CITIES = ("Oslo", "Bergen", "Kiruna", "Lyon", "Porto", "Graz")


@pytest.fixture
def ws(tmp_path: Path) -> Any:
    for number, city in enumerate(CITIES):
        distance = [
            ("get_zipcode", {"city": city}, f'{{"zip": "Z{number}"}}'),
            ("estimate_distance", {"to": f"Z{number}"}, '{"km": 9}'),
        ]
        write(
            tmp_path / "t",
            f"s{number}",
            [
                (f"How far is it to {city} by car?", distance, f"It is 9 km to {city}."),
                ("Lock all doors of the car", [("lock_doors", {"all": True}, '{"locked": 4}')], "All doors are locked."),
                (f"Post a tweet that I drive to {city}", [("post_tweet", {"text": f"To {city}!"}, '{"id": 1}')], ""),
            ],
        )  # fmt: skip
    with warmstart.open() as opened:
        opened.ingest(tmp_path / "t")
        opened.learn()
        yield opened


def tools_of(seed: Any) -> list[str]:
    return [call["function"]["name"] for message in seed.messages for call in message.get("tool_calls") or ()]


def test_the_nearest_request_is_shown_whole_and_last(ws: Warmstart) -> None:
    seed = ws.provision(Task(text="Tell me the distance to Turin: how far is it by car?"))
    assert tools_of(seed)[-2:] == ["get_zipcode", "estimate_distance"]
    assert seed.messages[-1]["content"].startswith("It is 9 km to ")
    assert "That call worked" not in str(seed.messages)


def test_the_reason_says_which_examples_only_fill_the_room(ws: Warmstart) -> None:
    assert "usual in such work" in ws.provision(Task(text="unlock the doors and drive to Lyon")).reason
    assert "usual" not in ws.provision(Task(text="How far is it to Rome by car?")).reason


def test_arguments_are_shown_in_the_order_in_which_the_agent_gave_them(tmp_path: Path) -> None:
    for number, city in enumerate(CITIES):
        flight = {"origin": "Rome", "destination": city, "date": f"2026-12-{number + 10}"}
        write(tmp_path / "t", f"f{number}", [(f"Book a flight from Rome to {city}", [("book", flight, "ok")], "Done.")])
    with warmstart.open() as opened:
        opened.ingest(tmp_path / "t")
        opened.learn()
        seed = opened.provision(Task(text="Book a flight from Rome to Turin"))
    (call, *_) = [call["function"] for message in seed.messages for call in message.get("tool_calls") or ()]
    assert list(json.loads(call["arguments"])) == ["origin", "destination", "date"]


def test_a_call_whose_answer_is_empty_is_part_of_its_exchange(tmp_path: Path) -> None:
    for number, city in enumerate(CITIES):
        calls = [("find_flights", {"to": city}, '{"flights": 3}'), ("set_alert", {"city": city}, "")]
        write(tmp_path / "t", f"e{number}", [(f"Find flights to {city} and set an alert", calls, "Both are done.")])
    with warmstart.open() as opened:
        opened.ingest(tmp_path / "t")
        opened.learn()
        seed = opened.provision(Task(text="Find flights to Turin and set an alert"))
    shown = [call["function"]["name"] for message in seed.messages for call in message.get("tool_calls") or ()]
    assert shown[:2] == ["find_flights", "set_alert"]
    assert seed.messages[-1]["content"] == "Both are done."


def test_what_the_sessions_tools_cannot_do_is_out(ws: Warmstart) -> None:
    seed = ws.provision(Task(text="How far is it to Turin by car?", tools=("estimate_distance", "lock_doors")))
    assert set(tools_of(seed)) <= {"lock_doors"}, "the exchange needs get_zipcode too"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_seeds_are_valid_in_every_dialect(ws: Warmstart, dialect: Dialect) -> None:
    seed = ws.provision(Task(text="How far is it to Turin by car, and lock the doors", dialect=dialect))
    assert lint([seed.text or ""] if dialect == "text" else seed.messages, dialect) == []  # type: ignore[list-item]
    assert seed.tokens <= seed.budget


def test_more_is_found_than_a_template_lists_and_only_while_it_is_in_use(ws: Warmstart) -> None:
    (row, template), *_ = ws.templates.find("active")
    assert template.further
    asked = template.further[0].intent
    assert asked in str(ws.provision(Task(text=asked)).messages)
    ws.templates.retire(row.name)
    assert not ws.provision(Task(text=asked))


def test_a_deleted_session_is_gone_from_what_can_be_found(ws: Warmstart) -> None:
    key = next(example.session for _row, template in ws.templates.find("active") for example in template.further)
    ws.delete_session(key)
    shown = [
        example for _row, template in ws.templates.find("active") for example in (*template.examples, *template.further)
    ]
    assert key not in {example.session for example in shown}


def test_learning_again_adds_exchanges_under_a_recorded_decision(ws: Warmstart, tmp_path: Path) -> None:
    before = {row.name: row.version for row, _template in ws.templates.find("active")}
    write(
        tmp_path / "t",
        "new",
        [("Open the trunk of the car for the luggage", [("open_trunk", {"wide": True}, '{"open": true}')], "")],
    )
    ws.ingest(tmp_path / "t")
    ws.learn()
    seed = ws.provision(Task(text="Open the trunk of the car"))
    assert "open_trunk" in tools_of(seed)
    names = {name.partition("@")[0] for name in seed.templates}
    assert names <= {row.name for row, _template in ws.templates.find("active")}
    decisions = [decision for name in names for decision in ws.templates.show(name)[2]]
    assert all(decision.by for decision in decisions)
    assert before


def make_secrets(chance: random.Random) -> dict[str, str]:
    letters = string.ascii_letters + string.digits
    token = "".join(chance.choices(letters, k=24)) + "7"
    first, last = (
        chance.choice(("Zdenka", "Okwudili", "Thorvald")),
        chance.choice(("Quillfeather", "Vantongeren", "Abayomrie")),
    )
    return {
        "token": f"tk_{token}",
        "password": f"Pw{chance.randrange(10_000, 99_999)}!x{token[:4]}",
        "email": f"{first.lower()}{chance.randrange(100, 999)}@mail-{token[:4].lower()}.net",
        "passport": f"P{chance.randrange(10_000_000, 99_999_999)}",
        "card": make_card(chance),
        "user": f"{first.lower()}_{last.lower()}_{chance.randrange(1_000, 9_999)}",
        "phone": f"{chance.randrange(200, 999)}-{chance.randrange(200, 999)}-{chance.randrange(1_000, 9_999)}",
        "order": f"#W{chance.randrange(1_000_000, 9_999_999)}",
        "code": f"{chance.randrange(100_000, 999_999)}",
        "last": last,
    }


def make_card(chance: random.Random) -> str:
    digits = [4, *(chance.randrange(10) for _ in range(14))]
    doubled = [sum(divmod(2 * digit, 10)) if at % 2 == 0 else digit for at, digit in enumerate(digits)]
    return "".join(map(str, [*digits, -sum(doubled) % 10]))


def test_of_200_planted_values_none_is_in_any_seed(tmp_path: Path) -> None:
    """In requests, arguments, results and closing words; 20 sessions with ten values each."""
    chance = random.Random(5)
    planted: list[str] = []
    for number in range(20):
        s = make_secrets(chance)
        planted += s.values()
        login = (
            "login",
            {"username": s["user"], "password": s["password"]},
            json.dumps({"access_token": s["token"], "user_id": s["user"]}),
        )
        pay = (
            "pay",
            {"access_token": s["token"], "card_number": s["card"], "order_id": s["order"]},
            json.dumps({"paid": True, "email": s["email"], "phone": s["phone"]}),
        )
        verify = (
            "verify",
            {"last_name": s["last"], "passport_number": s["passport"], "access_code": s["code"]},
            json.dumps({"verified": True, "last_name": s["last"]}),
        )
        write(
            tmp_path / "t",
            f"s{number}",
            [
                (f"Log me in as {s['user']} with the password {s['password']} please", [login], f"You are logged in, your token is {s['token']}."),
                (f"Pay the order {s['order']} with card {s['card']} and token {s['token']}, the receipt goes to {s['email']} or {s['phone']}", [pay], f"I paid {s['order']} and wrote to {s['email']}."),
                (f"Verify my passport {s['passport']}; my last name is {s['last']} and the access code is {s['code']}", [verify], f"The passport {s['passport']} of Ms {s['last']} is verified."),
            ],
        )  # fmt: skip
    assert len(planted) == 200
    with warmstart.open() as ws:
        ws.ingest(tmp_path / "t")
        ws.learn()
        for row, _template in ws.templates.find("proposed"):
            ws.templates.approve(row.name)
        shown = ""
        for text in (
            "log me in with the password",
            "pay the order with my card and token",
            "verify my passport and last name by the access code",
        ):
            for dialect in DIALECTS:
                seed = ws.provision(Task(text=text, dialect=dialect, budget=6_000, examples=40))
                assert seed
                shown += json.dumps(seed.messages) + (seed.text or "")
        assert not ws.provision(
            Task(text="pay the order now")
        )  # it names no secret: a model would copy the made-up one
        stored = json.dumps([str(template) for _row, template in ws.templates.find()])
    assert [value for value in planted if value in shown] == []
    assert [value for value in planted if value in stored] == []
    assert "{{SECRET" not in shown
    assert "Made up here" in shown
