"""Draft a template of one kind of work: choose the examples, and explain and describe them."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, structs

from warmstart.calls.fixes import Fix, list_fixes
from warmstart.calls.origins import Origins
from warmstart.calls.prose import find_topic_words, gist
from warmstart.calls.shapes import ShapeCounts, alike, shape, tokens
from warmstart.model import Example, Origin, PastCall, PastSession, Provenance, Template
from warmstart.plurals import format_count
from warmstart.templates import topics
from warmstart.templates.candidates import Candidate, SessionDigest
from warmstart.templates.exchanges import list_further, name_exchange
from warmstart.templates.suspicion import suspicions

_MOST_LESSONS, _MOST_TAGS = 3, 6
_WORD = re.compile(r"[^\W_]+")
_ALIKE = 0.6  # two calls of one shape are merged if their arguments share this many words
_SAME_INTENT = 0.5  # and their intents this many
_DIFFERENT = 12  # unmerged calls of one shape that are considered
_VARIANTS = 4  # maximum examples of one shape
_MOST_FURTHER = 400  # further exchanges of a template
_ENOUGH = 5  # examples; beyond it only new shapes are added


class Support:
    """Counts of shapes, corrections and hosts over all sessions.

    Refused sessions count too: they show how often a shape fails.
    """

    def __init__(self) -> None:
        self.patterns: dict[str, ShapeCounts] = {}
        self.fixes: defaultdict[tuple[str, str], set[str]] = defaultdict(set)  # project and name of the fix -> origins
        self.hosts: set[str] = set()
        self._origins = Origins()

    def count(self, session: PastSession, calls: Sequence[PastCall]) -> None:
        """Count the calls of a session."""
        origin = self._origins.add(session)
        for _index, fix in list_fixes(calls):
            self.fixes[session.project or "", name_fix(fix)].add(origin)
        for call in calls:
            if call.outcome.counts:
                name = shape(call.tool, call.arguments)
                pattern = self.patterns.get(name)
                if pattern is None:
                    pattern = self.patterns[name] = ShapeCounts(set())
                pattern.sessions.add(origin)
                pattern.successes += call.outcome.status == "ok"
                pattern.failures += call.outcome.status == "error"

    def settle(self, sessions: Sequence[SessionDigest], min_support: int) -> None:
        """Count origins and hosts, after all sessions were counted."""
        for pattern in self.patterns.values():  # a subagent's calls count for the session that started it
            pattern.sessions = self._origins.settle(pattern.sessions)
        for fix, origins in self.fixes.items():
            self.fixes[fix] = self._origins.settle(origins)
        hosts: defaultdict[str, set[str]] = defaultdict(set)
        for session in sessions:
            session.origin = self._origins.find_root(session.origin)
            for host in session.hosts:
                hosts[host].add(session.origin)
        self.hosts = {host for host, origins in hosts.items() if len(origins) >= min_support}


def name_fix(fix: Fix) -> str:
    """Return what is the same for a fix in every session: its rule, else the change and the shapes of both calls."""
    return fix.lesson or f"{fix.words} {fix.pair}"


class DraftExample(Struct):
    """A candidate that stands for similar calls."""

    candidate: Candidate
    sessions: set[str]  # origins of the sessions with a call of this shape
    merged: int  # number of calls that it stands for


class TemplateDraft:
    """A template in the making, for sessions of one kind of work."""

    def __init__(
        self, sessions: Sequence[SessionDigest], support: Support, max_examples: int, min_support: int
    ) -> None:
        self._sessions = sessions
        self._support = support
        self._max_examples = max_examples
        self._min_support = min_support
        self._users = Counter(name for session in sessions for name in session.tools)  # sessions by kind of call
        self._repeats = Counter(candidate.exact for session in sessions for candidate in session.candidates)
        self._since = min(session.started for session in sessions)
        self._until = max(session.started for session in sessions)

    def make(self, topic_words: Sequence[str], origin: Origin) -> Template:
        """Return the template, without a name; without examples if no call is fit to be shown."""
        chosen = self._choose(strict=origin == "learned")
        project, agent, _category, _type = self._sessions[0].group
        (category, task_type), _count_of = Counter(session.group[2:] for session in self._sessions).most_common(1)[0]
        examples = tuple(map(self._explain, chosen))
        used = list(dict.fromkeys(example.candidate.kind for example in chosen))
        template = Template(
            name="",
            category=category,
            task_type=task_type,
            description=self._describe(used, chosen),
            tags=_tags(used, topic_words),
            addendum=self._lessons(),
            examples=examples,
            source_sessions=self._find_supporters(chosen),
            further=self._list_further(examples) if origin == "learned" else (),
        )
        reasons = suspicions(template, self._support.hosts)
        if number := sum(session.has_orders for session in self._sessions):
            reasons = (*reasons, f"instruction-like text in results of {format_count(number, 'source session')}")
        scope = self._sessions[0].scope
        provenance = Provenance(origin=origin, project=project or None, scope=scope, agent=agent, suspicions=reasons)
        return structs.replace(template, provenance=provenance)

    def _choose(self, *, strict: bool) -> list[DraftExample]:
        """Choose greedily: worthiest first; each kind and shape already chosen counts against the next of it."""
        pool = self._pool(strict=strict)
        kinds: Counter[str] = Counter()
        shapes: Counter[str] = Counter()
        chosen: list[DraftExample] = []
        worth = {id(example): self._worth(example) for example in pool}

        def value(example: DraftExample) -> tuple[float, float, str, int]:
            candidate = example.candidate
            again = 0.7 * kinds[candidate.kind] + 1.5 * shapes[candidate.shape]
            return worth[id(example)] - again, candidate.at, candidate.example.session, -(candidate.example.step or 0)

        while pool and len(chosen) < self._max_examples:
            best = max(pool, key=value)
            if chosen and (value(best)[0] < 0 or (shapes[best.candidate.shape] and len(chosen) >= _ENOUGH)):
                break
            pool.remove(best)
            pool = [example for example in pool if not _is_same_exchange(example, best)]
            chosen.append(best)
            kinds[best.candidate.kind] += 1
            shapes[best.candidate.shape] += 1
        return chosen + self._vary(pool, chosen, worth)

    def _vary(
        self, pool: Sequence[DraftExample], chosen: Sequence[DraftExample], worth: Mapping[int, float]
    ) -> list[DraftExample]:
        """Fill the remaining room with more calls of the chosen shapes: a new request is nearest to one of those."""
        shapes = Counter(example.candidate.shape for example in chosen)
        shown = [_intent_words(example.candidate) for example in chosen]
        left = [example for example in pool if worth[id(example)] > 0]
        more: list[DraftExample] = []

        def value(example: DraftExample) -> tuple[float, float, str, int]:
            candidate, intent = example.candidate, _intent_words(example.candidate)
            again = 2.0 * max((alike(intent, other) for other in shown), default=0.0)
            if any(candidate.example.adjoins(other.candidate.example) for other in (*chosen, *more)):
                again = 0.0  # a neighbour of a chosen call: together they show how the request was met
            return worth[id(example)] - again, candidate.at, candidate.example.session, -(candidate.example.step or 0)

        while len(chosen) + len(more) < self._max_examples:
            left = [example for example in left if 0 < shapes[example.candidate.shape] < _VARIANTS]
            if not left:
                break
            best = max(left, key=value)
            left = [example for example in left if example is not best and not _is_same_exchange(example, best)]
            more.append(best)
            shown.append(_intent_words(best.candidate))
            shapes[best.candidate.shape] += 1
        return more

    def _list_further(self, examples: Sequence[Example]) -> tuple[Example, ...]:
        """Return the other exchanges of the sessions, the latest first: everything distinct that worked can be found."""
        latest = sorted(self._sessions, key=lambda session: (-session.started, session.key))
        counted = (self._count(exchange) for session in latest for exchange in session.exchanges)
        usable = [exchange for exchange in counted if exchange is not None]
        return tuple(list_further(usable, examples, self._support.hosts, _MOST_FURTHER))

    def _count(self, exchange: Example) -> Example | None:
        """Return an exchange with its support; None if a call of it mostly fails and is not corrected here."""
        patterns = [self._support.patterns.get(shape(call.tool, call.arguments)) for call in exchange.calls]
        for call, pattern in zip(exchange.calls, patterns, strict=True):
            if pattern is not None and pattern.fails_mostly and not call.correction:
                return None
        known = [pattern for pattern in patterns if pattern is not None]
        if not known:
            return exchange
        rarest = min(known, key=lambda pattern: len(pattern.sessions))
        return structs.replace(
            exchange, support=len(rarest.sessions), successes=rarest.successes, failures=rarest.failures
        )

    def _pool(self, *, strict: bool) -> list[DraftExample]:
        """Return the candidates, similar ones merged. If strict, shapes that mostly fail must be corrections."""
        by_shape: defaultdict[str, list[Candidate]] = defaultdict(list)
        users: defaultdict[str, set[str]] = defaultdict(set)
        for session in self._sessions:
            for candidate in session.candidates:
                by_shape[candidate.shape].append(candidate)
                users[candidate.shape].add(session.origin)
        pool: list[DraftExample] = []
        for name, candidates in sorted(by_shape.items()):
            if strict and self._support.patterns[name].fails_mostly:
                candidates = [candidate for candidate in candidates if candidate.fix]
            pool += [DraftExample(candidate, users[name], merged) for candidate, merged in _merge(candidates)]
        return pool

    def _worth(self, example: DraftExample) -> float:
        candidate, total = example.candidate, len(self._sessions)
        share = len(example.sessions) / total
        users = share if candidate.commonplace else self._users[candidate.kind] / total
        repeats = min(1.0, math.log2(self._repeats[candidate.exact]) / 2)
        span = self._until - self._since
        age = min(1.0, max(0.0, (self._until - candidate.at) / span)) if span > 0 else 0.0
        certainty = total / (1 + total)  # agreement among few sessions says little
        support = certainty * (0.7 * math.sqrt(share) + 1.1 * math.sqrt(users)) + 0.4 * repeats
        rate = self._support.patterns[candidate.shape].rate
        return candidate.worth + support + 1.5 * (rate - 0.8) - 0.3 * age

    def _explain(self, example: DraftExample) -> Example:
        candidate = example.candidate
        pattern = self._support.patterns[candidate.shape]
        support, tries = len(pattern.sessions), pattern.successes + pattern.failures
        why = f"used in {format_count(support, 'session')}, worked {pattern.successes} of {tries} times"
        if candidate.fix:
            failed = max(1, self._count_fixed(name_fix(candidate.fix)))
            why = f"corrects a failure seen in {format_count(failed, 'session')}; {why}"
            support = failed if candidate.commonplace else support
        elif example.merged > 1:
            why += f"; the best of {example.merged} alike"
        return structs.replace(
            candidate.example,
            why=why,
            support=support,
            successes=pattern.successes,
            failures=pattern.failures,
        )

    def _find_supporters(self, chosen: Sequence[DraftExample]) -> tuple[str, ...]:
        """Return the sessions that made such calls: one of each origin, because a fork is no second opinion."""
        shapes = {example.candidate.shape for example in chosen}
        shown = {example.candidate.example.session for example in chosen}
        supporters: dict[str, str] = {}
        for session in sorted(self._sessions, key=lambda session: (session.key not in shown, session.key)):
            if session.key in shown or any(candidate.shape in shapes for candidate in session.candidates):
                supporters.setdefault(session.origin, session.key)
        return tuple(sorted(supporters.values()))

    def _describe(self, used: Sequence[str], chosen: Sequence[DraftExample]) -> str:
        """Return one sentence: the programs and tools, the sessions, the share that worked, and a request."""
        _project, agent, _category, _type = self._sessions[0].group
        gists = [text for session in self._sessions if find_topic_words(text := gist(session.task, 90))]
        such = f", for requests such as “{max(gists, key=lambda text: (len(text), text))}”" if gists else ""
        names = list(dict.fromkeys(name.rpartition(": ")[2] for name in used))
        tools = ", ".join(names[:5]) + (" and others" if len(names) > 5 else "")
        shapes = {example.candidate.shape for example in chosen}
        worked = sum(session.worked[name] for session in self._sessions for name in shapes)
        tries = worked + sum(session.failed[name] for session in self._sessions for name in shapes)
        corrected = sum(example.candidate.fix is not None for example in chosen)
        also = f", {corrected} of the examples after a failure" if corrected else ""
        sessions = format_count(len(self._find_supporters(chosen)), "session")
        examples = format_count(len(chosen), "example")
        return f"{examples} from {sessions} of {agent}{such}: {tools}; {worked} of {tries} such calls worked{also}."

    def _count_fixed(self, fix: str) -> int:
        """Return in how many sessions of the project a failure was fixed this way."""
        return len(self._support.fixes[self._sessions[0].group[0], fix])

    def _lessons(self) -> str:
        """Return rules that several sessions learned from failures, made of names and forms alone."""
        fixes = (candidate.fix for session in self._sessions for candidate in session.candidates)
        lessons = {fix.lesson for fix in fixes if fix and fix.lesson}
        ranked = sorted((-self._count_fixed(lesson), lesson) for lesson in lessons)
        rules = [(lesson, -minus) for minus, lesson in ranked if -minus >= self._min_support]
        return "\n".join(f"{lesson} (seen failing in {count} sessions)." for lesson, count in rules[:_MOST_LESSONS])


def _is_same_exchange(one: DraftExample, other: DraftExample) -> bool:
    first, second = one.candidate.example, other.candidate.example
    return first.is_whole and second.is_whole and name_exchange(first) == name_exchange(second)


def _merge(candidates: Sequence[Candidate]) -> Iterator[tuple[Candidate, int]]:
    """Merge similar calls of one shape; yields the worthiest of each group with its size.

    Each call is compared with a few groups only, so that many calls stay cheap.
    """
    ranked = sorted(candidates, key=lambda call: (-call.worth, -call.at, call.example.session, call.example.step or 0))
    groups: list[tuple[Candidate, frozenset[str], frozenset[str]]] = []
    sizes: Counter[int] = Counter()
    for candidate in ranked:
        arguments, intent = tokens(candidate.example.arguments), _intent_words(candidate)
        near = next(
            (
                at
                for at, (_head, other_arguments, other_intent) in enumerate(groups)
                if alike(arguments, other_arguments) >= _ALIKE and alike(intent, other_intent) >= _SAME_INTENT
            ),
            None,
        )
        if near is None and len(groups) < _DIFFERENT:
            groups.append((candidate, arguments, intent))
            near = len(groups) - 1
        if near is not None:
            sizes[near] += 1
    return ((head, sizes[at]) for at, (head, _arguments, _intent) in enumerate(groups))


def _intent_words(candidate: Candidate) -> frozenset[str]:
    """Return all words of the intent, also names and stop words."""
    return frozenset(_WORD.findall(candidate.example.intent.lower()))


def _tags(used: Sequence[str], topic_words: Sequence[str]) -> tuple[str, ...]:
    named = (topics.slug(name.rpartition(": ")[2]) for name in used)
    return tuple(list(dict.fromkeys(filter(None, [*topic_words[:3], *named])))[:_MOST_TAGS])
