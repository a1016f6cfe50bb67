from __future__ import annotations

from io import BytesIO

import pytest

from warmstart.doors.hooks.pipes import read_input
from warmstart.errors import Refused

from .events import call, read_log


def test_input_of_many_chunks_is_read_whole():
    data = bytes(range(256)) * 10_000
    assert read_input(BytesIO(data)) == data


def test_input_over_the_limit_is_read_to_its_end_and_refused():
    pipe = BytesIO(b"x" * 32_000_001)
    with pytest.raises(Refused, match="32000001 bytes"):
        read_input(pipe)
    assert pipe.read() == b""


def test_the_log_says_why_an_input_over_the_limit_got_no_answer():
    assert call(b"x" * 32_000_001).stdout == b""
    assert "32000001 bytes" in read_log()
