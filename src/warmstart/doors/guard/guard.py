"""Stands between an agent and its tools: calls that a rule names run only after a person's yes.

Fails closed: whatever goes wrong once a call is looked at (rules that cannot be read, no daemon, no token, nonsense,
no answer in time) blocks it. Agents' hooks fail open by themselves, so nothing is ever raised from here.

Where it asks is fixed when it is installed or started. A project's settings may set variables for everything that an
agent runs, this guard too: a variable must not send it to another daemon, which would get the token and say yes.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from warmstart.confirm.errors import Denied, Expired
from warmstart.confirm.model import LONGEST, HumanDecision
from warmstart.doors.guard.rules import GuardedCall, GuardRule, find_rule, load_rules
from warmstart.doors.guard.wait import Pulse, wait_while_asking
from warmstart.doors.hooks.log import describe, log_trouble
from warmstart.errors import WarmstartError

if TYPE_CHECKING:
    from warmstart.confirm.client.ask import Daemon

_NO_WAY_ROUND = "Do not try to reach the same by other means; tell the user instead."


class GuardVerdict(NamedTuple):
    """What becomes of a call."""

    kind: Literal["untouched", "allowed", "blocked"]
    reason: str = ""
    by_person: bool = False  # somebody looked at this very call


UNTOUCHED = GuardVerdict("untouched")


class Guard:
    """The guard of one agent."""

    def __init__(
        self,
        home: Path,
        title: str,
        *,
        url: str = "",
        token: str = "",
        longest: float = LONGEST,
        pulse: Pulse | None = None,
    ) -> None:
        """With a `url` the environment counts for nothing, and without a `token` that in the file under the home is
        taken. `longest`: seconds that the agent lets us wait, whatever the rules and the policy say."""
        self._home = home
        self._title = title
        self._url = url
        self._token = token
        self._longest = longest
        self._pulse = pulse or _say_nothing

    def check(self, call: GuardedCall) -> GuardVerdict:
        """Returns when the call may run or must not. Never raises."""
        try:
            rule = find_rule(load_rules(self._home), call)
            if rule is None:
                return UNTOUCHED
            decision = self._wait_for(rule, call)
        except (Denied, Expired) as error:
            return block(str(error))
        except WarmstartError as error:
            log_trouble(self._home, "guard", error)
            return block(str(error))
        except Exception as error:  # noqa: BLE001 - the door's edge: trouble of any kind must not let a call through
            log_trouble(self._home, "guard", error)
            return block(f"the guard failed: {describe(error)}")
        return GuardVerdict("allowed", f"approved by {decision.by}", by_person=decision.status == "approved")

    def _wait_for(self, rule: GuardRule, call: GuardedCall) -> HumanDecision:
        if self._longest <= 0:
            raise Expired("there is no time to ask anybody; install the guard again")
        wanted = rule.timeout_seconds and min(rule.timeout_seconds, self._longest)

        def ask(cancelled: threading.Event) -> HumanDecision:
            return self._ask(rule, call, wanted, cancelled)

        return wait_while_asking(ask, wanted or self._longest, self._pulse)

    def _ask(
        self, rule: GuardRule, call: GuardedCall, seconds: float | None, cancelled: threading.Event
    ) -> HumanDecision:
        from warmstart.confirm.client.ask import ask  # most calls need none of it

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
        from warmstart.confirm.client.ask import Daemon, find_daemon
        from warmstart.confirm.tokens.files import AGENT_TOKEN, need_token

        if not self._url:
            return find_daemon(self._home)
        return Daemon(self._url, self._token or need_token(self._home / AGENT_TOKEN))


def describe_call(call: GuardedCall) -> dict[str, Any]:
    """What is shown, hashed and approved: the whole call."""
    details = {"agent": call.agent, "tool": call.tool, "arguments": call.arguments}
    return details | ({"folder": call.folder} if call.folder else {})


def block(why: str) -> GuardVerdict:
    """The agent reads this in place of the tool's answer."""
    return GuardVerdict("blocked", f"Blocked, and not run: {why.rstrip('.')}. {_NO_WAY_ROUND}")


def _say_nothing() -> str | None:
    return None
