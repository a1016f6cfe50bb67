"""Remote transcripts, from fsspec's memory filesystem and a real server on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import ClassVar

import pytest

import warmstart
from command_line import run, run_json
from ingest.packing import encode_session, pack
from loopback import serving
from places import SRC
from warmstart.errors import SourceError
from warmstart.ingest.skips import OTHER_NAME

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")

SECRET = "X-Amz-Signature=0123456789abcdef"


@pytest.fixture
def bucket() -> Iterator[str]:
    files = fsspec.filesystem("memory")
    files.pipe(
        {
            "/bucket/logs/a.jsonl": encode_session("s-a"),
            "/bucket/logs/b.tar.zst": pack({"b.jsonl": encode_session("s-b", 3)}, "tar.zst"),
            "/bucket/logs/x.png": b"x",
            "/bucket/logs/empty.jsonl": b"",
            "/bucket/other/c.jsonl": encode_session("s-c"),
        }
    )
    yield "memory://bucket/logs"
    files.rm("/bucket", recursive=True)


def test_a_remote_folder(bucket: str) -> None:
    report = run_json("ingest", bucket)
    assert (report["new"], report["problems"]) == (2, [])
    assert {skip["reason"]: skip["example"] for skip in report["skips"]} == {
        OTHER_NAME: f"{bucket}/x.png",
        "the file is empty": f"{bucket}/empty.jsonl",
    }
    again = run_json("ingest", bucket)
    assert (again["sessions"], again["unchanged"]) == (0, 2)
    fsspec.filesystem("memory").pipe("/bucket/logs/a.jsonl", encode_session("s-a", 4))
    changed = run_json("ingest", bucket)
    assert (changed["sessions"], changed["updated"], changed["unchanged"]) == (1, 1, 1)


def test_one_remote_file_and_none(bucket: str) -> None:
    (found,) = warmstart.inspect("memory://bucket/other/c.jsonl").sessions
    assert (found.session.id, found.session.source_uri) == ("s-c", "memory://bucket/other/c.jsonl")
    with pytest.raises(SourceError, match="no such file or folder"):
        warmstart.inspect("memory://bucket/none")


class Server(BaseHTTPRequestHandler):
    """Serves some files, without ranges, and counts what is asked."""

    files: ClassVar[dict[str, bytes]] = {}
    tagged = True
    asked: ClassVar[list[str]] = []

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        self.asked.append(self.command)
        content = self.files.get(self.path.partition("?")[0])
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Length", str(len(content or b"")))
        if content is not None and self.tagged:
            self.send_header("ETag", f'"{hash(content)}"')
        self.end_headers()
        if body and content is not None:
            self.wfile.write(content)

    def log_message(self, *_words: object) -> None:
        return None


def test_web_addresses(tmp_path: Path) -> None:
    class Here(Server):
        files: ClassVar = {"/a.jsonl": encode_session("s-a"), "/b.tgz": pack({"b.jsonl": encode_session("s-b")}, "tgz")}
        asked: ClassVar[list[str]] = []

    with serving(Here) as host:
        addresses = [f"http://user:pass-word-1@{host}/a.jsonl?{SECRET}", f"http://{host}/b.tgz"]
        assert run_json("ingest", *addresses)["new"] == 2
        assert Here.asked.count("GET") == 2
        again = run_json("ingest", *addresses)
        assert (again["unchanged"], again["sessions"]) == (2, 0)
        assert Here.asked.count("GET") == 2, "an unchanged file is not fetched again"
        missing = run("ingest", f"http://{host}/none.jsonl?{SECRET}", code=1)
        assert f"http://{host}/none.jsonl: there is no such file or folder" in missing.stderr
        assert "Signature" not in missing.stderr + missing.stdout
        Here.tagged = False
        assert run_json("ingest", addresses[0])["sessions"] == 1, "without a version it is read each time"
    gone = run("ingest", f"http://{host}/a.jsonl", code=1)
    assert f"http://{host}/a.jsonl: " in gone.stderr and "Traceback" not in gone.stderr
    stored = b"".join(file.read_bytes() for file in Path(os.environ["WARMSTART_HOME"]).rglob("*") if file.is_file())
    assert b"Signature" not in stored and b"pass-word-1" not in stored


@pytest.mark.parametrize(
    ("address", "extra"),
    [("https://example.com/a.jsonl", "remote"), ("s3://b/a", "remote,s3"), ("gs://b/a", "remote,gcs")],
)
def test_missing_packages_are_named(address: str, extra: str) -> None:
    code = (
        "import sys\nfor name in ('fsspec', 'fsspec.core', 's3fs', 'gcsfs'): sys.modules[name] = None\n"
        "import warmstart\ntry:\n    warmstart.inspect(sys.argv[1])\nexcept warmstart.SourceError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, address], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": SRC}
    )
    assert f"pip install 'warmstart[{extra}]'" in done.stdout, done.stderr


def test_other_addresses_are_paths(tmp_path: Path) -> None:
    for name in ("file:///etc/passwd", "simplecache::https://example.com/a", "ssh://host/a", "github://a:b@c/d"):
        with pytest.raises(SourceError, match="no such file or directory"):
            warmstart.inspect(name)
