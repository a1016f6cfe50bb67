"""Which actions are the same, and which are dangerous whatever anybody says.

Names are compared without case and without caring which separator was used; anything but plain letters, digits and
separators is refused outright, so that no look-alike, invisible or wide letter dodges a rule.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from warmstart.confirm.errors import BadRequest

ACTION_PATTERN = "^[A-Za-z0-9]([A-Za-z0-9 _.:/-]{0,198}[A-Za-z0-9])?$"
ACTION_WORDS = "up to 200 letters, digits, spaces and _ - . : /, beginning and ending with a letter or digit"
_ACTION = re.compile(ACTION_PATTERN.rstrip("$") + r"\Z")
_GLOB = re.compile(r"[A-Za-z0-9 _.:/*?-]{1,200}\Z")
_SEPARATORS = re.compile(r"[ _.:/-]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")  # where a camel-case word begins

# May be extended by a policy, never shrunk.
HIGH_RISK = (
    "deploy_production",
    "delete_data",
    "transfer_funds",
    "modify_permissions",
    "shutdown_service",
    "wipe_database",
    "exec_remote",
    "publish_package",
    "rotate_keys",
    "migrate_database",
)


def check_action(action: str) -> str:
    """The action as it is shown and hashed. Raises BadRequest for what could be taken for another one."""
    if not _ACTION.match(action):
        raise BadRequest(f"action: {ACTION_WORDS}")
    return action


def key_of(action: str) -> str:
    """What is compared: `Deploy-Production` and `deploy_production` are one action, as is every spelling of a
    high-risk one."""
    key = _SEPARATORS.sub("_", action.lower())
    return _SQUEEZED.get(squeeze(key), key)


def squeeze(key: str) -> str:
    """Without separators: `DEPLOYPRODUCTION` is meant to be caught as well."""
    return key.replace("_", "")


def is_born_high_risk(action: str) -> bool:
    return squeeze(key_of(action)) in _SQUEEZED


def check_glob(glob: str) -> str | None:
    """What is wrong with a pattern of actions."""
    if not _GLOB.match(glob):
        return "a pattern is made of letters, digits, spaces, _ - . : / and the wildcards * and ?"
    return None


def matches_strictly(glob: str, action: str) -> bool:
    """For rules that allow: the name itself."""
    return fnmatchcase(key_of(action), key_of(glob))


def matches_broadly(glob: str, action: str) -> bool:
    """For rules that restrict: also written as `deployProduction`, or without any separator."""
    pattern = key_of(glob)
    if "*" not in pattern and "?" not in pattern and squeeze(pattern) == squeeze(key_of(action)):
        return True
    return fnmatchcase(key_of(action), pattern) or fnmatchcase(key_of(_HUMP.sub("_", action)), pattern)


_SQUEEZED = {squeeze(name): name for name in HIGH_RISK}
