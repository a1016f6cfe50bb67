"""Items of a bundle, stored as proposed notes and templates, and what waits for a person's decision."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec
from msgspec import Struct, structs

from warmstart.bundles.items import BundleItem
from warmstart.bundles.places import name_place
from warmstart.errors import Refused, SourceError
from warmstart.judging.outcome import judge_result
from warmstart.model import Template
from warmstart.notes.imports import BUNDLE
from warmstart.notes.library import NoteLibrary
from warmstart.notes.types import Note, NoteSource
from warmstart.store import Store
from warmstart.templates.bundles import read_bundle
from warmstart.templates.library import TemplateLibrary
from warmstart.templates.origins import TemplateOrigin, read_origin

RETIREMENT = "retirement proposed"
_GONE = "it is no longer in the bundle"


class ReceivedItem(Struct, frozen=True, kw_only=True):
    """What became of one item of a bundle."""

    type: str
    file: str
    change: str  # new, updated, same, known, conflict, older, approved, yours, retired, retirement proposed, refused
    name: str = ""  # the note's id or the template's name here; empty: nothing is stored
    title: str = ""
    status: str = ""  # here
    signer: str = ""
    effect: str = ""  # that the signer measured
    reason: str = ""


class WaitingItem(Struct, frozen=True, kw_only=True):
    """An item of a bundle that waits for a decision."""

    type: str
    name: str  # the note's id or the template's name
    title: str
    project: str
    status: str
    waits_for: str  # approval, or retirement
    source: str  # the bundle
    signer: str
    effect: str = ""  # that the signer measured
    reason: str = ""


class ItemReceiver:
    """Stores the accepted items of one bundle."""

    def __init__(self, store: Store, notes: NoteLibrary, templates: TemplateLibrary, place: str) -> None:
        self._store = store
        self._notes = notes
        self._templates = templates
        self._place = place
        self._name = name_place(place)

    def receive(
        self, accepted: Mapping[str, tuple[BundleItem, str]], *, kept: Collection[str], approve: bool
    ) -> tuple[ReceivedItem, ...]:
        """Store items, by file, with their signers' names. `kept`: files that are there but were not accepted."""
        received: list[ReceivedItem] = []
        with self._store.writing():
            for path, (item, signer) in accepted.items():
                if item.status == "retired":
                    received.append(self._describe(path, item, signer, "retired", reason=item.reason))
                elif item.note is not None:
                    received.append(self._receive_note(path, item, signer))
                else:
                    received.append(self._receive_template(path, item, signer))
            alive = {path for path, (item, _signer) in accepted.items() if item.status == "active"} | {*kept}
            reasons = {path: f"retired by {signer}: {item.reason}" for path, (item, signer) in accepted.items()}
            received += self._propose_retirements(alive, reasons)
            if approve:
                received = [self._approve(item) for item in received]
        self._notes.write_indexes()
        return tuple(received)

    def _describe(
        self, path: str, item: BundleItem, signer: str, change: str, name: str = "", status: str = "", reason: str = ""
    ) -> ReceivedItem:
        effect = item.evidence.effect.state() if item.evidence.effect else ""
        return ReceivedItem(
            type=item.type,
            file=path,
            change=change,
            name=name,
            title=item.title,
            status=status,
            signer=signer,
            effect=effect,
            reason=reason,
        )

    def _receive_note(self, path: str, item: BundleItem, signer: str) -> ReceivedItem:
        assert item.note is not None and item.signature is not None
        evidence = item.evidence
        note = Note(
            id=item.id,
            project=item.project,
            kind=item.note.kind,
            subject=item.note.subject,
            key=item.note.key,
            trigger=item.note.trigger,
            text=item.note.text,
            fix=item.note.fix,
            support=evidence.sessions,
            against=evidence.worked,
            failures=evidence.failed,
            people=evidence.people,
            rate=evidence.rate,
            agent=item.note.agent,
            source=NoteSource(
                place=self._place,
                file=path,
                signer=signer,
                key=item.signature.key,
                revision=item.revision,
                effect=evidence.effect.state() if evidence.effect else "",
            ),
        )
        ((stored, change),) = self._notes.receive([note])
        shown = "yours" if change == "known" and signer == "you" else change
        reason = stored.decision if change == "conflict" else "; ".join(stored.suspicions)
        return self._describe(path, item, signer, shown, stored.id, stored.status, reason)

    def _receive_template(self, path: str, item: BundleItem, signer: str) -> ReceivedItem:
        try:
            template = self._read_template(path, item)
            if signer == "you" and self._has_own(template.name):
                return self._describe(path, item, signer, "yours", template.name)
            learned = self._templates.receive(template, TemplateOrigin(place=self._place, file=path, signer=signer))
        except (Refused, SourceError) as error:
            return self._describe(path, item, signer, "refused", reason=str(error))
        change = "conflict" if learned.change == "new" and learned.name != template.name else learned.change
        return self._describe(path, item, signer, change, learned.name, learned.status, learned.reason)

    def _read_template(self, path: str, item: BundleItem) -> Template:
        data = msgspec.json.encode({"warmstart": 1, "templates": [item.template]})
        bundle = read_bundle(data, path, judge_result)
        if not bundle.templates:
            raise SourceError(path, bundle.problems[0].reason if bundle.problems else "it holds no template")
        (template,) = bundle.templates
        provenance = structs.replace(template.provenance, project=item.project or None)
        return structs.replace(template, version=1, used=0, created=None, source_sessions=(), provenance=provenance)

    def _has_own(self, name: str) -> bool:
        return any(
            row.name == name and template.provenance.origin != "imported" for row, template in self._templates.find()
        )

    def _propose_retirements(self, alive: Collection[str], reasons: Mapping[str, str]) -> list[ReceivedItem]:
        proposed = []
        for note in self._notes.list():
            source = note.source
            if source is None or name_place(source.place) != self._name or note.status == "retired":
                continue
            if source.file in alive:
                continue
            reason = reasons.get(source.file, _GONE)
            if source.file and self._notes.propose_retirement(note, reason):
                proposed.append(
                    ReceivedItem(
                        type="note",
                        file=source.file,
                        change=RETIREMENT,
                        name=note.id,
                        title=note.text,
                        status=note.status,
                        signer=source.signer,
                        reason=reason,
                    )
                )
        for origin, row in self._templates.find_received():
            reason, path = reasons.get(origin.file, _GONE), origin.file
            if name_place(origin.place) != self._name or path in alive:
                continue
            if self._templates.propose_retirement(row, BUNDLE, reason):
                proposed.append(
                    ReceivedItem(
                        type="template",
                        file=path,
                        change=RETIREMENT,
                        name=row.name,
                        title=row.name,
                        status=row.status,
                        reason=reason,
                    )
                )
        return proposed

    def _approve(self, item: ReceivedItem) -> ReceivedItem:
        """Approve what is proposed and new: the decision of the person who pulls."""
        if item.status != "proposed" or item.change not in ("new", "updated", "same", "conflict"):
            return item
        reason = f"approved at pull, signed by {item.signer}"
        name = item.name
        if item.type == "note":
            name = self._notes.approve(item.name, reason=reason).id
        else:
            self._templates.approve(item.name, reason=reason)
        change = "approved" if item.change == "same" else item.change
        return structs.replace(item, name=name, status="active", change=change)

    def list_waiting(self) -> tuple[WaitingItem, ...]:
        """Return what came from any bundle and waits for a decision."""
        waiting = []
        for note in self._notes.list():
            if note.source is None or not note.source.file:
                continue
            retirement = self._notes.find_proposed_retirement(note)
            if note.status != "proposed" and retirement is None:
                continue
            waiting.append(
                WaitingItem(
                    type="note",
                    name=note.id,
                    title=note.text,
                    project=note.project,
                    status=note.status,
                    waits_for="approval" if retirement is None else "retirement",
                    source=note.source.place,
                    signer=note.source.signer,
                    effect=note.source.effect,
                    reason=retirement or "; ".join(note.suspicions) or note.decision.partition("; ")[2],
                )
            )
        for row, template in self._templates.find():
            origin = read_origin(template.provenance.source)
            if template.provenance.origin != "imported" or origin is None or row.status == "retired":
                continue
            decisions = self._templates.show(row.name)[2]
            retirement = decisions[-1].reason if decisions and decisions[-1].by == BUNDLE else None
            if row.status == "proposed" or retirement is not None:
                waiting.append(
                    WaitingItem(
                        type="template",
                        name=row.name,
                        title=template.description,
                        project=row.project,
                        status=row.status,
                        waits_for="approval" if retirement is None else "retirement",
                        source=origin.place,
                        signer=origin.signer,
                        reason=retirement or "; ".join(template.provenance.suspicions),
                    )
                )
        return tuple(waiting)
