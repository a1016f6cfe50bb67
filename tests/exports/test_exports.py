"""Exports: what goes out comes back the same through our readers, up to redaction; collectors get names and outcomes."""

from __future__ import annotations

import json
import socket
import tarfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import run, run_json
from formats.samples import MADE, copy_sample, list_samples
from loopback import serving
from transcripts import claude_lines, outcome_lines, write_jsonl
from warmstart.endpoints.http import HttpError
from warmstart.exports.exchanges import split_exchanges
from warmstart.exports.formats import FORMATS
from warmstart.exports.otlp import SpanSender
from warmstart.exports.redacted import redact_session
from warmstart.formats.source import Source
from warmstart.ingest.read import scan
from warmstart.model import Message, Outcome, Session, Status, ToolCall, ToolResult
from warmstart.redact import Redactor

SECRET = "ghp_9fK2mQ7xVb4TzL8sWc1RjY6dHn3PgA5eUo0B"
REDACTOR = Redactor({}, share=True)
EXPORTS = ("atif", "openinference", "openai")
SAMPLES = [(name, case) for name, case in list_samples() if case or name in MADE]


def read_back(path: Path) -> list[Session]:
    source = Source(path, whole=True)
    sessions = [scored.session for scored in scan(source)]
    assert source.problems == []
    return sessions


def describe_calls(session: Session) -> list[tuple[Any, ...]]:
    return [
        (call.call_id, call.tool, call.arguments, answer and (answer.text, answer.outcome.status))
        for call, answer in session.calls()
    ]


def list_words(session: Session, role: str) -> list[str]:
    return [step.text for step in session.steps if isinstance(step, Message) and step.role == role]


def drop_repeats(words: list[str]) -> list[str]:
    return list(dict.fromkeys(words))


def assert_same(back: Session, sent: Session, format: str) -> None:
    assert (back.id, back.agent) == (sent.id, sent.agent)
    assert describe_calls(back) == describe_calls(sent)
    assert list_words(back, "assistant") == list_words(sent, "assistant")
    if format == "openinference":  # prompts repeat what was said, so the reader takes each text once
        assert drop_repeats(list_words(back, "user")) == drop_repeats(list_words(sent, "user"))
    else:
        assert list_words(back, "user") == list_words(sent, "user")
        assert list_words(back, "system") == list_words(sent, "system")


class TestRoundTrips:
    @pytest.mark.parametrize("format", EXPORTS)
    @pytest.mark.parametrize(("name", "case"), SAMPLES, ids=lambda value: getattr(value, "stem", value))
    def test_sessions_of_every_format(self, name: str, case: Path | None, format: str, tmp_path: Path) -> None:
        sent = [redact_session(s, REDACTOR) for s in read_back_leniently(copy_sample(name, case, tmp_path))]
        for number, session in enumerate(sent):
            if not split_exchanges(session):
                continue
            folder = tmp_path / str(number)
            folder.mkdir()
            (back,) = read_back(write_jsonl(folder / "out.jsonl", [FORMATS[format](session)]))
            assert_same(back, session, format)

    words = st.text(st.characters(exclude_categories=["Cs"]), max_size=40).map(lambda text: f"w{text}w")
    plain = st.dictionaries(st.sampled_from(["path", "q", "n"]), st.one_of(words, st.integers(0, 99), st.none()))

    @st.composite
    @staticmethod
    def sessions(draw: st.DrawFn) -> Session:
        """A session of any steps; each call is answered at once, later, or never."""
        steps: list[Any] = []
        open_calls: list[str] = []
        at = 1.7e9
        for number in range(draw(st.integers(1, 12))):
            at += draw(st.sampled_from([0, 0.5, 60]))
            kind = draw(st.sampled_from(["user", "system", "assistant", "call", "call", "result", "result"]))
            if kind == "call":
                arguments = draw(st.one_of(TestRoundTrips.plain, TestRoundTrips.words))
                steps.append(ToolCall(f"c{number}", draw(st.sampled_from(["Bash", "edit_file"])), arguments, at))
                open_calls.append(f"c{number}")
            elif kind == "result":
                if open_calls:
                    call_id = open_calls.pop(draw(st.integers(0, len(open_calls) - 1)))
                    status: Status = draw(
                        st.sampled_from(["ok", "error", "rejected", "denied", "cancelled", "unknown"])
                    )
                    steps.append(ToolResult(call_id, draw(TestRoundTrips.words), Outcome(status), at))
            else:
                steps.append(Message(kind, f"{draw(TestRoundTrips.words)} {number}", at))
        steps = steps or [Message("user", "hello", at)]
        return Session("s-1", "x", "", "agent-x", tuple(steps), model="m", project="/p", started=1.7e9, ended=at)

    @pytest.mark.parametrize("format", EXPORTS)
    @given(session=sessions())
    def test_any_session(self, format: str, session: Session, tmp_path_factory: pytest.TempPathFactory) -> None:
        sent = redact_session(session, REDACTOR)
        path = tmp_path_factory.mktemp("out") / "out.jsonl"
        back = read_back(write_jsonl(path, [FORMATS[format](sent), FORMATS[format](other(sent))]))
        assert sorted(one.id for one in back) == ["s-1", "s-2"]
        assert_same(next(one for one in back if one.id == "s-1"), sent, format)


def other(session: Session) -> Session:
    return Session("s-2", "x", "", "agent-x", session.steps)


def read_back_leniently(path: Path) -> list[Session]:
    return [scored.session for scored in scan(Source(path, whole=True))]


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    lines = outcome_lines("s-1", [True, False])
    lines[0]["message"]["content"] = f"deploy as jane.doe@corp.example with {SECRET} \x1b[31m\ud800 </script>"
    lines[2]["message"]["content"][0]["content"] = f"token {SECRET}\n" + "long line of output\n" * 200 + "end"
    file = write_jsonl(tmp_path / "in" / "s-1.jsonl", lines)
    run("ingest", file)
    return file


class TestCommand:
    @pytest.mark.parametrize("format", EXPORTS)
    def test_nothing_secret_leaves_and_texts_are_whole(self, stored: Path, format: str) -> None:
        out = run("sessions", "export", "--format", format).stdout
        (line,) = out.splitlines()
        assert SECRET not in out
        assert "jane.doe" not in out
        assert str(stored) not in out
        assert "{{SECRET:github#1}}" in out
        assert "{{SECRET:github#2}}" not in out
        assert line.count("long line of output") == 200
        assert json.loads(line)

    @pytest.mark.parametrize("format", EXPORTS)
    def test_ingest_reads_an_export_with_the_same_outcomes(self, stored: Path, format: str, tmp_path: Path) -> None:
        before = run_json("sessions", "show", "s-1")["tool_calls"]
        out = tmp_path / "out.jsonl"
        assert run_json("sessions", "export", "s-1", "--format", format, "--output", out)["sessions"] == 1
        (row,) = map(json.loads, run("inspect", out, "--json").stdout.splitlines())
        assert [(c["id"], c["tool"], c["outcome"]) for c in row["calls"]] == [
            (c["call_id"], c["tool"], c["outcome"]) for c in before
        ]
        assert [c["outcome"] for c in row["calls"]] == ["ok", "error"]

    def test_a_transcript_inside_an_archive_is_read_again(self, tmp_path: Path) -> None:
        inside = write_jsonl(tmp_path / "s.jsonl", claude_lines("s-9"))
        with tarfile.open(tmp_path / "history.tar.gz", "w:gz") as archive:
            archive.add(inside, "old/s.jsonl")
        inside.unlink()
        run("ingest", tmp_path / "history.tar.gz")
        assert run_json("sessions", "export", "--format", "openai", "--output", tmp_path / "out.jsonl")["sessions"] == 1

    def test_a_missing_transcript_is_named_and_the_others_exported(self, stored: Path, tmp_path: Path) -> None:
        run("ingest", write_jsonl(tmp_path / "in" / "s-2.jsonl", claude_lines("s-2")))
        stored.unlink()
        done = run("sessions", "export", "--format", "openai")
        assert [json.loads(line)["session_id"] for line in done.stdout.splitlines()] == ["s-2"]
        assert "s-1 cannot be exported: its transcript is gone" in done.stderr
        run("sessions", "export", "s-1", "--format", "openai", code=1)

    @pytest.mark.parametrize("redacted", [[], ["--redacted"]])
    def test_an_archived_transcript_is_read(self, stored: Path, redacted: list[str]) -> None:
        run("archive", "add", stored, *redacted)
        stored.unlink()
        (line,) = run("sessions", "export", "--format", "openai").stdout.splitlines()
        assert len(json.loads(line)["messages"]) == 5
        assert SECRET not in line

    def test_wrong_usage(self, stored: Path) -> None:
        assert "--format and --otlp" in run("sessions", "export", code=2).stderr
        assert "filters" in run("sessions", "export", "s-1", "--agent", "x", "--format", "atif", code=2).stderr
        run("sessions", "export", "nobody", "--format", "atif", code=1)
        run("sessions", "export", "--format", "atif", "--output", stored / "x.jsonl", code=1)

    def test_an_openai_export_is_valid_in_a_request(self, stored: Path) -> None:
        record = json.loads(run("sessions", "export", "--format", "openai").stdout)
        keys = {key for message in record["messages"] for key in message}
        assert keys <= {"role", "content", "tool_calls", "tool_call_id"}


class Collector(BaseHTTPRequestHandler):
    received: ClassVar[list[tuple[str, str, dict[str, Any]]]] = []
    status: ClassVar[int] = 200
    answer: ClassVar[bytes] = b"{}"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.received.append((self.path, self.headers["Content-Type"], json.loads(body)))
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.answer)))
        self.end_headers()
        self.wfile.write(self.answer)

    def log_message(self, *words: Any) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[str]:
    Collector.received, Collector.status, Collector.answer = [], 200, b"{}"
    with serving(Collector) as address:
        yield f"http://{address}"


class TestOtlp:
    @pytest.mark.parametrize("ending", ["", "/v1/traces", "/"])
    def test_tool_spans_reach_the_collector(self, stored: Path, collector: str, ending: str) -> None:
        assert run("sessions", "export", "--otlp", collector + ending).stdout == "sent 2 tool calls of 1 session\n"
        ((path, kind, body),) = Collector.received
        assert (path, kind) == ("/v1/traces", "application/json")
        spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"]
        own = [{a["key"]: a["value"]["stringValue"] for a in span["attributes"]} for span in spans]
        assert [a["gen_ai.operation.name"] for a in own] == ["execute_tool"] * 2
        assert [a["gen_ai.tool.name"] for a in own] == ["Bash"] * 2
        assert [a["gen_ai.tool.call.id"] for a in own] == ["toolu_s-1_0", "toolu_s-1_1"]
        assert {a["gen_ai.conversation.id"] for a in own} == {"s-1"}
        assert ["error.type" in a for a in own] == [False, True]
        assert [span["status"]["code"] for span in spans] == [1, 2]
        assert len({span["spanId"] for span in spans}) == 2
        assert all(len(span["traceId"]) == 32 and len(span["spanId"]) == 16 for span in spans)
        assert all(0 < int(s["startTimeUnixNano"]) <= int(s["endTimeUnixNano"]) for s in spans)
        text = json.dumps(body)
        assert "echo" not in text, "no content is sent"

    def test_our_reader_reads_what_was_sent(self, stored: Path, collector: str, tmp_path: Path) -> None:
        run("sessions", "export", "--otlp", collector)
        (back,) = read_back(write_jsonl(tmp_path / "spans.jsonl", [Collector.received[0][2]]))
        assert back.id == "s-1"
        assert [answer and answer.outcome.status for _call, answer in back.calls()] == ["ok", "error"]

    def test_it_needs_no_transcript(self, stored: Path, collector: str) -> None:
        stored.unlink()
        assert run_json("sessions", "export", "--otlp", collector)["spans"] == 2

    def test_many_spans_go_in_batches(self, tmp_path: Path, collector: str) -> None:
        run("ingest", write_jsonl(tmp_path / "many.jsonl", claude_lines("m", calls=1_100)))
        assert run_json("sessions", "export", "--otlp", collector)["spans"] == 1_100
        assert len(Collector.received) == 3

    def test_rejected_spans_are_reported(self, stored: Path, collector: str) -> None:
        Collector.answer = b'{"partialSuccess": {"rejectedSpans": "1", "errorMessage": "too old\\u001b[31m"}}'
        assert "1 rejected: too old" in run("sessions", "export", "--otlp", collector, code=1).stdout

    def test_a_collector_that_refuses(self, stored: Path, collector: str) -> None:
        Collector.status = 401
        assert "status 401; 0 spans were sent" in run("sessions", "export", "--otlp", collector, code=1).stderr

    def test_a_collector_that_is_down(self, stored: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        assert "cannot be reached" in run("sessions", "export", "--otlp", f"http://127.0.0.1:{port}", code=1).stderr

    def test_a_collector_that_hangs(self, stored: Path) -> None:
        import warmstart

        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen()
            held: list[socket.socket] = []
            thread = threading.Thread(target=lambda: held.append(server.accept()[0]), daemon=True)
            thread.start()
            sender = SpanSender(f"http://127.0.0.1:{server.getsockname()[1]}", REDACTOR, timeout=0.3)
            began = time.monotonic()
            with warmstart.open() as ws, pytest.raises(HttpError, match=r"did not answer in 0\.3 seconds; 0 spans"):
                sender.send((row, ws.store.calls_of(row.key)) for row in ws.sessions())
            assert time.monotonic() - began < 5
            thread.join()
            held[0].close()

    def test_an_address_that_is_none(self, stored: Path) -> None:
        assert "address" in run("sessions", "export", "--otlp", "collector:4318", code=2).stderr
