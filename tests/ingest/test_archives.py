"""Archives are read as folders; hostile and damaged ones cost a typed problem, and nothing else."""

from __future__ import annotations

import gzip
import io
import json
import random
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest
import zstandard

import warmstart
from command_line import run, run_json
from formats.samples import fill_hermes
from ingest.packing import KINDS, encode_session, pack, pack_tar
from places import DATA
from warmstart.ingest.skips import LINK, NESTED, OTHER_NAME

FILES = {
    "p/sessions/a.jsonl": encode_session("s-a"),
    "p/sessions/b.jsonl": encode_session("s-b", 3),
    "p/README.md": b"# Sessions\n",
    "p/index.jsonl": b'{"session": "s-a"}\n',
    "p/empty.jsonl": b"",
}
REASONS = {OTHER_NAME: 1, "no reader knows this format": 1, "the file is empty": 1}


@pytest.mark.parametrize("kind", KINDS)
def test_an_archive_is_read_as_a_folder(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"sessions.{kind}"
    path.write_bytes(pack(FILES, kind))
    first = run_json("ingest", path)
    assert (first["new"], first["calls"], first["problems"]) == (2, 5, [])
    assert {skip["reason"]: skip["files"] for skip in first["skips"]} == REASONS
    again = run_json("ingest", path)
    assert (again["sessions"], again["unchanged"], again["skipped"]) == (0, 1, 0)
    rows = {row["id"]: row for row in run_json("sessions", "list")}
    assert rows.keys() == {"s-a", "s-b"}
    inspected = [json.loads(line) for line in run("inspect", path, "--json").stdout.splitlines()]
    assert [session["source_uri"] for session in inspected] == [
        f"{path.as_uri()}!/p/sessions/a.jsonl",
        f"{path.as_uri()}!/p/sessions/b.jsonl",
    ]


def test_reasons_are_printed_with_an_example(tmp_path: Path) -> None:
    path = tmp_path / "sessions.tar"
    path.write_bytes(pack(FILES, "tar"))
    printed = run("ingest", path).stdout
    assert f"skipped 1 file: {OTHER_NAME}, such as {path}!/p/README.md" in printed
    assert f"skipped 1 file: the file is empty, such as {path}!/p/empty.jsonl" in printed


def test_archives_in_folders_and_packed_files(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(FILES["p/sessions/a.jsonl"]))
    (tmp_path / "b.tgz").write_bytes(pack({"b.jsonl": encode_session("s-b")}, "tgz"))
    inner = {
        "c.jsonl.gz": gzip.compress(encode_session("s-c")),
        "d.jsonl.zst": zstandard.compress(encode_session("s-d")),
    }
    (tmp_path / "c.zip").write_bytes(pack(inner, "zip"))
    assert {found.session.id for found in warmstart.inspect(tmp_path).sessions} == {"s-a", "s-b", "s-c", "s-d"}


@pytest.mark.parametrize("kind", KINDS)
def test_of_a_changed_archive_only_new_members_are_read(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"sessions.{kind}"
    with warmstart.open() as ws:
        path.write_bytes(pack({"a.jsonl": encode_session("s-a"), "b.jsonl": encode_session("s-b")}, kind))
        assert ws.ingest(path).new == 2
        path.write_bytes(
            pack(
                {
                    "a.jsonl": encode_session("s-a"),
                    "b.jsonl": encode_session("s-b", 4),
                    "c.jsonl": encode_session("s-c"),
                },
                kind,
            )
        )
        report = ws.ingest(path)
        assert (report.unchanged, report.updated, report.new, report.sessions) == (1, 1, 1, 2)


def test_a_deleted_session_is_reported_when_its_archive_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "sessions.tar"
    path.write_bytes(pack(FILES, "tar"))
    run("ingest", path)
    run("sessions", "delete", "s-a", "--yes")
    assert run_json("ingest", path)["forgotten"] == 1
    assert {row["id"] for row in run_json("sessions", "list")} == {"s-b"}


def test_databases_and_logs_with_a_reader_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spool))
    fill_hermes(tmp_path / "state.db")
    alone = {found.session.id for found in warmstart.inspect(tmp_path / "state.db").sessions}
    log = next((DATA / "inspect").glob("*.eval"))
    logged = {found.session.id for found in warmstart.inspect(log).sessions}
    for kind in KINDS:
        path = tmp_path / f"x.{kind}"
        path.write_bytes(pack({"h/state.db": (tmp_path / "state.db").read_bytes(), "x.eval": log.read_bytes()}, kind))
        found = warmstart.inspect(path)
        assert {scored.session.id for scored in found.sessions} == alone | logged, kind
        assert not found.problems
        assert all(f"x.{kind}!/" in scored.session.source_uri for scored in found.sessions), "not the temporary file"
    assert list(spool.iterdir()) == [], "temporary files are gone"


HOSTILE = (
    "../../evil.jsonl",
    "/tmp/../evil.jsonl",
    "C:\\Windows\\evil.jsonl",
    "..\\..\\evil.jsonl",
    "CON.jsonl",
    "a/./b/../../../evil.jsonl",
    "x" * 4000 + "/evil.jsonl",
    "\x1b[31mred\u202e.jsonl",
    "%2e%2e/evil#x?.jsonl",
    "~/.ssh/evil.jsonl",
)


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_names_are_never_paths(kind: str, tmp_path: Path) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    path = inside / f"evil.{kind}"
    path.write_bytes(pack({name: encode_session(f"s-{n}") for n, name in enumerate(HOSTILE)}, kind))
    with warmstart.open() as ws:
        report = ws.ingest(path)
        assert report.new == len(HOSTILE) and not report.problems
        assert ws.ingest(path).unchanged == 1
    assert [file.name for file in inside.iterdir()] == [path.name]
    assert not list(tmp_path.rglob("evil.jsonl"))
    assert "\x1b[31m" not in run("inspect", path).stdout


def test_a_member_reads_no_file_of_this_machine(tmp_path: Path) -> None:
    case = next((DATA / "swe_agent").glob("*.traj"))
    real = tmp_path / "real"
    real.mkdir()
    (real / "labels.json").write_text(json.dumps([{"file": "x.traj", "resolved": False}]))
    (real / "x.traj").write_bytes(case.read_bytes())
    path = tmp_path / "evil.tar"
    path.write_bytes(pack({str(real / "x.traj"): case.read_bytes(), f"..{real}/x.traj": case.read_bytes()}, "tar"))
    inside = warmstart.inspect(path).sessions
    assert inside and {found.session.label for found in inside} == {None}
    assert {found.session.label for found in warmstart.inspect(real / "x.traj").sessions} == {False}, "the trap works"


def test_links_and_devices_are_skipped(tmp_path: Path) -> None:
    secret = tmp_path / "secret.jsonl"
    secret.write_bytes(encode_session("s-secret"))
    path = tmp_path / "links.tar"
    with tarfile.open(path, "w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
            info = tarfile.TarInfo(f"{kind.decode()}.jsonl")
            info.type, info.linkname = kind, str(secret)
            archive.addfile(info)
    with warmstart.open() as ws:
        report = ws.ingest(path)
    assert (report.sessions, report.skipped, report.skips[0].reason) == (0, 4, LINK)


def test_an_archive_inside_an_archive_is_skipped(tmp_path: Path) -> None:
    inner = pack({"a.jsonl": encode_session("s-a")}, "tar")
    files = {
        "inner.tar": inner,
        "named.jsonl": inner,
        "x.zip": pack({"a.jsonl": b""}, "zip"),
        "b.jsonl": encode_session("s-b"),
    }
    files["packed.zst"] = zstandard.compress(inner)
    path = tmp_path / "outer.tar"
    path.write_bytes(pack(files, "tar"))
    with warmstart.open() as ws:
        report = ws.ingest(path)
    assert report.new == 1
    assert {skip.reason: skip.files for skip in report.skips} == {NESTED: 4}


@pytest.mark.parametrize("kind", ["gz", "tar.gz", "tar.zst", "zst", "zip"])
def test_bombs(kind: str, tmp_path: Path) -> None:
    zeros = bytes(64 << 20)
    if kind == "zip":
        path = tmp_path / "bomb.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("0.jsonl", encode_session("s-a"))
            for n in range(1, 5):
                archive.writestr(f"{n}.jsonl", zeros)
    else:
        path = tmp_path / f"bomb.jsonl.{kind}" if kind in ("gz", "zst") else tmp_path / f"bomb.{kind}"
        content = (
            encode_session("s-a") + zeros
            if "tar" not in kind
            else pack_tar({"0.jsonl": encode_session("s-a"), "1.jsonl": zeros})
        )
        packed = gzip.compress(content, 9) if kind.endswith("gz") else zstandard.compress(content, 19)
        path.write_bytes(packed)
    with warmstart.open() as ws:
        report = ws.ingest(path)
    assert report.new == 1, "the transcript in front of the bomb is read"
    assert any("times its size" in problem.reason for problem in report.problems), report.problems


@pytest.mark.parametrize("kind", KINDS)
def test_an_archive_that_is_cut_off_keeps_what_came_before(kind: str, tmp_path: Path) -> None:
    files = {f"{n}.jsonl": encode_session(f"s-{n}", 20) for n in range(12)}
    whole = pack(files, kind)
    sessions = []
    for share in range(1, 20):
        path = tmp_path / f"{share}.{kind}"
        path.write_bytes(whole[: len(whole) * share // 20])
        with warmstart.open(home=tmp_path / f"home-{share}") as ws:
            report = ws.ingest(path)
        assert report.problems, f"{share}/20 of {kind} is reported"
        sessions.append(report.new)
    assert sessions == sorted(sessions), "a longer beginning never has fewer sessions"
    assert sessions[-1] >= 10


@pytest.mark.parametrize("kind", KINDS)
def test_changed_bytes_raise_nothing(kind: str, tmp_path: Path) -> None:
    whole = pack({f"{n}.jsonl": encode_session(f"s-{n}") for n in range(6)}, kind)
    path = tmp_path / f"changed.{kind}"
    for seed in range(60):
        chance = random.Random(seed)
        data = bytearray(whole)
        for _ in range(chance.choice((1, 4, 40))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(data)
        warmstart.inspect(path)


def test_headers_that_claim_to_be_huge_or_never_end(tmp_path: Path) -> None:
    def header(kind: bytes, size: int) -> bytes:
        info = tarfile.TarInfo("x")
        info.type, info.size = kind, size
        return info.tobuf(tarfile.GNU_FORMAT)

    start = pack_tar({"a.jsonl": encode_session("s-a")})
    with tarfile.open(fileobj=io.BytesIO(start)) as archive:
        member = archive.next()
        end = member.offset_data + -(-member.size // 512) * 512
    endings = {
        "huge": header(tarfile.XHDTYPE, 4 << 30),
        "long name": header(tarfile.GNUTYPE_LONGNAME, 4 << 30) + bytes(1 << 20),
        "chain": b"".join(header(tarfile.XHDTYPE, 0) for _ in range(5_000)),
        "negative": header(tarfile.REGTYPE, 0)[:124] + b"\xff" * 12 + header(tarfile.REGTYPE, 0)[136:],
        "garbage": b"\x55" * 2048,
    }
    for name, ending in endings.items():
        path = tmp_path / f"{name}.tar"
        path.write_bytes(start[:end] + ending)
        found = warmstart.inspect(path)
        assert [scored.session.id for scored in found.sessions] == ["s-a"], name
        assert found.problems, name


def test_a_member_that_is_too_large(tmp_path: Path) -> None:
    info = tarfile.TarInfo("large.jsonl")
    info.size = 3 << 30
    path = tmp_path / "large.tar"
    path.write_bytes(info.tobuf())
    with warmstart.open() as ws:
        report = ws.ingest(path)
    assert [skip.reason for skip in report.skips] == ["larger than 2 GB"]
    assert report.problems, "its end is missing"
