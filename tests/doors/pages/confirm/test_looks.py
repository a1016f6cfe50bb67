"""Wide and narrow, light and dark: everything fits, can be read and can be hit with a thumb."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from doors.pages.browsing import COLOURS, CONTRASTS, WIDTHS
from doors.pages.confirm.daemon import Daemon
from doors.pages.confirm.people import Person

pytestmark = pytest.mark.slow  # a second of Chromium each

LONG = "a_rather_long_name_without_any_place_to_break_it_" * 4


class Scene:
    """A daemon with one request of every kind, and a person who looks at it."""

    def __init__(self, daemon: Daemon, person: Person, ids: dict[str, str]) -> None:
        self.daemon, self.person, self.ids = daemon, person, ids


def fill(daemon: Daemon) -> dict[str, str]:
    def submit(*words: Any, **more: Any) -> str:
        return str(daemon.submit(*words, **more)["id"])

    expired = submit("restart_service", timeout_seconds=30)
    daemon.clock.ahead += 31
    denied, approved = submit("delete_data"), submit("delete_data")
    daemon.decide(denied, "deny", reason="Not these " * 20)
    daemon.decide(approved, "approve")
    votes = submit("release_site", timeout_seconds=1800)
    daemon.decide(votes, "approve", reason="tests are green")
    risky = {
        "table": "orders",
        "key": "ghp_abcdEFGH1234567890abcdEFGH1234567890",
        "limit": 5,
        "deep": {"er": [1, {"x": LONG}]},
    }
    odd = {"text": "safe\u202etxt" + " " * 50 + "x", LONG: LONG, "alike": "p\u0430ypal"}
    return {
        "expired": expired,
        "denied": denied,
        "approved": approved,
        "votes": votes,
        "risky": submit("delete_data", risky, description="Drop them all " * 10, requester="Claude Code", session_key=LONG),
        "odd": submit("send_mail", odd, description=LONG),
        "urgent": submit("send_mail", timeout_seconds=50),
    }  # fmt: skip


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Daemon, dict[str, str]]]:
    daemon = Daemon(tmp_path_factory.mktemp("looks"))
    yield daemon, fill(daemon)
    daemon.stop()


@pytest.fixture(
    scope="module",
    params=[(width, colours) for width in WIDTHS for colours in COLOURS],
    ids=lambda pair: f"{pair[0]}-{pair[1]}",
)
def scene(request: pytest.FixtureRequest, browser: Any, filled: Any) -> Iterator[Scene]:
    width, colours = request.param
    daemon, ids = filled
    person = Person(browser, daemon, viewport={"width": width, "height": 850}, color_scheme=colours)
    person.log_in()
    person.page.wait_for_selector(".cards li")
    yield Scene(daemon, person, ids)
    person.context.close()


def look_at(scene: Scene, what: str) -> Any:
    page = scene.person.page
    if what == "list":
        page.goto(f"{scene.daemon.page}/#/")
    elif what.endswith("?"):
        scene.person.show(scene.ids[what.split()[0]])
        scene.person.ask(what.split()[1].rstrip("?"))
        page.wait_for_timeout(600)
    else:
        scene.person.show(scene.ids[what])
        page.wait_for_selector(".showing section:last-child h2")
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    return page


SIGHTS = ["list", "expired", "denied", "approved", "votes", "risky", "odd", "urgent", "risky approve?", "votes deny?"]


@pytest.mark.parametrize("what", SIGHTS)
def test_it_fits_and_can_be_read(scene, what, tmp_path):
    page = look_at(scene, what)
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "no sideways scrolling"
    texts = page.evaluate(CONTRASTS)
    assert len(texts) > 10
    assert [text for text in texts if text["ratio"] < 4.5] == []
    assert [text for text in texts if text["size"] < 12] == []
    assert scene.person.complaints == []
    assert len(page.screenshot(full_page=True, path=tmp_path / "page.png")) > 10_000
    page.keyboard.press("Escape")


def test_a_thumb_hits_what_it_means(scene):
    page = look_at(scene, "risky")
    small = page.evaluate(
        "[...document.querySelectorAll('.decision button, .cards a')].filter(e => e.checkVisibility())"
        ".filter(e => e.getBoundingClientRect().height < 44).length"
    )
    assert small == 0
    apart = page.evaluate(
        "(() => { const [a, b] = [...document.querySelectorAll('.decision button')].map(e => e.getBoundingClientRect());"
        " return Math.max(b.left - a.right, b.top - a.bottom) })()"
    )
    assert apart >= 8


def test_one_thing_at_a_time_on_a_phone(scene):
    page = look_at(scene, "risky")
    is_phone = page.viewport_size["width"] < 900
    assert page.is_visible(".listing") == (not is_phone)
    assert page.is_visible(".back") == is_phone
    if is_phone:
        page.click(".back")
        page.wait_for_selector(".listing h1")


def test_everything_has_a_name(scene):
    for what in ("list", "risky", "risky approve?"):
        page = look_at(scene, what)
        nameless = page.evaluate(
            "[...document.querySelectorAll('button, a, input, textarea, progress, dialog')].filter(e => e.checkVisibility())"
            ".filter(e => !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length"
            " || document.getElementById(e.getAttribute('aria-labelledby'))?.textContent)).map(e => e.outerHTML)"
        )
        assert nameless == []
        assert page.evaluate("document.querySelectorAll('h1').length") >= 1
        page.keyboard.press("Escape")


def test_what_has_the_focus_is_seen(scene):
    page = look_at(scene, "risky")
    for selector in (".decision .deny", ".decision .approve", ".json summary"):
        page.focus(selector)
        page.keyboard.press("Shift")  # so that the browser takes it for the keyboard's focus
        assert (
            page.evaluate("selector => getComputedStyle(document.querySelector(selector)).outlineStyle", selector)
            == "solid"
        )


def test_light_and_dark_differ(browser, filled):
    shades = []
    for colours in COLOURS:
        person = Person(browser, filled[0], color_scheme=colours).log_in()
        shades.append(person.page.evaluate("getComputedStyle(document.body).backgroundColor"))
        person.context.close()
    assert shades[0] != shades[1]
