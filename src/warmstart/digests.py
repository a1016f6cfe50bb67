"""BLAKE2b without `hashlib`, which loads OpenSSL: commands for which agents wait need only short digests of ids."""

from __future__ import annotations

try:
    from _blake2 import blake2b  # the same type as `hashlib.blake2b`
except ImportError:  # another interpreter
    from hashlib import blake2b

__all__ = ["blake2b"]
