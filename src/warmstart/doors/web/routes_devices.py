"""Routes on the page port only: passkeys of devices, and links for further devices."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Annotated
from urllib.parse import urlsplit

from litestar import delete, get, post
from litestar.params import FromPath, JSONBody
from msgspec import Meta, Struct

from warmstart.confirm.errors import Conflict
from warmstart.confirm.model import Assertion, Identity, Passkey
from warmstart.confirm.passkeys import records
from warmstart.confirm.passkeys.proofs import need_passkeys
from warmstart.confirm.passkeys.signatures import EnrolmentAnswer, can_have_passkeys, check_enrolment
from warmstart.confirm.passkeys.statements import fingerprint
from warmstart.confirm.tokens.access import LINK_LASTS, create_login
from warmstart.doors.web.answers import answers
from warmstart.doors.web.bodies import StrictRequest
from warmstart.doors.web.context import RouteContext, Shared, get_caller, needs
from warmstart.doors.web.qr_code import draw_qr
from warmstart.doors.web.views import Time, show_time

_DECIDERS = ("approver:decide",)
_CHANGING = answers(400, 401, 403, 404, 409, 413, 415, 503)


class PasskeyView(Struct, frozen=True):
    id: str
    subject: str
    name: str
    fingerprint: str
    created: Time
    trusted: bool  # it can approve
    yours: bool
    public_key: str  # vouching for it signs it


class PasskeyList(Struct, frozen=True):
    passkeys: list[PasskeyView]
    required: bool  # approvals must be signed


class EnrolmentView(Struct, frozen=True):
    """What a browser needs to make a passkey."""

    challenge: str  # hex
    rp: str
    user: str  # hex
    subject: str
    known: list[str]  # passkeys of this person, so that no device is enrolled twice


class EnrolBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A new passkey and the name of its device."""

    name: Annotated[str, Meta(min_length=1, max_length=60)]
    answer: EnrolmentAnswer


class VouchBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The signature of a trusted passkey for another."""

    passkey: Assertion


class LinkView(Struct, frozen=True):
    """A login link for another device, with its QR code: one text of 0 and 1 per row."""

    url: str
    expires: Time
    rows: list[str]


def _show(passkey: Passkey, who: Identity) -> PasskeyView:
    return PasskeyView(
        passkey.id,
        passkey.subject,
        passkey.name,
        fingerprint(passkey.public_key),
        show_time(passkey.created),
        passkey.vouched is not None,
        passkey.subject_key == who.key,
        passkey.public_key,
    )


@get("/passkeys", opt=needs(*_DECIDERS), responses=answers(401, 403, 503))
async def list_passkeys(context: Shared, request: StrictRequest) -> PasskeyList:
    """The devices that sign approvals, and whether approvals must be signed."""
    who, store = get_caller(request), context.desk.store
    found = [_show(passkey, who) for passkey in records.list_passkeys(store)]
    return PasskeyList(found, need_passkeys(store))


@post("/passkeys/options", status_code=200, opt=needs(*_DECIDERS), responses=_CHANGING)
async def offer_enrolment(context: Shared, request: StrictRequest) -> EnrolmentView:
    """What to pass to `navigator.credentials.create`. Nothing is recorded yet."""
    who = get_caller(request)
    known = [passkey.id for passkey in records.list_passkeys(context.desk.store) if passkey.subject_key == who.key]
    user = hashlib.sha256(f"user\n{who.key}".encode()).hexdigest()
    return EnrolmentView(_make_challenge(context, who).hex(), _find_host(request), user, who.subject, known)


@post("/passkeys", status_code=201, opt=needs(*_DECIDERS), responses=_CHANGING)
async def enrol(context: Shared, request: StrictRequest, data: JSONBody[EnrolBody]) -> PasskeyView:
    """Enrol this device. The first one of all is trusted; another waits until a trusted one vouches for it."""
    who = get_caller(request)
    host = _find_host(request)
    new = await asyncio.to_thread(check_enrolment, data.answer, _make_challenge(context, who), host)
    name = context.desk.masker.mask_name(data.name)
    added = await asyncio.wrap_future(context.desk.change(lambda tx: records.add_passkey(tx, who, new, name)))
    return _show(added, who)


@post("/passkeys/{id:str}/vouch", status_code=200, opt=needs(*_DECIDERS), responses=_CHANGING)
async def vouch(context: Shared, request: StrictRequest, id: FromPath[str], data: JSONBody[VouchBody]) -> PasskeyView:
    """Trust another device, by the signature of a trusted one."""
    who = get_caller(request)
    vouched = await asyncio.wrap_future(context.desk.change(lambda tx: records.vouch(tx, who, id, data.passkey)))
    return _show(vouched, who)


@delete("/passkeys/{id:str}", status_code=200, opt=needs(*_DECIDERS), responses=_CHANGING)
async def remove(context: Shared, request: StrictRequest, id: FromPath[str]) -> PasskeyView:
    """Remove a device of yours: it signs nothing any more."""
    who = get_caller(request)
    removed = await asyncio.wrap_future(
        context.desk.change(lambda tx: records.remove_passkey(tx, id, who, own=True)),
    )
    return _show(removed, who)


@post("/devices/link", status_code=200, opt=needs(*_DECIDERS), responses=_CHANGING)
async def make_link(context: Shared, request: StrictRequest) -> LinkView:
    """Make a one-time login link for another device of the caller, with a QR code."""
    who, desk = get_caller(request), context.desk
    scopes = sorted(who.scopes)
    code = await asyncio.wrap_future(desk.change(lambda tx: create_login(tx, who.subject, scopes, by=who.subject)))
    url = f"{context.addresses.page}/login#{code}"
    return LinkView(url, show_time(desk.now() + LINK_LASTS * 1000), draw_qr(url))


def _make_challenge(context: RouteContext, who: Identity) -> bytes:
    """Return the challenge of this login's enrolments. Other logins cannot know it."""
    return hashlib.sha256(f"enrol\n{context.desk.csrf_token(who.credential)}".encode()).digest()


def _find_host(request: StrictRequest) -> str:
    """Return the host name of the page in the caller's browser. The gate has checked that it is one of ours."""
    host = urlsplit(request.headers.get("Origin", "")).hostname or ""
    if not can_have_passkeys(host):
        raise Conflict(
            "browsers make no passkey for a page at a bare IP address: open it as http://localhost:PORT on this machine, "
            "or under its HTTPS name (--public-url)",
            code="no_host_name",
        )
    return host


DEVICES = [list_passkeys, offer_enrolment, enrol, vouch, remove, make_link]
