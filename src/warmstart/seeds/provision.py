"""Provision a session: assign its arm, choose and compose its seed once, record both, and repeat the seed byte for byte."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct, structs

from warmstart.arms import (
    ADVICE,
    BRIEF,
    COLD,
    HOLDOUT,
    MISMATCHED,
    RANDOM,
    TEXT,
    WARM,
    WORDS,
    assign,
    gets_brief,
    holdout_shares,
    read_shares,
)
from warmstart.config import Settings
from warmstart.dialects.compose import Composed, Seed, add_brief, compose, wrap_text
from warmstart.dialects.providers import call_id
from warmstart.dialects.tokens import estimate
from warmstart.digests import blake2b
from warmstart.errors import Refused
from warmstart.model import Assignment, Brief, Omission, Pick, Task, name_job
from warmstart.names import name_key
from warmstart.plurals import format_count
from warmstart.ports import BriefWriter
from warmstart.projects.examples import make_local
from warmstart.projects.resolve import resolve_project
from warmstart.redact.identifiers import IdentifierRedactor
from warmstart.scopes import EVERYWHERE
from warmstart.seeds.choose import NOT_REQUESTED, ChosenExamples, ExampleChooser, may_show
from warmstart.store import (
    ExperimentRow,
    ProjectStore,
    Store,
    TemplateRow,
    TemplateStore,
    TrialRow,
    TrialStore,
)
from warmstart.store.notes import NoteStore, Showing
from warmstart.store.trials import read_scope

_AROUND = 60  # tokens that the messages around a brief take
_LEAST = 40  # tokens below which a brief is not worth its heading
_NONE_WANTED = "no examples were asked for"
_seed = msgspec.json.Decoder(Seed)


class _Ticket(Struct, frozen=True):
    """A session's arm, and how it was assigned."""

    arm: str
    assignment: Assignment
    shares: dict[str, float]  # the probability of each arm
    experiment: str = HOLDOUT
    root: str | None = None  # the session whose arm it inherits


class Provisioner:
    """Provisions sessions from a store."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        clock: Callable[[], float],
        write_brief: BriefWriter | None = None,
    ) -> None:
        """`write_brief`: writes what a task's project knows; without it seeds hold examples only."""
        self._store = store
        self._write_brief = write_brief
        self._templates = TemplateStore(store)
        self._trials = TrialStore(store)
        self._settings = settings
        self._identifiers = IdentifierRedactor(settings.secrets)
        self._clock = clock
        self._chooser = ExampleChooser(self._templates)

    def provision(self, task: Task) -> Seed:
        """Return the seed for a task. With a session it is chosen once; without one it is a preview that writes nothing."""
        task = self._find_project(task)
        if task.session is None:
            chosen = self._choose_requested(task, self._chooser.choose)
            return self._compose(task, chosen, COLD if task.cold else None)[0]
        if not task.session.strip():
            raise Refused("the session's id is empty; give an id, or no session at all for a preview")
        task = structs.replace(
            task,
            session=self._identifiers.identify(task.session),
            parent=self._identifiers.identify(task.parent) if task.parent else None,
        )
        self._check_scope(task)
        known = self._known_seed(task)
        if known is not None:
            return known
        fresh = None
        if self._trial(task) is None:
            ticket = self._assign(task)
            fresh = ticket, self._choose_for(task, ticket)
        with self._store.writing():
            return self._settle(task, fresh)

    def withdraw(self, session: str, why: str, *, shown: bool) -> bool:
        """Empty the seeds of a session and of its parts for good; return whether there was one. The arm stays.

        `shown`: the session has run with them, so that it still counts as treated. Otherwise it was never seeded.
        """
        session = self._identifiers.identify(session)
        with self._store.writing():
            seeds = self._trials.seeds(session)
            for part, dialect, body in seeds:
                if not (seed := _seed.decode(body)).withdrawn:
                    self._trials.set_seed(part, dialect, msgspec.json.encode(_empty(seed, why, shown=shown)).decode())
        return bool(seeds)

    def find_withdrawn(self, session: str) -> Seed | None:
        """Return a withdrawn seed of a session, in whichever dialect; None if it has none."""
        session = self._identifiers.identify(session)
        seeds = (_seed.decode(body) for part, _dialect, body in self._trials.seeds(session) if part == session)
        return next((seed for seed in seeds if seed.withdrawn), None)

    def _check_scope(self, task: Task) -> None:
        """Refuse to repeat the seed of another person's session."""
        trial = self._trial(task)
        if trial is not None and read_scope(trial) != task.scope:
            raise Refused(f"session {task.session} belongs to another profile or person")

    def _find_project(self, task: Task) -> Task:
        """Return the task with its working folder's project: a fresh clone of a known repository is that repository."""
        if not task.project or task.project == EVERYWHERE:
            return task
        project = resolve_project(ProjectStore(self._store), task.project)
        return structs.replace(task, project=project.name, root=task.root or project.root)

    def _known_seed(self, task: Task) -> Seed | None:
        """Return the seed that the session was given before, unless it is now to be cold."""
        assert task.session is not None
        known = self._trials.seed(task.session, task.dialect)
        if known is None or (task.cold and self._must_become_cold(task)):
            return None
        try:
            return _seed.decode(known)
        except msgspec.DecodeError as error:
            raise Refused(
                f"the recorded seed of session {task.session} cannot be read; see: warmstart doctor"
            ) from error

    def _trial(self, task: Task) -> TrialRow | None:
        return self._trials.trial(task.session or "")

    def _is_cold_by_choice(self, task: Task) -> bool:
        trial = self._trial(task)
        return trial is not None and (trial.chosen == COLD or (trial.arm, trial.assignment) == (COLD, "choice"))

    def _must_become_cold(self, task: Task) -> bool:
        """Return whether the session is not cold by choice yet. Refuse the choice once the outcome is known."""
        trial = self._trial(task)
        if trial is None or self._is_cold_by_choice(task) or (trial.closed is not None and trial.given == COLD):
            return False
        if trial.closed is not None:
            raise Refused(
                f"session {trial.session} has been measured in the arm {trial.given}, so its arm can no longer be chosen; "
                "start a new session with --cold"
            )
        return True

    def _settle(self, task: Task, fresh: tuple[_Ticket, ChosenExamples] | None) -> Seed:
        """Record and return the seed inside a transaction: of concurrent callers the first decides for all."""
        assert task.session is not None
        if task.cold and self._must_become_cold(task):
            self._trials.choose_arm(task.session, COLD, self._clock())
        known = self._known_seed(task)
        if known is not None:
            return known
        trial = self._trial(task)
        if trial is not None:
            picks = self._trials.picks(trial)
            if picks is None:
                raise Refused(f"the recorded seed of session {task.session} cannot be read; see: warmstart doctor")
            chosen = ChosenExamples(tuple(picks), (), "as chosen when the session began")
            seed, _used = self._compose(task, chosen, trial.given)
            before = self.find_withdrawn(task.session)
            if seed and before is not None:
                seed = _empty(seed, before.withdrawn, shown=before.tokens > 0)
        else:
            assert fresh is not None
            ticket, chosen = fresh
            seed, used = self._compose(task, chosen, ticket.arm)
            before = self.find_withdrawn(task.parent) if task.continues and task.parent else None
            if seed and before is not None:
                seed = _empty(seed, before.withdrawn, shown=False)
            self._write_trial(task, ticket, used)
            NoteStore(self._store).put_showings(
                [Showing(note, task.session, "brief", self._clock()) for note in seed.notes]
            )
        self._trials.put_seed(task.session, task.dialect, msgspec.json.encode(seed).decode())
        return seed

    def _write_trial(self, task: Task, ticket: _Ticket, picks: Sequence[Pick]) -> None:
        assert task.session is not None
        project = name_job(task.job) if task.job else task.project
        facts = {"agent": task.agent, "model": task.model, "project": project, "scope": task.scope}
        facts["category"] = task.category
        known = {name: self._identifiers.clean(value) for name, value in facts.items() if value}
        row = TrialRow(
            session=task.session,
            arm=ticket.arm,
            picks=msgspec.json.encode([structs.replace(pick, tokens=None) for pick in picks]).decode(),
            task=msgspec.json.encode(known | {"task": task_digest(task.text)}).decode(),
            at=self._clock(),
            experiment=ticket.experiment,
            assignment=ticket.assignment,
            propensities=msgspec.json.encode(ticket.shares).decode(),
            parent=ticket.root,
        )
        shown = () if ticket.arm == COLD else sorted({(pick.template, pick.version) for pick in picks})
        self._trials.put_trial(row, shown)

    # Assigning

    def _assign(self, task: Task) -> _Ticket:
        """Assign an arm: by choice, by the caller of a paired experiment, from the parent, or drawn by the session's id."""
        assert task.session is not None
        running = self._trials.running()
        if running is not None and running.design == "occurrence":  # it draws notes at calls, not sessions
            running = None
        name = running.name if running else HOLDOUT
        if task.cold:
            return _Ticket(COLD, "choice", {}, name)
        if task.arm is not None or (running is not None and running.design == "paired"):
            return self._take_arm(task, running)
        shares = read_shares(running.shares) if running else holdout_shares(self._settings.holdout)
        salt = (running.salt,) if running else ()
        if task.parent is None:
            return _Ticket(assign(task.session, shares, *salt), "random", shares, name)
        trial = self._trials.trial(task.parent)
        if trial is None:  # the parent was never provisioned; all its children still get the same arm
            return _Ticket(assign(task.parent, shares, *salt), "inherited", shares, name, task.parent)
        root = trial.parent or trial.session
        return _Ticket(trial.given, "inherited", read_shares(trial.propensities), trial.experiment, root)

    def _take_arm(self, task: Task, running: ExperimentRow | None) -> _Ticket:
        """Return the arm that the caller names: a paired experiment does every task in every arm."""
        if running is None or running.design != "paired":
            raise Refused(f"the arm {task.arm} can be chosen only while a paired experiment runs; leave it out")
        shares = read_shares(running.shares)
        if task.arm not in shares:
            raise Refused(f"{running.name} is a paired experiment: say which arm to use, one of {', '.join(shares)}")
        return _Ticket(task.arm, "paired", shares, running.name)

    def _choose_for(self, task: Task, ticket: _Ticket) -> ChosenExamples:
        """Choose what the arm shows. A cold session's examples are chosen too and held back, to compare like with like."""
        before = self._find_given(task.parent, task.scope) if task.continues or task.adds else ()
        if task.continues and before:
            return ChosenExamples(before, (), "the same as in the session that it continues")
        chosen = self._choose_requested(task, lambda wish: self._choose_in_arm(wish, ticket))
        if not task.adds:
            return chosen
        shown = {call_id(pick.example) for pick in before}
        return structs.replace(chosen, picks=tuple(p for p in chosen.picks if call_id(p.example) not in shown))

    def _choose_requested(self, task: Task, choose: Callable[[Task], ChosenExamples]) -> ChosenExamples:
        """Choose for a task whose requested templates are checked, and add why some of them cannot be used."""
        omitted: tuple[Omission, ...] = ()
        if task.templates:
            from warmstart.seeds.requested import find_requested  # few tasks ask for templates, and agents wait

            requested = find_requested(self._templates, task)
            task, omitted = structs.replace(task, templates=requested.usable), requested.omitted
        if task.examples < 1:
            return ChosenExamples((), (), _NONE_WANTED)
        if omitted and not task.templates:
            return ChosenExamples((), omitted, "no requested template can be used")
        chosen = choose(task)
        return structs.replace(chosen, omitted=(*omitted, *chosen.omitted))

    def _find_given(self, session: str | None, scope: str) -> tuple[Pick, ...]:
        trial = self._trials.trial(session) if session else None
        return tuple(self._trials.picks(trial) or ()) if trial and read_scope(trial) == scope else ()

    def _choose_in_arm(self, task: Task, ticket: _Ticket) -> ChosenExamples:
        arm = ticket.arm
        if arm == COLD and ticket.shares and not WORDS & (ticket.shares.keys() - {COLD}):
            arm = next((name for name in ticket.shares if name != COLD), arm)
        if arm == RANDOM:
            return self._chooser.draw(task)
        if arm == MISMATCHED:
            return self._chooser.mismatch(task)
        if arm in WORDS:
            return self._chooser.choose(task)
        row = next((row for row in self._templates.versions(name_key(arm)) if row.status != "retired"), None)
        if row is None:
            return ChosenExamples((), (), f"the template {arm} no longer exists")
        return self._chooser.choose_from(
            [row], task, f"the template {arm}, an arm of the experiment {ticket.experiment}"
        )

    # Composing

    def _compose(self, task: Task, chosen: ChosenExamples, arm: str | None) -> tuple[Seed, tuple[Pick, ...]]:
        """Return the seed and the examples it shows. A cold seed is empty; its examples are those it would have shown."""
        roots = ProjectStore(self._store).roots(task.project) if task.project and task.root else []
        local = [make_local(pick, task.root, roots) for pick in chosen.picks]
        brief = self._brief(task, WARM if arm == COLD else arm)  # a cold session holds back the same examples
        nothing = compose((), dialect=task.dialect, budget=task.budget, count=estimate)
        said = add_brief(nothing, brief.text, task.dialect, estimate).tokens if brief.text else 0
        composed = compose(
            local,
            dialect="text" if arm == TEXT else task.dialect,
            budget=max(0, task.budget - said),
            count=estimate,
            model=task.model,
            thinking=task.thinking,
            addenda=self._find_addenda(chosen.picks),
        )
        if arm == TEXT:
            composed = wrap_text(composed, task.dialect, estimate)
        relative = {id(shown): pick for shown, pick in zip(local, chosen.picks, strict=True)}
        used = tuple(relative[id(shown)] for shown in composed.used)
        reason = f"{chosen.reason}; {composed.reason}" if chosen.picks else self._explain_nothing(task, chosen)
        omitted = (*chosen.omitted, *composed.omitted)
        if arm in (BRIEF, ADVICE):
            composed = nothing
            omitted, reason = (), "the brief alone, as the arm requires"
        if brief.text:
            composed = add_brief(composed, brief.text, task.dialect, estimate)
            about = f"{format_count(len(brief.notes), 'note')} about the project" if brief.notes else ""
            places = f"{format_count(len(brief.files), 'file')} of similar requests" if brief.files else ""
            reason = "; ".join(part for part in (about, places, reason) if part)
        if arm == COLD:
            composed = nothing
            held_back = f"{len(used)} examples were held back" if used else "no example would have been shown"
            by_choice = task.cold or self._is_cold_by_choice(task)
            reason = "cold by choice" if by_choice else f"cold, to compare with: {held_back}"
            omitted = ()
            brief = Brief()
        seed = Seed(
            id=_digest_seed(task, composed),
            arm=arm if task.session is not None else None,
            dialect=task.dialect,
            messages=composed.messages,
            text=composed.text,
            tokens=composed.tokens,
            budget=task.budget,
            templates=tuple(dict.fromkeys(f"{pick.template}@{pick.version}" for pick in composed.used)),
            omitted=omitted,
            reason=reason,
            notes=brief.notes,
        )
        return seed, used

    def _brief(self, task: Task, arm: str | None) -> Brief:
        """Return the project's brief; nothing in control arms. An addition to a seed gets only files that its task leads to."""
        if self._write_brief is None or not gets_brief(arm) or task.cold or task.job or task.brief == 0:
            return Brief()
        budget = self._settings.brief if task.brief is None else task.brief
        room = task.budget - _AROUND if task.dialect != "text" else task.budget
        if room < _LEAST:
            return Brief()
        return self._write_brief(structs.replace(task, brief=min(budget, room)))

    def _explain_nothing(self, task: Task, chosen: ChosenExamples) -> str:
        """Return why nothing is shown: the main objection to the examples, and whether templates wait for a person."""
        if chosen.reason == _NONE_WANTED:
            return chosen.reason
        reason = _explain_choice(chosen)
        waiting = len({row.name for row in self._templates.find("proposed") if may_show(row, task)})
        if not waiting:
            return reason if self._templates.totals() else f"{reason}; {self._name_first_step()}"
        wait = format_count(waiting, "template waits", "templates wait")
        return f"{reason}; {wait} for approval, see: warmstart templates list --status proposed"

    def _name_first_step(self) -> str:
        """Return what to do while there are no templates."""
        if self._store.list_sessions(1):
            return "to learn some, run: warmstart learn"
        return "no session is stored yet; run: warmstart ingest, then: warmstart learn"

    def _find_addenda(self, picks: Sequence[Pick]) -> list[tuple[str, str]]:
        addenda: dict[str, str] = {}
        for name, version in dict.fromkeys((pick.template, pick.version) for pick in picks):
            for columns in self._store.rows("template", (name, version)):
                template = self._templates.facts(name, version, TemplateRow.from_columns(columns).body)
                if template and template.addendum:
                    addenda[f"{name}@{version}"] = template.addendum
        return list(addenda.items())


def check_texts(task: Task) -> None:
    """Raise TypeError for a task whose text, session or project is no text. Msgspec does not check what Python gives it."""
    if not isinstance(task.text, str):
        raise TypeError(f"Task.text must be a str, not {type(task.text).__name__}; without a request, leave it out")
    for name in ("session", "project"):
        if not isinstance(value := getattr(task, name), str | None):
            raise TypeError(f"Task.{name} must be a str or None, not {type(value).__name__}")


def _explain_choice(chosen: ChosenExamples) -> str:
    """Return why nothing was chosen, with the main objection to the templates that were asked for."""
    objections = Counter(omission.reason for omission in chosen.omitted)
    if objections and set(objections) == {NOT_REQUESTED}:
        return "no example of the requested templates fits the task"
    del objections[NOT_REQUESTED]
    return f"{chosen.reason}: {objections.most_common(1)[0][0]}" if objections else chosen.reason


def decline(task: Task, why: str) -> Seed:
    """Return the empty seed of a session that is not recorded. It is cold: nothing about it may be shown or counted."""
    nothing = compose((), dialect=task.dialect, budget=task.budget, count=estimate)
    return Seed(
        id=_digest_seed(task, nothing), arm=COLD, dialect=task.dialect, budget=task.budget, reason=f"not seeded: {why}"
    )


def _empty(seed: Seed, why: str, *, shown: bool) -> Seed:
    """Return a seed without content. What a session has been shown still counts for it."""
    nothing = {} if shown else {"tokens": 0, "templates": (), "notes": ()}
    said = f"no longer shown: {why}" if shown else f"not seeded: {why}"
    return structs.replace(seed, messages=(), text=None, reason=said, withdrawn=why, **nothing)


def _digest_seed(task: Task, composed: Composed) -> str:
    content = msgspec.json.encode([task.session, task.dialect, composed.messages, composed.text])
    return blake2b(content, digest_size=10).hexdigest()


def task_digest(text: str) -> str:
    """Return a digest that identifies a request without keeping its text."""
    words = " ".join(text.lower().split())
    return blake2b(words.encode("utf-8", "replace"), digest_size=8).hexdigest() if words else ""
