"""Replay one recorded session to a model, turn by turn, with a journal from which a killed run goes on.

Requests are redacted before they reach this module; answers are redacted before they are kept, judged or sent back. So the
journal contains no secret either, and a run that goes on from it repeats the same bytes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from warmstart.dialects.compose import Seed
from warmstart.dialects.providers import clean
from warmstart.endpoints.chat import LLM, AskedCall, EndpointError, Reply, write_body
from warmstart.lab.models.tool_calls import make_harmless, read_arguments, write_turn
from warmstart.lab.replay.match import NormalForm, Proposed, RecordPlayer, normal_form
from warmstart.lab.replay.recordings import Recording, Toolbox
from warmstart.redact import Redactor

SYSTEM = "You work on the user's request with the tools you are given. Call them; do not describe what you would call."


class Played(Struct, frozen=True, kw_only=True):
    """The calls that the model proposed in one arm."""

    calls: tuple[Proposed, ...]
    turns: int  # the model's answers
    seed_tokens: int = 0
    examples: int = 0  # calls in the seed


class Answer(Struct, frozen=True, kw_only=True):
    """A line of the journal."""

    session: str
    arm: str
    turn: int
    asked: str  # digest of the request
    reply: Reply | None = None  # None: there was none, see `trouble`
    trouble: str = ""


class ReplayJournal:
    """Asks a model and writes every answer as it comes, so that nothing is asked twice."""

    def __init__(self, path: Path, llm: LLM, redactor: Redactor) -> None:
        self._path = path
        self._llm = llm
        self._redactor = redactor
        self._known: dict[tuple[str, str, int, str], Reply] = {}
        self.asked = 0  # requests that were really sent
        self.failed: set[str] = set()  # sessions without an answer in an earlier run, to be tried last
        for line in _lines(path):
            try:
                answer = msgspec.json.decode(line, type=Answer)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue  # the torn last line of a killed run
            if answer.reply is None:
                self.failed.add(answer.session)
            else:
                self._known[answer.session, answer.arm, answer.turn, answer.asked] = answer.reply

    def ask(self, place: tuple[str, str, int], body: bytes) -> Reply:
        """Return the answer to a request: the journal's, or else a new one."""
        digest = hashlib.blake2b(body, digest_size=10).hexdigest()
        known = self._known.get((*place, digest))
        if known is not None:
            return known
        self.asked += 1
        session, arm, turn = place
        answer = Answer(session=session, arm=arm, turn=turn, asked=digest)
        try:
            reply = _hide(self._llm.ask(body), self._redactor)
        except EndpointError as error:
            self._write(structs.replace(answer, trouble=str(error)))
            raise
        self._write(structs.replace(answer, reply=reply))
        self._known[*place, digest] = reply
        return reply

    def _write(self, answer: Answer) -> None:
        """Append an answer; end a torn line first."""
        with os.fdopen(os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o600), "ab+") as file:
            size = file.seek(0, os.SEEK_END)
            if size:
                file.seek(size - 1)
            torn = size > 0 and file.read(1) != b"\n"
            file.write((b"\n" if torn else b"") + msgspec.json.encode(answer) + b"\n")


class Replayer:
    """Replays recordings to one model."""

    def __init__(self, journal: ReplayJournal, toolbox: Toolbox, request: Mapping[str, Any], turns: int) -> None:
        """`request`: the fields of every request beside messages and tools, such as the model's name."""
        self._journal = journal
        self._toolbox = toolbox
        self._request = dict(request)
        self._turns = turns

    def play(self, recording: Recording, arm: str, seed: Seed, shown: Collection[NormalForm] = ()) -> Played:
        """Replay a session until an answer has no call or the turns are used up. `shown`: calls in all arms' seeds."""
        tools = self._toolbox.describe(recording)
        asked = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": recording.task}]
        messages: list[dict[str, Any]] = seed.inject(asked)
        player = RecordPlayer(recording.calls, self._toolbox.names(recording), shown)
        calls: list[Proposed] = []
        turn = 0
        while turn < self._turns:
            turn += 1
            body = write_body(self._request | {"messages": messages, "tools": tools})
            reply = self._journal.ask((recording.name, arm, turn), body)
            if not reply.calls:
                break
            answers = [player.answer(call, turn) for call in reply.calls]
            calls += [proposed for proposed, _text in answers]
            sent_back = [make_harmless(call) for call in reply.calls]
            ids, results = _ids(reply.calls, turn), [text for _proposed, text in answers]
            messages += write_turn(clean(reply.text), ids, sent_back, results)
        return Played(calls=tuple(calls), turns=turn, seed_tokens=seed.tokens, examples=len(_functions(seed)))


def calls_in(seed: Seed) -> frozenset[NormalForm]:
    """Return the calls that a seed shows."""
    calls = ((function["name"], read_arguments(function["arguments"])) for function in _functions(seed))
    return frozenset(normal_form(tool, arguments) for tool, arguments in calls if arguments is not None)


def _functions(seed: Seed) -> list[dict[str, Any]]:
    return [call["function"] for message in seed.messages for call in message.get("tool_calls") or ()]


def _ids(calls: Sequence[AskedCall], turn: int) -> list[str]:
    """Return the model's own ids if each has one, else new ones of nine characters, which every server accepts."""
    own = [call.id for call in calls]
    if all(own) and len(set(own)) == len(own):
        return own
    return [f"r{turn:03}c{at:04}" for at in range(len(own))]


def _hide(reply: Reply, redactor: Redactor) -> Reply:
    """Redact an answer: a model that got no secret may still write something like one."""
    scope = redactor.scope()
    calls = []
    for call in reply.calls:
        arguments = call.arguments
        if scope.text(arguments) != arguments:
            value = read_arguments(arguments)
            hidden = scope.text(arguments) if value is None else msgspec.json.encode(scope.value(value)).decode()
            arguments = hidden
        calls.append(structs.replace(call, name=scope.identifier(call.name), arguments=clean(arguments)))
    return structs.replace(reply, text=clean(scope.text(reply.text)), calls=tuple(calls))


def _lines(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
