"""Whoever takes the daemon's place while it is down is neither sent a token nor believed."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from confirm.serving import House, send
from confirm.signing import KEY, TOKEN, prove
from loopback import serving
from warmstart.confirm import Daemon, Unauthorized, Unreachable, UntrustedDaemon, ask, submit
from warmstart.confirm.client.wire import call, name_authority
from warmstart.confirm.tokens import access, ed25519
from warmstart.confirm.tokens.identity import derive_key, pin_token, read_key, split_token
from warmstart.confirm.tokens.proof import (
    CHALLENGE,
    NONCE,
    PROOF,
    SIGNATURE,
    DaemonCheck,
    SignedAnswer,
    check_daemon,
    make_proof,
    name_token,
)
from warmstart.confirm.tokens.tokens import digest_secret
from warmstart.errors import ConfigError

ZEROS = "0" * 32


def open_connection(url: str) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)


def make_check(url: str, token: str) -> DaemonCheck:
    return DaemonCheck(name_authority(url), split_token(token).key)


def digest(token: str) -> str:
    return digest_secret(split_token(token).secret)


def challenge(token: str, nonce: str = ZEROS) -> dict[str, str]:
    return {CHALLENGE: f"{name_token(digest(token))} {nonce}"}


class TestEd25519:
    """Test vectors of RFC 8032, 7.1, and the library that signs."""

    @pytest.mark.parametrize(
        ("private", "public", "message", "signature"),
        [
            (
                "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
                "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
                "",
                "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595b"
                "be24655141438e7a100b",
            ),
            (
                "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
                "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
                "72",
                "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302"
                "aeeb00d291612bb0c00",
            ),
            (
                "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
                "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
                "af82",
                "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed"
                "28dc027beceea1ec40a",
            ),
        ],
    )
    def test_vectors(self, private: str, public: str, message: str, signature: str) -> None:
        assert ed25519.derive_public(bytes.fromhex(private)).hex() == public
        assert ed25519.verify(*map(bytes.fromhex, (public, message, signature)))
        assert not ed25519.verify(bytes.fromhex(public), b"other", bytes.fromhex(signature))

    def test_it_agrees_with_the_library_that_signs(self) -> None:
        for number in range(1, 9):
            seed, message = bytes([number]) * 32, b"m" * number
            signer = Ed25519PrivateKey.from_private_bytes(seed)
            public, signature = signer.public_key().public_bytes_raw(), signer.sign(message)
            assert ed25519.derive_public(seed) == public
            assert ed25519.verify(public, message, signature)
            for at in (0, 31, 32, 63):
                wrong = bytearray(signature)
                wrong[at] ^= 1
                assert not ed25519.verify(public, message, bytes(wrong))

    def test_what_is_no_signature(self) -> None:
        signer = Ed25519PrivateKey.from_private_bytes(b"s" * 32)
        public, signature = signer.public_key().public_bytes_raw(), signer.sign(b"m")
        again = int.from_bytes(signature[32:], "little") + ed25519._L  # the same number, written in a second way
        malleable = signature[:32] + again.to_bytes(32, "little")
        for given in (b"", signature[:-1], signature + b"x", malleable, b"\xff" * 64, bytes(64)):
            assert not ed25519.verify(public, b"m", given)
        for key in (b"", b"\xff" * 32, public[:-1]):
            assert not ed25519.verify(key, b"m", signature)

    def test_keys_as_text(self) -> None:
        key = derive_key("ab" * 32)
        assert len(key) == 43 and split_token(pin_token("wsc_x", key)) == ("wsc_x", key)
        assert pin_token(pin_token("wsc_x", KEY), key) == f"wsc_x.{key}", "in place of another"
        for wrong in ("", "x", key[:-1], key + "A", "é" * 43, key[:-1] + "!"):
            with pytest.raises(ConfigError, match="not a daemon's key"):
                read_key(wrong)


class TestDaemon:
    def test_it_signs_its_answers_for_one_question(self, house: House) -> None:
        check = make_check(house.api, house.agent)
        question, other = check.ask(), check.ask()
        for method, path, token, status in (
            ("GET", "/health", None, 200),
            ("GET", "/confirm?limit=1", house.agent, 200),
            ("GET", "/confirm/none", house.agent, 404),
            ("GET", "/confirm", None, 401),
        ):
            response = raw(house.api, method, path, token, {NONCE: question})
            assert response[0] == status
            answer = SignedAnswer(question, method, path, status, response[1])
            check.verify(answer, response[2][SIGNATURE.lower()])
            for changed in (
                answer._replace(question=other),
                answer._replace(path="/other"),
                answer._replace(status=202),
                answer._replace(body=answer.body + b" "),
                answer._replace(method="POST"),
            ):
                with pytest.raises(UntrustedDaemon):
                    check.verify(changed, response[2][SIGNATURE.lower()])

    def test_not_for_ports_that_are_another_program_s(self, house: House, open_house: Callable[..., House]) -> None:
        """Whoever passes a question on from another port gets no signature for it."""
        port = urlsplit(house.api).port
        for authority in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"):
            assert SIGNATURE.lower() in self.ask(house, authority)
        for authority in (f"127.0.0.1:{port + 1}", "127.0.0.1", f"evil.example:{port}", "", "x y"):
            assert SIGNATURE.lower() not in self.ask(house, authority), authority
        forwarded = open_house(allow_hosts=["127.0.0.1:7000", "box.lan"])
        for authority in ("127.0.0.1:7000", "box.lan:443"):
            assert SIGNATURE.lower() in self.ask(forwarded, authority)
        assert SIGNATURE.lower() not in self.ask(forwarded, "127.0.0.1:7001")

    def ask(self, house: House, authority: str) -> dict[str, str]:
        return send(house.api, "GET", "/health", headers={NONCE: f"{ZEROS} {authority}"}).headers

    def test_the_same_after_a_restart(self, house: House) -> None:
        key = house.desk.identity
        house.restart()
        assert house.desk.identity == key
        assert call(Daemon(house.api, "", key), "GET", "/health")["status"] == "ok"

    def test_it_shows_that_it_knows_a_token_without_being_sent_one(self, house: House) -> None:
        for token in (house.agent, house.approver, house.admin):
            answer = send(house.api, "GET", "/health", headers=challenge(token))
            assert answer.headers[PROOF.lower()] == make_proof(digest(token), ZEROS)
        other = send(house.api, "GET", "/health", headers=challenge(house.agent, "1" * 32))
        assert other.headers[PROOF.lower()] != make_proof(digest(house.agent), ZEROS), "good for that nonce only"

    def test_not_those_it_does_not_know_or_no_longer(self, house: House) -> None:
        revoked = house.desk.change(lambda turn: access.create_token(turn, "x", ["admin"], by="test")).result()
        expired = house.desk.change(
            lambda turn: access.create_token(turn, "y", ["admin"], by="test", seconds=5)
        ).result()
        house.desk.change(lambda turn: access.revoke_token(turn, revoked.record.id, by="test")).result()
        house.clock.ahead += 6
        for token in ("wsc_other", revoked.secret, expired.secret):
            assert PROOF.lower() not in send(house.api, "GET", "/health", headers=challenge(token)).headers

    @pytest.mark.slow
    @pytest.mark.parametrize("said", ["", "x", "a b", f"{'0' * 64} {'0' * 31}", f"{'0' * 64} {'g' * 32}", "é" * 97])
    def test_what_is_no_challenge_is_passed_over(self, house: House, said: str) -> None:
        answer = send(house.api, "GET", "/health", headers={CHALLENGE: said, NONCE: said})
        assert answer.status == 200 and PROOF.lower() not in answer.headers
        assert SIGNATURE.lower() not in answer.headers
        assert PROOF.lower() not in send(house.api, "GET", "/health").headers

    def test_a_name_is_no_key(self, house: House) -> None:
        """Who saw a challenge can neither log in with it nor make a proof of it."""
        name = name_token(digest(house.agent))
        assert send(house.api, "GET", "/confirm", token=name).status == 401
        assert make_proof(name, ZEROS) != make_proof(digest(house.agent), ZEROS)


def raw(
    url: str, method: str, path: str, token: str | None, headers: dict[str, str]
) -> tuple[int, bytes, dict[str, str]]:
    """Return status, body and headers as they were sent."""
    connection = open_connection(url)
    sent = headers | ({"Authorization": f"Bearer {token}"} if token else {})
    connection.request(method, path, headers=sent)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body, {name.lower(): value for name, value in answer.getheaders()}


class TestClient:
    def test_it_asks_who_knows_the_token(self, house: House) -> None:
        ticket = submit("send_mail", "d", daemon=Daemon(house.api, house.agent))
        assert house.get(ticket.id)["status"] == "pending"

    def test_the_token_goes_over_the_same_connection_or_not_at_all(self, house: House) -> None:
        connection = open_connection(house.api)
        check_daemon(connection, make_check(house.api, house.agent), house.agent)
        connection.close()
        with pytest.raises(http.client.NotConnected):
            connection.request("GET", "/confirm", headers={"Authorization": f"Bearer {house.agent}"})

    def test_an_unknown_token_is_not_sent(self, house: House) -> None:
        unknown = pin_token("wsc_other", house.desk.identity)
        with pytest.raises(Unauthorized, match="does not know this token"):
            check_daemon(open_connection(house.api), make_check(house.api, unknown), unknown)
        assert "auth_failed" not in house.events()

    def test_without_a_key_nobody_is_believed(self, house: House) -> None:
        with pytest.raises(UntrustedDaemon, match="warmstart confirm trust"):
            submit("send_mail", "d", daemon=Daemon(house.api, split_token(house.agent).secret))
        with pytest.raises(UntrustedDaemon, match="another key"):
            submit("send_mail", "d", daemon=Daemon(house.api, house.agent, KEY))


class Impostor(BaseHTTPRequestHandler):
    """Says yes to everything, and listens for tokens."""

    protocol_version = "HTTP/1.1"
    heard: list[str] = []  # noqa: RUF012
    status = 200
    proof: dict[str, str] = {}  # noqa: RUF012
    signs = False

    def answer(self) -> None:
        self.heard.append(str(self.headers))
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(self.status)
        self.send_header("Content-Length", "2")
        for name, value in (self.proof | (prove(self, self.status, b"{}") if self.signs else {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_POST = answer  # noqa: N815

    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture
def impostor() -> Iterator[str]:
    Impostor.heard, Impostor.status, Impostor.proof, Impostor.signs = [], 200, {}, False
    with serving(Impostor) as address:
        yield f"http://{address}"


class TestImpostor:
    @pytest.mark.parametrize("proof", ["", ZEROS, "0" * 64, "A" * 86 + "==", "é"])
    def test_it_is_told_nothing(self, house: House, impostor: str, proof: str) -> None:
        Impostor.proof = {PROOF: proof, SIGNATURE: proof}
        with pytest.raises(UntrustedDaemon, match="did not prove"):
            ask("delete_data", "d", daemon=Daemon(impostor, house.agent))
        assert len(Impostor.heard) == 1 and split_token(house.agent).secret not in Impostor.heard[0]
        assert "Authorization" not in Impostor.heard[0] and digest(house.agent) not in Impostor.heard[0]

    def test_a_key_of_its_own_is_of_no_use(self, house: House, impostor: str) -> None:
        Impostor.signs = True
        with pytest.raises(UntrustedDaemon, match="did not prove"):
            ask("delete_data", "d", daemon=Daemon(impostor, house.agent))
        assert call(Daemon(impostor, TOKEN), "GET", "/health") == {}, "good for who has pinned that one"

    def test_an_old_answer_is_of_no_use(self, house: House, impostor: str) -> None:
        authority = name_authority(house.api)
        seen = send(house.api, "GET", "/health", headers=challenge(house.agent) | {NONCE: f"{ZEROS} {authority}"})
        Impostor.proof = {name: seen.headers[name.lower()] for name in (PROOF, SIGNATURE)}
        with pytest.raises(UntrustedDaemon):
            check_daemon(open_connection(impostor), make_check(house.api, house.agent), house.agent)

    def test_a_proxy_whose_daemon_restarts_is_asked_again(self, impostor: str) -> None:
        Impostor.status = 502
        with pytest.raises(Unreachable, match="502"):
            check_daemon(open_connection(impostor), make_check(impostor, TOKEN), TOKEN)
