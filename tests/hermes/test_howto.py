"""docs/howto/hermes.md says what is there."""

from __future__ import annotations

import re

from places import HOWTO
from warmstart.doors.agent_tools.warm_session import ACTIONS, PARAMETERS
from warmstart.doors.cli.main import COMMANDS
from warmstart.doors.hermes.commands import USAGE
from warmstart.doors.hermes.wire import FORMS

PAGE = (HOWTO / "hermes.md").read_text()


def test_commands_exist() -> None:
    assert set(re.findall(r"hermes warmstart ([a-z]+)", PAGE)) <= set(COMMANDS)
    assert set(re.findall(r"`/warm ([a-z]+)`", PAGE)) == set(re.findall(r"[a-z]+", USAGE)) - {"warm", "status"}


def test_everything_is_named() -> None:
    named = set(re.findall(r"`([a-z_]+)`", PAGE))
    assert named >= {*FORMS, *ACTIONS, *PARAMETERS["properties"]} - {"action"}
