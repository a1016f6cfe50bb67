"""Homes for the pages of `warmstart ui`: the samples, hostile sessions, other people's scopes, and an experiment."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
from msgspec import structs

import warmstart
from warmstart import config
from warmstart.config import Settings
from warmstart.doors.ui.server import UiServer
from warmstart.model import Measures
from warmstart.pipeline import Warmstart
from warmstart.store import CallRow, SessionRow, SpentRow, TrialRow, TrialStore

SAMPLES = Path(warmstart.__file__).parent / "samples"

PAYLOADS = (
    "<script>window.pwned = 1; alert(1)</script>",
    '<img src="/pwned.png" onerror="window.pwned = 1">',
    "<svg onload=alert(1)><style>@import url(//evil.example/pwned.css)</style>",
    '"><iframe src="javascript:alert(1)"></iframe>',
    "javascript:alert(1)//pwned",
    "' autofocus onfocus=alert(1) x='",
    '" onmouseover="alert(1)" style="background:url(//evil.example/pwned)"',
    "{{constructor.constructor('alert(1)')()}}${alert(1)}",
    "</textarea></title></script><script src=//evil.example/pwned.js></script>",
    "<base href='//evil.example/'><meta http-equiv=refresh content='0;url=//evil.example/pwned'>",
    "<form action=//evil.example/pwned><input name=x autofocus></form>",
    "‮<a href=data:text/html,pwned>x</a>\x00\x1b[31m",
)


def make_settings(folder: Path) -> Settings:
    """Return settings of a new home that know nothing of this machine's user."""
    user = folder / "user"
    user.mkdir(exist_ok=True)
    loaded = config.load(folder / "home", environ={"HOME": str(user)})
    return structs.replace(loaded, user_home=user, places={}, secrets={}, holdout=0.1)


def make_session(number: int, text: str = "make the tests pass", **facts: Any) -> SessionRow:
    """Return a session; `text` stands in every field that a transcript fills."""
    given: dict[str, Any] = {
        "key": f"{number:032x}",
        "id": f"id-{number}",
        "format": "claude_code",
        "agent": "codex",
        "source_uri": f"file:///{number}.jsonl",
        "task": text,
        "started": 1_790_000_000.0 + number * 60,
        "ended": 1_790_000_030.0 + number * 60,
        "messages": 3,
        "calls": 2,
        "results": 2,
        "errors": 2,
        "verdict": "failure",
        "quality": 0.2,
        "confidence": 0.5,
        "category": "coding",
        "task_type": "code",
        "score": '{"verdict":"failure","quality":0.2,"confidence":0.5,"evidence":[]}',
        "digest": f"digest-{number}",
        "first_seen": 1_790_000_100.0,
        "updated": 1_790_000_100.0,
        "turns": 2,
        "folder": "/srv/shop",
        "project": "/srv/shop",
        "root": "/srv/shop",
    }
    return SessionRow(**(given | facts))


def make_call(row: SessionRow, ordinal: int, text: str, **facts: Any) -> CallRow:
    """Return a failed call with `text` in every field."""
    given: dict[str, Any] = {
        "session_key": row.key,
        "ordinal": ordinal,
        "call_id": f"{row.key}-{ordinal}",
        "tool": text[:120],
        "arguments": msgspec.json.encode({"command": text, text: text}).decode(),
        "intent": text,
        "excerpt": text,
        "status": "error",
        "basis": "exit_code",
        "error_kind": "environment",
        "at": row.started,
        "turn": ordinal + 1,
        "answered": row.ended,
        "cause": text,
        "findings": msgspec.json.encode([text]).decode(),
        "words": text,
    }
    return CallRow(**(given | facts))


def add_hostile(ws: Warmstart) -> None:
    """Store sessions with a payload in every field, twice each so that their errors repeat."""
    for number, text in enumerate(PAYLOADS * 2):
        row = make_session(
            number,
            text,
            id=f"{text}{number}",
            agent=text,
            model=text,
            end_reason=text,
            source_uri=text,
            parent=text,
            project=f"/srv/{text}",
            folder=f"/srv/{text}",
            root=f"/srv/{text}",
            score=msgspec.json.encode({"evidence": [{"sign": text, "weight": -1.0, "step": 1}]}).decode(),
        )
        spent = SpentRow(session_key=row.key, model=text, day="2026-11-16", input=10, output=2, basis="estimated")
        ws.store.put_session(row, [make_call(row, 0, text), make_call(row, 1, text)], [spent])


def add_experiment(ws: Warmstart, name: str = "october", sessions: int = 160) -> None:
    """Run an experiment in which warm sessions fail half as often."""
    chance = random.Random(4)
    ws.experiments.start(name, "cold=.5,warm=.5")
    trials = TrialStore(ws.store)
    with ws.store.writing():
        for number in range(sessions):
            arm = chance.choice(("cold", "warm"))
            judged = chance.randint(8, 30)
            errors = sum(chance.random() < (0.3 if arm == "cold" else 0.15) for _call in range(judged))
            counts = {"judged": judged, "calls": judged, "all_judged": judged, "all_calls": judged}
            measures = Measures(errors=errors, all_errors=errors, tools=3, turns=20, success_turn=1, **counts)
            row = TrialRow(
                session=f"{name}-{number}",
                arm=arm,
                picks="[]",
                task="{}",
                at=1_790_000_000.0 + number * 900,
                experiment=name,
                propensities='{"cold":0.5,"warm":0.5}',
            )
            trials.put_trial(row, ())
            trials.close(structs.replace(row, closed=1_790_900_000.0), measures)
            if arm == "warm":
                trials.put_seed(row.session, "openai", '{"tokens":40}')


def make_home(folder: Path, *, hostile: bool = False) -> Settings:
    """Make a home with the samples and what was learned of them."""
    settings = make_settings(folder)
    with Warmstart(settings) as ws:
        ws.ingest(SAMPLES)
        ws.learn()
        add_experiment(ws)
        if hostile:
            add_hostile(ws)
            ws.learn()
    return settings


@contextmanager
def log_in(server: UiServer, link: str | None = None) -> Iterator[httpx.Client]:
    """Yield a client that has used a link, with the second secret in its headers."""
    with httpx.Client(base_url=server.url, timeout=60, verify=False) as client:
        answer = client.get(link or server.make_link())
        assert answer.status_code == 303, answer.text
        client.headers["X-Warmstart-Token"] = answer.headers["location"].partition("#token=")[2]
        yield client
