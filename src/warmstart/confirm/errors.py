"""Exceptions of the confirmation side. None of them ever means an approval.

ConfirmationError
 ├── BadRequest       malformed; nothing was recorded
 ├── Unauthorized     no token, or an unknown one
 ├── NotAllowed       a known token without permission for this
 ├── Conflict         already decided, already executed, or other arguments than approved
 ├── Expired          nobody decided in time, or the approval lapsed before it was used
 ├── KeyReused        the idempotency key was used with another body
 ├── RateLimited      too many requests for this action within the hour
 ├── Denied           a person or the policy refused
 ├── UntrustedDaemon  the program at the daemon's address did not prove to be the daemon, or no key says which one is
 └── Unreachable      the daemon cannot be reached, or its answer is invalid
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warmstart.errors import WarmstartError

if TYPE_CHECKING:
    from warmstart.confirm.model import HumanDecision

__all__ = [
    "BadRequest",
    "ConfirmationError",
    "Conflict",
    "Denied",
    "Expired",
    "KeyReused",
    "NotAllowed",
    "RateLimited",
    "Unauthorized",
    "Unreachable",
    "UntrustedDaemon",
]


class ConfirmationError(WarmstartError):
    """Not confirmed."""

    code = "refused"  # for programs

    def __init__(self, message: str | None = None, *, code: str = "", decision: HumanDecision | None = None) -> None:
        super().__init__(message)
        self.code = code or type(self).code
        self.decision = decision  # the stored decision, if that is the reason


class BadRequest(ConfirmationError):
    """The request is malformed."""

    code = "bad_request"


class Unauthorized(ConfirmationError):
    """A token is needed: Authorization: Bearer ..."""

    code = "unauthorized"


class NotAllowed(ConfirmationError):
    """This token may not do that."""

    code = "forbidden"


class Conflict(ConfirmationError):
    """Already decided."""

    code = "already_decided"


class Expired(ConfirmationError):
    """Nobody decided in time."""

    code = "expired"


class KeyReused(ConfirmationError):
    """The Idempotency-Key was used before with another body."""

    code = "idempotency"


class RateLimited(ConfirmationError):
    """Too many requests for this action or of this token."""

    code = "rate_limited"

    def __init__(self, message: str | None = None, *, limit: int = 0, retry_after: int = 0, code: str = "") -> None:
        super().__init__(message, code=code)
        self.limit = limit
        self.retry_after = retry_after  # seconds until there is room again


class Denied(ConfirmationError):
    """The answer was no."""

    code = "denied"


class Unreachable(ConfirmationError):
    """The confirmation daemon cannot be reached."""

    code = "unreachable"


class UntrustedDaemon(ConfirmationError):
    """The program at the daemon's address did not prove that it is the daemon."""

    code = "untrusted_daemon"
    public_key = ""  # in the message; no secret, for a person to compare
