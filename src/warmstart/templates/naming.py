"""Names of templates: the request, its topic, and the action.

A word is part of a name if the sessions of the group share it and other sessions lack it. Words that also occur in the
calls come first: a word that is only in a request is often an aside.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from warmstart.calls.prose import find_topic_words
from warmstart.calls.shapes import strings_in
from warmstart.calls.words import AGENT_WORDS, FILLER_WORDS, find_words, singular, stem
from warmstart.templates import topics
from warmstart.templates.candidates import SessionDigest
from warmstart.templates.stand_ins import MADE_UP_NAMES

_TOPICS = 2  # words about the subject
_SHARE = 0.5  # share of the sessions that must have a verb or an action
_ONLY_SAID = 0.4  # factor for a word that is in requests and in no call
_VERB_FORM = 0.5  # factor for a word such as "saying" or "renamed", which rarely names a subject
_VALUE = 200  # characters of an argument that are looked at

_ACTIONS: dict[str, re.Pattern[str]] = {
    name: re.compile(rf"(?<![a-z])(?:{words})")
    for name, words in {
        "migrate": r"alembic|migrat|prisma|knex|flyway|liquibase",
        "deploy": r"kubectl|helm|deploy|terraform|flyctl|vercel|heroku|ansible",
        "release": r"publish|release|twine|changeset|goreleaser",
        "test": r"py\.?test|unittest|jest|vitest|mocha|rspec|phpunit|ctest|tests?(?![a-z])|nextest|tox|nox|playwright",
        "lint": r"ruff|eslint|[a-z-]*lint|flake8|mypy|pyright|tsc|clippy|biome|prettier|fmt|type-?check",
        "build": r"build|make|gradle|mvn|webpack|vite(?![a-z])|docker build",
        "review": r"gh (?:pr|issue|run|api)",
        "commit": r"git (?:commit|push|rebase|merge|cherry-pick)",
        "install": r"(?:pip3?|npm|pnpm|yarn|bun|apt|apt-get|brew|uv|poetry|cargo|gem)(?: \w+)? (?:install|add)",
        "query": r"psql|sqlite3?|mysql|duckdb|select|mongosh?",
        "fetch": r"curl|wget|web_?fetch|fetch",
    }.items()
}
_VERBS = frozenset(
    """add analyze book build cancel change clean compare compute configure convert debug delete deploy document download
    evaluate exchange explain export extract fix implement import improve install integrate investigate merge migrate modify
    move optimize plan publish refactor refund release remove rename replace report research resolve restore return review
    schedule search send split summarize switch sync test translate update upgrade upload validate verify write""".split()
)
_VAGUE = (
    AGENT_WORDS
    | FILLER_WORDS
    | frozenset(
        """able across along also attached based bug case complete correctly detail different error errors etc
        exist existing expect expected extra fail failed failing fails failure implementation inside left lets
        like line lot make mention missing please proper properly quick really related request sample screenshot
        section several similar simple still stuff support thought various week year yesterday month""".split()
    )
)


class _Facts(Struct, frozen=True):
    """The words of one session."""

    asked: frozenset[str]  # subjects in its request
    verbs: frozenset[str]  # in its request
    called: frozenset[str]  # words in its calls
    actions: frozenset[str]  # by the programs that it ran


class WorkNames:
    """Names groups of sessions by what sets them apart from all sessions."""

    def __init__(self, sessions: Sequence[SessionDigest]) -> None:
        self._facts = {session.key: _collect_facts(session) for session in sessions}
        self._spread = Counter(word for facts in self._facts.values() for word in facts.asked | facts.called)
        self._verbs = Counter(verb for facts in self._facts.values() for verb in facts.verbs)
        self._actions = Counter(action for facts in self._facts.values() for action in facts.actions)

    def find_topics(self, members: Sequence[SessionDigest], limit: int = 3) -> list[str]:
        """Return the words that set these sessions apart, most telling first."""
        facts = [self._facts[member.key] for member in members]
        own = {*topics.place_name(members[0].group[0], "").split("-"), *members[0].group[1].split("-")}
        asked = Counter(word for session in facts for word in session.asked if word not in own)
        called = Counter(word for session in facts for word in session.called)
        least = 1 if len(facts) == 1 else max(2, math.ceil(len(facts) / 3))
        common = [word for word in asked if asked[word] >= least] or [word for word in asked if called[word]]

        def telling(word: str) -> tuple[float, str]:
            rarity = math.log((1 + len(self._facts)) / (1 + self._spread[word])) + 0.3
            doubt = (1.0 if called[word] else _ONLY_SAID) * (_VERB_FORM if word.endswith(("ing", "ed")) else 1.0)
            return -asked[word] * rarity * doubt, word

        kept: dict[str, str] = {}
        for word in sorted(common, key=telling):
            kept.setdefault(stem(word), word)
        return list(kept.values())[:limit]

    def name(self, members: Sequence[SessionDigest], category: str, taken: Collection[str]) -> str:
        """Return a name of two to four words, longer only if another template has it already."""
        facts = [self._facts[member.key] for member in members]
        verb = self._pick([session.verbs for session in facts], self._verbs)
        action = self._pick([session.actions for session in facts], self._actions)
        subject = [word for word in self.find_topics(members, _TOPICS + 2) if word not in (verb, action)][:_TOPICS]
        project, agent, _category, task_type = members[0].group
        place = topics.place_name(project, agent)
        words = [verb, *subject, action if action != verb else ""]
        if len([word for word in words if word]) < 2:
            words = [place, *words, "" if any(words) else category]
        return topics.unique_name(words, (place, agent, task_type), set(taken))

    def _pick(self, sets: Sequence[frozenset[str]], spread: Mapping[str, int]) -> str:
        """Return the verb or action that most of these sessions have and others lack; "" if they share none."""
        counts = Counter(word for words in sets for word in words)
        shared = [word for word in counts if counts[word] >= _SHARE * len(sets)]

        def telling(word: str) -> tuple[float, str]:
            return -counts[word] * (math.log((1 + len(self._facts)) / (1 + spread[word])) + 0.3), word

        return min(shared, key=telling, default="")


def _collect_facts(session: SessionDigest) -> _Facts:
    said = [word for word in find_topic_words(session.task) if word not in _VAGUE | MADE_UP_NAMES and word.isascii()]
    verbs = {verb for word in said for verb in (word, stem(word), f"{stem(word)}e") if verb in _VERBS}
    texts = [text[:_VALUE] for c in session.candidates for text in strings_in(c.example.arguments)]
    texts += [c.example.intent for c in session.candidates if c.example.intent not in session.task]
    called = {singular(word) for word in find_words(" ".join((*texts, *session.tools)), camel=True)}
    kinds = [name.lower() for name in session.tools]
    actions = {action for action, program in _ACTIONS.items() if any(map(program.search, kinds))}
    asked = frozenset(word for word in said if word not in _VERBS and stem(word) not in _VERBS)
    return _Facts(asked, frozenset(verbs), frozenset(called), frozenset(actions))
