"""The pipes between an agent and its hooks. The hooks at tool calls load this at every call: hardly an import."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

_LARGEST_INPUT = 32_000_000  # bytes


def read_input(stdin: BinaryIO) -> bytes:
    """Read everything, so that the writer never meets a closed pipe, but keep only a limited size."""
    kept: list[bytes] = []
    size = 0
    while chunk := stdin.read(1_000_000):
        size += len(chunk)
        if size <= _LARGEST_INPUT:
            kept.append(chunk)
    if size > _LARGEST_INPUT:
        from warmstart.errors import Refused

        raise Refused(f"the input has {size} bytes; a hook reads at most {_LARGEST_INPUT}")
    return b"".join(kept)


def write_answer(answer: bytes) -> None:
    """Write the answer for the agent, which may have closed its end of the pipe."""
    try:
        sys.stdout.buffer.write(answer)
        sys.stdout.buffer.flush()
    except OSError:
        pass  # the agent has gone
