"""Make the pictures of `warmstart ui` from the samples: `python docs/images/make_ui.py`. Needs Chromium and playwright."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from msgspec import structs
from playwright.sync_api import sync_playwright

from warmstart import config
from warmstart.doors.ui.server import UiServer
from warmstart.pipeline import Warmstart

HERE = Path(__file__).resolve().parent
SAMPLES = HERE.parents[1] / "src" / "warmstart" / "samples"
LARGEST = 150_000  # bytes
WIDTH = 1260
SHOWN = {"ui-errors": ("/errors", 1000, "light"), "ui-session": ("", 820, "dark"), "ui-notes": ("/notes", 700, "light")}


def make_pictures(chromium: str) -> None:
    """Read the samples into a temporary home and photograph three pages."""
    with tempfile.TemporaryDirectory() as folder:
        settings = structs.replace(config.load(Path(folder) / "home"), user_home=Path(folder), places={})
        with Warmstart(settings) as ws:
            ws.ingest(SAMPLES)
            ws.learn()
            session = ws.sessions()[4].key
        with UiServer(settings, port=0) as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            for name, (address, height, colours) in SHOWN.items():
                size = {"width": WIDTH, "height": height}
                page = browser.new_page(viewport=size, color_scheme=colours)
                page.goto(server.make_link())
                page.goto(server.url + (address or f"/sessions/{session}?errors=1#calls"))
                page.wait_for_selector("main:not(:has([data-pending]))")
                picture = HERE / f"{name}.png"
                page.screenshot(path=str(picture))
                page.close()
                if picture.stat().st_size > LARGEST:
                    raise SystemExit(f"{picture.name} is larger than {LARGEST:,} bytes; make it smaller")
            browser.close()


if __name__ == "__main__":
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        raise SystemExit("no Chromium on the path; install one and run this again")
    make_pictures(found)
