"""Film a review without a catalogue: python tools/draw_film.py caltech24.zip.

`caltech24.zip` has photographs of Caltech 101 (CaltechDATA 2022, CC BY 4.0), one folder per class. The first twelve of
five classes, the fourth to the eighth by name, are one folder of sixty, in an order drawn with seed 0. `handful review
photos` is run as *First steps* gives it, and every question is answered by the truth. Writes film.webp, one frame for
each thing that a person does, and three pictures of it, film_1.jpg to film_3.jpg, to docs/images; prints the number of
decisions, of right labels, and the seconds of the film. Chromium takes the pictures, through Playwright.
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

from draw_tour import IMAGES, MOST_MILLISECONDS, answer, chromium, words

if TYPE_CHECKING:
    from playwright.sync_api import Page, ViewportSize

REVIEW = "handful review photos/"
LABELS = "photos.labels.csv"
FILM = IMAGES / "film.webp"
# The revision of the catalogue that a page shows.
REVISION = "Number(document.documentElement.dataset.number)"
# Whether every photograph in the window is drawn; those below it may load later.
DRAWN = """() => [...document.images].every((image) => {
  const { top, bottom, width } = image.getBoundingClientRect();
  return image.complete || !width || bottom < 0 || top > innerHeight;
})"""
# The first class by name, how many there are, and photographs of each.
FIRST, CLASSES, EACH = 3, 5, 12
# Decisions after which the second picture is taken.
MIDDLE = 4
# Small enough that words can be read where a README shows it.
SIZE: ViewportSize = {"width": 1200, "height": 730}
# Of the pictures, and of the film.
QUALITY, FILM_QUALITY = 50, 45
# How hard the encoder of the film tries, of 6: more takes minutes and saves little.
EFFORT = 4
# How long a frame stays: a question, a letter that is typed, marks, and the end, in milliseconds.
READ, LETTER, MARKED, END = 1500, 110, 900, 5000


class Film:
    """Frames of a page, and how long each of them stays."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.frames: list[Image.Image] = []
        self.milliseconds: list[int] = []

    def take(self, milliseconds: int) -> None:
        """Add what the page shows; a frame that is as the one before it makes that one longer."""
        self.page.wait_for_function(DRAWN)
        shot = self.page.screenshot(animations="disabled", caret="initial")
        frame = Image.open(BytesIO(shot)).convert("RGB")
        if self.frames and frame == self.frames[-1]:
            self.milliseconds[-1] += milliseconds
            return
        self.frames.append(frame)
        self.milliseconds.append(milliseconds)

    def keep(self, number: int) -> None:
        """Write the newest frame as a picture."""
        place = IMAGES / f"film_{number}.jpg"
        self.frames[-1].save(place, quality=QUALITY, optimize=True)
        print(f"{place}: {place.stat().st_size / 1000:.0f} kB")

    def write(self) -> None:
        """Write all frames."""
        first, *others = self.frames
        first.save(
            FILM,
            save_all=True,
            append_images=others,
            duration=self.milliseconds,
            loop=0,
            quality=FILM_QUALITY,
            method=EFFORT,
        )
        seconds = sum(self.milliseconds) / 1000
        print(f"{FILM}: {len(self.frames)} frames, {seconds:.0f} seconds, {FILM.stat().st_size / 1000:.0f} kB")


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


def review(page: Page, film: Film, truth: dict[str, str]) -> None:
    """Answer all questions, and finish."""
    first = page.evaluate(REVISION)
    decisions = 0
    while page.locator("#asked.end").count() == 0:
        film.take(READ)
        if decisions == MIDDLE:
            film.keep(2)
            print(page.locator("#asked h2").inner_text(), page.locator("#progress-said").inner_text())
        answer(page, truth, typed=lambda: film.take(LETTER), marked=lambda: film.take(MARKED))
        if decisions == 0:
            film.keep(1)
        decisions = page.evaluate(REVISION) - first
    page.locator("#to-all").click()
    page.keyboard.press("-")
    film.take(END)
    film.keep(3)
    page.keyboard.press("s")
    page.wait_for_selector("#sure[open]")
    page.keyboard.press("Enter")
    page.wait_for_selector("html[data-finished]")
    print(f"all {len(truth)} photographs seen in {decisions} decisions")


def photograph(page: Page, folder: Path, truth: dict[str, str]) -> None:
    """Review the photographs, and write the film and its pictures."""
    server = subprocess.Popen(words(f"{REVIEW} --no-open"), cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        page.goto(server.stdout.readline().split()[-1])
        page.wait_for_selector("html[data-ready]")
        film = Film(page)
        review(page, film, truth)
        film.write()
        server.wait(timeout=MOST_MILLISECONDS / 1000)
        print(server.stdout.read())
    finally:
        server.kill()


def main() -> None:
    """Film a review, and print what was done."""
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
