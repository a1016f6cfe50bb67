"""The tool `request_confirmation`: an agent asks a person on its own initiative, before something dangerous.

Nothing forces the agent to ask. For calls that must not run without a yes there is the guard (`doors/guard`).
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import UNSET, Meta, UnsetType, field

from warmstart.confirm.errors import Denied, Expired
from warmstart.confirm.model import LONGEST, SHORTEST
from warmstart.confirm.policy.actions import ACTION_PATTERN
from warmstart.doors.guard.wait import wait_while_asking
from warmstart.doors.mcp.arguments import Arguments, read_arguments

if TYPE_CHECKING:
    from warmstart.confirm.model import HumanDecision
    from warmstart.doors.mcp.tools import ToolInvocation

DESCRIPTION = (
    "Use before anything dangerous or hard to undo: asks a person and waits for the decision. Go on only if it returns "
    "approved: true, with exactly these details; otherwise stop and tell the user."
)
WAITING = "waiting for a person's decision"


class ConfirmationArguments(Arguments):
    action: Annotated[str, Meta(pattern=ACTION_PATTERN, max_length=200, description="Such as delete_data.")]
    description: Annotated[str, Meta(min_length=1, max_length=4_000, description="For the person: what, and why.")]
    details: Annotated[dict[str, Any], Meta(description="The exact arguments of what will be done.")] = field(
        default_factory=dict
    )
    timeout_seconds: (
        Annotated[int, Meta(ge=SHORTEST, le=LONGEST, description="Default: what the user's policy says.")] | UnsetType
    ) = UNSET


def request_confirmation(call: ToolInvocation) -> dict[str, Any]:
    """Ask and wait. A no is an answer, a failure is an error; neither is a yes."""
    given = read_arguments(ConfirmationArguments, call.given)
    seconds = None if given.timeout_seconds is UNSET else given.timeout_seconds
    began = time.monotonic()

    def report_progress() -> None:
        call.progress(int(time.monotonic() - began), seconds, WAITING)

    def ask_person(cancelled: threading.Event) -> HumanDecision:
        from warmstart.confirm.client.ask import ask, find_daemon

        daemon = find_daemon(call.ws.settings.home)
        return ask(given.action, given.description, given.details, seconds, daemon=daemon, cancelled=cancelled)

    try:
        decision = wait_while_asking(ask_person, seconds or LONGEST, report_progress)
    except (Denied, Expired) as error:
        by = error.decision.by if error.decision and isinstance(error, Denied) else None
        return {"approved": False, "by": by, "reason": str(error)}
    return {"approved": True, "by": decision.by, "reason": decision.reason}
