"""New task in, seed out: chosen once a session, written down, and repeated byte for byte ever after."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec import Struct, structs

from warmstart.choose import ENOUGH, TEMPLATES, Match, Option, diversify, is_similar, rank, rarest, words
from warmstart.compose import Composed, Seed, compose
from warmstart.errors import Refused
from warmstart.model import Example, Omission, Pick, Task, Template
from warmstart.names import could_hide_secret, name_key
from warmstart.patterns import kind
from warmstart.store import EVERYWHERE, FoundRow, Shelf, SqliteStore, TemplateRow, TrialRow
from warmstart.tokens import estimate

_CATEGORIES = frozenset(("coding", "research", "ops", "general"))
_BEST = 12  # templates looked at where there are no words to go by
_MATCHES = 200  # best examples whose templates are compared
_FILTERED = 200  # the same where some of them will not do
_UNREADABLE = "its record cannot be read; see: warmstart doctor"
_seed = msgspec.json.Decoder(Seed)


class _Chosen(Struct, frozen=True):
    picks: tuple[Pick, ...]
    omitted: tuple[Omission, ...]
    reason: str


class Provisioner:
    """Chooses and composes from a store."""

    def __init__(self, store: SqliteStore, secrets: dict[str, str], clock: Callable[[], float]) -> None:
        self._store = store
        self._shelf = Shelf(store)
        self._secrets = secrets
        self._clock = clock
        self._known: dict[str, Template | None] = {}  # by record

    def provision(self, task: Task) -> Seed:
        """The seed for a task. With a session it is chosen once; without one it is a preview and nothing is written."""
        if task.session is None:
            return self._compose(task, self._choose(task), "preview")[0]
        if not task.session.strip():
            raise Refused("the session's id is empty; give one, or none at all for a preview")
        session = self._name(task.session)
        task = structs.replace(task, session=session)
        if known := self._shelf.seed(session, task.dialect):
            return self._again(known, session)
        chosen = self._choose(task) if self._shelf.trial(session) is None else None
        with self._store.writing():
            return self._settle(task, session, chosen)

    def _settle(self, task: Task, session: str, chosen: _Chosen | None) -> Seed:
        """Inside a transaction: whoever comes first decides, all others get the same."""
        if known := self._shelf.seed(session, task.dialect):
            return self._again(known, session)
        trial = self._shelf.trial(session)
        if trial is not None:
            given = self._shelf.picks(trial)
            if given is None:
                raise Refused(f"what session {session} was given cannot be read; see: warmstart doctor")
            seed, _used = self._compose(task, _Chosen(tuple(given), (), "as chosen when the session began"), trial.arm)
        else:
            assert chosen is not None
            seed, picks = self._compose(task, chosen, "warm")
            facts = {"agent": task.agent, "model": task.model, "project": task.project, "category": task.category}
            row = TrialRow(
                session=session,
                arm=seed.arm,
                picks=msgspec.json.encode([structs.replace(pick, tokens=None) for pick in picks]).decode(),
                task=msgspec.json.encode({k: self._clean(v) for k, v in facts.items() if v}).decode(),
                at=self._clock(),
            )
            self._shelf.put_trial(row, sorted({(pick.template, pick.version) for pick in picks}))
        self._shelf.put_seed(session, task.dialect, msgspec.json.encode(seed).decode())
        return seed

    def _again(self, known: str, session: str) -> Seed:
        try:
            return _seed.decode(known)
        except msgspec.DecodeError as error:
            raise Refused(f"what session {session} was given cannot be read; see: warmstart doctor") from error

    def _compose(self, task: Task, chosen: _Chosen, arm: str) -> tuple[Seed, tuple[Pick, ...]]:
        """The seed, and which of the chosen examples it shows."""
        made = compose(
            chosen.picks,
            dialect=task.dialect,
            budget=task.budget,
            count=estimate,
            model=task.model,
            thinking=task.thinking,
            addenda=self._addenda(chosen.picks),
        )
        seed = Seed(
            id=_content_id(task, made),
            arm=arm,
            dialect=task.dialect,
            messages=made.messages,
            text=made.text,
            tokens=made.tokens,
            budget=task.budget,
            templates=tuple(dict.fromkeys(f"{pick.template}@{pick.version}" for pick in made.used)),
            omitted=(*chosen.omitted, *made.omitted),
            reason=_reason(chosen.reason, made),
        )
        return seed, made.used

    def _addenda(self, picks: Sequence[Pick]) -> list[tuple[str, str]]:
        found: dict[str, str] = {}
        for name, version in dict.fromkeys((pick.template, pick.version) for pick in picks):
            for columns in self._store.rows("template", (name, version)):
                template = self._shelf.facts(name, version, TemplateRow.from_columns(columns).body)
                if template and template.addendum:
                    found[f"{name}@{version}"] = template.addendum
        return list(found.items())

    # Choosing

    def _choose(self, task: Task) -> _Chosen:
        text = task.text.strip()
        if text and (named := self._named(text)) is not None:
            return self._from_templates([named], task, f"the template {named.name} was asked for by name")
        if text.lower() in _CATEGORIES:
            task = structs.replace(task, category=text.lower(), text="")
            text = ""
        query = words(text[:4_000])
        if not query:
            what = f"of the category {task.category}" if task.category else "there is"
            most = _BEST if task.tools is None and not task.tags and task.agent is None else _FILTERED
            best = self._shelf.best(task.category, task.task_type, _scope(task.project), most)
            return self._from_templates(best, task, f"no task text to go by: the best {what}")
        return self._by_words(query, task)

    def _named(self, text: str) -> TemplateRow | None:
        """A template whose name is the whole text."""
        if len(text) > 200 or "\n" in text:
            return None
        return next((row for row in self._shelf.versions(name_key(text)) if row.status == "active"), None)

    def _by_words(self, query: list[str], task: Task) -> _Chosen:
        project = _scope(task.project)
        scopes = [EVERYWHERE] if project is None else list(dict.fromkeys((project, "")))
        frequency = self._shelf.frequencies(scopes, set(query))
        total = frequency.get("", 0)
        if not total:
            where = "" if project is None else " for this project"
            return _Chosen((), (), f"there are no active templates{where}")
        looked_up = rarest(query, frequency)
        postings = {word: self._shelf.postings(scopes, word, ENOUGH) for word in looked_up}
        ranked = rank(query, postings, frequency, total)
        similar = [match for match in ranked if is_similar(match, len(looked_up), len(set(query)))]
        if not similar:
            return _Chosen((), (), "nothing similar enough to the task")
        return self._pick(similar, task)

    def _pick(self, similar: list[Match], task: Task) -> _Chosen:
        homes = self._shelf.templates_of([match.id for match in similar[:_MATCHES]])
        matches: dict[tuple[str, int], list[float]] = {}
        for match in similar[:_MATCHES]:
            if match.id in homes:
                matches.setdefault(homes[match.id], []).append(match.score)
        nearness = {home: sum(found[:3]) / 3 for home, found in matches.items()}
        nearest = sorted(nearness, key=lambda home: (-nearness[home], home))
        scores = {match.id: match.score for match in similar}
        rows: list[FoundRow] = []
        looked_at = 0
        while looked_at < len(nearest) and not any(self._why_not(row, task) is None for row in rows):
            rows += self._shelf.shortlist(nearest[looked_at : looked_at + TEMPLATES])
            looked_at = min(looked_at + TEMPLATES, len(nearest))
        chosen = self._from_rows(rows, task, scores, nearness)
        return structs.replace(chosen, reason=chosen.reason or f"the most fitting of {looked_at} similar templates")

    def _from_templates(self, rows: Iterable[TemplateRow], task: Task, reason: str) -> _Chosen:
        strength = {(row.name, row.version): row.strength for row in rows}
        chosen = self._from_rows(self._shelf.shortlist(list(strength)), task, {}, strength)
        return structs.replace(chosen, reason=reason if chosen.picks else f"{reason}: {chosen.reason}")

    def _from_rows(
        self,
        rows: list[FoundRow],
        task: Task,
        scores: dict[int, float],
        nearness: dict[tuple[str, int], float],
    ) -> _Chosen:
        """The examples to show of some templates', and why the others' are not."""
        omitted: dict[str, str] = {}
        fitting: list[tuple[FoundRow, Example]] = []
        for row in rows:
            name = f"{row.name}@{row.version}"
            wrong = self._why_not(row, task)
            example = self._shelf.decode(row) if wrong is None else None
            if example is None:
                omitted.setdefault(name, wrong or _UNREADABLE)
            else:
                fitting.append((row, example))
        if not fitting:
            left = tuple(Omission(name, why) for name, why in sorted(omitted.items()))
            return _Chosen((), left, "nothing that this session can use")
        fitting.sort(
            key=lambda found: (
                -scores.get(found[0].id, 0.0),
                -nearness.get((found[0].name, found[0].version), 0.0),
                *(found[0].used, found[0].name, found[0].ordinal),
            )
        )
        fitting = self._of_one_agent(fitting, omitted)
        most: dict[tuple[str, int], int] = {}
        for row, example in fitting:
            most[row.name, row.version] = max(most.get((row.name, row.version), 1), example.support)
        options = [
            Option(
                example,
                kind(example.tool, example.arguments),
                scores.get(row.id, 0.0),
                nearness.get((row.name, row.version), 0.0),
                example.support / most[row.name, row.version],
            )
            for row, example in fitting
        ]
        picks = tuple(self._picked(*fitting[place], task) for place in diversify(options, task.examples))
        shown = {f"{pick.template}@{pick.version}" for pick in picks}
        for row, _example in fitting:
            omitted.setdefault(f"{row.name}@{row.version}", "others fit better")
        left = tuple(Omission(name, why) for name, why in sorted(omitted.items()) if name not in shown)
        return _Chosen(picks, left, "")

    def _of_one_agent(
        self, fitting: list[tuple[FoundRow, Example]], omitted: dict[str, str]
    ) -> list[tuple[FoundRow, Example]]:
        """Agents name their tools differently: what is shown together comes from the agent of the best."""
        agents = [template.provenance.agent if (template := self._facts(row)) else None for row, _example in fitting]
        for (row, _example), agent in zip(fitting, agents, strict=True):
            if agent != agents[0]:
                omitted.setdefault(f"{row.name}@{row.version}", f"it is of another agent: {agent}")
        return [found for found, agent in zip(fitting, agents, strict=True) if agent == agents[0]]

    def _picked(self, row: FoundRow, example: Example, task: Task) -> Pick:
        return Pick(template=row.name, version=row.version, example=example, tokens=self._shelf.cost(row, task.dialect))

    def _facts(self, row: FoundRow) -> Template | None:
        """The template of an example; looked at once, for it is asked for often."""
        if row.template not in self._known:
            self._known[row.template] = self._shelf.facts(row.name, row.version, row.template)
        return self._known[row.template]

    def _why_not(self, row: FoundRow, task: Task) -> str | None:
        """The hard filters."""
        template = self._facts(row)
        if template is None:
            return _UNREADABLE
        if task.tools is not None and row.tool not in task.tools:
            return f"the session has no tool {row.tool}"
        if task.category is not None and row.category != task.category:
            return f"its category is {row.category}"
        if task.task_type is not None and row.task_type != task.task_type:
            return f"its type is {row.task_type}"
        if task.agent is not None and task.tools is None:
            agent = template.provenance.agent
            if agent is not None and agent != task.agent:
                return f"it is of another agent: {agent}"
        if task.tags and not set(task.tags) & set(template.tags):
            return "it has none of the tags"
        return None

    def _name(self, session: str) -> str:
        """A session's id as it is kept. Two that hold secrets must not become one."""
        hidden = self._clean(session)
        if hidden == session:
            return session
        return f"{hidden} {hashlib.blake2b(session.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"

    def _clean(self, text: str) -> str:
        """Redaction takes a tenth of a second to load: only for what could hold a secret at all."""
        text = text.encode("utf-8", "replace").decode()  # half a character cannot be stored
        worth_it = could_hide_secret(text)
        if not worth_it and not any(value in text for value in self._secrets.values()):
            return text
        from warmstart.redact import Redactor

        return Redactor(self._secrets).scope().identifier(text)


def _scope(project: str | None) -> str | None:
    return None if project == EVERYWHERE else project


def _content_id(task: Task, made: Composed) -> str:
    said = msgspec.json.encode([task.session, task.dialect, made.messages, made.text])
    return hashlib.blake2b(said, digest_size=10).hexdigest()


def _reason(chosen: str, made: Composed) -> str:
    return f"{chosen}; {made.reason}" if made.reason else chosen
