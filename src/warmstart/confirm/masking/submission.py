"""The texts of one submission, before and after masking."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

MOST_FINGERPRINTS = 200  # of one request


class Submission(Struct, frozen=True, array_like=True):
    """The texts that an agent sent."""

    description: str
    details: Any
    requester: str  # as the agent names itself
    session_key: str


class MaskedSubmission(Struct, frozen=True, array_like=True):
    """The same texts as they are stored and shown."""

    description: str
    details: str  # JSON
    masked: int  # how many secrets were masked
    requester: str
    session_key: str
    fingerprints: list[tuple[str, str]]  # of masked values: (token#1, fingerprint)


def digest_fingerprints(fingerprints: Iterable[tuple[str, str]]) -> str:
    """Hash the fingerprints of a request for the audit; empty if there are none."""
    pairs = sorted(map(tuple, fingerprints))
    return hashlib.sha256(msgspec.json.encode(pairs)).hexdigest() if pairs else ""
