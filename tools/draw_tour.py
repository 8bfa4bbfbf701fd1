"""Photograph a review: python tools/draw_tour.py. Writes tour_1.png to tour_3.png to docs/images.

`handful demo` writes the catalogue, one sentence of each of 150 intents (CLINC150), and the batch: of 20, the tenth
from the worst, before any answer. The commands are run as *First steps* gives them; all questions and sheets are then
answered by the truth. Prints how many labels are right before and after them, and what the page says of each answer.
Chromium takes the pictures, through Playwright.
"""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from handful.datasets import load_clinc150, load_clinc150_sentences

if TYPE_CHECKING:
    from playwright.sync_api import Page, ViewportSize

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
DEMO = "handful demo --out tour"
BUILD = "handful catalogue build tour/catalogue.npz --out tour/intents.handful"
REVIEW = "handful review tour/intents.handful tour/batch.npz"
# What the demo wrote about the same batch.
BEFORE = "tour/labels.csv"
AFTER = "batch.labels.csv"
# The revision of the catalogue that a page shows.
REVISION = "Number(document.documentElement.dataset.number)"
COLOURS = 192
SIZE: ViewportSize = {"width": 1280, "height": 720}
# A busy machine takes its time.
MOST_MILLISECONDS = 180_000
TERMINAL = "margin:0;padding:18px 22px;background:#12161b;color:#e6edf3;font:15px/1.6 monospace;width:680px"


def lay_out(folder: Path) -> dict[str, str]:
    """Run the demo, which writes the catalogue and the batch; return the intent of each sentence of the batch."""
    output(DEMO, folder)
    bank = load_clinc150()
    intents = np.array(bank.class_names)[bank.labels].tolist()
    intent_of = dict(zip(load_clinc150_sentences(), intents, strict=True))
    with np.load(folder / "tour" / "batch.npz") as batch:
        return {sentence: intent_of[sentence] for sentence in batch["text"].tolist()}


def words(command: str) -> list[str]:
    """Return a command as it is run by this Python."""
    return [sys.executable, "-m", *command.split()]


def output(command: str, folder: Path) -> str:
    """Run a command and return what it prints."""
    return subprocess.run(words(command), cwd=folder, check=True, capture_output=True, text=True).stdout


def right(table: Path, truth: dict[str, str]) -> str:
    """Return how many labels of a table are right."""
    with table.open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    return f"{sum(row['label'] == truth[row['text']] for row in rows)} of {len(rows)} right"


def asked(page: Page) -> list[str]:
    """Return the names of the photographs that are asked about, or the sentences."""
    pictures = page.locator("#asked .tile img").all() or page.locator("#asked .content .large img").all()
    texts = page.locator("#asked .tile .words, #asked blockquote").all_inner_texts()
    return [picture.get_attribute("alt") or "" for picture in pictures] or texts


def nothing() -> None:
    """Do nothing."""


def answer(
    page: Page, truth: dict[str, str], typed: Callable[[], None] = nothing, marked: Callable[[], None] = nothing
) -> None:
    """Answer what is asked, a question or a sheet, and wait until the batch is labelled again.

    `typed` is called after each letter of a name, `marked` once everything is said and before it is sent.
    """
    number = page.evaluate("document.documentElement.dataset.number")
    labels = [truth[name] for name in asked(page)]
    label = Counter(labels).most_common(1)[0][0]
    asks_name = page.locator("#name-field").count() > 0
    tiles = page.locator("#asked .tile").all()
    if tiles:
        shown = page.locator("#asked .tile .label").all_inner_texts()
        offered = label if asks_name or shown else page.locator("#asked h2 b").first.inner_text()
        for tile, one, said in zip(tiles, labels, shown or [offered] * len(tiles), strict=True):
            if (one != said) != (tile.get_attribute("aria-pressed") == "true"):
                tile.click()
                marked()
    choices = page.locator("#asked .choose .of bdi").all_inner_texts()
    if tiles and not asks_name:
        page.keyboard.press("Enter")
    elif label in choices:
        page.keyboard.press(str(choices.index(label) + 1))
    else:
        page.keyboard.press("c")
        field = page.locator("#name-field" if asks_name else "#words")
        field.clear()
        for letter in label:
            field.press_sequentially(letter)
            typed()
        marked()
        field.press("Enter")
    page.wait_for_selector(f"html:not([data-busy]):not([data-number='{number}'])")


def take(page: Page, number: int, only: str | None = None) -> None:
    """Write a picture of the page, or of one element of it, in few colours: it has no photographs."""
    place = IMAGES / f"tour_{number}.png"
    shot = page.screenshot() if only is None else page.locator(only).screenshot()
    Image.open(BytesIO(shot)).convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(place, optimize=True)
    print(f"{place}: {place.stat().st_size / 1000:.0f} kB")


def photograph(page: Page, folder: Path, truth: dict[str, str]) -> None:
    """Build the catalogue, review the batch, and take a picture of each step."""
    said = f"$ {BUILD}\n{output(BUILD, folder)}$ {REVIEW}\n"
    server = subprocess.Popen(words(f"{REVIEW} --no-open"), cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        announced = server.stdout.readline()
        address = announced.split()[-1]
        shown = announced.replace(address.partition("=")[2] or address, "…")
        page.set_content(f"<body style='margin:0'><pre style='{TERMINAL}'>{escape(said + shown)}</pre>")
        take(page, 1, "pre")
        page.goto(address)
        page.wait_for_selector("html[data-ready]")
        take(page, 2)
        decisions = 0
        first = page.evaluate(REVISION)
        while page.locator("#asked.end").count() == 0:
            answer(page, truth)
            decisions = page.evaluate(REVISION) - first
            note = page.locator("#note")
            print(f"decision {decisions}: {note.inner_text() if note.is_visible() else ''}")
        take(page, 3)
        print(f"all {len(truth)} sentences seen in {decisions} decisions")
        page.keyboard.press("s")
        page.wait_for_selector("#sure[open]")
        page.keyboard.press("Enter")
        page.wait_for_selector("html[data-finished]")
        server.wait(timeout=MOST_MILLISECONDS / 1000)
    finally:
        server.kill()


def chromium() -> str:
    """Return where Chromium is."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        raise SystemExit("Chromium was not found; install it")
    return found


def main() -> None:
    """Take the pictures, and print what the answers gained."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as work, sync_playwright() as playwright:
        folder = Path(work)
        truth = lay_out(folder)
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.set_default_timeout(MOST_MILLISECONDS)
        photograph(page, folder, truth)
        browser.close()
        print(f"before: {right(folder / BEFORE, truth)}")
        print(f"after: {right(folder / AFTER, truth)}")


if __name__ == "__main__":
    main()
