"""New task in, seed out: assigned and chosen once a session, written down, and repeated byte for byte ever after."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct, structs

from warmstart.arms import COLD, HOLDOUT, MISMATCHED, RANDOM, TEXT, WORDS, assign, holdout_shares, read_shares
from warmstart.config import Settings
from warmstart.dialects.compose import Composed, Seed, compose, tell
from warmstart.dialects.providers import call_id
from warmstart.dialects.tokens import estimate
from warmstart.errors import Refused
from warmstart.model import Assignment, Pick, Task, name_job
from warmstart.names import name_key
from warmstart.redact.identifiers import IdentifierRedactor
from warmstart.seeds.choose import ChosenExamples, ExampleChooser
from warmstart.store import ExperimentRow, SqliteStore, TemplateRow, TemplateStore, TrialRow, TrialStore

_seed = msgspec.json.Decoder(Seed)


class _Ticket(Struct, frozen=True):
    """A session's arm, and how it came by it."""

    arm: str
    assignment: Assignment
    shares: dict[str, float]  # how probable each arm was
    experiment: str = HOLDOUT
    root: str | None = None  # session whose arm it keeps


class Provisioner:
    """Assigns, chooses and composes from a store."""

    def __init__(self, store: SqliteStore, settings: Settings, clock: Callable[[], float]) -> None:
        self._store = store
        self._templates = TemplateStore(store)
        self._trials = TrialStore(store)
        self._settings = settings
        self._identifiers = IdentifierRedactor(settings.secrets)
        self._clock = clock
        self._chooser = ExampleChooser(self._templates)

    def provision(self, task: Task) -> Seed:
        """The seed for a task. With a session it is chosen once; without one it is a preview and nothing is written."""
        if task.session is None:
            return self._compose(task, self._chooser.choose(task), COLD if task.cold else None)[0]
        if not task.session.strip():
            raise Refused("the session's id is empty; give one, or none at all for a preview")
        task = structs.replace(
            task,
            session=self._identifiers.identify(task.session),
            parent=self._identifiers.identify(task.parent) if task.parent else None,
        )
        known = self._known_seed(task)
        if known is not None:
            return known
        fresh = None
        if self._trial(task) is None:
            ticket = self._assign(task)
            fresh = ticket, self._choose_for(task, ticket)
        with self._store.writing():
            return self._settle(task, fresh)

    def _known_seed(self, task: Task) -> Seed | None:
        """What the session was given before, unless a person now wants it cold."""
        assert task.session is not None
        known = self._trials.seed(task.session, task.dialect)
        if known is None or (task.cold and not self._is_cold_by_choice(task)):
            return None
        try:
            return _seed.decode(known)
        except msgspec.DecodeError as error:
            raise Refused(f"what session {task.session} was given cannot be read; see: warmstart doctor") from error

    def _trial(self, task: Task) -> TrialRow | None:
        return self._trials.trial(task.session or "")

    def _is_cold_by_choice(self, task: Task) -> bool:
        trial = self._trial(task)
        return trial is not None and (trial.arm, trial.assignment) == (COLD, "choice")

    def _settle(self, task: Task, fresh: tuple[_Ticket, ChosenExamples] | None) -> Seed:
        """Inside a transaction: whoever comes first decides, all others get the same."""
        assert task.session is not None
        if task.cold and (trial := self._trial(task)) and not self._is_cold_by_choice(task):
            self._trials.make_cold(trial.session)
        known = self._known_seed(task)
        if known is not None:
            return known
        trial = self._trial(task)
        if trial is not None:
            given = self._trials.picks(trial)
            if given is None:
                raise Refused(f"what session {task.session} was given cannot be read; see: warmstart doctor")
            chosen = ChosenExamples(tuple(given), (), "as chosen when the session began")
            seed, _used = self._compose(task, chosen, trial.arm)
        else:
            assert fresh is not None
            ticket, chosen = fresh
            seed, picks = self._compose(task, chosen, ticket.arm)
            self._write_trial(task, ticket, picks)
        self._trials.put_seed(task.session, task.dialect, msgspec.json.encode(seed).decode())
        return seed

    def _write_trial(self, task: Task, ticket: _Ticket, picks: Sequence[Pick]) -> None:
        assert task.session is not None
        project = name_job(task.job) if task.job else task.project
        facts = {"agent": task.agent, "model": task.model, "project": project, "category": task.category}
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
        """Drawn by the session's id; kept by what the session starts or what goes on from it; or as a person wants it."""
        assert task.session is not None
        running = self._trials.running()
        name = running.name if running else HOLDOUT
        if task.cold:
            return _Ticket(COLD, "choice", {}, name)
        if task.arm is not None or (running is not None and running.design == "paired"):
            return self._play(task, running)
        shares = read_shares(running.shares) if running else holdout_shares(self._settings.holdout)
        salt = (running.salt,) if running else ()
        if task.parent is None:
            return _Ticket(assign(task.session, shares, *salt), "random", shares, name)
        trial = self._trials.trial(task.parent)
        if trial is None:  # its parent was never asked about: all that it starts shall still agree
            return _Ticket(assign(task.parent, shares, *salt), "inherited", shares, name, task.parent)
        root = trial.parent or trial.session
        return _Ticket(trial.arm, "inherited", read_shares(trial.propensities), trial.experiment, root)

    def _play(self, task: Task, running: ExperimentRow | None) -> _Ticket:
        """In a paired experiment every task is done in every arm, so that the caller says which one this is."""
        if running is None or running.design != "paired":
            raise Refused(f"the arm {task.arm} can be asked for only while a paired experiment runs; else it is drawn")
        shares = read_shares(running.shares)
        if task.arm not in shares:
            raise Refused(f"{running.name} is a paired experiment: say which arm to play: {', '.join(shares)}")
        return _Ticket(task.arm, "paired", shares, running.name)

    def _choose_for(self, task: Task, ticket: _Ticket) -> ChosenExamples:
        """What the arm shows. A cold session's is chosen too, though not shown: that is what it is compared by."""
        before = self._given(task.parent) if task.continues or task.adds else ()
        if task.continues and before:
            return ChosenExamples(before, (), "as the session it goes on from")
        chosen = self._choose_in(task, ticket)
        if not task.adds:
            return chosen
        shown = {call_id(pick.example) for pick in before}
        return structs.replace(chosen, picks=tuple(p for p in chosen.picks if call_id(p.example) not in shown))

    def _given(self, session: str | None) -> tuple[Pick, ...]:
        trial = self._trials.trial(session) if session else None
        return tuple(self._trials.picks(trial) or ()) if trial else ()

    def _choose_in(self, task: Task, ticket: _Ticket) -> ChosenExamples:
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
            return ChosenExamples((), (), f"the template {arm} is there no longer")
        return self._chooser.from_template(row, task, f"the experiment {ticket.experiment} gives {arm}")

    # Composing

    def _compose(self, task: Task, chosen: ChosenExamples, arm: str | None) -> tuple[Seed, tuple[Pick, ...]]:
        """The seed, and which of the chosen examples it shows; a cold one is empty, and these are what it would show."""
        told = arm == TEXT
        made = compose(
            chosen.picks,
            dialect="text" if told else task.dialect,
            budget=task.budget,
            count=estimate,
            model=task.model,
            thinking=task.thinking,
            addenda=self._addenda(chosen.picks),
        )
        if told:
            made = tell(made, task.dialect, estimate)
        used = made.used
        reason = _reason(chosen.reason, made)
        omitted = (*chosen.omitted, *made.omitted)
        if arm == COLD:
            made = compose((), dialect=task.dialect, budget=task.budget, count=estimate)
            reason = "cold by choice" if task.cold else "cold, to compare with: " + _withheld(len(used))
            omitted = ()
        seed = Seed(
            id=_content_id(task, made),
            arm=arm if task.session is not None else None,
            dialect=task.dialect,
            messages=made.messages,
            text=made.text,
            tokens=made.tokens,
            budget=task.budget,
            templates=tuple(dict.fromkeys(f"{pick.template}@{pick.version}" for pick in made.used)),
            omitted=omitted,
            reason=reason,
        )
        return seed, used

    def _addenda(self, picks: Sequence[Pick]) -> list[tuple[str, str]]:
        found: dict[str, str] = {}
        for name, version in dict.fromkeys((pick.template, pick.version) for pick in picks):
            for columns in self._store.rows("template", (name, version)):
                template = self._templates.facts(name, version, TemplateRow.from_columns(columns).body)
                if template and template.addendum:
                    found[f"{name}@{version}"] = template.addendum
        return list(found.items())


def _content_id(task: Task, made: Composed) -> str:
    said = msgspec.json.encode([task.session, task.dialect, made.messages, made.text])
    return hashlib.blake2b(said, digest_size=10).hexdigest()


def task_digest(text: str) -> str:
    """Tells the same request from another without keeping it."""
    said = " ".join(text.lower().split())
    return hashlib.blake2b(said.encode("utf-8", "replace"), digest_size=8).hexdigest() if said else ""


def _withheld(examples: int) -> str:
    return "there was nothing to show anyway" if not examples else f"{examples} examples were held back"


def _reason(chosen: str, made: Composed) -> str:
    return f"{chosen}; {made.reason}" if made.reason else chosen
