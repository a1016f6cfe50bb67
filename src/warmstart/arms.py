"""The assignment of sessions to arms, by a salted hash of the session id.

A session gets the same arm on every machine and after every restart, trying again cannot change it, and the probability
of each arm is known and recorded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from warmstart.digests import blake2b
from warmstart.errors import Refused

COLD, WARM, SEED, TEXT = "cold", "warm", "seed", "text"
RANDOM, MISMATCHED = "random", "mismatched"
BRIEF, ADVICE = "brief", "brief+advice"  # without examples: what the project knows, at the start and at its calls
CONTROLS = frozenset((RANDOM, MISMATCHED))  # examples not chosen for the task, to see whether their content matters
WORDS = (
    frozenset((COLD, WARM, SEED, TEXT, BRIEF, ADVICE)) | CONTROLS
)  # arms that are not template names; "seed" is another word for "warm"
ALIKE = frozenset((COLD, WARM, SEED, BRIEF, ADVICE))  # arms for which the same examples are chosen
WITHHELD, SHOWN = "withheld", "shown"  # the arms of an experiment on occurrences of notes
STANDING = 0.1  # largest share of occurrences withheld without an experiment: `holdout` may be larger, for sessions
HOLDOUT = ""  # the name of the standing comparison, used when no experiment runs
_shares = msgspec.json.Decoder(dict[str, float])
_SALT = "warmstart holdout"  # the same on all machines of a team, so that they agree


def gets_brief(arm: str | None) -> bool:
    """Return whether sessions of an arm start with the brief; None is a preview."""
    return arm is None or (arm != COLD and arm not in CONTROLS)


def gets_advice(arm: str | None) -> bool:
    """Return whether sessions of an arm are advised at their calls."""
    return gets_brief(arm) and arm != BRIEF


def holdout_shares(share: float) -> dict[str, float]:
    """Return the arms of the standing comparison; without a holdout there is only the warm one."""
    if share <= 0:
        return {WARM: 1.0}
    return {COLD: share, WARM: 1.0 - share}


def draw(session: str, salt: str = _SALT) -> float:
    """Return a number from 0 to 1 that is always the same for a session."""
    key = f"{salt}\0{session}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "big") / 2**64


def assign(session: str, shares: Mapping[str, float], salt: str = _SALT) -> str:
    """Return the arm of a session."""
    point, reached = draw(session, salt), 0.0
    for arm, share in shares.items():
        reached += share
        if point < reached:
            return arm
    return [arm for arm, share in shares.items() if share > 0][-1]  # the shares' sum may be a rounding error below 1


def find_withheld(shares: str) -> float:
    """Return the share of occurrences that an experiment withholds, from its shares as the store keeps them."""
    return read_shares(shares).get(WITHHELD, 0.0)


def control_of(shares: Mapping[str, float]) -> str:
    """Return the arm that the others are compared with: the cold one, else the first named."""
    return COLD if COLD in shares else next(iter(shares))


def parse_arms(text: str) -> dict[str, float]:
    """Parse `cold=.5,warm=.5`, or names alone for equal shares; `seed vs text` means `seed,text`."""
    parts = [part.strip() for part in text.replace(" vs ", ",").split(",")]
    arms: dict[str, float | None] = {}
    for part in parts:
        name, equals, share = part.rpartition("=")
        if not equals:
            name, share = part, ""
        name = name.strip()
        if not name:
            raise Refused(f"--arms {text!r}: an arm has no name; write cold=.5,warm=.5")
        if name in arms:
            raise Refused(f"--arms: {name} is named twice")
        arms[name] = _share(name, share) if equals else None
    return _complete(arms)


def _share(name: str, text: str) -> float:
    try:
        share = float(text.strip())
    except ValueError:
        raise Refused(f"--arms: the share of {name} is not a number: {text.strip()!r}") from None
    if not (math.isfinite(share) and 0 < share < 1):
        raise Refused(f"--arms: the share of {name} must be between 0 and 1, not {text.strip()}")
    return share


def _complete(arms: Mapping[str, float | None]) -> dict[str, float]:
    if len(arms) < 2:
        raise Refused("an experiment compares at least two arms; write cold=.5,warm=.5")
    if WARM in arms and SEED in arms:
        raise Refused("--arms: warm and seed are two words for the same arm; name one of them")
    given = {name: share for name, share in arms.items() if share is not None}
    if not given:
        return dict.fromkeys(arms, 1 / len(arms))
    if len(given) < len(arms):
        raise Refused("--arms: give every arm a share, or none of them")
    if abs(sum(given.values()) - 1) > 0.005:
        raise Refused(f"--arms: the shares add up to {sum(given.values()):g}; they must add up to 1")
    total = sum(given.values())
    return {name: share / total for name, share in given.items()}


def read_shares(body: str) -> dict[str, float]:
    """Read arms and shares as the store keeps them."""
    try:
        return _shares.decode(body)
    except msgspec.DecodeError as error:
        raise Refused(f"the arms of an experiment cannot be read ({error}); run: warmstart doctor") from error
