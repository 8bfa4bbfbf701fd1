"""Photograph a review without a catalogue: python tools/draw_from_nothing.py caltech24.zip.

`caltech24.zip` has photographs of Caltech 101 (CaltechDATA 2022, CC BY 4.0), one folder per class. The first twelve of
five classes, the fourth to the eighth by name, are one folder of sixty, in an order drawn with seed 0. `handful review
photos` is run as *First steps* gives it, and every question is answered by the truth, with keys. Writes nothing_1.jpg
to nothing_3.jpg to docs/images, and prints the number of decisions and of right labels. Chromium takes the pictures,
through Playwright.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
import zipfile
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from draw_tour import IMAGES, MOST_MILLISECONDS, answer, asked, chromium, words

if TYPE_CHECKING:
    from playwright.sync_api import Page, ViewportSize

REVIEW = "handful review photos/"
LABELS = "photos.labels.csv"
# The revision of the catalogue that a page shows.
REVISION = "Number(document.documentElement.dataset.number)"
# The first class by name, how many there are, and photographs of each.
FIRST, CLASSES, EACH = 3, 5, 12
# Decisions after which the second picture is taken.
MIDDLE = 4
SIZE: ViewportSize = {"width": 1280, "height": 760}
QUALITY = 58


def lay_out(archive: Path, folder: Path) -> dict[str, str]:
    """Write the photographs into one folder, and return the class of each."""
    folder.mkdir()
    truth = {}
    with zipfile.ZipFile(archive) as photographs:
        files = sorted(name for name in photographs.namelist() if name.endswith(".jpg"))
        kinds = sorted({name.split("/")[0] for name in files})[FIRST : FIRST + CLASSES]
        items = [name for kind in kinds for name in [f for f in files if f.startswith(f"{kind}/")][:EACH]]
        for number, at in enumerate(np.random.default_rng(0).permutation(len(items)).tolist()):
            truth[f"{number:03}.jpg"] = items[at].split("/")[0]
            (folder / f"{number:03}.jpg").write_bytes(photographs.read(items[at]))
    return truth


def take(page: Page, number: int) -> None:
    """Write a picture of the page."""
    place = IMAGES / f"nothing_{number}.jpg"
    seen = "[...document.images].filter((image) => image.offsetParent)"
    page.evaluate(f"Promise.all({seen}.map((image) => image.decode().catch(() => null)))")
    Image.open(BytesIO(page.screenshot())).convert("RGB").save(place, quality=QUALITY, optimize=True)
    print(f"{place}: {place.stat().st_size / 1000:.0f} kB")


def photograph(page: Page, folder: Path, truth: dict[str, str]) -> None:
    """Review the photographs, and take three pictures."""
    server = subprocess.Popen(words(f"{REVIEW} --no-open"), cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        page.goto(server.stdout.readline().split()[-1])
        page.wait_for_selector("html[data-ready]")
        first = page.evaluate(REVISION)
        decisions = 0
        page.locator("#name-field").press_sequentially(truth[asked(page)[0]])
        take(page, 1)
        while page.locator("#asked.end").count() == 0:
            if decisions == MIDDLE:
                take(page, 2)
                print(page.locator("#asked h2").inner_text(), page.locator("#progress-said").inner_text())
            answer(page, truth)
            decisions = page.evaluate(REVISION) - first
        page.keyboard.press("s")
        page.wait_for_selector("#sure[open]")
        page.keyboard.press("Enter")
        page.wait_for_selector("html[data-finished]")
        take(page, 3)
        print(f"all {len(truth)} photographs seen in {decisions} decisions")
        server.wait(timeout=MOST_MILLISECONDS / 1000)
        print(server.stdout.read())
    finally:
        server.kill()


def main() -> None:
    """Take the pictures, and print what was done."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as work, sync_playwright() as playwright:
        folder = Path(work)
        truth = lay_out(Path(sys.argv[1]), folder / "photos")
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.set_default_timeout(MOST_MILLISECONDS)
        photograph(page, folder, truth)
        browser.close()
        with (folder / LABELS).open(encoding="utf-8") as stream:
            right = sum(row["label"] == truth[row["item"]] for row in csv.DictReader(stream))
        print(f"{right} of {len(truth)} labels are right")


if __name__ == "__main__":
    main()
