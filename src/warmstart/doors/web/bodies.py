"""Request bodies: their schemas, strict parsing, and their conversion before anything is stored."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from litestar import Request
from msgspec import Meta, Struct, field

from warmstart.confirm.canonical import digest_deed, digest_value, parse_json
from warmstart.confirm.desk.decide import Answer, DecisionRequest
from warmstart.confirm.desk.submit import Key
from warmstart.confirm.errors import BadRequest
from warmstart.confirm.masking.masker import Masker
from warmstart.confirm.masking.submission import MaskedSubmission, Submission
from warmstart.confirm.model import LONGEST, SHORTEST, Assertion, NewRequest
from warmstart.confirm.passkeys.statements import Terms
from warmstart.confirm.policy.actions import ACTION_PATTERN, ACTION_WORDS, check_action, key_of
from warmstart.confirm.tokens.access import NewAllowance
from warmstart.doors.web.gate import BodyTooLarge
from warmstart.doors.web.turns import LARGE

_SEEN = "[^\\u0000-\\u0020\\u007f-\\u00a0]"  # at least one visible character
Action = Annotated[
    str, Meta(pattern=ACTION_PATTERN, max_length=200, description="What is to be done, such as delete_data.")
]
KEY_PATTERN = "^[!-~]{1,200}$"  # of an Idempotency-Key
Name = Annotated[str, Meta(max_length=200)]
Details = Annotated[
    Any, Meta(description="The exact arguments, any JSON. Hashed as they are; shown with secrets masked.")
]
Digest = Annotated[str, Meta(max_length=64)]


class SubmitBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A request for a person's approval."""

    action: Action
    description: Annotated[str, Meta(pattern=_SEEN, max_length=4_000, description="For people: what and why.")]
    details: Details = field(default_factory=dict)
    requester: Annotated[Name, Meta(description="Shown beside the token's subject, never believed.")] = ""
    session_key: Name = ""
    timeout_seconds: (
        Annotated[int, Meta(description=f"{SHORTEST} to {LONGEST}; another value is set to the nearest.")] | None
    ) = None


class AllowAgain(Struct, frozen=True, forbid_unknown_fields=True):
    """Allow the same requester exactly the same action again, without asking."""

    times: Annotated[int, Meta(ge=1, le=100)] = 5
    minutes: Annotated[int, Meta(ge=1, le=24 * 60)] = 60


class DecideBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The circumstances of a decision, all optional."""

    reason: Annotated[str, Meta(max_length=1_000)] = ""
    digest: Annotated[Digest, Meta(description="Of what was shown: another one is refused.")] | None = None
    typed_action: Annotated[Name, Meta(description="The page asks for it before high-risk approvals.")] | None = None
    approver: Annotated[Name, Meta(description="Recorded as a claim: the decider is the token's subject.")] = ""
    denier: Annotated[Name, Meta(description="Recorded as a claim: the decider is the token's subject.")] = ""
    passkey: Annotated[Assertion, Meta(description="The signature of an approval.")] | None = None
    allow: AllowAgain | None = None


class DenyAllBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Whose waiting requests are denied."""

    requester: Annotated[str, Meta(min_length=1, max_length=200, description="The subject of the requests' token.")]
    reason: Annotated[str, Meta(max_length=1_000)] = ""


class ExecuteBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The action that is about to run."""

    token: Annotated[str, Meta(min_length=1, max_length=200)]
    action: Action
    details: Details = field(default_factory=dict)


class AllowBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A whitelist entry: one action in one session, for a while."""

    action: Action
    session_key: Annotated[str, Meta(min_length=1, max_length=200)]
    seconds: Annotated[int, Meta(ge=1, le=7 * 86_400)] = 3_600
    requester: Annotated[Name, Meta(description="Only for this subject; empty: whoever asks in the session.")] = ""
    details: Annotated[Any, Meta(description="Only with exactly these details; null: with any.")] = None


class LoginBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The code of a login link."""

    code: Annotated[str, Meta(min_length=1, max_length=200)]


class StrictRequest(Request[Any, Any, Any]):
    """Parses bodies strictly: ambiguous JSON is refused, and a string never becomes a number."""

    async def json(self) -> Any:
        body = await self.body()
        if len(body) <= LARGE:
            value = parse_json(body)
        elif "turns" not in self.state:  # nobody is logged in
            raise BodyTooLarge
        else:
            value = await self.state.turns.run(self.state.who.credential, parse_json, body)
        wanted = self.route_handler.parsed_data_field
        if wanted is None:
            return value
        try:
            return msgspec.convert(_convert_whole_numbers(value), wanted.annotation, strict=True)
        except msgspec.ValidationError as error:
            raise BadRequest(_explain(str(error))) from None


def _convert_whole_numbers(body: Any) -> Any:
    """Convert 60.0 to 60 in the fields that need an integer; details are hashed and stay as they are."""
    if not isinstance(body, dict):
        return body
    whole: dict[str, Any] = {
        name: int(body[name])
        for name in ("timeout_seconds", "seconds")
        if isinstance(body.get(name), float) and body[name].is_integer()
    }
    if isinstance(again := body.get("allow"), dict):
        whole["allow"] = {
            name: int(value) if isinstance(value, float) and value.is_integer() else value
            for name, value in again.items()
        }
    return body | whole


_KINDS = {"str": "text", "int": "a whole number", "float": "a fraction", "bool": "true or false", "array": "a list"}
_KINDS |= {"object": "an object", "null": "null"}
_KEY_WORDS = "1 to 200 visible ASCII characters, without spaces"
_SHAPES = {
    "action": ACTION_WORDS,
    "description": "is empty; say what is to be done and why",
    "key": _KEY_WORDS,
}
_LIMITS = {">=": "at least", "<=": "at most"}


def _explain(message: str) -> str:
    """Rewrite a msgspec error for people: the field first, then what belongs there."""
    parts = re.fullmatch(r"(.*?)(?: - at `\$\.?(.*)`)?", message, re.S)
    assert parts
    what, field = parts[1], parts[2] or ""
    named = re.fullmatch(r"Object (missing required|contains unknown) field `(.*)`", what, re.S)
    if named:
        return f"{named[2]}: {'is missing' if named[1] == 'missing required' else 'there is no such field'}"
    return f"{field or 'the body'}: {explain_problem(what, field)}"


def explain_problem(what: str, field: str) -> str:
    """Rewrite a msgspec error about one field or parameter."""
    if " matching regex " in what and field in _SHAPES:
        return _SHAPES[field]
    if size := re.fullmatch(r"Expected `[^`]*`( of length)? (>=|<=) (\d+)", what):
        if size.groups() == (" of length", ">=", "1"):
            return "must not be empty"
        return f"{_LIMITS[size[2]]} {int(size[3]):,}{' characters' if size[1] else ''}"
    if kinds := re.fullmatch(r"Expected `([^`]*)`, got `([^`]*)`", what):
        wanted, got = (" or ".join(_KINDS.get(kind, kind) for kind in side.split(" | ")) for side in kinds.groups())
        return f"must be {wanted}, not {got}"
    return what


def make_request(body: SubmitBody, mask: Callable[[Submission], MaskedSubmission]) -> NewRequest:
    """Check, mask and hash a submission. The exact details go no further."""
    action = check_action(body.action)
    details = {} if body.details is None else body.details
    shown = mask(Submission(body.description, details, body.requester, body.session_key))
    return NewRequest(
        action=action,
        key=key_of(action),
        description=shown.description,
        details=shown.details,
        masked=shown.masked,
        digest=digest_deed(action, details),
        claimed=shown.requester,
        session_key=shown.session_key,
        timeout=None if body.timeout_seconds is None else min(max(body.timeout_seconds, SHORTEST), LONGEST),
        fingerprints=tuple(shown.fingerprints),
    )


def make_key(header: str | None, body: SubmitBody) -> Key | None:
    """Return the idempotency key with the digest of the whole body."""
    if header is None:
        return None
    if not re.fullmatch(KEY_PATTERN.strip("^$"), header):
        raise BadRequest(f"Idempotency-Key: {_KEY_WORDS}")
    return Key(header, digest_value(msgspec.structs.asdict(body)))


def make_wish(answer: Answer, body: DecideBody | None, masker: Masker) -> DecisionRequest:
    if body is None:
        return DecisionRequest(answer)
    claimed = body.approver if answer == "approved" else body.denier
    return DecisionRequest(
        answer,
        masker.mask_text(body.reason),
        body.digest,
        claimed=masker.mask_name(claimed) if claimed else "",
        proof=body.passkey,
        terms=Terms(body.allow.times, body.allow.minutes * 60) if body.allow else None,
    )


def make_allowance(body: AllowBody, masker: Masker) -> NewAllowance:
    action = check_action(body.action)
    digest = "" if body.details is None else digest_deed(action, body.details)
    return NewAllowance(
        action, key_of(action), masker.mask_name(body.session_key), body.seconds, body.requester, digest
    )
