"""The pages of `warmstart ui` in a real browser, with transcripts that attack in every field."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec import json, structs

from doors.pages.browsing import CONTRASTS
from doors.pages.ui.reading import Reader
from places import AGENTS, NO_AGENTS
from skips import FULL
from ui_home import PAYLOADS, SAMPLES, make_settings
from warmstart.doors.ui.server import UiServer
from warmstart.pipeline import Warmstart

AXE = AGENTS / "node_modules" / "axe-core" / "axe.min.js"
HARMFUL = (
    "iframe, base, style, object, embed, [onerror], [onload], [onfocus], [onmouseover], [style], a[href^=javascript]"
)
TURNED = (
    "/[\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069\\u200b\\ufeff]/"
    ".exec(document.title + document.documentElement.textContent)"
)
RUN_AXE = """async () => {
    const found = await axe.run(document, {resultTypes: ["violations"]});
    return found.violations.filter(one => ["serious", "critical"].includes(one.impact))
        .map(one => `${one.id}: ${one.nodes.slice(0, 3).map(node => node.html.slice(0, 160)).join(" | ")}`);
}"""


LOOKS = [(400, "light"), (1000, "dark"), (1600, "light"), (400, "dark"), (1000, "light"), (1600, "dark")]
SHIFTS = """() => new Promise(done => {
    let sum = 0;
    new PerformanceObserver(list => list.getEntries().forEach(entry => { sum += entry.value; }))
        .observe({type: "layout-shift", buffered: true});
    setTimeout(() => done(sum), 30);
})"""


def test_every_page_fits_and_hostile_transcripts_stay_text(reader: Any, server: UiServer) -> None:
    kinds = reader.list_addresses()
    addresses = [*kinds]
    addresses += [f"/sessions/{number:032x}" for number in range(len(PAYLOADS))]
    addresses += [
        "/errors?top=40",
        *(f"/errors/{number}" for number in (2, 5, 9)),
        "/notes?offset=0",
        "/usage?by=agent",
    ]
    addresses += [f"/notes/{note['id']}" for note in reader.get_json("/notes.json") if "alert" in note["text"]][:4]
    reader.complaints.clear()
    reader.asked.clear()
    seen = ""
    for address in addresses:
        page = reader.open(address)
        assert page.evaluate("window.pwned") is None, address
        assert page.evaluate("document.scripts.length") == 1, address
        assert page.evaluate(f"document.querySelectorAll({HARMFUL!r}).length") == 0, address
        assert page.evaluate(TURNED) is None, address
        links = page.evaluate("[...document.links].map(link => link.getAttribute('href'))")
        assert all(link.startswith(("/", "#")) and not link.startswith("//") for link in links), address
        seen += page.evaluate("document.querySelector('main').textContent")
        if address in kinds:
            check_looks(page, address)
    assert "[U+202E]" in seen, "characters that turn text are written out"
    assert "<script>window.pwned" in seen and "onerror=" in seen and "<form action=//evil" in seen, "as text"
    assert [text for text in reader.complaints if "404" not in text] == []
    outside = [url for url in reader.asked if not url.startswith(f"{server.url}/") or "pwned" in url.partition("?")[0]]
    assert outside == []


def check_looks(page: Any, address: str) -> None:
    """Check that a page stays where it is, fits every width, and can be read in both themes."""
    assert page.evaluate(SHIFTS) < 0.01, f"{address} moves while it is loaded"
    assert page.evaluate("document.querySelectorAll('h1').length") == 1, address
    for width, colours in LOOKS if FULL else LOOKS[:2]:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=colours)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, (address, width)
        faint = [text for text in page.evaluate(CONTRASTS) if text["ratio"] < 4.5]
        assert faint == [], (address, colours)
    page.set_viewport_size({"width": 1600, "height": 900})


def test_the_browser_would_refuse_scripts_of_others(reader: Any) -> None:
    page = reader.open("/notes")
    for script in ("document.body.innerHTML = '<b>x</b>'", "document.write('x')", "setTimeout('window.pwned = 1')"):
        refused = page.evaluate(f"(() => {{ try {{ {script}; return null }} catch (e) {{ return e.name }} }})()")
        assert refused in ("TypeError", "EvalError")


@pytest.mark.skipif(not AXE.is_file(), reason=f"{NO_AGENTS}: axe-core comes with them")
def test_axe_finds_no_serious_violation(reader: Any) -> None:
    source = AXE.read_text()
    for address in reader.list_addresses():
        page = reader.open(address)
        page.evaluate(source)
        assert page.evaluate(RUN_AXE) == [], address


def test_reading_and_searching_work_without_scripts(make_reader: Any) -> None:
    plain = make_reader(java_script_enabled=False)
    page = plain.page
    page.goto(plain.server.url + "/sessions")
    page.fill(".filter input[name=q]", "pytest order")
    page.click(".filter button")
    assert "with these words" in page.inner_text("main")
    page.click("main td a >> nth=0")
    assert page.locator(".timeline > li").count() > 3
    page.goto(plain.server.url + "/notes")
    assert page.locator("form[data-action] button").first.is_disabled(), "changes need scripts"
    plain.context.close()


def test_the_keyboard_reaches_content_and_search(reader: Any) -> None:
    page = reader.open("/sessions")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.focus(".search input")
    page.keyboard.type("docker logs")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sessions?q=docker+logs")
    assert page.locator("tbody tr").count() >= 1


@pytest.fixture
def own_home(tmp_path: Path) -> Any:
    """A home with the samples, in which a test may decide."""
    settings = make_settings(tmp_path)
    with Warmstart(settings) as ws:
        ws.ingest(SAMPLES)
        ws.learn()
        for note in ws.notes.list(status="active"):
            if note.key.startswith("message:error response from daemon"):
                with ws.store.writing():  # as if it were learned and waited
                    ws.store.run("put_note", _propose(note))
    return settings


def _propose(note: Any) -> tuple[Any, ...]:
    waiting = structs.replace(note, status="proposed", decision="policy: waits")
    return (note.id, note.project, note.scope, note.kind, "proposed", json.encode(waiting).decode(), 1.0)


def test_from_an_error_to_a_note_in_a_brief(browser: Any, own_home: Any) -> None:
    """The whole way: the error's row, its occurrences, the note that waits, approval, and the brief of a new session."""
    with UiServer(own_home, port=0) as server:
        person = Reader(browser, server)
        page = person.open("/errors")
        row = page.locator(".errors > li", has_text="No such container")
        row.locator(".onward a").first.click()
        page.wait_for_selector("text=The note about it")
        assert page.locator("tbody tr").count() >= 2
        page.fill("form[data-action='notes/approve'] input[name=reason]", "seen it myself")
        page.click("form[data-action='notes/approve'] button")
        page.wait_for_selector("#said:has-text('is active')")
        page.click("section:has-text('The note about it') a")
        page.wait_for_selector("text=approved: seen it myself")
        page.fill("form[data-action='notes/brief'] input[name=task]", "look at the api logs")
        page.click("form[data-action='notes/brief'] button")
        page.wait_for_selector(".preview pre:has-text('docker logs api')")
        # and an error without a note: make one
        key = person.get_json("/sessions.json?q=checkout+flaky")["sessions"][0]["key"]
        person.open(f"/sessions/{key}")
        page.click("#call-2 summary:has-text('Make a note')")
        page.fill("#call-2 input[name=text]", "Start the payment service before the checkout tests")
        page.click("#call-2 button")
        page.wait_for_url("**/notes/*")
        page.fill("form[data-action='notes/brief'] input[name=task]", "checkout")
        page.click("form[data-action='notes/brief'] button")
        page.wait_for_selector(".preview pre:has-text('Start the payment service')")
        assert person.complaints == []
        person.context.close()
    with Warmstart(own_home) as ws:
        (note,) = [one for one in ws.notes.list(status="active") if "payment service" in one.text]
        ws.learn()
        assert ws.notes.show(note.id).note.status == "active", "a person's note survives learning"


def test_a_running_session_appears_and_grows(browser: Any, own_home: Any) -> None:
    folder = own_home.user_home / ".claude" / "projects" / "live"
    folder.mkdir(parents=True)
    (sample,) = [file for file in (SAMPLES / "claude_code").rglob("*.jsonl") if file.stem.startswith("9bffddcc")]
    lines = sample.read_text().replace("9bffddcc", "aaaaaaaa").splitlines(keepends=True)
    with UiServer(own_home, port=0) as server:
        person = Reader(browser, server)
        page = person.open("/live")
        page.wait_for_selector("[data-live=open]", state="attached")
        transcript = folder / "aaaaaaaa-2cad-4dc5-af66-528454d082a1.jsonl"
        transcript.write_text("".join(lines[: len(lines) // 2]))
        page.wait_for_selector(".live li:has-text('calls')", timeout=30_000)
        page.click(".live li a >> nth=0")
        page.wait_for_selector(".timeline > li")
        calls = page.locator(".timeline > li").count()
        transcript.write_text("".join(lines))
        page.wait_for_selector(f".timeline > li >> nth={calls}", state="attached", timeout=30_000)
        person.open("/")
        page.click("form[data-action='work/ingest'] button")
        page.wait_for_selector("text=ingest has ended", timeout=30_000)
        assert person.complaints == []
        person.context.close()
    shutil.rmtree(folder)
