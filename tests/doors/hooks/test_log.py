"""The log of hook errors."""

from __future__ import annotations

import stat

import pytest

from warmstart.confirm.errors import UntrustedDaemon
from warmstart.confirm.tokens.proof import DaemonCheck, SignedAnswer
from warmstart.doors.hooks.log import log_trouble, read_troubles


def test_only_the_owner_can_read_it_even_where_the_home_is_open(tmp_path):
    tmp_path.chmod(0o755)
    log_trouble(tmp_path, "claude-code", "the agent sent no valid JSON")
    (file,) = tmp_path.glob("*.log")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "no valid JSON" in read_troubles(tmp_path)[0]


def test_the_public_key_that_a_person_compares_is_not_masked(tmp_path):
    key = "q3nXb0Jr7dYkLw5TzPzvE1hUuM9sRcAoGf2iKx8WtNQ"
    check = DaemonCheck("127.0.0.1:6000", key)
    secret = "token ghp_" + "a1B2" * 9
    with pytest.raises(UntrustedDaemon) as caught:
        check.verify(SignedAnswer("q", "GET", "/health", 200, b""), "")
    log_trouble(tmp_path, "guard", caught.value)
    assert key in read_troubles(tmp_path)[0]
    log_trouble(tmp_path, "guard", UntrustedDaemon(f"{key} {secret}"))
    assert secret not in read_troubles(tmp_path)[1]
