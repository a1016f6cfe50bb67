"""Whether a transcript shows what a proposal claims.

Nothing here understands a sentence. It checks what can be checked: the cited steps are there, they speak of the same
things (they share the claim's telling words), and every number, path, option or quoted command of a note stands in
them. What passes may still be wrong, so a person decides; what fails is surely not shown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from warmstart.review.snapshot import Snapshot

_WORD = re.compile(r"[^\W_][\w.:/@+-]*[^\W_]|[^\W_]")
_HARD = re.compile(r"[\d/_@\\]|--\w")
_QUOTED = re.compile(r"`([^`\n]{2,200})`")
_OPTION = re.compile(r"(?<!\S)--?[A-Za-z][\w-]*")
_SENTENCE = re.compile(r"[.!?]\s+|\n+")
_TITLE = re.compile(r"(?m)^(?:#.*$|---$|name:.*$|description:.*$|\s*\d+[.)]\s)")  # and the numbers of a list
COMMON = frozenset(
    """about above after again against agent all also always and any anything are around because been before being
    below both but call calls can cannot change check command correct could create does doing done down each else ensure error
    every example file files first fixed following for found from fully further given good had has have here how instead
    into its it's itself just keep know known last later like likes made make making many may memory might more most must
    name need needs never new next not note notes now off once one only open other otherwise our out output over own
    please prefer preferred prefers project really right run running runs said same see session sessions should show
    shows since skill some something step steps still such sure system task than that the their them then there these
    they thing things this those through time tool tools too two under until use used useful user user's users uses
    using very want wanted wants was way well were what when where which while who why will with within without work
    worked working works would write you your yes""".split()
)
_RARE = 0.5  # a word that stands in more than this share of the steps says nothing about one of them
_SHARED = {"memory": 0.25, "skill": 0.08, "template": 0.0}  # of the claim's telling words that the steps must have
_HARD_SHOWN = {"memory": 1.0, "skill": 0.5, "template": 0.0}  # of its numbers, paths, options and quoted commands
_RESTATED = 0.8  # of a claim's telling words in one sentence of the prompt


def find_fault(snapshot: Snapshot, kind: str, claim: str, cites: Sequence[int], instruction: str = "") -> str | None:
    """Why a claim is not to be kept, or None."""
    if not cites:
        return 'it cites no steps; add "steps": [numbers of the steps that show it]'
    try:
        shown = "\n".join(snapshot.text_of(number) for number in cites)
    except IndexError:
        return f"it cites a step that is not there; there are steps 1 to {len(snapshot.session.steps)}"
    if all(snapshot.is_prompt(number) for number in cites) or restates(claim, f"{snapshot.prompt}\n{instruction}"):
        return "it only restates the prompt"
    return _find_unshown(snapshot, kind, claim, shown)


def restates(claim: str, prompt: str) -> bool:
    """Whether a claim says no more than one sentence of the prompt does."""
    told = telling_words(claim)
    if not told or not prompt:
        return False
    if normalise(claim) in normalise(prompt):
        return True
    return any(len(told & telling_words(part)) >= _RESTATED * len(told) for part in _SENTENCE.split(prompt))


def _find_unshown(snapshot: Snapshot, kind: str, claim: str, shown: str) -> str | None:
    hard, plain = find_hard(claim), shown.casefold()
    missing = sorted(word for word in hard if word.casefold() not in plain)
    if hard and 1 - len(missing) / len(hard) < _HARD_SHOWN[kind]:
        return f"the cited steps do not show: {', '.join(missing[:3])}"
    told = telling_words(claim)
    if not told:
        return None if kind == "template" else "it says nothing in particular"
    shared = (told & telling_words(shown)) - _commonplace(snapshot)
    if len(shared) < min(2, len(told)) * (kind != "template") or len(shared) < _SHARED[kind] * len(told):
        return "the cited steps do not speak of it"
    return None


def telling_words(text: str) -> set[str]:
    """The words that say what a text is about, without their plainest endings."""
    words = (word.casefold() for word in _WORD.findall(text))
    return {_stem(word) for word in words if len(word) > 2 and word not in COMMON}


def find_hard(text: str) -> set[str]:
    """What can only be right or wrong: numbers, paths, options, quoted commands word by word."""
    body = _TITLE.sub("", text)
    quoted = {word for found in _QUOTED.findall(body) for word in _WORD.findall(found) if len(word) > 1}
    return {word for word in _WORD.findall(body) if _HARD.search(word)} | quoted | set(_OPTION.findall(body))


def normalise(text: str) -> str:
    """The same for texts that differ only in case, space, marks and punctuation at the ends of words."""
    return " ".join(word.casefold() for word in _WORD.findall(text))


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4 and word.isalpha():
            return word.removesuffix(ending)
    return word


def _commonplace(snapshot: Snapshot) -> set[str]:
    """Words of so many steps that sharing them proves nothing."""
    steps = len(snapshot.session.steps)
    if steps < 8:
        return set()
    seen = Counter(word for number in range(1, steps + 1) for word in telling_words(snapshot.text_of(number)))
    return {word for word, count in seen.items() if count > _RARE * steps}
