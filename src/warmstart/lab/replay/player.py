"""One recorded session given to a model anew, turn by turn; and the journal that makes a killed run go on.

What goes out is redacted before it comes here, and what a model answers is redacted before it is kept, judged or sent
back: the journal holds no secret either, and going on from it repeats the same bytes.
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
from warmstart.lab.models.tool_calls import is_sayable, read_arguments
from warmstart.lab.replay.match import NormalForm, Proposed, RecordPlayer, normal_form
from warmstart.lab.replay.recordings import Recording, Toolbox
from warmstart.redact import Redactor

SYSTEM = "You work on the user's request with the tools you are given. Call them; do not describe what you would call."
_UNNAMED = "unnamed_tool"  # stands for a name that no endpoint takes back


class Played(Struct, frozen=True, kw_only=True):
    """What the model proposed in one arm."""

    calls: tuple[Proposed, ...]
    turns: int  # answers of the model
    seed_tokens: int = 0
    examples: int = 0  # templates' calls in the seed


class Answer(Struct, frozen=True, kw_only=True):
    """A line of the journal."""

    session: str
    arm: str
    turn: int
    asked: str  # digest of the request
    reply: Reply | None = None  # None: there was none
    trouble: str = ""  # then why


class ReplayJournal:
    """Asks a model. Every answer is written down as it comes, so nothing is answered twice."""

    def __init__(self, path: Path, llm: LLM, redactor: Redactor) -> None:
        self._path = path
        self._llm = llm
        self._redactor = redactor
        self._known: dict[tuple[str, str, int, str], Reply] = {}
        self.asked = 0  # requests that really went out
        self.failed: set[str] = set()  # sessions that an earlier run got no answer for: to be tried again last
        for line in _lines(path):
            try:
                found = msgspec.json.decode(line, type=Answer)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue  # the last one of a run that was killed while it wrote
            if found.reply is None:
                self.failed.add(found.session)
            else:
                self._known[found.session, found.arm, found.turn, found.asked] = found.reply

    def ask(self, place: tuple[str, str, int], body: bytes) -> Reply:
        """The answer to a request: the one that came before, or a new one."""
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
        """A torn line before is closed first."""
        with os.fdopen(os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o600), "ab+") as file:
            size = file.seek(0, os.SEEK_END)
            if size:
                file.seek(size - 1)
            torn = size > 0 and file.read(1) != b"\n"
            file.write((b"\n" if torn else b"") + msgspec.json.encode(answer) + b"\n")


class Replayer:
    """Plays recordings to one model."""

    def __init__(self, journal: ReplayJournal, toolbox: Toolbox, request: Mapping[str, Any], turns: int) -> None:
        """`request`: what every request holds beside messages and tools, the model's name above all."""
        self._journal = journal
        self._toolbox = toolbox
        self._request = dict(request)
        self._turns = turns

    def play(self, recording: Recording, arm: str, seed: Seed, shown: Collection[NormalForm] = ()) -> Played:
        """Up to so many turns; an answer without a call is the end. `shown`: calls in the seeds of all arms."""
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
            messages += _write_turn(reply, [text for _proposed, text in answers], turn)
        return Played(calls=tuple(calls), turns=turn, seed_tokens=seed.tokens, examples=len(_functions(seed)))


def calls_in(seed: Seed) -> frozenset[NormalForm]:
    """The calls that a seed shows."""
    read = ((one["name"], read_arguments(one["arguments"])) for one in _functions(seed))
    return frozenset(normal_form(tool, arguments) for tool, arguments in read if arguments is not None)


def _functions(seed: Seed) -> list[dict[str, Any]]:
    return [made["function"] for message in seed.messages for made in message.get("tool_calls") or ()]


def _write_turn(reply: Reply, texts: Sequence[str], turn: int) -> list[dict[str, Any]]:
    """The model's calls with their answers. What it wrote so that no endpoint would take it back is made harmless."""
    ids = _ids(reply.calls, turn)
    asked = [
        {
            "id": call_id,
            "type": "function",
            "function": {
                "name": call.name if is_sayable(call.name) else _UNNAMED,
                "arguments": "{}" if read_arguments(call.arguments) is None else clean(call.arguments),
            },
        }
        for call_id, call in zip(ids, reply.calls, strict=True)
    ]
    results = [
        {"role": "tool", "tool_call_id": call_id, "content": text} for call_id, text in zip(ids, texts, strict=True)
    ]
    return [{"role": "assistant", "content": clean(reply.text) or None, "tool_calls": asked}, *results]


def _ids(calls: Sequence[AskedCall], turn: int) -> list[str]:
    """The model's own ids where each has one; else made, of nine characters, which every server takes."""
    own = [call.id for call in calls]
    if all(own) and len(set(own)) == len(own):
        return own
    return [f"r{turn:03}c{at:04}" for at in range(len(own))]


def _hide(reply: Reply, redactor: Redactor) -> Reply:
    """A model that was told no secret may still write what looks like one."""
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
