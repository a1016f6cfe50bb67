"""The log of hook errors."""

from __future__ import annotations

import stat

from warmstart.doors.hooks.log import log_trouble, read_troubles


def test_only_the_owner_can_read_it_even_where_the_home_is_open(tmp_path):
    tmp_path.chmod(0o755)
    log_trouble(tmp_path, "claude-code", "the agent sent no valid JSON")
    (file,) = tmp_path.glob("*.log")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "no valid JSON" in read_troubles(tmp_path)[0]
