"""Photograph the page of a batch with two unknown classes: python tools/show_unknown.py caltech24.zip.

Writes none_of_these.jpg, of the report, and review.jpg and review_phone.jpg, of the review, to docs/images. The archive
has one folder of photographs per class (24 categories of Caltech-101, CC BY 4.0). The catalogue holds five of each, but
no crab and no cannon; the batch holds all crabs and cannons, and twelve photographs each of five other classes.
Chromium takes the pictures, through Playwright.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from handful.cli.main import main

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
GONE, PRESENT = ("cannon", "crab"), ("bass", "beaver", "bonsai", "mandolin", "saxophone")
SHOTS, OF_CLASS = 5, 12
CLASSIFY = "classify photos/ new_photos/ --out labels.csv --out labels.html"
REVIEW = "handful review photos new_photos --no-open"
# Sheets of a review come when questions are worth less; a letter marks an exception for the picture.
MOST_ANSWERS = 12
# A busy machine takes its time.
MOST_MILLISECONDS = 180_000
WIDE: ViewportSize = {"width": 1360, "height": 900}
NARROW: ViewportSize = {"width": 390, "height": 780}


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


def take(page: Page, name: str) -> None:
    """Write a picture of the page."""
    page.wait_for_load_state("networkidle")
    place = IMAGES / name
    page.screenshot(path=str(place), type="jpeg", quality=62)
    print(f"{place}: {place.stat().st_size / 1000:.0f} kB")


def opened(browser: Browser, address: str, size: ViewportSize, colours: Literal["light", "dark"]) -> Page:
    """Open a page, and wait until it shows its items."""
    page = browser.new_page(viewport=size, color_scheme=colours)
    page.set_default_timeout(MOST_MILLISECONDS)
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    return page


def photograph_report(browser: Browser, report: Path) -> None:
    """Show the first group of unknown items, and the first of these."""
    page = opened(browser, report.as_uri(), WIDE, "light")
    page.locator("#proposal-list .choice").first.click()
    page.keyboard.press("ArrowDown")
    take(page, "none_of_these.jpg")


def photograph_review(browser: Browser, folder: Path) -> None:
    """Show the first question on a screen, and a sheet with an exception on a phone."""
    words = [sys.executable, "-m", *REVIEW.split()]
    server = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        take(opened(browser, address, WIDE, "light"), "review.jpg")
        phone = opened(browser, address, NARROW, "dark")
        for _ in range(MOST_ANSWERS):
            if phone.locator("#asked.sheet").count():
                break
            answer(phone)
        phone.locator("#asked .tile").nth(4).click()
        take(phone, "review_phone.jpg")
    finally:
        server.kill()
        server.wait()


def answer(page: Page) -> None:
    """Answer a question; the name of a photograph tells its class."""
    name = page.locator("#asked .large img").get_attribute("alt") or ""
    label = name.rpartition("_image")[0]
    number = page.evaluate("document.documentElement.dataset.number")
    page.keyboard.press("n" if label in GONE else "c")
    page.wait_for_selector("#ask[open]")
    page.keyboard.type(label)
    page.keyboard.press("Enter")
    page.wait_for_selector(f"html:not([data-busy]):not([data-number='{number}'])")


def draw(archive: Path, folder: Path) -> None:
    """Label the photographs, and take all pictures."""
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        raise SystemExit("Chromium was not found; install it")
    lay_out(archive, folder)
    paths = ("photos", "new_", "labels")
    if main([str(folder / word) if word.startswith(paths) else word for word in CLASSIFY.split()]) != 0:
        raise SystemExit(1)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        photograph_report(browser, folder / "labels.html")
        photograph_review(browser, folder)
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work:
        draw(Path(sys.argv[1]), Path(work))
