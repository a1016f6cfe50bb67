"""What sessions were about: their requests in plain words, which of them are one kind of work, and what to call it."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from warmstart.excerpt import first

_NEAR = 0.22  # cosine from which a session belongs to a cluster
_TOOL_WEIGHT = 0.6  # of a tool beside a word of the task

_REMINDER = re.compile(r"<(system-reminder|ide_\w+|local-command-\w+|command-(?:message|args|contents))>.*?(?:</\1>|\Z)", re.S)
_TAG = re.compile(r"</?[a-zA-Z][\w-]*(?:\s[^<>]{0,200})?/?>")
_NOT_SAID = re.compile(r"\[Request interrupted by user[^\]]*\]|Caveat: The messages below[^\n]*|```.*?(?:```|\Z)|\[\.\.\.\]", re.S)
_OPAQUE = re.compile(r"\S+://\S+|\S*[/\\@#]\S*|\{\{[^}]*\}\}|\S*\d\S*")
_WORD = re.compile(r"[^\W\d_][^\W_]{2,}(?:['’][^\W\d_]+)?")
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+(?=\S)")
_GREETING = re.compile(r"^(?:\W*(?:hi|hello|hey|good (?:morning|afternoon|evening)|thanks?(?: you)?|sure|great|ok(?:ay)?|bonjour)"
                       r"(?: there| again| so much)?\W+)+", re.I)
_YES = re.compile(
    r"^\W*(?:yes|yep|yeah|y|ok|okay|sure|correct|right|confirmed?|i confirm|go ahead|please (?:do|go|proceed|continue)|proceed|continue"
    r"|do it|sounds good|perfect|great|thanks?|thank you|that works|looks good|i agree|absolutely|no|none)\b",
    re.I,
)
STOP_WORDS = frozenset(
    """a about above account actually add after again all already also and another any anything app are around ask
    because been before being below best better both but call can cannot check code come consider context could create
    current currently description details did different does doing don't done down each else even every everything
    feature feedback few file files find first following for from full get gets getting give given goes going good got
    had handy has have having he'd hello help here hey him his how however i'd i'm i've idea info information instead
    into issue it's its just keep know last let let's like list little look looking looks made make many may maybe mean
    might more most much must name need needed needs new next not note nothing now off okay old one only open other our
    out over own part phase plan please possible prefer problem put question read really recent regarding right run
    said same say see seem seems set several she should show since small some someone something start still such sure
    take tell than thank thanks that that's the their them then there these they thing things think this those though
    through time today too try two under understand until upcoming update upon use used user using very via wait want
    wanted was way we're well went were what when where whether which while who why will wish with without work working
    would write wrong yes yet you you'd you're your summary true false null none recently able assist hoping currently
    situation regarding receive received provide""".split()
)


def plain(text: str) -> str:
    """What was really said: without reminders, tags, code and marks that the agent's program added."""
    if "<" in text:
        text = _TAG.sub(" ", _REMINDER.sub(" ", text))
    return re.sub(r"[ \t]+", " ", _NOT_SAID.sub(" ", text)).strip(" \n❯>*-")


def opening(text: str, limit: int) -> str:
    """The first sentences, as many as fit."""
    said = " ".join(plain(text).split())
    if len(said) <= limit:
        return said
    kept = ""
    for sentence in _SENTENCE_END.split(said):
        if kept and len(kept) + 1 + len(sentence) > limit:
            break
        kept = f"{kept} {sentence}".strip()
    return first(kept, limit - 6)


def state_intent(said: str, note: object, task: str, limit: int) -> str:
    """What was wanted just then. A mere yes says nothing: then the call's own note, or the session's task."""
    told = opening(said, limit)
    own = opening(note, limit) if isinstance(note, str) else ""
    about = opening(task, limit)
    if own and (not told or told[:80] == about[:80]):
        return own
    if not told or len(told) < 12 or (_YES.match(told) and len(told) < 160 and not _OPAQUE.search(told)):
        return own or about or told
    return without_greeting(told)


def without_greeting(text: str) -> str:
    rest = _GREETING.sub("", text, count=1)
    return rest[:1].upper() + rest[1:] if len(rest) > 15 else text


def words(text: str) -> list[str]:
    """The words that tell one task from another, plurals folded."""
    found = (word.lower().replace("’", "'") for word in _WORD.findall(_OPAQUE.sub(" ", text)))
    return [_fold(word) for word in found if word not in STOP_WORDS and len(word) < 25]


def _fold(word: str) -> str:
    word = word.removesuffix("'s")
    if len(word) > 4 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-3] + "y" if word.endswith("ies") else word[:-1]
    return word


class Item(Struct):
    """A session as far as grouping goes."""

    task: str
    tools: Counter[str]


def drop_boilerplate(tasks: Sequence[str]) -> list[str]:
    """Without the lines that a program puts around every request. A request that is all such lines stays."""
    lines = [[line.strip() for line in plain(task).splitlines() if line.strip()] for task in tasks]
    common = Counter(line for one in lines for line in set(one))
    often = max(3, len(tasks) // 2)
    kept = ([line for line in one if common[line] < often] for one in lines)
    return ["\n".join(own or one) for own, one in zip(kept, lines, strict=True)]


def cluster(items: Sequence[Item], most: int) -> list[list[int]]:
    """Which items are one kind of work, as indices. The earliest lead: later sessions join them or lead in turn."""
    told = drop_boilerplate([item.task for item in items])
    vectors = _weigh([set(words(task)) for task in told], [item.tools for item in items])
    centres: list[Counter[str]] = []
    members: list[list[int]] = []
    for index, vector in enumerate(vectors):
        near = [(_cosine(vector, centre), -at) for at, centre in enumerate(centres)]
        best, minus = max(near, default=(0.0, 0))
        if centres and (best >= _NEAR or len(centres) >= most):
            centres[-minus].update(vector)
            members[-minus].append(index)
        else:
            centres.append(Counter(vector))
            members.append([index])
    return members


def _weigh(tasks: Sequence[set[str]], tools: Sequence[Counter[str]]) -> list[Counter[str]]:
    spread = Counter(word for task in tasks for word in task) + Counter(f"t:{tool}" for one in tools for tool in one)
    vectors = []
    for task, used in zip(tasks, tools, strict=True):
        vector: Counter[str] = Counter()
        for name in sorted(task):
            vector[name] = _rarity(spread[name], len(tasks))  # type: ignore[assignment]
        for tool, calls in sorted(used.items()):
            rare = _rarity(spread[f"t:{tool}"], len(tasks))
            vector[f"t:{tool}"] = _TOOL_WEIGHT * rare * (1 + math.log(calls))  # type: ignore[assignment]
        vectors.append(vector)
    return vectors


def _rarity(seen: int, of: int) -> float:
    return math.log((1 + of) / (1 + seen)) + 0.3


def _cosine(a: Counter[str], b: Counter[str]) -> float:
    if len(a) > len(b):
        a, b = b, a
    dot = sum(weight * b[name] for name, weight in a.items() if name in b)
    return dot / (_length(a) * _length(b)) if dot else 0.0


def _length(vector: Counter[str]) -> float:
    return math.sqrt(sum(weight * weight for weight in vector.values()))


def top_words(tasks: Sequence[str], elsewhere: Counter[str], total: int, most: int) -> list[str]:
    """The words that most of these tasks have, and others less."""
    inside = Counter(word for task in tasks for word in set(words(task)))
    least = max(1, math.ceil(len(tasks) / 5))

    def telling(word: str) -> float:
        return inside[word] / len(tasks) * (0.4 + _rarity(elsewhere[word], total))

    ranked = sorted((word for word in inside if inside[word] >= least), key=lambda word: (-telling(word), word))
    return ranked[:most]


def slug(text: str, limit: int = 40) -> str:
    """Lower-case letters, digits and dashes."""
    folded = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", folded.lower()).strip("-")[:limit].strip("-")


def place_name(project: str | None, agent: str) -> str:
    """The project's folder, or the agent where there is none worth a name."""
    last = (project or "").rstrip("/\\").replace("\\", "/").rpartition("/")[2]
    name = slug(last, 24)
    if not name or name in ("tmp", "home", "root", "testbed", "workspace", "project") or re.fullmatch(r"[0-9a-f]{16,}|\d+", name):
        return slug(agent, 24) or "agent"
    return name


def unique_name(parts: Iterable[str], extra: Sequence[str], taken: set[str]) -> str:
    """A name of these parts, made longer only where another has it already."""
    base = slug("-".join(filter(None, parts)), 60)
    for more in ("", *extra):
        name = slug(f"{base[: 60 - len(more) - 1]}-{more}", 60) if more else base
        if name and name not in taken:
            return name
    mark = hashlib.blake2b("\0".join((base, *extra)).encode(), digest_size=3).hexdigest()
    name, number = f"{base[:53]}-{mark}", 2
    while name in taken:
        name, number = f"{base[:50]}-{mark}{number}", number + 1
    return name
