"""One kind of work made into a template draft: which calls are shown, why each of them, and what it is called."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, structs

from warmstart.calls.shapes import ShapeCounts, alike, shape, tokens
from warmstart.model import Example, Origin, PastCall, PastSession, Provenance, Template
from warmstart.templates import topics as groups
from warmstart.templates.candidates import Candidate, SessionDigest, child_of, find_origin
from warmstart.templates.suspicion import suspicions

_MOST_LESSONS, _MOST_TAGS = 3, 6
_WORD = re.compile(r"[^\W_]+")
_ALIKE = 0.6  # share of common words from which two calls of one shape are one
_SAME_WISH = 0.5  # and of what was wanted
_DIFFERENT = 12  # examples of one shape that are weighed against others
_VARIANTS = 4  # of one shape that are shown
_ENOUGH = 5  # examples; beyond it only a shape of its own is taken


class Support:
    """What all sessions say about shapes, corrections and hosts; the refused ones too, they show how often a shape fails."""

    def __init__(self) -> None:
        self.considered = 0
        self.patterns: dict[str, ShapeCounts] = {}
        self.fixes: defaultdict[str, set[str]] = defaultdict(set)
        self.lessons: defaultdict[str, set[str]] = defaultdict(set)
        self.hosts: set[str] = set()
        self._origins: dict[str, str] = {}  # how a subagent names the session that sent it -> that one's origin

    def count(self, session: PastSession, calls: Sequence[PastCall]) -> None:
        self.considered += 1
        origin = find_origin(session)
        if not session.parent:
            name = child_of(session.agent, session.id)
            self._origins[name] = min(origin, self._origins.get(name, origin))
        for call in calls:
            if call.outcome.counts:
                name = shape(call.tool, call.arguments)
                pattern = self.patterns.get(name)
                if pattern is None:
                    pattern = self.patterns[name] = ShapeCounts(set())
                pattern.sessions.add(origin)
                pattern.successes += call.outcome.status == "ok"
                pattern.failures += call.outcome.status == "error"

    def settle(self, kept: Sequence[SessionDigest], min_support: int) -> None:
        for pattern in self.patterns.values():  # a subagent's calls count for the session that sent it
            pattern.sessions = {self._origins.get(origin, origin) for origin in pattern.sessions}
        hosts: defaultdict[str, set[str]] = defaultdict(set)
        for one in kept:
            one.origin = self._origins.get(one.origin, one.origin)
            for host in one.hosts:
                hosts[host].add(one.origin)
            for fix in filter(None, (candidate.fix for candidate in one.candidates)):
                self.fixes[fix.pair].add(one.origin)
                if fix.lesson:
                    self.lessons[fix.lesson].add(one.origin)
        self.hosts = {host for host, origins in hosts.items() if len(origins) >= min_support}


class DraftExample(Struct):
    """An example on its way into a draft."""

    candidate: Candidate
    sessions: set[str]  # of this kind of work, that made a call of this shape
    merged: int  # calls it stands for


class TemplateDraft:
    """A template in the making, for sessions of one kind of work."""

    def __init__(self, kept: Sequence[SessionDigest], seen: Support, max_examples: int, min_support: int) -> None:
        self._kept = kept
        self._seen = seen
        self._most = max_examples
        self._min_support = min_support
        self._users = Counter(name for one in kept for name in one.tools)  # sessions by kind of call
        self._repeats = Counter(candidate.exact for one in kept for candidate in one.candidates)
        self._since = min(one.started for one in kept)
        self._until = max(one.started for one in kept)

    def make(self, topics: Sequence[str], origin: Origin) -> Template:
        """Without a name; without examples where none is fit to be shown."""
        chosen = self._choose(strict=origin == "learned")
        project, agent, _category, _type = self._kept[0].group
        (category, task_type), _count_of = Counter(one.group[2:] for one in self._kept).most_common(1)[0]
        examples = tuple(self._explain(one) for one in chosen)
        used = list(dict.fromkeys(one.candidate.kind for one in chosen))
        template = Template(
            name="",
            category=category,
            task_type=task_type,
            description=self._describe(used, examples),
            tags=_tags(used, topics),
            addendum=self._lessons(chosen),
            examples=examples,
            source_sessions=tuple(sorted(one.key for one in self._kept)),
        )
        told = suspicions(template, self._seen.hosts)
        if any(one.has_orders for one in self._kept):
            number = sum(one.has_orders for one in self._kept)
            told = (*told, f"instruction-like text in results of {_count(number, 'source session')}")
        provenance = Provenance(origin=origin, project=project or None, agent=agent, suspicions=told)
        return structs.replace(template, provenance=provenance)

    def _choose(self, *, strict: bool) -> list[DraftExample]:
        """Greedy: the worthiest first, each kind and shape already taken counting against the next of it."""
        pool = self._pool(strict=strict)
        kinds: Counter[str] = Counter()
        shapes: Counter[str] = Counter()
        picked: list[DraftExample] = []
        worth = {id(one): self._worth(one) for one in pool}

        def value(one: DraftExample) -> tuple[float, float, str, int]:
            candidate = one.candidate
            again = 0.7 * kinds[candidate.kind] + 1.5 * shapes[candidate.shape]
            return worth[id(one)] - again, candidate.at, candidate.example.session, -(candidate.example.step or 0)

        while pool and len(picked) < self._most:
            best = max(pool, key=value)
            if picked and (value(best)[0] < 0 or (shapes[best.candidate.shape] and len(picked) >= _ENOUGH)):
                break
            pool.remove(best)
            picked.append(best)
            kinds[best.candidate.kind] += 1
            shapes[best.candidate.shape] += 1
        return picked + self._vary(pool, picked, worth)

    def _vary(
        self, pool: Sequence[DraftExample], picked: Sequence[DraftExample], worth: Mapping[int, float]
    ) -> list[DraftExample]:
        """More of the shapes that are shown, in the room that is left: the same call for another request is what a new
        request of the kind is nearest to."""
        shapes = Counter(one.candidate.shape for one in picked)
        shown = [_wish(one.candidate) for one in picked]
        left = [one for one in pool if worth[id(one)] > 0]
        more: list[DraftExample] = []

        def value(one: DraftExample) -> tuple[float, float, str, int]:
            candidate, wish = one.candidate, _wish(one.candidate)
            again = 2.0 * max((alike(wish, other) for other in shown), default=0.0)
            if any(candidate.example.adjoins(other.candidate.example) for other in (*picked, *more)):
                again = 0.0  # the step before or after one that is shown: together they show how the request was met
            return worth[id(one)] - again, candidate.at, candidate.example.session, -(candidate.example.step or 0)

        while len(picked) + len(more) < self._most:
            left = [one for one in left if 0 < shapes[one.candidate.shape] < _VARIANTS]
            if not left:
                break
            best = max(left, key=value)
            left.remove(best)
            more.append(best)
            shown.append(_wish(best.candidate))
            shapes[best.candidate.shape] += 1
        return more

    def _pool(self, *, strict: bool) -> list[DraftExample]:
        """One of those alike, with how many it stands for. If strict, shapes that mostly fail must be corrections."""
        by_shape: defaultdict[str, list[Candidate]] = defaultdict(list)
        users: defaultdict[str, set[str]] = defaultdict(set)
        for one in self._kept:
            for candidate in one.candidates:
                by_shape[candidate.shape].append(candidate)
                users[candidate.shape].add(one.origin)
        pool: list[DraftExample] = []
        for name, candidates in sorted(by_shape.items()):
            if strict and self._seen.patterns[name].fails_mostly:
                candidates = [candidate for candidate in candidates if candidate.fix]
            pool += [DraftExample(candidate, users[name], merged) for candidate, merged in _merge(candidates)]
        return pool

    def _worth(self, one: DraftExample) -> float:
        candidate = one.candidate
        share, users = len(one.sessions) / len(self._kept), self._users[candidate.kind] / len(self._kept)
        repeats = min(1.0, math.log2(self._repeats[candidate.exact]) / 2)
        span = self._until - self._since
        age = min(1.0, max(0.0, (self._until - candidate.at) / span)) if span > 0 else 0.0
        sure = len(self._kept) / (1 + len(self._kept))  # what all do of a few says little
        support = sure * (0.7 * math.sqrt(share) + 1.1 * math.sqrt(users)) + 0.4 * repeats
        rate = self._seen.patterns[candidate.shape].rate
        return candidate.worth + support + 1.5 * (rate - 0.8) - 0.3 * age

    def _explain(self, one: DraftExample) -> Example:
        candidate = one.candidate
        pattern = self._seen.patterns[candidate.shape]
        support, tries = len(pattern.sessions), pattern.successes + pattern.failures
        why = f"used in {_count(support, 'session')}, worked {pattern.successes} of {tries} times"
        if candidate.fix:
            failed = max(1, len(self._seen.fixes[candidate.fix.pair]))
            why = f"corrects a failure seen in {_count(failed, 'session')}; {why}"
        elif one.merged > 1:
            why += f"; the best of {one.merged} alike"
        return structs.replace(
            candidate.example,
            why=why,
            support=support,
            successes=pattern.successes,
            failures=pattern.failures,
        )

    def _describe(self, used: Sequence[str], examples: Sequence[Example]) -> str:
        _project, agent, _category, _type = self._kept[0].group
        tasks = [groups.gist(task, 90) for task in groups.drop_boilerplate([one.task for one in self._kept])]
        tasks = [task for task in tasks if groups.words(task)]
        such = f", such as “{max(tasks, key=lambda task: (len(task), task))}”" if tasks else ""
        names = ", ".join(name.removeprefix(f"{name.partition(': ')[0]}: ") for name in used[:5])
        corrected = sum(example.correction is not None for example in examples)
        also = f", {corrected} of them corrected after a failure," if corrected else ""
        told = f"{_count(len(examples), 'example')}{also} from {_count(len(self._kept), 'session')} of {agent}{such}: {names}"
        return told + ("." if len(used) <= 5 else " and others.")

    def _lessons(self, chosen: Sequence[DraftExample]) -> str:
        """Rules that several sessions learned the hard way, made of names and forms alone."""
        fixes = (candidate.fix for one in self._kept for candidate in one.candidates)
        found = {fix.lesson for fix in fixes if fix and fix.lesson}
        seen = sorted((-len(self._seen.lessons[lesson]), lesson) for lesson in found)
        sure = [(lesson, -minus) for minus, lesson in seen if -minus >= self._min_support]
        return "\n".join(f"{lesson} (seen failing in {count} sessions)." for lesson, count in sure[:_MOST_LESSONS])


def _merge(candidates: Sequence[Candidate]) -> Iterator[tuple[Candidate, int]]:
    """The worthiest of each kind of arguments within one shape. Compared with a few, so that many stay cheap."""
    ranked = sorted(candidates, key=lambda one: (-one.worth, -one.at, one.example.session, one.example.step or 0))
    heads_of: list[tuple[Candidate, frozenset[str], frozenset[str]]] = []
    merged: Counter[int] = Counter()
    for candidate in ranked:
        said = tokens(candidate.example.arguments)
        wanted = _wish(candidate)
        near = next(
            (
                at
                for at, (_head, other, asked) in enumerate(heads_of)
                if alike(said, other) >= _ALIKE and alike(wanted, asked) >= _SAME_WISH
            ),
            None,
        )
        if near is None and len(heads_of) < _DIFFERENT:
            heads_of.append((candidate, said, wanted))
            near = len(heads_of) - 1
        if near is not None:
            merged[near] += 1
    return ((head, merged[at]) for at, (head, _said, _wanted) in enumerate(heads_of))


def _wish(candidate: Candidate) -> frozenset[str]:
    """What was wanted, to be compared word by word: here also the names count, and words that any task has."""
    return frozenset(_WORD.findall(candidate.example.intent.lower()))


def _tags(used: Sequence[str], topics: Sequence[str]) -> tuple[str, ...]:
    named = (groups.slug(name.rpartition(": ")[2]) for name in used)
    return tuple(list(dict.fromkeys(filter(None, [*list(topics)[:3], *named])))[:_MOST_TAGS])


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
