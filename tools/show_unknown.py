"""Photograph the page about a batch with two unknown classes: python tools/show_unknown.py caltech24.zip.

Writes docs/images/none_of_these.jpg. The archive has one folder of photographs per class (24 categories of Caltech-101,
CC BY 4.0). The catalogue holds five of each, but no crab and no cannon; the batch holds all crabs and cannons, and
twelve photographs each of five other classes. Chromium takes the picture.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from PIL import Image

from handful.cli.main import main

PLACE = Path(__file__).resolve().parents[1] / "docs" / "images" / "none_of_these.jpg"
GONE, PRESENT = ("cannon", "crab"), ("bass", "beaver", "bonsai", "mandolin", "saxophone")
SHOTS, OF_CLASS = 5, 12
COMMAND = "classify --catalogue photos/ --batch new_photos/ --out labels.csv --report labels.html"
# Pixels: the page down to the last group, and the picture in the documents.
WIDTH, HEIGHT, SHOWN_WIDTH = 1180, 1290, 1000


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


def photograph(page: Path, place: Path) -> None:
    """Take a picture of the top of a page."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("chromium was not found; install it")
    shot = page.with_suffix(".png")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={WIDTH},{HEIGHT}"]
    subprocess.run([browser, *options, f"--screenshot={shot}", page.as_uri()], check=True, capture_output=True)
    with Image.open(shot) as picture:
        height = round(picture.height * SHOWN_WIDTH / picture.width)
        small = picture.convert("RGB").resize((SHOWN_WIDTH, height), Image.Resampling.LANCZOS)
        small.save(place, quality=80, optimize=True, progressive=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        lay_out(Path(sys.argv[1]), folder)
        words = [
            str(folder / word) if word.startswith(("photos", "new_", "labels")) else word for word in COMMAND.split()
        ]
        if main(words) != 0:
            raise SystemExit(1)
        photograph(folder / "labels.html", PLACE)
        print(f"{PLACE}: {PLACE.stat().st_size / 1000:.0f} kB")
