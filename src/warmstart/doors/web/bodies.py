"""What comes in: bodies as they must look, and what becomes of them before anything is stored."""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
from litestar import Request
from msgspec import Meta, Struct, field

from warmstart.confirm.canonical import digest_deed, digest_value, parse_json
from warmstart.confirm.desk.decide import Answer, DecisionRequest
from warmstart.confirm.desk.submit import Key
from warmstart.confirm.errors import BadRequest
from warmstart.confirm.masking.masker import Masker
from warmstart.confirm.model import LONGEST, SHORTEST, NewRequest
from warmstart.confirm.policy.actions import ACTION_PATTERN, ACTION_WORDS, check_action, key_of
from warmstart.confirm.tokens.access import NewAllowance

_SEEN = "[^\\u0000-\\u0020\\u007f-\\u00a0]"  # at least one character that is no space
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
    """Something that wants a person's yes."""

    action: Action
    description: Annotated[str, Meta(pattern=_SEEN, max_length=4_000, description="For people: what and why.")]
    details: Details = field(default_factory=dict)
    requester: Annotated[Name, Meta(description="Shown beside the token's subject, never believed.")] = ""
    session_key: Name = ""
    timeout_seconds: Annotated[int, Meta(ge=SHORTEST, le=LONGEST)] | None = None


class DecideBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A decision's circumstances, all optional."""

    reason: Annotated[str, Meta(max_length=1_000)] = ""
    digest: Annotated[Digest, Meta(description="Of what was shown: another one is refused.")] | None = None
    typed_action: Annotated[Name, Meta(description="The page asks for it before high-risk approvals.")] | None = None


class ExecuteBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What is about to be done."""

    token: Annotated[str, Meta(min_length=1, max_length=200)]
    action: Action
    details: Details = field(default_factory=dict)


class AllowBody(Struct, frozen=True, forbid_unknown_fields=True):
    """One action in one session, for a while."""

    action: Action
    session_key: Annotated[str, Meta(min_length=1, max_length=200)]
    seconds: Annotated[int, Meta(ge=1, le=7 * 86_400)] = 3_600
    requester: Annotated[Name, Meta(description="Only for this subject; empty: whoever asks in the session.")] = ""
    details: Annotated[Any, Meta(description="Only with exactly these details; null: with any.")] = None


class LoginBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The code of a login link."""

    code: Annotated[str, Meta(min_length=1, max_length=200)]


class StrictRequest(Request[Any, Any, Any]):
    """Reads bodies strictly: what two readers could understand in two ways is refused, and no text is taken for a
    number."""

    async def json(self) -> Any:
        value = parse_json(await self.body())
        wanted = self.route_handler.parsed_data_field
        if wanted is None:
            return value
        try:
            return msgspec.convert(_with_whole_numbers(value), wanted.annotation, strict=True)
        except msgspec.ValidationError as error:
            raise BadRequest(_in_words(str(error))) from None


def _with_whole_numbers(body: Any) -> Any:
    """In JSON 60.0 is a whole number too; in details, which are hashed, it stays what it is."""
    if not isinstance(body, dict):
        return body
    whole = {
        name: int(body[name])
        for name in ("timeout_seconds", "seconds")
        if isinstance(body.get(name), float) and body[name].is_integer()
    }
    return body | whole


_KINDS = {"str": "text", "int": "a whole number", "float": "a fraction", "bool": "true or false", "array": "a list"}
_KINDS |= {"object": "an object", "null": "null"}
_KEY_WORDS = "1 to 200 visible ASCII characters, without spaces"
_SHAPES = {
    "action": ACTION_WORDS,
    "description": "say in words what is to be done and why; this is empty",
    "key": _KEY_WORDS,
}
_LIMITS = {">=": "at least", "<=": "at most"}


def _in_words(message: str) -> str:
    """What msgspec found wrong, for people: the field first, then what belongs there."""
    found = re.fullmatch(r"(.*?)(?: - at `\$\.?(.*)`)?", message, re.S)
    assert found
    what, field = found[1], found[2] or ""
    named = re.fullmatch(r"Object (missing required|contains unknown) field `(.*)`", what, re.S)
    if named:
        return f"{named[2]}: {'is missing' if named[1] == 'missing required' else 'there is no such field'}"
    return f"{field or 'the body'}: {say_wrong(what, field)}"


def say_wrong(what: str, field: str) -> str:
    """Of one field or parameter."""
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


def make_request(body: SubmitBody, masker: Masker) -> NewRequest:
    """Checked, masked and hashed. What is exact and secret ends here."""
    action = check_action(body.action)
    description = masker.mask_text(body.description).strip() or "(nothing readable)"
    details = {} if body.details is None else body.details
    shown, masked = masker.mask_details(details)
    return NewRequest(
        action=action,
        key=key_of(action),
        description=description,
        details=shown,
        masked=masked,
        digest=digest_deed(action, details),
        claimed=masker.mask_name(body.requester) if body.requester else "",
        session_key=masker.mask_name(body.session_key) if body.session_key else "",
        timeout=body.timeout_seconds,
    )


def make_key(header: str | None, body: SubmitBody) -> Key | None:
    """The idempotency key with the whole body's hash."""
    if header is None:
        return None
    if not re.fullmatch(KEY_PATTERN.strip("^$"), header):
        raise BadRequest(f"Idempotency-Key: {_KEY_WORDS}")
    return Key(header, digest_value(msgspec.structs.asdict(body)))


def make_wish(answer: Answer, body: DecideBody | None, masker: Masker) -> DecisionRequest:
    if body is None:
        return DecisionRequest(answer)
    return DecisionRequest(answer, masker.mask_text(body.reason), body.digest)


def make_allowance(body: AllowBody, masker: Masker) -> NewAllowance:
    action = check_action(body.action)
    digest = "" if body.details is None else digest_deed(action, body.details)
    return NewAllowance(
        action, key_of(action), masker.mask_name(body.session_key), body.seconds, body.requester, digest
    )
