"""Which tests may be skipped: a machine that can run a test runs it.

With `CI=true` or `WARMSTART_NO_SKIPS=1` a run fails if anything else was skipped; tests/conftest.py sees to that.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping

from places import CORPUS, NO_AGENTS, NO_CORPUS

FULL = os.environ.get("WARMSTART_FULL") == "1"
WANTS_FULL = "WARMSTART_FULL=1"  # the reason of each skipped test that is long by nature ends with it

AGENT_LACKS = "the agent itself lacks this"  # begins the reason of a test of what one agent does not have

ALLOWED = ("needs the real local model", "the lab's runtime is not installed", NO_AGENTS, AGENT_LACKS)


def list_allowed() -> tuple[str, ...]:
    """Return how the reason of an acceptable skip starts on this machine."""
    allowed = ALLOWED
    if not CORPUS.is_dir():
        allowed += (NO_CORPUS, "got empty parameter set")
    if os.getuid() != 0:
        allowed += ("needs root", "cannot mount")
    if os.getuid() != 0 or shutil.which("bwrap"):  # it is there: containers often forbid its namespaces
        allowed += ("bubblewrap does not work here",)
    if sys.platform != "linux":
        allowed += ("elsewhere programs word their output otherwise", "elsewhere no device is always full")
    return allowed


def is_strict(environ: Mapping[str, str]) -> bool:
    """Say whether an unexpected skip fails the run."""
    return environ.get("CI") == "true" or environ.get("WARMSTART_NO_SKIPS") == "1"


def find_unexpected(skips: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line for each (test, reason) whose reason is not an acceptable one."""
    allowed = list_allowed()
    return [
        f"{test}: {reason}"
        for test, reason in skips
        if not reason.startswith(allowed) and not reason.endswith(WANTS_FULL)
    ]
