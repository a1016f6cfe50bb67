"""A process that masks, so that neither the time nor a crash of masking is the daemon's.

Reads frames from standard input and writes one per submission to standard output: four bytes of length, then JSON. The
first frame holds the user's secrets and the key of fingerprints. See outside.py.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import BinaryIO

import msgspec

from warmstart.confirm.masking.masker import Masker
from warmstart.confirm.masking.submission import Submission


def read_frame(stream: BinaryIO) -> bytes | None:
    """Return the next frame, or None at the end."""
    head = stream.read(4)
    return stream.read(int.from_bytes(head, "big")) if len(head) == 4 else None


def write_frame(stream: BinaryIO, frame: bytes) -> None:
    stream.write(len(frame).to_bytes(4, "big") + frame)
    stream.flush()


def main() -> None:
    with suppress(OSError):
        os.nice(10)  # people who decide come first
    given, answers = sys.stdin.buffer, sys.stdout.buffer
    setting = read_frame(given)
    if setting is None:
        return
    secrets, key = msgspec.json.decode(setting, type=tuple[dict[str, str], str])
    masker = Masker(secrets, key)
    masker.mask_text("warm")  # loads the redactor
    write_frame(answers, b"ready")
    while (frame := read_frame(given)) is not None:
        masked = masker.mask_submission(msgspec.json.decode(frame, type=Submission))
        write_frame(answers, msgspec.json.encode(masked))


if __name__ == "__main__":
    with suppress(BrokenPipeError):  # the daemon was killed
        main()
