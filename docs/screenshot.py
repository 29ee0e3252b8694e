"""Take the README's screenshot of the page again: what a reader with a 1440 x 960 window sees, over an element of C.

    python docs/screenshot.py    # docs/page.png; drives the Chromium on the PATH, in light

No test holds the file, since each machine has letters of its own.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from layoutgen import draw

FILE = Path(__file__).parent / "page.png"
SPEC, THREAD = "warptile_128x128", 45
SIZE = {"width": 1440, "height": 960}


def main() -> None:
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        raise SystemExit("no Chromium on the PATH")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = draw.draw(SPEC, Path(folder) / "page.html", thread=THREAD, shape=(4096, 4096, 4096))
        browser = playwright.chromium.launch(executable_path=chromium, chromium_sandbox=False, args=["--disable-gpu"])
        page = browser.new_page(viewport=SIZE, color_scheme="light")  # type: ignore[arg-type]
        page.goto(page_file.resolve().as_uri())
        page.click("button[data-view=lane]")
        page.screenshot(path=FILE)
        browser.close()


if __name__ == "__main__":
    main()
