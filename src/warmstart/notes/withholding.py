"""Trials of notes: at its first occurrence in a session, a note's advice is shown or withheld at random.

The draw is a hash of salt, session and fact: it needs no store, and every process and every repetition draws alike. It is
recorded before anything is answered. Hooks load this module at calls that match a note, so it imports next to nothing.
"""

from __future__ import annotations

from warmstart.notes.session_state import hash_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from warmstart.notes.session_state import SessionMemory

TRIED = frozenset(("path", "command", "environment", "tool", "large"))  # kinds whose withholding costs a call at most
_ALL = 0xFFFFFFFFFFFFFFFF


def name_fact(note: Mapping[str, Any]) -> str:
    """Return a name of what a note says: a note of the project and a rule of the agent may say the same."""
    return hash_text(f"{note.get('kind')}:{note.get('subject')}")


def draw_number(*parts: str) -> float:
    """Return a number from 0 to 1 that is always the same for these texts (FNV-1a, then the finaliser of MurmurHash3)."""
    number = int(hash_text("\0".join(parts)), 16)
    number = ((number ^ (number >> 33)) * 0xFF51AFD7ED558CCD) & _ALL
    number = ((number ^ (number >> 33)) * 0xC4CEB9FE1A85EC53) & _ALL
    return (number ^ (number >> 33)) / 2**64


def is_withheld(
    note: Mapping[str, Any], advice: Mapping[str, Any], call: Mapping[str, Any], state: SessionMemory
) -> bool:
    """Return whether a session is not to be given a note. The first time, that is drawn and recorded.

    Where advice changes the call itself, history says how often such a call fails: the rate to expect without the advice.
    """
    plan = state.withholding
    if plan is None or not state.session or note.get("kind") not in TRIED:
        return False
    experiment, share, salt = plan
    fact = name_fact(note)
    if state.has("withheld", fact):
        return True
    withheld = draw_number(salt, state.session, fact) < share
    if not state.has("drawn", note["id"]):
        state.record_draw(
            {
                "note": note["id"],
                "experiment": experiment,
                "withheld": withheld,
                "share": share,
                "action": advice["action"],
                "expected": advice["certainty"] if advice["action"] in ("stop", "correct") else None,
                "call": call.get("call_id") or "",
            }
        )
        state.add("drawn", note["id"])
    if withheld:
        state.add("withheld", fact)
    return withheld
