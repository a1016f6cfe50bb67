"""Make the README's picture of the insights page from the samples: `python docs/images/make.py`. Needs Chromium."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SAMPLES = HERE.parents[1] / "src" / "warmstart" / "samples"
SIZE = "1000,1115"  # ends below the second repeated error
LARGEST = 200_000  # bytes


def make_picture(chromium: str, picture: Path) -> None:
    """Read the samples into a temporary home and photograph their insights page."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "insights.html"
        warmstart = [sys.executable, "-m", "warmstart", "--home", folder]
        for words in (["ingest", str(SAMPLES)], ["insights", "--html", str(page)]):
            subprocess.run([*warmstart, *words], check=True, stdout=subprocess.DEVNULL)
        switches = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--hide-scrollbars",
        ]
        target = [
            f"--user-data-dir={folder}/profile",
            f"--window-size={SIZE}",
            f"--screenshot={picture}",
            page.as_uri(),
        ]
        subprocess.run([chromium, *switches, *target], check=True, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        raise SystemExit("no Chromium on the path; install one and run this again")
    make_picture(browser, HERE / "insights.png")
    if (HERE / "insights.png").stat().st_size > LARGEST:
        raise SystemExit(f"insights.png is larger than {LARGEST:,} bytes; make SIZE smaller")
