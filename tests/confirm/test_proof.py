"""Whoever takes the daemon's place while it is down is neither sent a token nor believed."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

import pytest

from confirm.serving import House, send
from loopback import serving
from warmstart.confirm import Daemon, Unauthorized, Unreachable, ask, submit
from warmstart.confirm.tokens import access
from warmstart.confirm.tokens.proof import CHALLENGE, PROOF, check_daemon, make_proof, name_token
from warmstart.confirm.tokens.tokens import digest_secret

NONCE = "0" * 32


@pytest.fixture
def house(open_house: Callable[..., House]) -> House:
    """A daemon that answers challenges."""
    return open_house()


def open_connection(url: str) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)


def challenge(house: House, token: str, nonce: str = NONCE) -> dict[str, str]:
    return {CHALLENGE: f"{name_token(digest_secret(token))} {nonce}"}


class TestDaemon:
    def test_it_shows_that_it_knows_a_token_without_being_sent_one(self, house: House) -> None:
        for token in (house.agent, house.approver, house.admin):
            answer = send(house.api, "GET", "/health", headers=challenge(house, token))
            assert answer.headers[PROOF.lower()] == make_proof(digest_secret(token), NONCE)
        other = send(house.api, "GET", "/health", headers=challenge(house, house.agent, "1" * 32))
        assert other.headers[PROOF.lower()] != make_proof(digest_secret(house.agent), NONCE), "good for that nonce only"

    def test_not_those_it_does_not_know_or_no_longer(self, house: House) -> None:
        revoked = house.desk.change(lambda turn: access.create_token(turn, "x", ["admin"], by="test")).result()
        expired = house.desk.change(
            lambda turn: access.create_token(turn, "y", ["admin"], by="test", seconds=5)
        ).result()
        house.desk.change(lambda turn: access.revoke_token(turn, revoked.record.id, by="test")).result()
        house.clock.ahead += 6
        for token in ("wsc_other", revoked.secret, expired.secret):
            assert PROOF.lower() not in send(house.api, "GET", "/health", headers=challenge(house, token)).headers

    @pytest.mark.slow
    @pytest.mark.parametrize("said", ["", "x", "a b", f"{'0' * 64} {'0' * 31}", f"{'0' * 64} {'g' * 32}", "é" * 97])
    def test_what_is_no_challenge_is_passed_over(self, house: House, said: str) -> None:
        answer = send(house.api, "GET", "/health", headers={CHALLENGE: said})
        assert answer.status == 200 and PROOF.lower() not in answer.headers
        assert PROOF.lower() not in send(house.api, "GET", "/health").headers

    def test_a_name_is_no_key(self, house: House) -> None:
        """Who saw a challenge can neither log in with it nor make a proof of it."""
        name = name_token(digest_secret(house.agent))
        assert send(house.api, "GET", "/confirm", token=name).status == 401
        assert make_proof(name, NONCE) != make_proof(digest_secret(house.agent), NONCE)


class TestClient:
    def test_it_asks_who_knows_the_token(self, house: House) -> None:
        ticket = submit("send_mail", "d", daemon=Daemon(house.api, house.agent))
        assert house.get(ticket.id)["status"] == "pending"

    def test_the_token_goes_over_the_same_connection_or_not_at_all(self, house: House) -> None:
        connection = open_connection(house.api)
        check_daemon(connection, house.agent)
        connection.close()
        with pytest.raises(http.client.NotConnected):
            connection.request("GET", "/confirm", headers={"Authorization": f"Bearer {house.agent}"})

    def test_an_unknown_token_is_not_sent(self, house: House) -> None:
        with pytest.raises(Unauthorized, match="does not know this token"):
            check_daemon(open_connection(house.api), "wsc_other")
        assert "auth_failed" not in house.events()


class Impostor(BaseHTTPRequestHandler):
    """Says yes to everything, and listens for tokens."""

    protocol_version = "HTTP/1.1"
    heard: list[str] = []  # noqa: RUF012
    status = 200
    proof = ""

    def answer(self) -> None:
        self.heard.append(str(self.headers))
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(self.status)
        self.send_header("Content-Length", "2")
        self.send_header(PROOF, self.proof)
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_POST = answer  # noqa: N815

    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture
def impostor() -> Iterator[str]:
    Impostor.heard, Impostor.status, Impostor.proof = [], 200, ""
    with serving(Impostor) as address:
        yield f"http://{address}"


class TestImpostor:
    @pytest.mark.parametrize("proof", ["", NONCE, "0" * 64, "é"])
    def test_it_is_told_nothing(self, house: House, impostor: str, proof: str) -> None:
        Impostor.proof = proof
        with pytest.raises(Unauthorized, match="does not know this token"):
            ask("delete_data", "d", daemon=Daemon(impostor, house.agent))
        assert len(Impostor.heard) == 1 and house.agent not in Impostor.heard[0]
        assert "Authorization" not in Impostor.heard[0] and digest_secret(house.agent) not in Impostor.heard[0]

    def test_an_old_proof_is_of_no_use(self, house: House, impostor: str) -> None:
        seen = send(house.api, "GET", "/health", headers=challenge(house, house.agent))
        Impostor.proof = seen.headers[PROOF.lower()]
        with pytest.raises(Unauthorized):
            check_daemon(open_connection(impostor), house.agent)

    def test_a_proxy_whose_daemon_restarts_is_asked_again(self, impostor: str) -> None:
        Impostor.status = 502
        with pytest.raises(Unreachable, match="502"):
            check_daemon(open_connection(impostor), "wsc_x")
