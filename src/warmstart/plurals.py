"""Counted nouns in messages: "1 session", "1,200 sessions"."""

from __future__ import annotations


def format_count(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun, in the plural unless the number is 1."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
