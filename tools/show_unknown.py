"""Photograph the page of a batch with two unknown classes: python tools/show_unknown.py caltech24.zip.

Writes none_of_these.jpg, review.jpg and review_phone.jpg to docs/images. The archive has one folder of photographs per
class (24 categories of Caltech-101, CC BY 4.0). The catalogue holds five of each, but no crab and no cannon; the batch
holds all crabs and cannons, and twelve photographs each of five other classes. Chromium takes the pictures, through
Playwright.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Literal

from handful.cli.main import main

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
GONE, PRESENT = ("cannon", "crab"), ("bass", "beaver", "bonsai", "mandolin", "saxophone")
SHOTS, OF_CLASS = 5, 12
COMMAND = "classify --catalogue photos/ --batch new_photos/ --out labels.csv --report labels.html"
# A busy machine takes its time.
MOST_MILLISECONDS = 180_000
# What is photographed: file, what is clicked and pressed, width, height and colours.
PICTURES: tuple[tuple[str, str, tuple[int, int], Literal["light", "dark"]], ...] = (
    ("none_of_these.jpg", "#proposal-list .choice", (1360, 900), "light"),
    ("review.jpg", "#views .choice", (1360, 900), "light"),
    ("review_phone.jpg", "#views .choice", (390, 780), "dark"),
)


def lay_out(archive: Path, folder: Path) -> None:
    """Write the photographs as `photos/` and `new_photos/`; names in the batch tell what is on a picture."""
    with zipfile.ZipFile(archive) as photographs:
        files = sorted(name for name in photographs.namelist() if name.endswith(".jpg"))
        for kind in sorted({name.split("/")[0] for name in files}):
            mine = [name for name in files if name.startswith(f"{kind}/")]
            examples = [] if kind in GONE else mine[:SHOTS]
            items = mine if kind in GONE else mine[SHOTS : SHOTS + OF_CLASS] if kind in PRESENT else []
            for name in examples:
                (folder / "photos" / kind).mkdir(parents=True, exist_ok=True)
                (folder / "photos" / name).write_bytes(photographs.read(name))
            for name in items:
                (folder / "new_photos").mkdir(parents=True, exist_ok=True)
                (folder / "new_photos" / name.replace("/", "_")).write_bytes(photographs.read(name))


def photograph(page: Path) -> None:
    """Take the pictures of a page: one of its filters is chosen, and then its first item."""
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        raise SystemExit("Chromium was not found; install it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for name, chosen, (width, height), colours in PICTURES:
            opened = browser.new_page(viewport={"width": width, "height": height}, color_scheme=colours)
            opened.set_default_timeout(MOST_MILLISECONDS)
            opened.goto(page.as_uri())
            opened.wait_for_selector("html[data-ready]")
            if colours == "light":
                opened.locator(chosen).first.click()
            opened.keyboard.press("ArrowDown")
            place = IMAGES / name
            opened.screenshot(path=str(place), type="jpeg", quality=80)
            print(f"{place}: {place.stat().st_size / 1000:.0f} kB")
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        lay_out(Path(sys.argv[1]), folder)
        words = [
            str(folder / word) if word.startswith(("photos", "new_", "labels")) else word for word in COMMAND.split()
        ]
        if main(words) != 0:
            raise SystemExit(1)
        photograph(folder / "labels.html")
