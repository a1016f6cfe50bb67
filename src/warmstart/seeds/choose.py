"""Task in, examples out: the few of the active templates' that fit it, and why the others do not."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, structs

from warmstart.arms import draw
from warmstart.calls.shapes import kind
from warmstart.model import Example, Omission, Pick, Task, Template, name_job
from warmstart.names import name_key
from warmstart.store import EVERYWHERE, FoundRow, TemplateRow, TemplateStore
from warmstart.templates.search import ENOUGH, TEMPLATES, Match, Option, diversify, is_similar, rank, rarest, words

_CATEGORIES = frozenset(("coding", "research", "ops", "general"))
_BEST = 12  # templates looked at where there are no words to go by
_MATCHES = 200  # best examples whose templates are compared
_FILTERED = 200  # the same where some of them will not do
_SWAY = 0.5  # by how much a measured effect may raise or lower what words say
_UNREADABLE = "its record cannot be read; see: warmstart doctor"


class ChosenExamples(Struct, frozen=True):
    """What was chosen for a task."""

    picks: tuple[Pick, ...]
    omitted: tuple[Omission, ...]
    reason: str


class ExampleChooser:
    """Chooses from a store's templates."""

    def __init__(self, templates: TemplateStore) -> None:
        self._templates = templates
        self._known: dict[str, Template | None] = {}  # by record

    def choose(self, task: Task) -> ChosenExamples:
        """The examples for a task, by its words; by name or category where it is just that."""
        if task.job is not None:
            return self._for_job(task, name_job(task.job))
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
            best = self._templates.best(task.category, task.task_type, _scope(task.project), most)
            if task.own:
                best = [row for row in best if row.project and row.project == task.project]
            return self._from_templates(best, task, f"no task text to go by: the best {what}")
        return self._by_words(query, task)

    def draw(self, task: Task) -> ChosenExamples:
        """Examples drawn blindly, by the session's id: a control that shows whether choosing matters."""
        rows = [row for row in self._templates.shortlist(self._pool(task)) if self._why_not(row, task) is None]
        rows.sort(key=lambda row: draw(f"{task.session}\0{row.name}\0{row.version}\0{row.ordinal}", "examples"))
        found = [(row, example) for row in rows if (example := self._templates.decode(row)) is not None]
        picks = tuple(self._picked(row, example, task) for row, example in found[: task.examples])
        return ChosenExamples(
            picks, (), "drawn at random, to compare with" if picks else "nothing that this session can use"
        )

    def mismatch(self, task: Task) -> ChosenExamples:
        """One template about something else, drawn by the session's id: a control that shows whether fitting matters."""
        looked_up, similar = self._similar(words(task.text[:4_000]), task)
        near = set(self._templates.templates_of([match.id for match in similar]).values()) if looked_up else set()
        pool = [home for home in self._pool(task) if home not in near]
        pool.sort(key=lambda home: draw(f"{task.session}\0{home[0]}\0{home[1]}", "templates"))
        for home in pool:
            chosen = self._from_rows(self._templates.shortlist([home]), task, {}, {})
            if chosen.picks:
                return ChosenExamples(chosen.picks, (), "about something else, to compare with")
        return ChosenExamples((), (), "there is no template about something else")

    def _pool(self, task: Task) -> list[tuple[str, int]]:
        """Templates of which a control may show something."""
        rows = self._templates.best(task.category, task.task_type, _scope(task.project), _FILTERED)
        return [(row.name, row.version) for row in rows]

    def _for_job(self, task: Task, project: str) -> ChosenExamples:
        """What its own good runs showed; before there are any, what any session would get."""
        own = self.choose(structs.replace(task, job=None, project=project, own=True))
        if own.picks:
            return structs.replace(own, reason=f"from earlier runs of this job: {own.reason}")
        return self.choose(structs.replace(task, job=None))

    def _named(self, text: str) -> TemplateRow | None:
        """A template whose name is the whole text."""
        if len(text) > 200 or "\n" in text:
            return None
        return next((row for row in self._templates.versions(name_key(text)) if row.status == "active"), None)

    def _by_words(self, query: list[str], task: Task) -> ChosenExamples:
        known, similar = self._similar(query, task)
        if not known:
            where = "" if _scope(task.project) is None else " for this project"
            return ChosenExamples((), (), f"there are no active templates{where}")
        if not similar:
            return ChosenExamples((), (), "nothing similar enough to the task")
        return self._pick(similar, task)

    def _similar(self, query: list[str], task: Task) -> tuple[int, list[Match]]:
        """How many examples there are, and those that speak of the task, best first."""
        project = _scope(task.project)
        scopes = [EVERYWHERE] if project is None else list(dict.fromkeys((project, project if task.own else "")))
        frequency = self._templates.frequencies(scopes, set(query))
        total = frequency.get("", 0)
        looked_up = rarest(query, frequency)
        postings = {word: self._templates.postings(scopes, word, ENOUGH) for word in looked_up}
        ranked = rank(query, postings, frequency, total) if total else []
        return total, [match for match in ranked if is_similar(match, len(looked_up), len(set(query)))]

    def _pick(self, similar: list[Match], task: Task) -> ChosenExamples:
        homes = self._templates.templates_of([match.id for match in similar[:_MATCHES]])
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
            rows += self._templates.shortlist(nearest[looked_at : looked_at + TEMPLATES])
            looked_at = min(looked_at + TEMPLATES, len(nearest))
        chosen = self._from_rows(rows, task, scores, nearness)
        return structs.replace(chosen, reason=chosen.reason or f"the most fitting of {looked_at} similar templates")

    def from_template(self, row: TemplateRow, task: Task, reason: str) -> ChosenExamples:
        """What one template has for the task."""
        return self._from_templates([row], task, reason)

    def _from_templates(self, rows: Iterable[TemplateRow], task: Task, reason: str) -> ChosenExamples:
        strength = {(row.name, row.version): row.strength for row in rows}
        chosen = self._from_rows(self._templates.shortlist(list(strength)), task, {}, strength)
        return structs.replace(chosen, reason=reason if chosen.picks else f"{reason}: {chosen.reason}")

    def _from_rows(
        self,
        rows: list[FoundRow],
        task: Task,
        scores: dict[int, float],
        nearness: dict[tuple[str, int], float],
    ) -> ChosenExamples:
        """The examples to show of some templates', and why the others' are not."""
        omitted: dict[str, str] = {}
        fitting: list[tuple[FoundRow, Example]] = []
        for row in rows:
            name = f"{row.name}@{row.version}"
            wrong = self._why_not(row, task)
            example = self._templates.decode(row) if wrong is None else None
            if example is None:
                omitted.setdefault(name, wrong or _UNREADABLE)
            else:
                fitting.append((row, example))
        if not fitting:
            left = tuple(Omission(name, why) for name, why in sorted(omitted.items()))
            return ChosenExamples((), left, "nothing that this session can use")
        worth = {(row.name, row.version): self._worth(row) for row, _example in fitting}
        scores = {
            row.id: scores[row.id] * worth[row.name, row.version] for row, _example in fitting if row.id in scores
        }
        nearness = {home: near * worth.get(home, 1.0) for home, near in nearness.items()}
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
        return ChosenExamples(picks, left, "")

    def _worth(self, row: FoundRow) -> float:
        """Measured effect feeds choosing: what lowered errors counts for more, what raised them for less."""
        effect = self._templates.effect(row.effect)
        if effect is None or effect.shrunk is None:
            return 1.0
        return 1.0 - max(-_SWAY, min(_SWAY, effect.shrunk))

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
        return Pick(
            template=row.name, version=row.version, example=example, tokens=self._templates.cost(row, task.dialect)
        )

    def _facts(self, row: FoundRow) -> Template | None:
        """The template of an example; looked at once, for it is asked for often."""
        if row.template not in self._known:
            self._known[row.template] = self._templates.facts(row.name, row.version, row.template)
        return self._known[row.template]

    def _why_not(self, row: FoundRow, task: Task) -> str | None:
        """The hard filters."""
        template = self._facts(row)
        if template is None:
            return _UNREADABLE
        if task.templates is not None and row.name not in task.templates:
            return "it is not among those asked for"
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


def _scope(project: str | None) -> str | None:
    return None if project == EVERYWHERE else project
