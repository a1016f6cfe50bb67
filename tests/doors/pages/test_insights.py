"""The insights page in a real browser: wide and narrow, light and dark. Skipped only where there is no Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from doors.pages.browsing import BOXES, COLOURS, CONTRASTS, WIDTHS
from insight_sessions import FAIL, GOOD, HOSTILE, MONDAY, call, session
from warmstart.doors.pages.insights.page import render_page, write_page
from warmstart.insights import gather_insights
from warmstart.model import Usage


def make_history() -> list[Any]:
    """Forty sessions of all lengths over ten weeks, some without times or tokens, some with names that want to harm."""
    sessions = []
    for number in range(40):
        order = call("get_order_details", {"order_id": "W1234567"}, "order W1234567 not found")
        fixed = call("get_order_details", {"order_id": "#W1234567"})
        make = call("Bash", {"command": "make test"}, "make: *** [test] Error 2")
        length = (4, 9, 14, 26, 33, 60, 110)[number % 7]
        calls = [(GOOD, FAIL, GOOD, order, fixed, make, GOOD)[(at * (number % 3 + 1)) % 7] for at in range(length)]
        name = HOSTILE[number % len(HOSTILE)] if number % 4 == 0 else f"model-{number % 5}"
        facts: dict[str, Any] = {"model": name, "project": f"/home/dev/projects/a-rather-long-name/{name}"}
        facts["agent"] = ("claude-code", "codex", name)[number % 3]
        facts["usage"] = Usage(input=90_000, output=4_000) if number % 2 else None
        facts["started"] = MONDAY + number * 86_400 * 2
        sessions.append(session(*calls, key=f"k{number:03}", timed=bool(number % 3), **facts))
    return sessions


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "insights.html"
    write_page(path, render_page(gather_insights(make_history()), made=MONDAY, about="agent codex"))
    return path


class Look:
    """One open page, with everything it complained of or asked for."""

    def __init__(self, browser: Any, file: Path, width: int, colours: str) -> None:
        self.page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=colours)
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(file.as_uri())


@pytest.fixture(
    scope="module",
    params=[(width, colours) for width in WIDTHS for colours in COLOURS],
    ids=lambda pair: f"{pair[0]}-{pair[1]}",
)
def look(request: pytest.FixtureRequest, browser: Any, page_file: Path) -> Iterator[Look]:
    opened = Look(browser, page_file, *request.param)
    yield opened
    opened.page.close()


def test_it_is_quiet_and_asks_for_nothing(look, page_file):
    look.page.wait_for_timeout(100)
    assert look.complaints == []
    assert look.asked == [page_file.as_uri()]


def test_every_plot_is_seen(look):
    width = look.page.viewport_size["width"]
    plots = look.page.evaluate(BOXES)
    assert len(plots) > 30
    for plot in plots:
        assert plot["width"] > 20 and plot["height"] > 4, plot
        assert plot["left"] >= 0 and plot["right"] <= width, plot
        assert plot["parts"] > 0, plot
    assert look.page.evaluate("document.documentElement.scrollWidth") <= width, "no sideways scrolling"


def test_every_text_can_be_read(look):
    look.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    texts = look.page.evaluate(CONTRASTS)
    assert len(texts) > 200
    assert [text for text in texts if text["ratio"] < 4.5] == []
    assert [text for text in texts if text["size"] < 12] == []
    width = look.page.viewport_size["width"]
    assert look.page.evaluate("document.documentElement.scrollWidth") <= width, "tables scroll by themselves"


def test_light_and_dark_differ(browser, page_file):
    shades = []
    for colours in COLOURS:
        look = Look(browser, page_file, 1280, colours)
        shades.append(look.page.evaluate("getComputedStyle(document.body).backgroundColor"))
        look.page.close()
    assert shades[0] != shades[1]


def test_the_screenshot_shows_something(look, tmp_path):
    """Not one colour all over: text and plots are really painted."""
    picture = look.page.screenshot(full_page=True, path=tmp_path / "page.png")
    assert len(picture) > 50_000


def test_plots_and_numbers_are_named_for_those_who_cannot_see(look):
    unnamed = look.page.evaluate(
        "[...document.querySelectorAll('svg[role=img]')].filter(svg => !svg.getAttribute('aria-label')).length"
    )
    assert unnamed == 0
    assert look.page.evaluate("[...document.querySelectorAll('figure')].every(f => f.querySelector('details table'))")
    assert look.page.evaluate("document.documentElement.lang") == "en"


def test_nothing_hostile_runs(look):
    assert look.page.evaluate("document.scripts.length + document.images.length + document.links.length") == 0


@pytest.mark.parametrize("sessions", [[], make_history()[:1]], ids=["no sessions", "one session"])
def test_small_histories(browser, tmp_path, sessions):
    file = tmp_path / "small.html"
    write_page(file, render_page(gather_insights(sessions), made=MONDAY))
    look = Look(browser, file, 400, "light")
    assert look.complaints == []
    assert look.page.evaluate("document.documentElement.scrollWidth") <= 400
    look.page.close()


@pytest.mark.slow
def test_it_prints(browser, page_file, tmp_path):
    look = Look(browser, page_file, 1280, "dark")
    look.page.emulate_media(media="print")
    assert look.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert len(look.page.pdf()) > 10_000
    look.page.close()
