"""Turn exceptions into HTTP answers: one shape everywhere, and all of them in the OpenAPI document."""

from __future__ import annotations

import logging
from typing import Any

from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.openapi.datastructures import ResponseSpec

from warmstart.confirm import errors
from warmstart.confirm.model import WINDOW
from warmstart.doors.web.bodies import explain_problem
from warmstart.doors.web.gate import BodyTooLarge, SenderGone
from warmstart.doors.web.views import ErrorView, show_decision
from warmstart.errors import BadName, ConfigError, NotFound, StoreError, StoreUnreachable, WarmstartError

log = logging.getLogger("warmstart.confirm")

_MEANINGS = {
    400: "malformed",
    401: "no token, or an unknown one",
    403: "not allowed",
    404: "no such request",
    409: "already decided, or not what was approved",
    410: "too late",
    413: "the body is too large",
    415: "not JSON",
    422: "the idempotency key was used with another body",
    429: "too many of this action within the hour",
    503: "the store cannot be used",
}

_STATUSES: dict[type[Exception], int] = {
    errors.BadRequest: 400,
    errors.Unauthorized: 401,
    errors.NotAllowed: 403,
    errors.Denied: 403,
    errors.Conflict: 409,
    errors.Expired: 410,
    errors.KeyReused: 422,
    errors.RateLimited: 429,
    NotFound: 404,
    BadName: 400,
    ConfigError: 400,
    StoreError: 503,
}
_CODES = {400: "bad_request", 404: "not_found", 405: "method", 413: "too_large", 503: "store"}


def answers(*statuses: int) -> dict[int, ResponseSpec]:
    """Describe the errors of a route, for its `responses`."""
    return {
        status: ResponseSpec(ErrorView, description=_MEANINGS[status], generate_examples=False) for status in statuses
    }


def answer_error(_: Request[Any, Any, Any], error: Exception) -> Response[ErrorView]:
    """Answer any exception. The message of ours is sent; others only go to the log."""
    match error:
        case errors.RateLimited():
            return _answer(
                429,
                ErrorView(
                    str(error),
                    error.code,
                    remaining=0,
                    window_seconds=WINDOW,
                    limit=error.limit,
                    retry_after_seconds=error.retry_after,
                ),
                {"Retry-After": str(error.retry_after)},
            )
        case errors.ConfirmationError():
            view = ErrorView(str(error), error.code, decision=show_decision(error.decision))
            status = _find_status(error)
            return _answer(status, view, {"WWW-Authenticate": "Bearer"} if status == 401 else {})
        case StoreUnreachable():
            log.error("%s", error)
            why = "the database cannot be reached; check whether the change arrived before you repeat it"
            return _answer(503, ErrorView(why, "store"))
        case StoreError():
            log.error("%s", error)
            return _answer(503, ErrorView("the database cannot be used now; nothing was changed", "store"))
        case WarmstartError():
            status = _find_status(error)
            return _answer(status, ErrorView(str(error), _CODES.get(status, "refused")))
        case BodyTooLarge():
            return _answer(413, ErrorView(str(BodyTooLarge.__doc__), "too_large"))
        case SenderGone():  # not logged: anybody could fill the log
            return _answer(400, ErrorView("the body is incomplete", "bad_request"))
        case HTTPException() if error.status_code < 500:
            return _answer_http(error)
        case _:
            log.error("a request failed", exc_info=error)
            return _answer(500, ErrorView("the daemon failed; see its log", "internal"))


def _answer_http(error: HTTPException) -> Response[ErrorView]:
    """Answer an exception of the framework: unknown paths, methods and parameters."""
    detail = error.detail
    if isinstance(error.extra, list) and error.extra:
        problems = [(str(problem.get("key", "")), str(problem.get("message", ""))) for problem in error.extra]
        detail = "; ".join(f"{key}: {explain_problem(message, key)}" for key, message in problems)
    code = _CODES.get(error.status_code, "refused")
    return _answer(error.status_code, ErrorView(detail, code), dict(error.headers or {}))


def _find_status(error: Exception) -> int:
    return next((status for kind, status in _STATUSES.items() if isinstance(error, kind)), 500)


def _answer(status: int, view: ErrorView, headers: dict[str, str] | None = None) -> Response[ErrorView]:
    return Response(view, status_code=status, headers=headers or {}, media_type="application/json")
