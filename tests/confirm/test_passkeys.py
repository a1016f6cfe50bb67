"""Approvals signed by passkeys: what the daemon accepts, and what `verify` names when somebody writes the database."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from confirm.authenticator import PRESENT, Device, enrol, make_device
from confirm.commands import run, run_json
from confirm.houses import on_both_databases
from confirm.serving import RISK, WORK, Answer, House, Person, check
from confirm.tampering import anchor_of, copy_database, drop_guards, run_sql
from warmstart.confirm.audit import chain
from warmstart.confirm.audit.anchor import Anchor
from warmstart.confirm.audit.transaction import Transaction
from warmstart.confirm.desk import decide
from warmstart.confirm.model import Identity
from warmstart.confirm.policy.policy import Policy, parse_policy
from warmstart.confirm.store.open import open_store
from warmstart.confirm.tokens.access import NewAllowance, add_allowance


@pytest.fixture
def dora(house: House) -> Person:
    return house.log_in("dora")


@pytest.fixture
def device(house: House, dora: Person) -> Device:
    """The first passkey of the database, dora's."""
    made = make_device(house)
    answer = enrol(dora, made)
    assert answer.status == 201 and answer.body["trusted"], answer
    return made


def ask(house: House, **more: Any) -> Any:
    return house.get(house.submit(WORK | more).body["id"])


def approve(person: Person, request: Any, **body: Any) -> Answer:
    return person.call("POST", f"/confirm/{request['id']}/approve", body)


@pytest.mark.slow
@on_both_databases
def test_from_the_first_passkey_on_every_approval_is_signed(house: House) -> None:
    dora = house.log_in("dora")
    before = ask(house)
    assert approve(dora, before).status == 200, "nothing is signed before"
    device = make_device(house)
    assert enrol(dora, device).body["trusted"]
    request = ask(house)
    for refused in (
        approve(dora, request),
        house.approve(request["id"]),
        house.approve(request["id"], token=house.admin),
        approve(house.log_in("erik"), request),
    ):
        assert (refused.status, refused.code) == (403, "passkey_needed"), refused
    assert house.get(request["id"])["status"] == "pending"
    assert approve(dora, request, passkey=device.sign_approval(request)).status == 200
    assert house.deny(ask(house)["id"]).status == 200, "a no needs no signature"
    (entry,) = [entry for entry in house.audit() if entry["event"] == "approved" and entry["details"].get("proof")]
    assert entry["details"]["proof"]["id"] == device.id


def test_redteam_only_the_right_signature_counts(house: House, dora: Person, device: Device) -> None:
    request, other = ask(house), ask(house)
    stranger = make_device(house)
    elsewhere = Device("https://evil.example")
    elsewhere._key, elsewhere.id, elsewhere.raw_id = device._key, device.id, device.raw_id
    right = device.sign_approval(request)
    wrong = {
        "of another request": (device.sign_approval(other), "bad_signature"),
        "of other details": (device.sign("approve", request["id"], "0" * 64), "bad_signature"),
        "with other terms": (device.sign_approval(request, "times=5", "seconds=60"), "bad_signature"),
        "without the finger": (
            device.sign("approve", request["id"], request["digest"], flags=PRESENT),
            "bad_signature",
        ),
        "of a key that nobody knows": (stranger.sign_approval(request), "unknown_passkey"),
        "of another key under this id": (stranger.sign_approval(request) | {"id": device.id}, "bad_signature"),
        "made on another page": (elsewhere.sign_approval(request), "bad_signature"),
        "changed": (right | {"signature": right["signature"][:-4] + "AAAA"}, "bad_signature"),
        "no base64": (right | {"client_data": "ü" * 9}, "bad_signature"),
        "empty": (right | {"authenticator_data": ""}, "bad_signature"),
    }
    for what, (passkey, code) in wrong.items():
        answer = approve(dora, request, passkey=passkey)
        assert (answer.status, answer.code) == (403, code), (what, answer)
    assert (approve(house.log_in("erik"), request, passkey=right).code) == "unknown_passkey", "not erik's device"
    assert house.get(request["id"])["status"] == "pending"
    assert approve(dora, request, passkey=right).status == 200


def test_redteam_a_further_device_waits_for_a_trusted_one(house: House, dora: Person, device: Device) -> None:
    phone = make_device(house)
    added = enrol(dora, phone, "second").body
    assert not added["trusted"]
    request = ask(house)
    assert approve(dora, request, passkey=phone.sign_approval(request)).code == "passkey_not_trusted"
    path, statement = f"/passkeys/{phone.id}/vouch", ("vouch", phone.id, added["public_key"])
    assert dora.call("POST", path, {"passkey": phone.sign(*statement)}).code == "passkey_not_trusted", "not itself"
    assert dora.call("POST", path, {"passkey": device.sign("vouch", phone.id, "x")}).code == "bad_signature"
    assert dora.call("POST", path, {"passkey": device.sign(*statement)}).body["trusted"]
    assert dora.call("POST", path, {"passkey": device.sign(*statement)}).code == "already_vouched"
    assert approve(dora, request, passkey=phone.sign_approval(request)).status == 200


def test_a_removed_device_signs_nothing_and_the_rule_stays(house: House, dora: Person, device: Device) -> None:
    erik = house.log_in("erik")
    assert erik.call("DELETE", f"/passkeys/{device.id}").code == "not_yours"
    assert dora.call("DELETE", f"/passkeys/{device.id}").status == 200
    request = ask(house)
    assert approve(dora, request, passkey=device.sign_approval(request)).code == "unknown_passkey"
    assert approve(dora, request).code == "passkey_needed", "removing all passkeys opens nothing"
    again = enrol(dora, make_device(house)).body
    assert not again["trusted"], "nor does a new one"
    assert dora.call("GET", "/passkeys").body["required"]


def test_enrolments_are_checked(house: House, dora: Person) -> None:
    device = make_device(house)
    bare = dora.call("POST", "/passkeys/options", {}, Origin=house.local_page)
    assert (bare.status, bare.code) == (409, "no_host_name")
    assert "http://localhost" in bare.body["error"]
    good = device.make(
        bytes.fromhex(dora.call("POST", "/passkeys/options", {}, Origin=device.origin).body["challenge"])
    )
    erik = house.log_in("erik")
    for person, answer in (
        (erik, good),  # another login's challenge
        (dora, device.make(b"x" * 32)),
        (dora, good | {"attestation": "AAAA"}),
        (dora, good | {"client_data": "AAAA"}),
        (dora, good | {"id": "AAAA"}),
    ):
        refused = person.call("POST", "/passkeys", {"name": "x", "answer": answer}, Origin=device.origin)
        assert (refused.status, refused.code) == (400, "bad_passkey"), refused
    assert not dora.call("GET", "/passkeys").body["required"]
    assert enrol(dora, device).status == 201
    known = dora.call("POST", "/passkeys", {"name": "x", "answer": good}, Origin=device.origin)
    assert known.code == "known_passkey"


def test_several_people_sign_each_for_themselves(open_house: Callable[..., House]) -> None:
    house = open_house(policy=parse_policy('[[rule]]\naction = "send_mail"\nquorum = 2'))
    dora, erik = house.log_in("dora"), house.log_in("erik")
    first, second = make_device(house), make_device(house)
    enrol(dora, first)
    added = enrol(erik, second).body
    vouched = dora.call(
        "POST", f"/passkeys/{second.id}/vouch", {"passkey": first.sign("vouch", second.id, added["public_key"])}
    )
    assert vouched.status == 200, "one person vouches for another"
    request = ask(house)
    assert approve(dora, request, passkey=first.sign_approval(request)).body["status"] == "pending"
    assert approve(erik, request, passkey=first.sign_approval(request)).code == "unknown_passkey"
    assert approve(erik, request, passkey=second.sign_approval(request)).body["status"] == "approved"


# Allowed in advance


@pytest.mark.slow
@on_both_databases
def test_the_same_action_is_allowed_for_some_times_and_some_time(house: House) -> None:
    dora = house.log_in("dora")
    request = ask(house, session_key="s")
    assert approve(dora, request, allow={"times": 2, "minutes": 10}).status == 200
    other = [WORK | {"session_key": "t"}, WORK | {"session_key": "s", "details": {"to": 4}}]
    for body in other:
        assert house.submit(body).body["status"] == "pending"
    assert house.submit(WORK | {"session_key": "s"}, token=house.other_agent).body["status"] == "pending"
    allowed = [house.submit(WORK | {"session_key": "s"}).body for _ in range(3)]
    assert [one["status"] for one in allowed] == ["auto_approved", "auto_approved", "pending"]
    last = house.get(allowed[1]["id"])
    deed = {"token": last["execution"]["token"], "action": WORK["action"], "details": WORK["details"]}
    assert house.execute(last["id"], deed).status == 200, "the last one that was allowed can be used"
    request = ask(house, session_key="u")
    assert approve(dora, request, allow={"times": 5, "minutes": 1}).status == 200
    house.clock.ahead += 61
    assert house.submit(WORK | {"session_key": "u"}).body["status"] == "pending"


def test_without_a_session_only_the_same_requester_is_allowed(house: House, dora: Person) -> None:
    assert approve(dora, ask(house), allow={"times": 5}).status == 200
    assert house.submit(WORK, token=house.other_agent).body["status"] == "pending"
    assert house.submit(WORK).body["status"] == "auto_approved"


def test_what_several_or_nobody_may_allow_is_not_allowed_in_advance(open_house: Callable[..., House]) -> None:
    house = open_house(policy=parse_policy('[[rule]]\naction = "release"\nquorum = 2'))
    dora = house.log_in("dora")
    risky = house.submit(RISK).body
    answer = approve(dora, risky, allow={"times": 1}, typed_action="delete_data")
    assert (answer.status, answer.code) == (409, "high_risk")
    assert approve(dora, house.submit(WORK | {"action": "release"}).body, allow={"times": 1}).code == "quorum"
    for wrong in ({"times": 0}, {"times": 101}, {"minutes": 0}, {"minutes": 1441}):
        assert approve(dora, house.submit().body, allow=wrong).status == 400
    assert house.events().count("whitelisted") == 0


def test_what_is_allowed_in_advance_is_signed_too(house: House, dora: Person, device: Device) -> None:
    request = ask(house)
    allow = {"times": 3, "minutes": 10}
    assert approve(dora, request, allow=allow, passkey=device.sign_approval(request)).code == "bad_signature"
    signed = device.sign_approval(request, "times=3", "seconds=600")
    assert approve(dora, request, allow=allow, passkey=signed).status == 200
    assert house.submit().body["status"] == "auto_approved"
    body = {"action": "send_mail", "session_key": "s"}
    refused = house.call("POST", "/whitelist", body, token=house.admin)
    assert (refused.status, refused.code) == (403, "passkey_needed")
    done = run("whitelist", "add", "send_mail", "--session", "s", "--db", str(house.database))
    assert done.exit_code == 1 and "signed with a passkey" in done.output


# Rows written by hand while the daemon runs


@pytest.fixture
def attacked(tmp_path: Path) -> Iterator[House]:
    """A daemon whose audit need not verify after the test."""
    folder = tmp_path / "attacked"
    folder.mkdir()
    made = House(folder)
    yield made
    made.stop()


def write_rows(house: House, sql: str, *values: Any) -> None:
    db = apsw.Connection(str(house.database))
    db.set_busy_timeout(10_000)
    db.execute(sql, values)
    db.close()


def forge_rows(house: House, id: str, status: str = "approved", by: str = "dora") -> None:
    """Approve a request in the tables alone."""
    now = int(time.time() * 1000)
    if status == "approved":
        write_rows(
            house,
            "INSERT INTO votes (request, subject_key, subject, credential, reason, at) "
            "VALUES (?, 'dora', 'dora', 'x', '', ?)",
            id,
            now,
        )
    write_rows(
        house,
        "UPDATE requests SET status = ?, decided = ?, decided_by = ?, execute_by = ? WHERE id = ?",
        status,
        now,
        by,
        now + 600_000,
        id,
    )


@pytest.mark.parametrize(
    ("status", "by"), [("approved", "dora"), ("auto_approved", "whitelist"), ("auto_approved", "policy")]
)
def test_redteam_rows_alone_approve_nothing(attacked: House, status: str, by: str) -> None:
    house = attacked
    enrol(house.log_in("dora"), make_device(house))
    request = ask(house)
    forge_rows(house, request["id"], status, by)
    deed = {"token": "?", "action": WORK["action"], "details": WORK["details"]}
    with open_store(house.database) as store:
        secret = next(value for name, value, _ in store.rows("all_keys") if name == "execution")
    from warmstart.confirm.tokens.tokens import derive

    deed["token"] = derive(secret, request["id"])  # who can write the database can read its keys
    refused = house.execute(request["id"], deed)
    assert (refused.status, refused.code) == (403, "not_believed"), refused
    seen = house.get(request["id"])
    assert (seen["status"], seen["execution"], seen["decision"]["by"]) == ("denied", None, "daemon"), seen
    assert house.get(request["id"])["status"] == "denied"
    assert house.events().count("approval_not_believed") == 1
    house.stop()
    run("verify", "--db", str(house.database), "--accept", "--yes")
    assert "approves without the signature of a passkey" in name_problems(house.database)


def test_redteam_votes_written_by_hand_do_not_count(tmp_path: Path) -> None:
    house = House(tmp_path, policy=parse_policy('[[rule]]\naction = "send_mail"\nquorum = 2'))
    erik = house.log_in("erik")
    device = make_device(house)
    enrol(erik, device)
    request = ask(house)
    write_rows(
        house,
        "INSERT INTO votes (request, subject_key, subject, credential, reason, at) "
        "VALUES (?, 'dora', 'dora', 'x', '', 1)",
        request["id"],
    )
    answer = approve(erik, request, passkey=device.sign_approval(request))
    assert (answer.body["status"], answer.body["missing"]) == ("pending", 1)
    house.stop()


def test_redteam_trust_written_by_hand_does_not_count(attacked: House) -> None:
    house, dora, device = attacked, attacked.log_in("dora"), make_device(attacked)
    enrol(dora, device)
    mine = make_device(house)
    enrol(dora, mine, "mine")
    write_rows(house, "UPDATE passkeys SET vouched = 1, vouched_by = ? WHERE id = ?", device.id, mine.id)
    request = ask(house)
    assert approve(dora, request, passkey=mine.sign_approval(request)).code == "passkey_not_trusted"
    house.stop()
    run("verify", "--db", str(house.database), "--accept", "--yes")
    assert "vouches without the signature of a passkey" in name_problems(house.database)


def test_redteam_unsigned_whitelist_entries_end_with_the_first_passkey(attacked: House) -> None:
    house, dora = attacked, attacked.log_in("dora")
    body = {"action": "send_mail", "session_key": "s"}
    assert house.call("POST", "/whitelist", body, token=house.admin).status == 201
    assert house.submit(WORK | {"session_key": "s"}).body["status"] == "auto_approved"
    device = make_device(house)
    enrol(dora, device)
    request = house.submit(WORK | {"session_key": "s"}).body
    assert request["status"] == "pending"
    assert house.call("GET", "/whitelist", token=house.admin).body["entries"] == []
    signed = device.sign_approval(house.get(request["id"]), "times=3", "seconds=600")
    assert approve(dora, request, allow={"times": 3, "minutes": 10}, passkey=signed).status == 200
    allowed = house.submit(WORK | {"session_key": "s"}).body
    assert allowed["status"] == "auto_approved", "a signed one holds, although an older one is unsigned"
    last = house.get(allowed["id"])
    deed = {"token": last["execution"]["token"], "action": WORK["action"], "details": WORK["details"]}
    assert house.execute(last["id"], deed).status == 200
    write_rows(house, "UPDATE whitelist SET expires = expires + 1 WHERE digest <> ''")
    assert house.submit(WORK | {"session_key": "s"}).body["status"] == "pending", "unless somebody changed it"


# Forgeries: an attacker with the same user reads and writes every file


@pytest.fixture
def copied(house: House, dora: Person, device: Device, tmp_path: Path) -> Path:
    """A copy of the database of a stopped daemon: one signed approval, one request that waits."""
    signed, waiting = ask(house), ask(house, timeout_seconds=3600)
    assert approve(dora, signed, passkey=device.sign_approval(signed)).status == 200
    house.waiting, house.signed = waiting, signed  # type: ignore[attr-defined]
    house.stop()
    copy = tmp_path / "copy.db"
    copy_database(house.database, copy)
    assert check(copy).ok
    return copy


def forge(copied: Path, make: Callable[[Transaction], Any]) -> None:
    """Change the database with the daemon's own code, so that chain, tables and anchor fit."""
    with open_store(copied) as store:
        with store.writing():
            result = make(Transaction(store, int(time.time() * 1000), Policy()))
            assert not isinstance(result, Exception), result
        Anchor.of(store).advance(store)


DORA = Identity("dora", "dora", frozenset(["approver:decide"]), "forged-login")


def approve_unsigned(tx: Transaction, id: str, **more: Any) -> None:
    """Write what an approval writes, without the check of the signature."""
    wish = decide.DecisionRequest("approved", "looks fine", **more)
    request = tx.find(id)
    assert request is not None
    decide._vote(tx, DORA, request, wish)
    decide._resolve(tx, DORA, request, wish)


def name_problems(copied: Path, *options: str) -> str:
    done = run("verify", "--db", str(copied), *options)
    assert done.exit_code == 1, done.output
    return done.output


def test_redteam_a_forged_approval_is_named(copied: Path, house: Any) -> None:
    forge(copied, lambda tx: approve_unsigned(tx, house.waiting["id"]))
    found = check(copied)
    assert [flaw.problem for flaw in found.problems] == ["approves without the signature of a passkey"]
    assert found.forgeries == 1
    assert "approves without the signature of a passkey" in name_problems(copied)
    done = run("verify", "--db", str(copied), "--accept", "--yes")
    assert done.exit_code == 1
    assert "cannot be accepted" in done.output
    assert "approves without the signature of a passkey" in name_problems(copied), "even if somebody accepts it"


def test_redteam_a_copied_signature_is_named(copied: Path, house: Any) -> None:
    entry = next(json.loads(e[7]) for e in _read_audit(copied) if e[2] == "approved")
    from warmstart.confirm.model import Assertion

    forge(copied, lambda tx: approve_unsigned(tx, house.waiting["id"], proof=Assertion(**entry["proof"])))
    assert "signature that does not hold: Client data challenge was not expected" in name_problems(copied)


def test_redteam_a_key_of_the_attackers_own_is_named(copied: Path, house: Any, device: Device) -> None:
    """They enrol it, vouch for it and sign with it."""
    from warmstart.confirm.model import Assertion
    from warmstart.confirm.passkeys import records
    from warmstart.confirm.passkeys.signatures import NewPasskey

    mine = Device(device.origin)
    made = mine.make(b"x" * 32)
    from webauthn.helpers import base64url_to_bytes, parse_attestation_object

    data = parse_attestation_object(base64url_to_bytes(made["attestation"])).auth_data.attested_credential_data
    from warmstart.confirm.passkeys.signatures import _encode

    key = _encode(data.credential_public_key)
    forge(copied, lambda tx: records.add_passkey(tx, DORA, NewPasskey(mine.id, key, mine.host), "mine"))
    assert check(copied).ok, "a device that waits for trust can approve nothing"

    def vouch(tx: Transaction) -> None:
        proof = Assertion(**mine.sign("vouch", mine.id, key))
        tx.store.row("vouch_passkey", {"id": mine.id, "now": tx.now, "by": mine.id})
        tx.log("passkey_vouched", DORA, passkey=mine.id, name="mine", subject="dora", proof=records.show_proof(proof))

    forge(copied, vouch)
    signed = Assertion(**mine.sign_approval(house.waiting))
    forge(copied, lambda tx: approve_unsigned(tx, house.waiting["id"], proof=signed))
    text = name_problems(copied)
    assert "vouches with a passkey for which nobody vouched" in text
    assert "approves with a passkey for which nobody vouched" in text


def test_redteam_a_removed_passkey_opens_nothing(copied: Path, house: Any, device: Device) -> None:
    from warmstart.confirm.passkeys import records

    forge(copied, lambda tx: records.remove_passkey(tx, device.id, "local:me"))
    assert check(copied).ok
    forge(copied, lambda tx: approve_unsigned(tx, house.waiting["id"]))
    assert "approves without the signature" in name_problems(copied)


def test_redteam_a_forged_whitelist_entry_is_named(copied: Path, house: Any) -> None:
    def whitelist(tx: Transaction) -> Any:
        class Blind:
            """The store as before the first passkey."""

            def __getattr__(self, name: str) -> Any:
                return getattr(tx.store, name)

            def row(self, query: str, values: Any = None) -> Any:
                return None if query == "any_passkey" else tx.store.row(query, values)

        return add_allowance(
            tx._replace(store=Blind()),  # type: ignore[arg-type]
            NewAllowance("send_mail", "send_mail", "s", 600),
            "local:me",
        )

    forge(copied, whitelist)
    assert "allows in advance without the signature of a passkey" in name_problems(copied)


def test_redteam_a_forged_permission_without_an_entry_is_named(copied: Path, house: Any) -> None:
    def allow(tx: Transaction) -> None:
        request = tx.find(house.waiting["id"])
        assert request
        tx.log(
            "auto_approved",
            "whitelist",
            request,
            reason="x",
            digest=request.digest,
            execute_by=tx.now + 600_000,
            entry="e" * 32,
        )

    forge(copied, allow)
    assert "allows a request by a whitelist entry that does not cover it" in name_problems(copied)


def test_redteam_an_edited_audit_is_named(copied: Path, house: Any, tmp_path: Path) -> None:
    """Everything is hashed anew and anchored anew; only the anchor that lies elsewhere contradicts."""
    elsewhere = tmp_path / "elsewhere.anchor"
    shutil.copy(anchor_of(copied).path, elsewhere)
    db = apsw.Connection(str(copied))
    db.execute(drop_guards()).fetchall()
    db.execute("UPDATE audit SET actor = 'erik' WHERE event = 'approved'")
    db.execute("UPDATE requests SET decided_by = 'erik' WHERE status = 'approved'")
    db.execute("UPDATE votes SET subject = 'erik', subject_key = 'erik'")
    db.close()
    assert "its hash does not match its content" in name_problems(copied)
    _rehash(copied)
    with open_store(copied) as store:
        with store.writing():
            store.restore_guards()
        Anchor.of(store).write(chain.read_head(store))
    text = name_problems(copied)
    assert "approves with a passkey that erik does not have" in text, "the signature is dora's"
    text = name_problems(copied, "--anchor", str(elsewhere))
    assert "is not there as it was anchored" in text


def test_redteam_a_restored_old_copy_is_named(house: House, dora: Person, device: Device, tmp_path: Path) -> None:
    house.stop()
    old, elsewhere = tmp_path / "old.db", tmp_path / "elsewhere.anchor"
    copy_database(house.database, old)
    house.start()
    house.deny(ask(house)["id"])
    house.stop()
    shutil.copy(anchor_of(house.database).path, elsewhere)
    copy_database(old, house.database)
    assert run("verify", "--db", str(house.database)).exit_code == 0, "with the anchor beside it, all looks fine"
    text = name_problems(house.database, "--anchor", str(elsewhere))
    assert "is not there as it was anchored: the end was cut or rewritten" in text


def test_verify_lists_the_passkeys(house: House, dora: Person, device: Device) -> None:
    enrol(dora, make_device(house), "tablet")
    house.stop()
    first, second = run_json("verify", "--db", str(house.database))["passkeys"]
    assert (first["subject"], first["name"], first["trusted"]) == ("dora", "phone", True)
    assert (second["name"], second["trusted"], len(first["fingerprint"])) == ("tablet", False, 16)
    text = run("verify", "--db", str(house.database)).output
    assert f"phone of dora, since entry {first['sequence']}, fingerprint {first['fingerprint']}" in text
    listed = run("passkey", "list", "--db", str(house.database)).output
    assert "phone" in listed and "tablet" in listed
    assert run("passkey", "remove", second["id"][:8], "--db", str(house.database)).exit_code == 0
    assert [one["name"] for one in run_json("passkey", "list", "--db", str(house.database))] == ["phone"]


def _read_audit(copied: Path) -> list[Any]:
    db = apsw.Connection(str(copied))
    try:
        return db.execute("SELECT * FROM audit ORDER BY sequence").fetchall()
    finally:
        db.close()


def _rehash(copied: Path) -> None:
    """Compute the whole chain again."""
    from warmstart.confirm.model import AuditEntry

    previous = chain.ZERO
    for row in _read_audit(copied):
        entry = AuditEntry(*[*row[:8], previous, ""])
        previous = chain.hash_entry(entry)
        run_sql(
            copied,
            f"UPDATE audit SET previous = '{entry.previous}', hash = '{previous}' WHERE sequence = {entry.sequence}",
        )
