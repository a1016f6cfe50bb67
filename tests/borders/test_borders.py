"""Nothing crosses a border: what is learned in one scope is seen there only, unless a person shares it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warmstart
from borders.askers import ASKERS, Asking
from borders.world import PLACES, TASK, Place, ask_for, build_world
from databases import on_both_databases
from homes import read_everything
from template_files import DEPLOY, write_bundle
from warmstart.errors import NotFound, Refused
from warmstart.model import SessionOwner, Task
from warmstart.pipeline import Warmstart
from warmstart.scopes import KEY_FILE, Border, ScopeNamer, mark_name
from warmstart.templates.build import BuildRequest

in_a_file = pytest.mark.parametrize("world", ["sqlite"], indirect=True)
on_a_server = pytest.mark.parametrize("world", ["postgres"], indirect=True)
on_both = pytest.mark.parametrize("world", ["sqlite", "postgres"], indirect=True)

# All places ask a file through every door. PostgreSQL has other queries behind the same doors: there each door is asked
# once, for what belongs to the place's neighbours in its profile, project or chat. All together would take CI a minute.
ASKED_ON_A_SERVER = (
    ("coralmoose", ("mcp", "cli", "list", "export"), ("amberfinch", "dustyheron")),
    ("jadebadger", ("provision", "hermes", "list"), ("flintraven", "coralmoose")),
    ("khakiwren", ("hook", "list"), ("linengecko", "amberfinch")),
)


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Warmstart, Path]]:
    """All places in one home. It outlives the tests, and so do its store and its name: see `inside`."""
    root = tmp_path_factory.mktemp("world")
    store = root / "home" / "warmstart.db"
    address = request.getfixturevalue("postgres").make_store() if request.param == "postgres" else str(store)
    store.parent.mkdir()
    (root / "home" / "config.toml").write_text("holdout = 0\nmax_active = 100\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WARMSTART_STORE_PROJECTS", "*")
        ws = warmstart.open(root / "home", store=address)
    with ws:
        build_world(ws, root)
        yield ws, root


@pytest.fixture(autouse=True)
def inside(request: pytest.FixtureRequest, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Doors that are told nothing find the world."""
    if "world" in request.fixturenames:
        ws, _root = request.getfixturevalue("world")
        monkeypatch.setenv("WARMSTART_HOME", str(ws.settings.home))
        monkeypatch.setenv("WARMSTART_STORE", ws.settings.store_url)


def list_canaries(answer: object) -> set[str]:
    text = answer.decode() if isinstance(answer, bytes) else msgspec.json.encode(answer, enc_hook=str).decode()
    return {place.canary for place in PLACES if place.canary in text.lower()}


@on_both
def test_every_place_has_a_scope_and_a_template_of_its_own(world: tuple[Warmstart, Path]) -> None:
    ws, _root = world
    rows = [row for row, _template in ws.templates.find("active")]
    borders = {(place.name_scope(ws), place.project) for place in PLACES}
    assert len(borders) == len(PLACES) and {(row.scope, row.project) for row in rows} == borders
    assert {place.name_scope(ws) for place in PLACES if place.is_own} == {""}
    own = next(place for place in PLACES if place.canary == "jadebadger").name_scope(ws)
    assert own.startswith("profile:work/telegram:") and "900100" not in own


@on_both
def test_every_place_with_a_project_has_a_note_of_its_own(world: tuple[Warmstart, Path]) -> None:
    ws, _root = world
    notes = {(note.scope, note.project): note.subject for note in ws.notes.list(status="active", kind="path")}
    assert notes == {(place.name_scope(ws), place.project): f"{place.canary}.txt" for place in PLACES if place.project}
    for place in (place for place in PLACES if place.project):
        brief = ws.brief(Task(scope=place.name_scope(ws), project=place.project, agent=place.agent))
        assert list_canaries(brief.text) == {place.canary}


@in_a_file
@pytest.mark.parametrize("asker", ASKERS)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.canary)
def test_only_the_own_canary_is_heard(world: tuple[Warmstart, Path], place: Place, asker: str) -> None:
    check_hearing(asker, Asking(*world, place))


@on_a_server
@pytest.mark.parametrize(
    ("canary", "asker", "neighbours"),
    [(place, asker, near) for place, askers, near in ASKED_ON_A_SERVER for asker in askers],
)
def test_only_the_own_canary_is_heard_from_a_server(
    world: tuple[Warmstart, Path], canary: str, asker: str, neighbours: tuple[str, ...]
) -> None:
    own = next(place for place in PLACES if place.canary == canary)
    check_hearing(asker, Asking(*world, own, [own, *(place for place in PLACES if place.canary in neighbours)]))


def check_hearing(asker: str, asking: Asking) -> None:
    way, place = ASKERS[asker], asking.place
    if way.serves(place):
        heard = set().union(*map(list_canaries, way.ask(asking)))
        assert heard == {place.canary}, "each place hears its own, and nothing else"


@in_a_file
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_with_any_other_scope_the_seed_is_empty(world: tuple[Warmstart, Path], data: st.DataObject) -> None:
    ws, _root = world
    place = data.draw(st.sampled_from(PLACES))
    task = Task(text=ask_for(place), scope=place.name_scope(ws), project=place.project or None)
    assert ws.provision(task)
    scopes = [other.name_scope(ws) for other in PLACES] + ["telegram:0000000000000000", "profile:new"]
    scope = data.draw(st.sampled_from([scope for scope in scopes if scope != task.scope]) | st.text(max_size=20))
    if scope not in (task.scope, "*"):
        foreign = ws.provision(msgspec.structs.replace(task, scope=scope))
        assert place.canary not in str(foreign)


@on_both
def test_a_seed_is_not_repeated_to_another_person(world: tuple[Warmstart, Path]) -> None:
    ws, _root = world
    place = PLACES[5]
    task = Task(text=ask_for(place), scope=place.name_scope(ws), session="private-1")
    assert ws.provision(task)
    for scope in ("", PLACES[6].name_scope(ws)):
        with pytest.raises(Refused, match="another profile or person"):
            ws.provision(msgspec.structs.replace(task, scope=scope))
        later = Task(text=TASK, scope=scope, session=f"later-{scope}", parent="private-1", continues=True)
        assert place.canary not in str(ws.provision(later))


@on_both
def test_a_name_of_another_scope_does_not_exist(world: tuple[Warmstart, Path]) -> None:
    ws, _root = world
    border = Border(PLACES[6].name_scope(ws))
    own = {row.name for row, _template in ws.templates.find(border=border)}
    for row, _template in ws.templates.find():
        if row.scope != border.scope and mark_name(row.name, border.scope) not in own:
            with pytest.raises(NotFound):
                ws.templates.show(row.name, border=border)


@in_a_file
def test_raw_ids_are_stored_nowhere(world: tuple[Warmstart, Path]) -> None:
    ws, _root = world
    everything = read_everything(ws.settings.home)
    for place in PLACES:
        for id_ in filter(None, (place.chat, place.user)):
            assert len(id_) < 4 or id_.encode() not in everything
    key = ws.settings.home / KEY_FILE
    assert key.stat().st_mode & 0o777 == 0o600 and len(key.read_bytes()) == 32


class TestSharing:
    @pytest.fixture
    def own(self, database: str, tmp_path: Path) -> Iterator[Warmstart]:
        with warmstart.open(tmp_path / "home") as ws:
            build_world(ws, tmp_path)
            yield ws

    @on_both_databases
    def test_a_person_shares_and_takes_back(self, own: Warmstart) -> None:
        place, other = PLACES[5], PLACES[2]
        (row,) = [row for row, _t in own.templates.find("active") if row.scope == place.name_scope(own)]
        task = Task(text=ask_for(place), scope=other.name_scope(own), project=other.project, agent="hermes")
        assert place.canary not in str(own.provision(task))
        decision = own.templates.share(row.name, reason="everyone may know")
        assert decision.by == "person" and "everyone may know" in decision.reason
        assert place.canary in str(own.provision(task))
        assert place.canary in str(own.provision(msgspec.structs.replace(task, text=row.name)))
        with pytest.raises(Refused, match="already shared"):
            own.templates.share(row.name)
        own.templates.unshare(row.name)
        assert place.canary not in str(own.provision(task))
        assert place.canary in str(own.provision(Task(text=ask_for(place), scope=place.name_scope(own))))

    def test_what_is_learned_later_is_not_shared(self, own: Warmstart) -> None:
        place = PLACES[5]
        (row,) = [row for row, _t in own.templates.find("active") if row.scope == place.name_scope(own)]
        own.templates.share(row.name)
        sessions = [session for session in own.sessions(limit=None) if session.scope == place.name_scope(own)]
        learned = own.templates.build(sessions, BuildRequest(row.name, description="something new")).template
        assert learned.status == "proposed" and "a person shared version 1" in learned.reason
        assert own.templates.latest(row.name).scope == place.name_scope(own)

    def test_a_name_is_marked_by_its_scope(self, own: Warmstart) -> None:
        names = set()
        for place in (PLACES[0], PLACES[5], PLACES[6]):
            session = next(s for s in own.sessions(limit=None) if s.id == f"{place.canary}-0")
            names.add(own.capture(session.key, name="mine").name)
            border = Border(place.name_scope(own), place.project)
            assert place.canary in str(own.templates.show("mine", border=border))
        assert len(names) == 3 and "mine" in names

    def test_an_import_cannot_take_a_name_of_another_scope(self, own: Warmstart, tmp_path: Path) -> None:
        (row,) = [row for row, _t in own.templates.find("active") if row.scope == PLACES[5].name_scope(own)]
        bundle = write_bundle(tmp_path / "b.json", DEPLOY | {"name": row.name}, DEPLOY)
        imported = own.templates.import_(bundle, approve=True)
        assert [template.name for template in imported.templates] == ["deploy"]
        assert "taken in another scope" in imported.problems[0].reason
        assert own.templates.latest(row.name).version == row.version


def test_owners_are_told_apart(tmp_path: Path) -> None:
    namer = ScopeNamer(tmp_path)
    one = SessionOwner(platform="telegram", chat="1", user="2")
    assert namer.name(one, "a") == namer.name(one, "b") == ScopeNamer(tmp_path).name(one, "c")
    assert ScopeNamer(tmp_path / "other").name(one, "a") != namer.name(one, "a"), "another key"
    others = [
        SessionOwner(platform="telegram", chat="12"),
        SessionOwner(platform="telegram", chat="1"),
        SessionOwner(platform="telegram", user="1"),
        SessionOwner(platform="slack", chat="1", user="2"),
        SessionOwner(platform="telegram", chat="1", user="2", profile="work"),
        SessionOwner(profile="work"),
        SessionOwner(profile="a/b"),
        SessionOwner(),
    ]
    assert len({namer.name(owner, "s") for owner in (one, *others)}) == 9
    unknown = SessionOwner(platform="telegram")
    assert namer.name(unknown, "a") != namer.name(unknown, "b"), "two unknown people are never taken for one"


def test_marks_are_put_once() -> None:
    assert mark_name("x", "") == mark_name("x", "*") == "x"
    marked = mark_name("x", "profile:work")
    assert marked != "x" and mark_name(marked, "profile:work") == marked
