"""Review ten folders of photographs as a person who knows the truth: python perf/ten_folders.py caltech24.zip KEPT.

`caltech24.zip` has photographs of Caltech 101 (CaltechDATA 2022, CC BY 4.0), one folder per class. Each folder has 5 to
20 kinds of unequal sizes, 60 to 600 photographs if the archive has as many, one of them 600, and what people's folders
have besides: HEIC, duplicates, rotated copies, blank pictures, broken and empty files, a video, notes. The folders are
laid out in `KEPT`, where their vectors stay for the next run. `handful review` is run as it is; a person at the page
answers until everything has been seen, by keyboard, or with a finger on a phone (`--touch`). Prints the decisions and
the wrong labels of each folder, median and worst; folders that `--out` has already are not reviewed again. `--code`
takes another checkout, such as an older version, whose package and whose person are used. The extra `heic` is needed.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import io
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

HERE = Path(__file__).resolve().parents[1]
FOLDERS, LEAST_KINDS, MOST_KINDS, LEAST_PHOTOGRAPHS, MOST_PHOTOGRAPHS = 10, 5, 20, 60, 600
# The folder that has as many as that: it has most kinds, and the archive has few photographs of each.
LARGEST = 7
# Photographs are reduced: what is counted are decisions.
PIXELS = 320
VIEWPORT = {"width": 390, "height": 844}
# A busy machine takes its time.
MOST_MILLISECONDS = 300_000
MOST_DECISIONS = 400


def lay_out(archive: Path, folder: Path, seed: int) -> dict[str, str]:
    """Write a folder of photographs, and return the kind of each that can be read."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    truth = {}
    with zipfile.ZipFile(archive) as photographs:
        files = sorted(name for name in photographs.namelist() if name.endswith(".jpg"))
        by_kind: dict[str, list[str]] = {}
        for name in files:
            by_kind.setdefault(name.split("/")[0], []).append(name)
        n_kinds = int(rng.integers(LEAST_KINDS, MOST_KINDS + 1))
        kinds = rng.choice(sorted(by_kind), n_kinds, replace=False).tolist()
        n = int(rng.integers(LEAST_PHOTOGRAPHS, MOST_PHOTOGRAPHS + 1))
        shares = rng.dirichlet(np.full(n_kinds, 1.5))
        there = np.array([len(by_kind[kind]) for kind in kinds])
        sizes = np.clip(np.round(n * shares), 1, there).astype(int)
        while seed == LARGEST and sizes.sum() < MOST_PHOTOGRAPHS:
            sizes = np.minimum(sizes + 1, there)
        items = []
        for kind, some in zip(kinds, sizes.tolist(), strict=True):
            items += [(kind, name) for name in rng.permutation(by_kind[kind])[:some]]
        order = rng.permutation(len(items)).tolist()
        pictures = [(items[at][0], small(photographs.read(str(items[at][1])))) for at in order]
    again = [(kind, turned(content)) for kind, content in pictures[:3]] + pictures[3:6]
    blank = [("blank", jpeg(Image.new("RGB", (PIXELS, PIXELS), (shade,) * 3))) for shade in (0, 120, 255)]
    for number, (kind, content) in enumerate([*pictures, *again, *blank]):
        name = f"IMG_{1000 + number}.JPG"
        truth[name] = kind
        (folder / name).write_bytes(content)
    for number, (kind, content) in enumerate(pictures[6:8]):
        name = f"IMG_{8000 + number}.HEIC"
        truth[name] = kind
        (folder / name).write_bytes(encoded(Image.open(io.BytesIO(content)), "HEIF"))
    broken = {
        "IMG_9001.JPG": pictures[0][1][:900],
        "IMG_9002.JPG": b"",
        "MVI_0001.MOV": b"xx",
        "notes.txt": b"camera 3",
    }
    for name, content in broken.items():
        (folder / name).write_bytes(content)
    return truth


def small(content: bytes) -> bytes:
    """Return a photograph that is reduced."""
    image = Image.open(io.BytesIO(content)).convert("RGB")
    image.thumbnail((PIXELS, PIXELS))
    return jpeg(image)


def turned(content: bytes) -> bytes:
    """Return a photograph that is turned, and says so."""
    exif = Image.Exif()
    exif[0x0112] = 6
    return jpeg(Image.open(io.BytesIO(content)).rotate(90, expand=True), exif=exif)


def jpeg(image: Image.Image, **about: Any) -> bytes:
    """Return a picture as JPEG."""
    return encoded(image, "JPEG", **about)


def encoded(image: Image.Image, how: str, **about: Any) -> bytes:
    """Return a picture as a file of this format."""
    stream = io.BytesIO()
    image.save(stream, how, quality=90, **about)
    return stream.getvalue()


def by_touch(person: Any, shown: dict[str, Any]) -> None:
    """Answer what is shown with a finger."""
    page = person.page
    number = page.evaluate("document.documentElement.dataset.number")
    labels = [person.truth[item] for item in shown["items"]]
    label = Counter(labels).most_common(1)[0][0]
    if shown["kind"] == "one":
        names_or_takes(person, shown, labels[0])
    elif shown["labels"]:
        for place, (said, is_marked, one) in enumerate(zip(shown["labels"], shown["marked"], labels, strict=True)):
            if (said != one) != is_marked:
                page.locator(".tile").nth(place).tap()
        page.tap("#accept-sheet")
    else:
        label = label if shown["naming"] else shown["label"]
        for place, one in enumerate(labels):
            if one != label:
                page.locator(".tile").nth(place).tap()
        if shown["naming"]:
            names_or_takes(person, shown, label)
        else:
            page.tap("#accept-sheet")
    person.settled(number)


def names_or_takes(person: Any, shown: dict[str, Any], label: str) -> None:
    """Touch the name of a class, or type it; a name that looks like another one is a class of its own."""
    page = person.page
    if label in shown["choices"]:
        page.locator("#asked .choose:has(.of)").nth(shown["choices"].index(label)).tap()
        return
    number = page.evaluate("document.documentElement.dataset.number")
    if shown["naming"]:
        page.fill("#name-field", label)
        page.locator(".naming button").tap()
    else:
        page.locator("#asked button", has_text="Other name…").tap()
        page.fill("#words", label)
        page.locator("#options li").first.tap()
    page.wait_for_selector(f"html:not([data-number='{number}']), #sure[open]")
    if page.locator("#sure[open]").count():
        page.tap("#sure-no")


def prepared(archive: Path, folder: Path, seed: int, environment: dict[str, str]) -> dict[str, str]:
    """Lay out a folder and embed it, unless that was done before; return the kind of each photograph."""
    kinds, fresh = folder / "truth.json", folder / "fresh.handful"
    if not kinds.exists():
        truth = lay_out(archive, folder / "photos", seed)
        kinds.write_text(json.dumps(truth), encoding="utf-8")
    if not fresh.exists():
        command = [sys.executable, "-c", "import handful; handful.open('photos.handful').add('photos')"]
        subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        (folder / "photos.handful").rename(fresh)
    return dict(json.loads(kinds.read_text(encoding="utf-8")))


def reviewed(folder: Path, truth: dict[str, str], environment: dict[str, str], browser: Any, touch: bool) -> list[int]:
    """Review a folder; return the decisions until everything was seen, and the wrong labels."""
    people = importlib.import_module("tests.review.person")
    command = [sys.executable, "-m", "handful", "review", "photos", "--no-open"]
    server = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        size = {"viewport": VIEWPORT, "has_touch": True, "is_mobile": True} if touch else {}
        people.Person.open = opened
        person = people.Person(browser, address, truth, [], **size)
        for _ in range(MOST_DECISIONS):
            shown = person.shown()
            if shown["kind"] == "end":
                break
            if touch:
                by_touch(person, shown)
            else:
                person.answers(shown)
        found = re.search(r"(\d+) (?:decision|answer)", person.page.locator("#progress-said").text_content())
        if touch:
            finishes_by_touch(person)
        else:
            person.finishes()
        server.wait(timeout=MOST_MILLISECONDS / 1000)
        with (folder / "photos.labels.csv").open(encoding="utf-8") as stream:
            wrong = sum(row["label"] != truth[row["item"]] for row in csv.DictReader(stream) if row["item"] in truth)
        assert found is not None
        return [int(found[1]), wrong]
    finally:
        server.kill()


def finishes_by_touch(person: Any) -> None:
    """Write the labels."""
    person.page.locator("#asked button", has_text="Finish").tap()
    person.page.wait_for_selector("#sure[open]")
    person.page.tap("#sure-yes")
    person.page.wait_for_selector("html[data-finished]")


def opened(person: Any, address: str) -> None:
    """Open the page, however long it reads photographs."""
    person.context.set_default_timeout(MOST_MILLISECONDS)
    person.page = person.context.new_page()
    person.page.on("pageerror", lambda error: person.wrong.append(str(error)))
    person.page.goto(address)
    person.page.wait_for_selector("html[data-ready]")


def main() -> None:
    """Review all folders, and print what it took."""
    from pillow_heif import register_heif_opener
    from playwright.sync_api import sync_playwright

    register_heif_opener()
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("archive", type=Path)
    parser.add_argument("kept", type=Path)
    parser.add_argument("--code", type=Path, default=HERE)
    parser.add_argument("--touch", action="store_true")
    parser.add_argument("--folders", type=int, default=FOLDERS)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    code = asked.code.resolve()
    sys.path.insert(0, str(code))
    rows = json.loads(asked.out.read_text(encoding="utf-8")) if asked.out.exists() else []
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=flags)
        for seed in range(len(rows), asked.folders):
            folder = asked.kept.resolve() / f"folder_{seed}"
            environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
            truth = prepared(asked.archive, folder, seed, environment | {"PYTHONPATH": str(HERE / "src")})
            cleared(folder)
            if code == HERE:
                shutil.copy(folder / "fresh.handful", folder / "photos.handful")
            environment["PYTHONPATH"] = str(code / "src")
            decisions, wrong = reviewed(folder, truth, environment, browser, asked.touch)
            kinds = len(set(truth.values()))
            rows.append({"kinds": kinds, "photographs": len(truth), "decisions": decisions, "wrong": wrong})
            print(rows[-1], flush=True)
            asked.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        browser.close()
    for what in ("decisions", "wrong"):
        values = [row[what] for row in rows]
        print(f"{what}: median {statistics.median(values):g}, worst {max(values)}")


def cleared(folder: Path) -> None:
    """Remove what an earlier review left."""
    for path in folder.iterdir():
        if path.name in ("photos", "truth.json", "fresh.handful"):
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


if __name__ == "__main__":
    main()
