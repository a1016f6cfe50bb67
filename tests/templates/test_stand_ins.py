"""Stand-ins: examples show no person's values, and the project's own are left alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import warmstart
from warmstart.model import Outcome, PastCall, PastSession
from warmstart.templates.case_values import CaseValue
from warmstart.templates.stand_ins import make_stand_in, put_stand_ins

CUSTOMER = {
    "user_id": "mia_li_3668",
    "name": {"first_name": "Mia", "last_name": "Li"},
    "address": {"address1": "975 Sunset Drive", "address2": "Suite 217", "city": "Austin", "zip": "78750"},
    "email": "mia.li3818@mail.test",
    "dob": "1987-03-14",
    "payment_methods": {"credit_card_4421486": {"id": "credit_card_4421486", "last_four": "7334"}},
    "orders": ["#W1234567", "#W7654321"],
}
REQUEST = "Hi, I'm Mia Li, zip code 78750. Where is my order #W1234567? It should go to 975 Sunset Drive."
PRIVATE = (
    *("mia_li_3668", "Mia", "975 Sunset", "Suite 217", "78750", "mia.li3818", "1987-03-14", "4421486", "7334"),
    *("1234567", "7654321"),
)


def make_call(tool: str, arguments: Any, result: Any, intent: str = REQUEST, ordinal: int = 0) -> PastCall:
    text = result if isinstance(result, str) else json.dumps(result)
    return PastCall(
        ordinal=ordinal, call_id=f"c{ordinal}", tool=tool, arguments=arguments, intent=intent, excerpt=text,
        outcome=Outcome("ok", "structure"),
    )  # fmt: skip


def make_session(*calls: PastCall, task: str = REQUEST) -> PastSession:
    return PastSession(
        key="k", id="s", agent="shop", category="general", task_type="mixed", verdict="success", quality=0.9,
        task=task, calls=calls,
    )  # fmt: skip


def show(session: PastSession, calls: list[PastCall]) -> str:
    return repr((session.task, [(call.arguments, call.intent, call.excerpt) for call in calls]))


ORDER = {"order_id": "#W1234567", "user_id": "mia_li_3668", "items": [{"name": "Lamp", "item_id": "6817146515"}]}


def test_a_customer_is_not_shown() -> None:
    calls = (
        make_call("get_user_details", {"user_id": "mia_li_3668"}, CUSTOMER),
        make_call("get_order_details", {"order_id": "#W1234567"}, ORDER, ordinal=1),
    )
    session, changed = put_stand_ins(make_session(*calls), calls)
    text = show(session, changed)
    for value in PRIVATE:
        assert value not in text, value
    assert changed[0].arguments == {"user_id": "user_name_0001"}
    assert changed[1].arguments == {"order_id": "#W0000002"}, "the card's id came first"
    assert "order #W0000002" in changed[1].intent and "Alex Example" in session.task, (
        "the same value, the same stand-in"
    )
    assert json.loads(changed[1].excerpt or "") == ORDER | {"order_id": "#W0000002", "user_id": "user_name_0001"}
    details = json.loads(changed[0].excerpt or "")
    assert details["address"] | {"city": "Austin"} == details["address"], "a city names nobody"
    again, twice = put_stand_ins(session, changed)
    assert show(again, twice) == text, "stand-ins have the shape of what they stand for"


@pytest.mark.parametrize(
    ("field", "said", "given"),
    [
        ("phone", "+41 79 123 45 67", "+41791234567"),
        ("iban", "DE89 3704 0044 0532 0130 00", "DE89370400440532013000"),
        ("card_number", "4421-4867-1234-5678", "4421486712345678"),
        ("phone", "(030) 1234-56789", "03012345 6789"),
    ],
)
def test_a_number_has_one_stand_in_however_it_is_grouped(field: str, said: str, given: str) -> None:
    request = f"Book it for me, my {field} is {said}, thanks"
    call = make_call("book", {field: given, "nights": 2}, {field: given}, intent=request)
    session, (changed,) = put_stand_ins(make_session(call, task=request), (call,))
    assert changed.intent == session.task
    digits = "".join(character for character in given if character.isdigit())
    for text in (changed.intent, json.dumps(changed.arguments), changed.excerpt or ""):
        shown = "".join(character for character in text if character.isdigit())
        assert digits not in shown and shown[1:].startswith("0" * (len(digits) - 3))
    spaces = [at for at, character in enumerate(said) if character in " -()"]
    number = changed.intent.partition(" is ")[2].partition(", thanks")[0]
    assert [at for at, character in enumerate(number) if character in " -()"] == spaces, "grouped as it was"


def test_an_id_that_is_a_number_stays_one_and_the_same() -> None:
    calls = (
        make_call("place_order", {"amount": 3}, {"order_id": 12446, "status": "open"}),
        make_call("get_order", {"order_id": 12446}, '{"id": 12446}', "Show me order 12446"),
    )
    _session, changed = put_stand_ins(make_session(*calls), calls)
    assert changed[1].arguments == {"order_id": 10001}
    assert json.loads(changed[0].excerpt or "")["order_id"] == json.loads(changed[1].excerpt or "")["id"] == 10001
    assert changed[1].intent == "Show me order 10001"


def test_an_id_with_and_without_its_sign_is_one() -> None:
    call = make_call("get_order", {"order_id": "#W5061109"}, {"order_id": "#W5061109"}, "What about my order W5061109?")
    _session, (changed,) = put_stand_ins(make_session(call), (call,))
    assert changed.arguments == {"order_id": "#W0000001"}
    assert changed.intent == "What about my order W0000001?"


def test_a_payment_method_is_nobodys_name() -> None:
    request = "Refund it to my credit card, credit_card_9513926 ending in 7447, or to the gift card or paypal_3798357."
    arguments = {"order_id": "#W1234567", "payment_method_id": "gift_card_6941833"}
    calls = (
        make_call("return_items", arguments, {"paid_with": "credit_card_9513926"}, request),
        make_call("get_user", {"user_id": "mia_li_3668"}, CUSTOMER, request),
    )
    session, (changed, _other) = put_stand_ins(make_session(*calls, task=request), calls)
    assert "my credit card, credit_card_0" in session.task and "the gift card or paypal_0" in session.task
    assert re.fullmatch(r"gift_card_\d{7}", changed.arguments["payment_method_id"])
    for value in ("9513926", "7447", "6941833", "3798357"):
        assert value not in show(session, [changed]), value


ROLES = (
    "reporter owner counterparty to_name assignee requester customer contact recipient beneficiary next_of_kin guest author "
    "patient passenger account_holder cardholder employee user display_name driver tenant student attendees policyholder "
    "witnesses pupil guardians signed_by acknowledged_by account_manager"
).split()


@pytest.mark.parametrize("field", ROLES)
def test_somebody_named_by_a_role_is_not_shown(field: str) -> None:
    request = "Unlock the account of Kurt Abendroth; KURT ABENDROTH waits, Mr. Abendroth called twice"
    named = ["Kurt Abendroth"] if field == "attendees" else "Kurt Abendroth, 07700 900999"
    call = make_call("get_ticket", {"ticket_id": "TICK-78"}, {"priority": "high", field: named}, request)
    text = show(*put_stand_ins(make_session(call, task=request), [call]))
    assert "kurt" not in text.lower() and "abendroth" not in text.lower()
    assert "ALEX EXAMPLE waits" in text and "Mr. Example called" in text


def test_a_bare_name_is_somebodys_only_beside_somebodys_facts() -> None:
    calls = (
        make_call("find_customer", {"name": "Noor Al-Masri"}, {"name": "Noor Al-Masri"}, "Find Noor Al-Masri"),
        make_call("get_member", {"key": 1}, {"member_id": "M-4411", "name": "Bo McAdam"}, "Who is it?"),
        make_call("get_hotel", {"key": 2}, {"name": "Grand Astoria", "phone": "0171 5558231"}, "Which hotel?"),
    )
    _session, changed = put_stand_ins(make_session(*calls), calls)
    assert changed[0].arguments == {"name": "Alex Example"} and changed[0].intent == "Find Alex Example"
    assert json.loads(changed[1].excerpt or "")["name"] == "Robin Sample"
    assert json.loads(changed[2].excerpt or "")["name"] == "Grand Astoria"


PEOPLE_ELSEWHERE = {
    "de": (
        "Mein Name ist Hannelore Zwiebelmann, Kundennummer K-778812, geboren am 02.07.1975, Lindenallee 14, DE89 3704 0044 0532 0130 00",
        {"kundennummer": "K-778812", "strasse": "Lindenallee 14", "iban": "DE89370400440532013000"},
        {"vorname": "Hannelore", "nachname": "Zwiebelmann", "geburtsdatum": "02.07.1975", "telefon": "0171 5558231"},
        "Hannelore Zwiebelmann 778812 02.07 1975 Lindenallee 3704 5558231",
    ),
    "es": (
        "Soy Guadalupe Núñez, DNI 12345678Z, Calle Mayor 5",
        {"dni": "12345678Z", "nombre": "Guadalupe Núñez", "direccion": "Calle Mayor 5"},
        {"cliente_id": "C-88121", "nombre": "Guadalupe", "apellido": "Núñez", "telefono": "612 345 678"},
        "Guadalupe Núñez 12345678 Mayor 88121 345",
    ),
    "ja": (
        "田中花子です。住所を東京都渋谷区神南1-2-3に変更してください。電話は090-1234-5678です。",
        {"name": "田中花子", "address": "東京都渋谷区神南1-2-3", "phone": "090-1234-5678"},
        {"customer_id": "C-77121", "name": "田中花子"},
        "田中花子 神南1 090-1234 77121",
    ),
}


@pytest.mark.parametrize("language", PEOPLE_ELSEWHERE)
def test_people_are_not_shown_in_other_languages(language: str) -> None:
    request, arguments, result, private = PEOPLE_ELSEWHERE[language]
    call = make_call("update_customer", arguments, json.dumps(result, ensure_ascii=False), request)
    session, (changed,) = put_stand_ins(make_session(call, task=request), [call])
    text = show(session, [changed])
    assert [value for value in private.split() if value in text] == []
    for value in changed.arguments.values():
        assert str(value) in changed.intent or language == "de", "the request and the call agree"


def test_four_digits_may_be_a_year_or_an_amount() -> None:
    request = "Refund 2024.00 for order 2024 of 2024-05-06, ticket 55512, 55512.50 in all"
    call = make_call(
        "refund", {"order_id": 2024, "year": 2024, "ticket_id": 55512}, {"refund": 3310, "year": 2024}, request
    )
    _session, (changed,) = put_stand_ins(make_session(call, task=request), [call])
    assert changed.arguments == {"order_id": 2024, "year": 2024, "ticket_id": 10001}
    assert changed.intent == "Refund 2024.00 for order 2024 of 2024-05-06, ticket 10001, 55512.50 in all"
    assert json.loads(changed.excerpt or "") == {"refund": 3310, "year": 2024}


@pytest.mark.parametrize(
    ("first", "last"), [("Sara", "Doe"), ("Lei", "Ng"), ("José", "Núñez"), ("Anne Marie", "van der Berg")]
)
def test_names_are_replaced_in_other_letters_and_in_ids(first: str, last: str) -> None:
    said = f"{first} {last}: {first.upper()} {last.upper()}, {first.lower()} {last.lower()}, card_trelawney"
    names = {"first_name": first, "last_name": last}
    calls = (
        make_call("open_locker", names, {"username": "mtrelawney", "last_name": "Trelawney"}, said),
        make_call("pay", {"payment_id": "card_trelawney"}, "ok", said),
    )
    session, changed = put_stand_ins(make_session(*calls, task=said), calls)
    text = show(session, changed)
    assert not [name for name in (first, last, "trelawney") if re.search(rf"\b{name}\b", text, re.I)]
    assert "mtrelawney" not in text and "card_trelawney" not in text


def test_particles_and_initials_are_no_names() -> None:
    request = "Me llamo Maria J. de la Cruz Lopez, de la calle de la luna; AL 5"
    call = make_call(
        "get_booking", {"key": 1}, {"passenger": "Maria J. de la Cruz Lopez", "guest_name": "Al Vega"}, request
    )
    session, (changed,) = put_stand_ins(make_session(call, task=request), [call])
    assert session.task == "Me llamo Alex J. de la Robin Example, de la calle de la luna; AL 5"
    assert "Vega" not in (changed.excerpt or "")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("guest_name", name) for name in ("Nakagawa", "Ms. Nakagawa", "Nakagawa, Aiko")),
        ("doctor", "Dr. Nakagawa"),
    ],
)
def test_a_single_name_is_known_by_its_field_or_title(field: str, value: str) -> None:
    request = "A table under the name Nakagawa, Ms Nakagawa calls back"
    call = make_call("book_table", {field: value}, "Guest: Nakagawa\nPhone: 030 44556671\nSeats: 4", request)
    text = show(*put_stand_ins(make_session(call, task=request), [call]))
    assert "Nakagawa" not in text and "4455" not in text and "Seats: 4" in text


@pytest.mark.parametrize(
    "text",
    [
        "Order Dr. Martens 1460, a Mr. Coffee and 'Mrs. Robinson'",
        "Play My Name Is Jonas, cook Soy Ginger Salmon",
        "See PR 48213 and KB 50341",
        "Her white boots, in the grace period of release 2026.11",
        "Restart jenkins and apache/kafka",
    ],
)
def test_words_that_only_look_like_somebodys_stay(text: str) -> None:
    customer = {"customer_id": "C-77121", "first_name": "Grace", "last_name": "White"}
    account = {"username": "jenkins", "login": "apache", "color": "white"}
    calls = (make_call("get_customer", {"key": 1}, customer, text), make_call("get_account", {"key": 2}, account, text))
    session, changed = put_stand_ins(make_session(*calls, task=text), calls)
    assert session.task == text
    assert json.loads(changed[1].excerpt or "") == account


def test_names_are_replaced_where_nobody_writes_capitals() -> None:
    request = "grace white here, where is the parcel of mrs white, file /clients/Grace_White/Letter_White.docx"
    customer = {"customer_id": "C-77121", "first_name": "Grace", "last_name": "White", "username": "gwhite"}
    call = make_call("get_customer", {"key": 1}, customer, request.lower())
    session, (changed,) = put_stand_ins(make_session(call, task=request), [call])
    assert changed.intent.startswith("alex example here, where is the parcel of mrs example")
    assert session.task.endswith("/clients/Alex_Example/Letter_Example.docx")
    assert "gwhite" not in (changed.excerpt or "")


@pytest.mark.parametrize("owner", ["Support Team", "IT SUPPORT", "Deutsche Bank", "Billing", "Core Infrastructure"])
def test_a_team_is_nobody(owner: str) -> None:
    call = make_call("get_ticket", {"key": 1}, {"owner": owner}, f"Hand it to {owner}, IT is off")
    _session, (changed,) = put_stand_ins(make_session(call, task="Hand it over"), [call])
    assert (changed.intent, changed.excerpt) == (call.intent, call.excerpt)


def test_an_account_in_a_coding_session_stays() -> None:
    calls = (
        make_call("mcp__hub__get_pull", {"owner": "octocat"}, {"username": "octocat", "author": "Mia Li"}, "look"),
        make_call("Bash", {"command": "git clone hub.test/octocat/hello"}, "done", "clone it", ordinal=1),
    )
    _session, changed = put_stand_ins(make_session(*calls, task="Review it"), calls)
    assert changed[0].arguments == {"owner": "octocat"} and changed[1].arguments == calls[1].arguments
    assert "Mia" not in (changed[0].excerpt or "")


def test_an_account_is_no_name() -> None:
    arguments = {"account_id": "fairweather_savings", "account_type": "savings"}
    call = make_call("get_balance", arguments, {"balance": 5}, "How much is on my savings account?")
    _session, (changed,) = put_stand_ins(make_session(call), [call])
    assert changed.arguments["account_type"] == "savings" and "fairweather" not in changed.arguments["account_id"]


def test_a_shortened_result_is_read_too() -> None:
    whole = json.dumps(CUSTOMER)
    cut = whole[:95] + "\n[... 120 characters left out ...]\n" + whole[-190:]
    calls = (make_call("get_user_details", {"user_id": "mia_li_3668"}, cut),)
    text = show(*put_stand_ins(make_session(*calls), calls))
    assert not [value for value in PRIVATE if value in text]


def test_free_text_of_a_business_tool() -> None:
    summary = "Customer Ivan Garcia (born April 26, 1999, +1 415-555-2671) wants reservation PEP4E0 back, card 4111 1111 1111 1111."
    calls = (make_call("transfer_to_agent", {"summary": summary}, "Transfer successful", "my cvv is 123"),)
    session, changed = put_stand_ins(make_session(*calls, task="My booking is PEP4E0, mail a.b@c.test"), calls)
    text = show(session, changed)
    for value in ("Ivan", "Garcia", "April 26", "555-2671", "PEP4E0", "4111", "a.b@c.test", "123"):
        assert value not in text, value


@pytest.mark.parametrize(
    "call",
    [
        make_call("Bash", {"command": "git log --author 'Mia Li' -3"}, "Author: Mia Li <mia@shop.test>\n  fix order 1234567", "look"),
        make_call("Read", {"file_path": "/srv/shop/users.json"}, json.dumps(CUSTOMER), "read the fixture"),
        make_call("Grep", {"pattern": "first_name"}, 'fixtures.py: "first_name": "Mia", "user_id": "mia_li_3668"', "find it"),
        make_call("Edit", {"file_path": "a.py", "old_string": "zip = '78750'", "new_string": "zip = ''"}, "ok", "edit"),
        make_call("mcp__browser__click", {"ref": "e12", "element": "Save"}, "Page title: Orders", "click"),
        make_call("get_weather", {"city": "Austin", "unit": "celsius"}, '{"name": "Austin", "temp": 31}', "weather"),
        make_call("get_product", {"product_id": "6817146515"}, '{"name": "Desk Lamp", "sku": "LAMP-1234"}', "lamp"),
    ],
    ids=lambda call: call.tool,
)  # fmt: skip
def test_what_belongs_to_the_project_stays(call: PastCall) -> None:
    session = (
        make_session(call, task="Fix the import of users: Ann Doe wrote it at 4 Elm Street")
        if call.tool != "get"
        else None
    )
    assert session is not None
    _session, (changed,) = put_stand_ins(session, [call])
    assert (changed.arguments, changed.excerpt) == (call.arguments, call.excerpt)


@pytest.mark.parametrize(
    ("value", "number", "stand_in"),
    [
        (CaseValue("user", "mia_li_3668"), 1, "user_name_0001"),
        (CaseValue("id", "#W1234567"), 12, "#W0000012"),
        (CaseValue("id", "credit_card_4421486"), 2, "credit_card_0000002"),
        (CaseValue("id", "card_smith_4411"), 3, "card_name_0003"),
        (CaseValue("id", "ZFA04Y"), 1, "XXX001"),
        (CaseValue("id", "XYNI64"), 3, "XXXX03"),
        (CaseValue("id", "12446"), 2, "10002"),
        (CaseValue("street", "4 Elm St"), 1, "1 Example Street"),
        (CaseValue("street", "Suite 217"), 2, "Suite 002"),
        (CaseValue("birth", "1987-03-14"), 1, "1990-01-01"),
        (CaseValue("email", "mia@li.test"), 3, "name3@example.com"),
        (CaseValue("zip", "78750-1234"), 1, "00000-0001"),
        (CaseValue("first", "Mia"), 11, "Alex2"),
        (CaseValue("last", "Li"), 1, "Example"),
        (CaseValue("phone", "+1 415-555-2671"), 7, "+0 000-000-0007"),
    ],
)
def test_each_has_the_shape_of_its_value(value: CaseValue, number: int, stand_in: str) -> None:
    assert make_stand_in(value, number) == stand_in


def test_a_learned_template_shows_nobody(tmp_path: Path) -> None:
    people = (("mia_li_3668", "Mia", "Li", "#W1234567"), ("noah_brown_6181", "Noah", "Brown", "#W5500123"))
    for number, (user, first, last, order) in enumerate(people):
        details = {"user_id": user, "name": {"first_name": first, "last_name": last}, "orders": [order]}
        messages: list[dict[str, Any]] = [
            {"role": "user", "content": f"My name is {first} {last}, cancel order {order}, my id is {user}"}
        ]
        for step, (tool, arguments, result) in enumerate(
            (
                ("get_user_details", {"user_id": user}, details),
                ("cancel_order", {"order_id": order, "user_id": user}, {"order_id": order, "status": "cancelled"}),
            )
        ):
            function = {"name": tool, "arguments": json.dumps(arguments)}
            call = {"id": f"call-{number}-{step}", "type": "function", "function": function}
            messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)})
        messages.append({"role": "assistant", "content": "It is cancelled."})
        (tmp_path / f"{number}.json").write_text(json.dumps({"messages": messages}))
    with warmstart.open() as ws:
        ws.ingest(tmp_path)
        (learned,) = ws.learn().templates
        shown = repr(ws.templates.show(learned.name)) + ws.templates.export(share=False).decode()
        seed = ws.provision(warmstart.Task(text="My name is Ann Doe, cancel order #W9999999"))
    for value in (value for person in people for value in person if len(value) > 2):
        assert value not in shown and value not in str(seed), value
    assert "user_name_0001" in str(seed) and "#W0000001" in str(seed)
