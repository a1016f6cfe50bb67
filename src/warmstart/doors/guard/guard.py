"""Check an agent's tool calls: those that match a rule run only after a person approves them.

The guard fails closed: unreadable rules, no daemon, no token, an invalid answer or no answer in time all block the call.
Agents' hooks fail open on an exception, so `Guard.check` never raises.

Which daemon it asks is fixed when it is installed or started. A project's settings may set variables for everything that
an agent runs, the guard included: no variable may lead it to another daemon, which would get the token and approve. The
daemon's key is pinned there, too: a program that takes the daemon's port is not believed.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from warmstart.confirm.errors import Denied, Expired
from warmstart.confirm.model import LONGEST, HumanDecision
from warmstart.doors.guard.rules import GuardedCall, GuardRule, load_guard_file
from warmstart.doors.guard.wait import Pulse, wait_while_asking
from warmstart.doors.hooks.log import describe, log_trouble
from warmstart.errors import WarmstartError

if TYPE_CHECKING:
    from warmstart.confirm.client.wire import Daemon

_NO_WAY_ROUND = "Do not try to reach the same by other means; tell the user instead."


class GuardVerdict(NamedTuple):
    """Whether a call may run, and why."""

    kind: Literal["untouched", "allowed", "blocked"]
    reason: str = ""
    by_person: bool = False  # a person approved this very call


UNTOUCHED = GuardVerdict("untouched")


class Guard:
    """The guard of one agent."""

    def __init__(
        self,
        home: Path,
        title: str,
        *,
        url: str,
        token: str = "",
        key: str = "",
        longest: float = LONGEST,
        pulse: Pulse | None = None,
    ) -> None:
        """Without a `token` the agents' token file under the home is used, without a `key` the one in the token.
        `longest`: seconds that the agent lets the guard wait, whatever the rules and the policy say."""
        self._home = home
        self._title = title
        self._url = url
        self._token = token
        self._key = key
        self._longest = longest
        self._pulse = pulse or (lambda: None)

    def check(self, call: GuardedCall) -> GuardVerdict:
        """Return once it is clear whether the call may run. Never raise."""
        try:
            if not call.tool.strip():
                return block("the call names no tool")
            rule = load_guard_file(self._home).judge(call)
            if rule is None:
                return UNTOUCHED
            decision = self._wait_for(rule, call)
        except (Denied, Expired) as error:
            return block(str(error))
        except WarmstartError as error:
            log_trouble(self._home, "guard", error)
            return block(str(error))
        except Exception as error:  # noqa: BLE001 - the door's edge: no failure may let a call through
            log_trouble(self._home, "guard", error)
            return block(f"the guard failed: {describe(error)}")
        return GuardVerdict("allowed", f"approved by {decision.by}", by_person=decision.status == "approved")

    def _wait_for(self, rule: GuardRule, call: GuardedCall) -> HumanDecision:
        if self._longest <= 0:
            raise Expired("the time limit leaves no time to ask anybody; install the guard again")
        wanted = rule.timeout_seconds and min(rule.timeout_seconds, self._longest)

        def ask(cancelled: threading.Event) -> HumanDecision:
            return self._ask(rule, call, wanted, cancelled)

        return wait_while_asking(ask, wanted or self._longest, self._pulse)

    def _ask(
        self, rule: GuardRule, call: GuardedCall, seconds: float | None, cancelled: threading.Event
    ) -> HumanDecision:
        from warmstart.confirm.client.ask import ask  # most calls do not need it

        about = f": {rule.description}" if rule.description else ""
        return ask(
            rule.action,
            f"{self._title} wants to use {call.tool[:200]}{about}",
            describe_call(call),
            seconds,
            session_key=call.session,
            daemon=self._find_daemon(),
            within=self._longest,
            cancelled=cancelled,
        )

    def _find_daemon(self) -> Daemon:
        from warmstart.confirm.client.wire import Daemon
        from warmstart.confirm.tokens.files import AGENT_TOKEN, need_token

        return Daemon(self._url, self._token or need_token(self._home / AGENT_TOKEN), self._key)


def describe_call(call: GuardedCall) -> dict[str, Any]:
    """Return the details that are shown, hashed and approved: the whole call."""
    details = {"agent": call.agent, "tool": call.tool, "arguments": call.arguments}
    return details | ({"folder": call.folder} if call.folder else {})


def block(why: str) -> GuardVerdict:
    """Make the verdict that blocks a call. The agent reads the reason in place of the tool's result."""
    return GuardVerdict("blocked", f"Blocked, and not run: {why.rstrip('.')}. {_NO_WAY_ROUND}")
