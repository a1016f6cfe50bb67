"""Compare action names, and list the actions that are high-risk under every policy.

Comparison ignores case and the kind of separator. Names with anything but ASCII letters, digits and separators are
refused, so that no look-alike, invisible or full-width letter dodges a rule.
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

# A policy can extend this list, never shorten it.
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
    """Return the action as it is shown and hashed. Raise BadRequest for a name with other characters."""
    if not _ACTION.match(action):
        raise BadRequest(f"action: {ACTION_WORDS}")
    return action


def key_of(action: str) -> str:
    """Return the key for comparison: `Deploy-Production` and `deploy_production` share it, and so do all spellings of a
    high-risk action."""
    key = _SEPARATORS.sub("_", action.lower())
    return _SQUEEZED.get(squeeze(key), key)


def squeeze(key: str) -> str:
    """Remove separators, so that `DEPLOYPRODUCTION` is caught as well."""
    return key.replace("_", "")


def is_born_high_risk(action: str) -> bool:
    return squeeze(key_of(action)) in _SQUEEZED


def check_glob(glob: str) -> str | None:
    """Return what is wrong with a pattern of actions, or None."""
    if not _GLOB.match(glob):
        return "a pattern consists of letters, digits, spaces, _ - . : / and the wildcards * and ?"
    return None


def matches_strictly(glob: str, action: str) -> bool:
    """Match for rules that allow: only the name itself."""
    return fnmatchcase(key_of(action), key_of(glob))


def matches_broadly(glob: str, action: str) -> bool:
    """Match for rules that restrict: also `deployProduction` and spellings without separators."""
    pattern = key_of(glob)
    if "*" not in pattern and "?" not in pattern and squeeze(pattern) == squeeze(key_of(action)):
        return True
    return fnmatchcase(key_of(action), pattern) or fnmatchcase(key_of(_HUMP.sub("_", action)), pattern)


_SQUEEZED = {squeeze(name): name for name in HIGH_RISK}
