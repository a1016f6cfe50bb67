"""Choose the few examples of active templates that fit a task, and say why the others do not."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from msgspec import Struct, structs

from warmstart.arms import draw
from warmstart.calls.commonplace import is_coding, teaches_nothing
from warmstart.calls.shapes import kind, mask_call
from warmstart.dialects.compose import name_form
from warmstart.model import Example, Omission, Pick, Task, Template, name_job
from warmstart.names import name_key
from warmstart.plurals import format_count
from warmstart.scopes import EVERYWHERE, SHARED, Border
from warmstart.store import FoundRow, ProjectStore, TemplateRow, TemplateStore, name_shelf
from warmstart.templates.focus import find_passage, find_similar, split_request
from warmstart.templates.search import (
    ENOUGH,
    TEMPLATES,
    Match,
    Option,
    complement,
    diversify,
    weigh_by_neighbours,
)
from warmstart.templates.secret_stand_ins import lacks_secret

_CATEGORIES = frozenset(("coding", "research", "ops", "general"))
_BEST = 12  # templates considered for a task without words
_MATCHES = 200  # best examples that are read at once, and whose templates are compared
_USUAL = 3  # examples below which those that are usual in the nearest templates follow
_CANDIDATES = 60  # usable examples among which is chosen
_FILTERED = 200  # templates considered for a task without words when filters may reject some
_SWAY = 0.5  # how far a measured effect may raise or lower a score
_UNREADABLE = "its record cannot be read; see: warmstart doctor"
_COMMONPLACE = "its examples are plain reads, edits and searches, which every coding agent makes by itself"
_NOTHING_USABLE = "no example that this session can use"
NOT_REQUESTED = "it is not among the requested templates"


class ChosenExamples(Struct, frozen=True):
    """The examples chosen for a task."""

    picks: tuple[Pick, ...]
    omitted: tuple[Omission, ...]
    reason: str


class ExampleChooser:
    """Chooses examples from a store's templates."""

    def __init__(self, templates: TemplateStore) -> None:
        self._templates = templates
        self._known: dict[str, Template | None] = {}  # by record

    def choose(self, task: Task) -> ChosenExamples:
        """Choose the examples for a task by its words; by template or category if the text is only that name."""
        if task.job is not None:
            return self._choose_for_job(task, name_job(task.job))
        text = task.text.strip()
        if text and (named := self._find_named(text, task)) is not None:
            return self.choose_from([named], task, f"the template {named.name}, requested by name")
        if text.lower() in _CATEGORIES:
            task = structs.replace(task, category=text.lower(), text="")
            text = ""
        if not text:
            is_free = task.tools is None and task.templates is None and not task.tags and task.agent is None
            most = _BEST if is_free else _FILTERED
            best = self._templates.best(task.category, task.task_type, _project(task), task.scope, most)
            if task.own or (task.project and task.project != EVERYWHERE and any(row.project for row in best)):
                best = [row for row in best if row.project and row.project == task.project]
            return self._choose_strongest(best, task)
        return self._choose_by_words(task)

    def _choose_strongest(self, best: list[TemplateRow], task: Task) -> ChosenExamples:
        """Choose from the strongest templates, for a task without words."""
        kinds = f" of the category {task.category}" if task.category else ""
        if not best:
            kinds += f" of the type {task.task_type}" if task.task_type else ""
            return ChosenExamples((), (), f"there are no active templates{kinds}{_name_place(task)}")
        unknown = "the task is not known yet"
        chosen = self.choose_from(best, task, f"{unknown}, so the strongest templates{kinds} were used")
        if chosen.picks:
            return chosen
        return structs.replace(chosen, reason=f"{unknown}, and the strongest templates{kinds} have {_NOTHING_USABLE}")

    def draw(self, task: Task) -> ChosenExamples:
        """Draw examples at random, by the session's id: a control that shows whether choosing matters."""
        pool = self._templates.shortlist(self._list_pool(task))
        rows = [row for row in pool if may_show(row, task) and self._explain_misfit(row, task) is None]
        rows.sort(key=lambda row: draw(f"{task.session}\0{row.name}\0{row.version}\0{row.ordinal}", "examples"))
        readable = [(row, example) for row in rows if (example := self._templates.decode(row)) is not None]
        usable = [(row, example) for row, example in readable if _explain_calls(example, task) is None]
        different = {_name_calls(example): (row, example) for row, example in reversed(usable)}
        chosen = [*reversed(different.values())][: task.examples]
        picks = tuple(self._make_pick(row, example, task) for row, example in chosen)
        return ChosenExamples(picks, (), "drawn at random, as a control" if picks else _NOTHING_USABLE)

    def mismatch(self, task: Task) -> ChosenExamples:
        """Draw a template about something else, by the session's id: a control that shows whether fitting matters."""
        total, similar = self._find_similar(task)
        near = set(self._templates.templates_of([match.id for match in similar]).values()) if total else set()
        pool = [home for home in self._list_pool(task) if home not in near]
        pool.sort(key=lambda home: draw(f"{task.session}\0{home[0]}\0{home[1]}", "templates"))
        for home in pool:
            chosen = self._choose_among(self._templates.shortlist([home]), task, {}, {})
            if chosen.picks:
                return ChosenExamples(chosen.picks, (), "about something else, as a control")
        return ChosenExamples((), (), "there is no template about something else")

    def _list_pool(self, task: Task) -> list[tuple[str, int]]:
        """Return the templates from which a control may draw."""
        rows = self._templates.best(task.category, task.task_type, _project(task), task.scope, _FILTERED)
        return [(row.name, row.version) for row in rows]

    def _choose_for_job(self, task: Task, project: str) -> ChosenExamples:
        """Choose from the job's own good runs; while there are none, choose as for any session."""
        own = self.choose(structs.replace(task, job=None, project=project, own=True))
        if own.picks:
            return structs.replace(own, reason=f"from earlier runs of this job: {own.reason}")
        others = self.choose(structs.replace(task, job=None))
        is_known = ProjectStore(self._templates.store).is_known(project)
        lack = (
            "no earlier run of this job has a fitting example" if is_known else "no run of a job with this id is stored"
        )
        return structs.replace(others, reason=f"{lack}; {others.reason}")

    def _find_named(self, text: str, task: Task) -> TemplateRow | None:
        """Return the active template whose name is the whole text."""
        if len(text) > 200 or "\n" in text:
            return None
        rows = self._templates.versions(name_key(text))
        return next((row for row in rows if row.status == "active" and may_show(row, task)), None)

    def _choose_by_words(self, task: Task) -> ChosenExamples:
        total, similar = self._find_similar(task)
        if not total:
            return ChosenExamples((), (), f"there are no active templates{_name_place(task)}")
        if not similar:
            return ChosenExamples((), (), "no example is similar enough to the task")
        return self._choose_nearest(similar, task)

    def _find_similar(self, task: Task) -> tuple[int, list[Match]]:
        """Return the number of all examples, and the examples similar to the task, best first."""
        shelves = _list_shelves(task)
        sentences = split_request(task.text)
        frequency = self._templates.frequencies(shelves, {word for sentence in sentences for word in sentence.words})
        look_up = lru_cache(None)(lambda word: self._templates.postings(shelves, word, ENOUGH))
        passage = find_passage(sentences, frequency, look_up)
        return frequency.get("", 0), find_similar(passage, frequency, look_up) if passage.words else []

    def _choose_nearest(self, similar: list[Match], task: Task) -> ChosenExamples:
        """Choose the exchanges nearest to the request and those that complement them; then what is usual in such work."""
        scores = {match.id: match.score for match in similar}
        nearest = self._choose_among_found(similar, task, scores)
        room = min(task.examples, _USUAL)
        if len(nearest.picks) >= room:
            return nearest
        usual = self._choose_usual(similar, structs.replace(task, examples=room), scores)
        if not nearest.picks:
            return usual
        agent = self._agent_of(nearest.picks[0])
        shown = {_name_calls(pick.example) for pick in nearest.picks}
        more = [
            pick for pick in usual.picks if _name_calls(pick.example) not in shown and self._agent_of(pick) == agent
        ]
        picks = (*nearest.picks, *more)[:room]
        named = {f"{pick.template}@{pick.version}" for pick in picks}
        reasons = {omission.template: omission for omission in (*nearest.omitted, *usual.omitted)}
        omitted = tuple(omission for name, omission in sorted(reasons.items()) if name not in named)
        filled = len(picks) - len(nearest.picks)
        reason = f"{nearest.reason}, and {filled} usual in such work" if filled else nearest.reason
        return ChosenExamples(picks, omitted, reason)

    def _choose_among_found(self, similar: list[Match], task: Task, scores: dict[int, float]) -> ChosenExamples:
        """Choose by the examples' own words, reading more of them until enough can be used."""
        fitting: list[tuple[FoundRow, Example]] = []
        omitted: dict[str, str] = {}
        looked_at = 0
        while looked_at < len(similar) and len(fitting) < _CANDIDATES:
            ids = [match.id for match in similar[looked_at : looked_at + _MATCHES]]
            fitting += self._keep_fitting(self._templates.found(ids), task, omitted)
            looked_at += _MATCHES
        worth = {id(row): scores[row.id] * self._weigh_effect(row) for row, _example in fitting}
        fitting.sort(key=lambda pair: (-worth[id(pair[0])], pair[0].used, pair[0].name, pair[0].ordinal))
        fitting = self._keep_one_agent(fitting, omitted)
        options = weigh_by_neighbours(
            Option(
                example,
                kinds=tuple(kind(call.tool, call.arguments) for call in example.shown),
                match=worth[id(row)],
                usual=float(example.support),
                call=_name_calls(example),
            )
            for row, example in fitting
        )
        picks = tuple(
            structs.replace(self._make_pick(*fitting[place], task), match=round(options[place].match, 3))
            for place in complement(options, task.examples)
        )
        shown = {f"{pick.template}@{pick.version}" for pick in picks}
        for row, _example in fitting:
            omitted.setdefault(f"{row.name}@{row.version}", "others fit better")
        left = tuple(Omission(name, why) for name, why in sorted(omitted.items()) if name not in shown)
        return ChosenExamples(picks, left, f"the nearest of {format_count(len(fitting), 'similar earlier request')}")

    def _choose_usual(self, similar: list[Match], task: Task, scores: dict[int, float]) -> ChosenExamples:
        """Choose from the templates with the most similar examples, widening until one of them can be used."""
        homes = self._templates.templates_of([match.id for match in similar[:_MATCHES]])
        matches: dict[tuple[str, int], list[float]] = {}
        for match in similar[:_MATCHES]:
            if match.id in homes:
                matches.setdefault(homes[match.id], []).append(match.score)
        nearness = {home: sum(best[:3]) / 3 for home, best in matches.items()}
        nearest = sorted(nearness, key=lambda home: (-nearness[home], home))
        rows: list[FoundRow] = []
        looked_at = 0
        while looked_at < len(nearest) and not any(self._explain_misfit(row, task) is None for row in rows):
            rows += self._templates.shortlist(nearest[looked_at : looked_at + TEMPLATES])
            looked_at = min(looked_at + TEMPLATES, len(nearest))
        chosen = self._choose_among(rows, task, scores, nearness)
        return structs.replace(chosen, reason=chosen.reason or f"the most fitting of {looked_at} similar templates")

    def _agent_of(self, pick: Pick) -> str | None:
        """Return the agent whose tools an example names."""
        row = self._templates.version(pick.template, pick.version)
        template = self._templates.facts(row.name, row.version, row.body)
        return template.provenance.agent if template else None

    def choose_from(self, rows: Iterable[TemplateRow], task: Task, reason: str) -> ChosenExamples:
        """Choose from some templates, the strongest first."""
        strength = {(row.name, row.version): row.strength for row in rows}
        chosen = self._choose_among(self._templates.shortlist(list(strength)), task, {}, strength)
        return structs.replace(chosen, reason=reason if chosen.picks else f"{reason}: {chosen.reason}")

    def _choose_among(
        self,
        rows: list[FoundRow],
        task: Task,
        scores: dict[int, float],
        nearness: dict[tuple[str, int], float],
    ) -> ChosenExamples:
        """Choose which of these examples to show, and say why the other templates are left out."""
        omitted: dict[str, str] = {}
        fitting = self._keep_fitting(rows, task, omitted)
        if not fitting:
            left = tuple(Omission(name, why) for name, why in sorted(omitted.items()))
            return ChosenExamples((), left, _NOTHING_USABLE)
        worth = {(row.name, row.version): self._weigh_effect(row) for row, _example in fitting}
        scores = {
            row.id: scores[row.id] * worth[row.name, row.version] for row, _example in fitting if row.id in scores
        }
        nearness = {home: near * worth.get(home, 1.0) for home, near in nearness.items()}
        fitting.sort(
            key=lambda pair: (
                -scores.get(pair[0].id, 0.0),
                -nearness.get((pair[0].name, pair[0].version), 0.0),
                *(pair[0].used, pair[0].name, pair[0].ordinal),
            )
        )
        fitting = self._keep_one_agent(fitting, omitted)
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
                _name_calls(example),
            )
            for row, example in fitting
        ]
        picks = tuple(self._make_pick(*fitting[place], task) for place in diversify(options, task.examples))
        shown = {f"{pick.template}@{pick.version}" for pick in picks}
        for row, _example in fitting:
            omitted.setdefault(f"{row.name}@{row.version}", "others fit better")
        left = tuple(Omission(name, why) for name, why in sorted(omitted.items()) if name not in shown)
        return ChosenExamples(picks, left, "")

    def _keep_fitting(
        self, rows: Iterable[FoundRow], task: Task, omitted: dict[str, str]
    ) -> list[tuple[FoundRow, Example]]:
        """Return the examples that the session may see and can use; adds why the others' templates are left out."""
        fitting: list[tuple[FoundRow, Example]] = []
        for row in rows:
            if not may_show(row, task):
                continue  # not even its name
            misfit = self._explain_misfit(row, task)
            example = self._templates.decode(row) if misfit is None else None
            if example is None:
                omitted.setdefault(f"{row.name}@{row.version}", misfit or _UNREADABLE)
            elif misfit := _explain_calls(example, task):
                omitted.setdefault(f"{row.name}@{row.version}", misfit)
            else:
                fitting.append((row, example))
        return fitting

    def _weigh_effect(self, row: FoundRow) -> float:
        """Return the factor of a template's measured effect: above 1 if it lowered errors, below 1 if it raised them."""
        effect = self._templates.effect(row.effect)
        if effect is None or effect.shrunk is None:
            return 1.0
        return 1.0 - max(-_SWAY, min(_SWAY, effect.shrunk))

    def _keep_one_agent(
        self, fitting: list[tuple[FoundRow, Example]], omitted: dict[str, str]
    ) -> list[tuple[FoundRow, Example]]:
        """Keep only examples of the best one's agent: agents name their tools differently."""
        agents = [template.provenance.agent if (template := self._facts(row)) else None for row, _example in fitting]
        for (row, _example), agent in zip(fitting, agents, strict=True):
            if agent != agents[0]:
                omitted.setdefault(f"{row.name}@{row.version}", f"it is of another agent: {agent}")
        return [pair for pair, agent in zip(fitting, agents, strict=True) if agent == agents[0]]

    def _make_pick(self, row: FoundRow, example: Example, task: Task) -> Pick:
        return Pick(
            template=row.name,
            version=row.version,
            example=example,
            tokens=self._templates.cost(row, name_form(task.dialect)),
        )

    def _facts(self, row: FoundRow) -> Template | None:
        """Return the template of an example, decoded once per record."""
        if row.template not in self._known:
            self._known[row.template] = self._templates.facts(row.name, row.version, row.template)
        return self._known[row.template]

    def _explain_misfit(self, row: FoundRow, task: Task) -> str | None:
        """Return why a hard filter rejects an example, or None."""
        template = self._facts(row)
        if template is None:
            return _UNREADABLE
        if task.templates is not None and row.name not in task.templates:
            return NOT_REQUESTED
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
            return "it has none of the requested tags"
        return _COMMONPLACE if self._is_commonplace(row, template) else None

    def _is_commonplace(self, row: FoundRow, template: Template) -> bool:
        """Return whether a learned example shows what every coding agent does by itself.

        What somebody captured or imported is shown: it was chosen.
        """
        facts = template.provenance
        if facts.origin != "learned" or not is_coding(facts.agent, row.category):
            return False
        example = self._templates.decode(row)
        if example is None or example.correction:
            return False
        return teaches_nothing(facts.agent, row.category, example.tool, example.arguments)


def _name_calls(example: Example) -> tuple[tuple[str, str], ...]:
    """Return what is the same for examples whose calls differ only in ids, numbers and names of files."""
    return tuple(mask_call(call.tool, call.arguments) for call in example.shown)


def _explain_calls(example: Example, task: Task) -> str | None:
    """Return why the session cannot make the calls of an example, or None."""
    missing = next(
        (call.tool for call in example.calls if task.tools is not None and call.tool not in task.tools), None
    )
    if missing:
        return f"the session has no tool {missing}"
    return "it uses a secret of its request, and this request names none" if lacks_secret(example, task.text) else None


def may_show(row: FoundRow | TemplateRow, task: Task) -> bool:
    """Return whether a template is of the task's scope and project, of no project, or shared by a person."""
    return Border(task.scope, task.project).admits(row.scope, row.project)


def _project(task: Task) -> str | None:
    """Return the project whose templates may be shown besides those of no project; None for all projects."""
    return None if task.project == EVERYWHERE else task.project or ""


def _name_place(task: Task) -> str:
    """Return where templates were looked for, to be added to a sentence; empty: in all projects."""
    if _project(task) is None:
        return ""
    return " for this project" if task.project or task.own else " of no project"


def _list_shelves(task: Task) -> list[str]:
    """Return the parts of the word index that a task may look at."""
    project = _project(task)
    if project is None:
        return [name_shelf(task.scope, EVERYWHERE), name_shelf(SHARED, EVERYWHERE)]
    if task.own:
        return [name_shelf(task.scope, project), name_shelf(SHARED, project)]
    own = dict.fromkeys((name_shelf(task.scope, project), name_shelf(task.scope, "")))
    return [*own, name_shelf(SHARED, EVERYWHERE)]
