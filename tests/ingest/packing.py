"""Archives and repositories of transcripts, made for tests."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import zstandard

from transcripts import claude_lines

KINDS = ("tar", "tar.gz", "tgz", "tar.zst", "zip")


def encode_session(session: str, calls: int = 2) -> bytes:
    """Return the bytes of a small Claude Code transcript."""
    return "".join(json.dumps(line) + "\n" for line in claude_lines(session, calls)).encode()


def pack_tar(files: Mapping[str, bytes]) -> bytes:
    """Return a tar archive of these files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def pack(files: Mapping[str, bytes], kind: str) -> bytes:
    """Return an archive of these files; `kind` is its ending."""
    if kind == "zip":
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return packed.getvalue()
    tar = pack_tar(files)
    if kind == "tar":
        return tar
    return zstandard.compress(tar) if kind == "tar.zst" else gzip.compress(tar, 1)


def run_git(repository: Path, *words: str, text: bytes = b"") -> str:
    """Run git in a repository, with no configuration but the repository's own."""
    done = subprocess.run(
        ["git", "-C", str(repository), *words],
        input=text,
        capture_output=True,
        check=True,
        env=os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
    )
    return done.stdout.decode().strip()


def make_repository(path: Path, *options: str) -> Path:
    """Create an empty repository."""
    path.mkdir(parents=True)
    run_git(path, "init", "-q", "-b", "main", *options)
    return path


def commit(repository: Path, branch: str, files: Mapping[str, bytes]) -> None:
    """Add files to a branch, without a checkout."""
    tip = run_git(repository, "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")
    stream = b"commit refs/heads/%s\ncommitter a <a@example.com> 1790000000 +0000\ndata 1\nx\n" % branch.encode()
    stream += b"from %s\n" % tip.encode() if tip else b""
    for name, content in files.items():
        stream += b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(content), content)
    run_git(repository, "fast-import", "--quiet", "--force", text=stream)


def checkpoint(id: str, session: str, calls: int) -> dict[str, bytes]:
    """Return the files of an Entire checkpoint."""
    folder = f"{id[:2]}/{id[2:]}"
    return {
        f"{folder}/metadata.json": b'{"checkpoint_id": "%s"}' % id.encode(),
        f"{folder}/0/metadata.json": json.dumps({"session_id": session, "agent": "Claude Code"}).encode(),
        f"{folder}/0/full.jsonl": encode_session(session, calls),
        f"{folder}/0/prompt.txt": b"do it",
    }
