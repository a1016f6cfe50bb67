"""Ed25519 (RFC 8032) in plain Python: verify a signature, and derive a public key once when a key is made.

A guard verifies in a hook process that must start fast and may have only the core installed, so neither may need a
compiled library. Verification handles public values only, so its timing reveals nothing. Signing handles the private
key on every answer and is left to `cryptography` (see identity.py).
"""

from __future__ import annotations

import hashlib

_P = 2**255 - 19
_L = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P
_ROOT = pow(2, (_P - 1) // 4, _P)  # of -1

Point = tuple[int, int, int, int]  # X, Y, Z, T: x = X/Z, y = Y/Z, x*y = T/Z
_ZERO: Point = (0, 1, 1, 0)


def verify(public: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether the holder of the private key of `public` signed the message. Malformed values are just wrong."""
    if len(public) != 32 or len(signature) != 64:
        return False
    holder, given = _decode(public), _decode(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if holder is None or given is None or s >= _L:
        return False
    k = _hash_number(signature[:32], public, message) % _L
    return _is_same(_add_multiples(s, _BASE, _L - k, holder), given)


def derive_public(private: bytes) -> bytes:
    """Return the public key of a private one. Not constant in time: only for making a key, never per request."""
    digest = hashlib.sha512(private).digest()
    scalar = int.from_bytes(digest[:32], "little") & ((1 << 254) - 8) | (1 << 254)
    return _encode(_add_multiples(scalar, _BASE, 0, _ZERO))


def _hash_number(*parts: bytes) -> int:
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little")


def _add(p: Point, q: Point) -> Point:
    a = (p[1] - p[0]) * (q[1] - q[0]) % _P
    b = (p[1] + p[0]) * (q[1] + q[0]) % _P
    c = 2 * p[3] * q[3] * _D % _P
    d = 2 * p[2] * q[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _double(p: Point) -> Point:
    a, b = p[0] * p[0] % _P, p[1] * p[1] % _P
    c, h = 2 * p[2] * p[2] % _P, a + b
    e, g = h - (p[0] + p[1]) ** 2 % _P, a - b
    f = c + g
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _add_multiples(s: int, p: Point, t: int, q: Point) -> Point:
    """Return s*p + t*q in one pass over the bits of both."""
    table = (_ZERO, p, q, _add(p, q))
    sum_ = _ZERO
    for bit in range(max(s.bit_length(), t.bit_length()) - 1, -1, -1):
        sum_ = _double(sum_)
        if which := (s >> bit & 1) | (t >> bit & 1) << 1:
            sum_ = _add(sum_, table[which])
    return sum_


def _is_same(p: Point, q: Point) -> bool:
    return (p[0] * q[2] - q[0] * p[2]) % _P == 0 and (p[1] * q[2] - q[1] * p[2]) % _P == 0


def _encode(p: Point) -> bytes:
    inverse = pow(p[2], -1, _P)
    x, y = p[0] * inverse % _P, p[1] * inverse % _P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _decode(text: bytes) -> Point | None:
    """Return the point, or None if the text is not the one way to write a point of the curve."""
    number = int.from_bytes(text, "little")
    y, sign = number & ((1 << 255) - 1), number >> 255
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if x * x % _P != square:
        x = x * _ROOT % _P
    if x * x % _P != square or (x == 0 and sign):
        return None
    x = _P - x if x & 1 != sign else x
    return x, y, 1, x * y % _P


_BY = 4 * pow(5, -1, _P) % _P
_BASE: Point = _decode(_BY.to_bytes(32, "little")) or _ZERO
