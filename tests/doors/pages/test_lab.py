"""The lab's page in a real browser: wide and narrow, light and dark. Skipped only where there is no Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from doors.pages.browsing import BOXES, CONTRASTS
from lab_reports import ARMS, FAMILIES, REPORTS, make_report, make_tasks
from warmstart.doors.pages.lab import MARK, render_page
from warmstart.doors.pages.lab.page import DECIDES
from warmstart.doors.pages.plots.arms import Curve
from warmstart.doors.pages.plots.pieces import scale_amounts, scale_differences
from warmstart.doors.render.lab import show_lab
from warmstart.doors.render.lab_findings import describe_finding
from warmstart.lab.run.report import _lift_guardrails
from warmstart.lab.run.summary import LabReport, TaskCell
from warmstart.stats.survival import Wait

SIGHTS = [(width, colours) for width in (1280, 400) for colours in ("light", "dark")]
LOOKED_AT = [(name, *sight) for name in ("finished", "hostile") for sight in SIGHTS]
LOOKED_AT += [(name, 400, "light") for name in REPORTS if name not in ("finished", "hostile")]
OPEN = "document.querySelectorAll('details').forEach(one => one.open = true)"
WIDTH = "document.documentElement.scrollWidth"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("lab")
    found = {}
    for name, make in REPORTS.items():
        found[name] = folder / f"{name}.html"
        found[name].write_text(render_page(make()), "utf-8")
    return found


class Look:
    """One page, with everything it complained of or asked for since it was last sent somewhere."""

    def __init__(self, browser: Any) -> None:
        self.page = browser.new_page()
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def see(self, file: Path, width: int, colours: str) -> Look:
        self.width, self.file = width, file
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(media="screen", color_scheme=colours)
        self.complaints.clear()
        self.asked.clear()
        self.page.goto(file.as_uri())
        return self


@pytest.fixture(scope="module")
def eyes(browser: Any) -> Iterator[Look]:
    opened = Look(browser)
    yield opened
    opened.page.close()


@pytest.fixture(scope="module", params=LOOKED_AT, ids=lambda sight: "-".join(map(str, sight)))
def look(request: pytest.FixtureRequest, eyes: Look, files: dict[str, Path]) -> Look:
    name, width, colours = request.param
    return eyes.see(files[name], width, colours)


@pytest.mark.slow
def test_it_is_seen_whole_and_stays_quiet(look):
    plots = look.page.evaluate(BOXES)
    for plot in plots:
        assert plot["width"] > 20 and plot["height"] > 4, plot
        assert plot["left"] >= 0 and plot["right"] <= look.width, plot
        assert plot["parts"] > 0, plot
    assert look.page.evaluate(WIDTH) <= look.width, "no sideways scrolling"
    look.page.evaluate(OPEN)
    assert look.page.evaluate(WIDTH) <= look.width, "tables scroll by themselves"
    assert look.complaints == []
    assert look.asked == [look.file.as_uri()]


@pytest.mark.slow
def test_nothing_hostile_runs(look):
    assert look.page.title() == "Warmstart lab"
    found = look.page.evaluate("document.querySelectorAll('script, img, link, iframe, a, [style], [onload]').length")
    assert found == 0
    assert look.page.evaluate("document.querySelectorAll('style').length") == 1


@pytest.mark.slow
def test_every_text_can_be_read(look):
    if look.file.stem not in ("finished", "unfinished", "warm harms"):
        return  # the same texts in the same colours
    look.page.evaluate(OPEN)
    texts = look.page.evaluate(CONTRASTS)
    assert len(texts) > 40
    assert [text for text in texts if text["ratio"] < 4.5] == []
    assert [text for text in texts if text["size"] < 12] == []


@pytest.mark.slow
def test_plots_are_named_and_have_their_numbers_beside_them(look):
    unnamed = "[...document.querySelectorAll('svg[role=img]')].filter(svg => !svg.getAttribute('aria-label')).length"
    assert look.page.evaluate(unnamed) == 0
    assert look.page.evaluate("[...document.querySelectorAll('figure')].every(f => f.querySelector('table'))")
    assert look.page.evaluate("[...document.querySelectorAll('figure')].every(f => f.getAttribute('aria-label'))")


@pytest.mark.slow
def test_light_and_dark_differ_and_paper_is_white(eyes, files):
    shade = "getComputedStyle(document.body).backgroundColor"
    shades = [eyes.see(files["finished"], 1280, colours).page.evaluate(shade) for colours in ("light", "dark")]
    assert shades[0] != shades[1]
    assert len(eyes.page.screenshot()) > 30_000, "something is painted"
    eyes.page.emulate_media(media="print")
    assert eyes.page.evaluate(shade) == "rgb(255, 255, 255)"
    assert len(eyes.page.pdf()) > 10_000


# What is in it, without a browser


class Seen(HTMLParser):
    """Elements and text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.mark.parametrize("name", REPORTS)
def test_the_page_is_sealed(name, files):
    page = files[name].read_text("utf-8")
    assert page.startswith(MARK)
    assert "default-src 'none'" in page.replace("&#x27;", "'")
    assert not {"script", "img", "link", "iframe", "object", "a", "form"} & set(Seen(page).tags)
    assert re.search(r"\s(?:src|href|style|on\w+)=", re.sub(r">[^<]*<", "><", page)) is None
    assert not any(code in page for code in "\x00\x1b\x07\x9b\u202e\ud800")


def test_long_texts_are_shortened(files):
    assert "x" * 1_000 not in files["hostile"].read_text("utf-8")


def test_what_it_takes_to_do_it_again_is_there():
    report = make_report()
    text = "".join(Seen(render_page(report)).text)
    for told in (report.command, report.model.digest, "2026-11-16T04:40:00+00:00", "xllamacpp 2026.10", "no network"):
        assert told in text
    assert describe_finding(report).headline in text
    assert "not your agent" in text and "lab's authors" in text and "new tasks and families" in text


def test_what_decides_comes_first():
    page = render_page(make_report())
    assert "<main><section><h2>Tasks solved</h2>" in page
    assert page.count(DECIDES) == 1


def test_a_model_behind_an_endpoint_has_no_hash(files):
    assert "unknown, of an endpoint" in files["one arm"].read_text("utf-8")


def test_every_task_and_harm_is_listed():
    report = make_report()
    text = "".join(Seen(render_page(report)).text)
    assert all(task.request in text for task in report.tasks)
    assert f"{report.report.crossings['warm'].harmed} tasks harmed" in text


@pytest.mark.parametrize("name", ["unfinished", "blocked", "nothing done", "no arm"])
def test_no_verdict_without_the_right_to_one(name, files):
    page = files[name].read_text("utf-8")
    assert 'class="verdict better">better' not in page
    assert 'class="whisker' not in page
    assert "McNemar p =" not in page and "McNemar p &lt;" not in page


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ((0.35, 0.77, -0.11), -0.5, 1.0),
        ((0.0, 0.0, None), -1.0, 1.0),
        ((), -1.0, 1.0),
        ((-3.0, -1.0), -3.0, 1.0),
        ((1e-6,), -5e-7, 1e-6),
        ((-4.1e6, 2e5), -6e6, 2e6),
    ],
)
def test_scales_of_differences_hold_nought_and_all_values(values, low, high):
    scale = scale_differences(values)
    assert (scale.bottom, scale.top) == pytest.approx((low, high))
    assert 2 <= len(scale.ticks) <= 6
    assert any(abs(tick) < scale.step / 1000 for tick in scale.ticks)


def test_scales_of_amounts():
    assert scale_amounts([1_429, 1_820, None]).top == 2_000
    assert scale_amounts([]).top == 1 and scale_amounts([0.0]).top == 1


def test_a_curve_falls_only_where_something_happened():
    waits = [Wait(1, True), Wait(1, True), Wait(2, False), Wait(4, True), Wait(4, False)]
    curve = Curve("arm-warm", "warm", waits)
    assert [curve.still_waiting(turn) for turn in (0, 1, 3, 4)] == pytest.approx([1, 0.6, 0.6, 0.3])
    assert curve.censored == {2: 1, 4: 1} and curve.end == 4


# What decides


def make_decided(arm: TaskCell, *, solved: int) -> LabReport:
    """Return a report in which cold makes only errors and warm does `arm`, with the first `solved` tasks solved."""
    cold = TaskCell(solved=False, errors=0, calls=3, success_turn=1, turns=3) if arm.calls < 3 else None
    cells = [
        {
            "cold": cold or TaskCell(solved=False, errors=3 - number % 2, calls=3, success_turn=None, turns=3),
            "warm": structs.replace(arm, solved=number < solved, errors=arm.errors + (number % 5 == 0)),
        }
        for number in range(60)
    ]
    tasks = [structs.replace(task, arms=arms) for task, arms in zip(make_tasks(ARMS, 60, FAMILIES), cells, strict=True)]
    return make_report({"cold": 0.0, "warm": 0.0}, tasks=tasks, count=60)


def test_an_arm_that_errs_less_and_solves_nothing_is_not_called_better(capsys):
    report = make_decided(TaskCell(solved=False, errors=1, calls=3, success_turn=2, turns=3), solved=1)
    errors = next(one for one in report.report.secondary if one.metric == "error_rate")
    assert errors.verdict == "better"  # there are fewer errors, and the report shows it
    finding = describe_finding(report)
    assert finding.tone == "open"
    assert finding.headline == "No difference shown between warm and cold: 1 of 60 tasks solved against 0"
    assert "In errors per call: -" in finding.details[0]
    show_lab(report)
    shown = capsys.readouterr().out
    assert "no difference shown" in shown
    assert "better" not in shown
    page = render_page(report)
    assert ">better<" not in page
    assert ">less<" in page


def test_who_solves_at_once_is_not_blamed_for_calling_less():
    report = make_decided(TaskCell(solved=True, errors=0, calls=1, success_turn=1, turns=1), solved=40)
    assert report.report.guardrails
    assert report.report.effects[0].verdict == "inconclusive"
    lifted = _lift_guardrails(report.report)
    assert (lifted.effects[0].verdict, lifted.guardrails) == ("better", ())
    assert "but" not in lifted.effects[0].reason
    assert describe_finding(structs.replace(report, report=lifted)).tone == "better"
