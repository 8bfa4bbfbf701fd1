"""Follow the first steps of a new user in new environments, and time them.

    python tools/newcomer.py [--without-cache] [--out TIMES.json] [PAGE ...]

This repository is cloned, as it was last committed. Each door of the README, *First steps*, *Install* and the tutorials
are then followed as written, each in an empty environment, or in one that has torch if the page installs it: the lines
of a page for a terminal, in their order, and its Python (as doctests) where it begins. So every page, and every door,
must name the extras that it needs. Where lines need a reader's own photographs or vectors, simple ones are drawn. A
review has succeeded once its page asks, and is then ended. Prints the time until each page or door gave its first
result, what it installs included, but torch apart. Exits with 1 if anything fails.

Commands that install handful are run in the clone, all others in a folder of their own, and torch stays the one that
is there: nothing else is changed. Once handful is published, its name stands for the clone. `--without-cache` leaves
out what pip has downloaded before.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.request import HTTPCookieProcessor, build_opener

from extras_cost import needs_torch

ROOT = Path(__file__).resolve().parents[1]
# In the order in which they are read.
PAGES = ("README.md", "docs/learn/first_steps.md", "docs/learn/install.md", "docs/learn/sentences.md")
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(handful (?:demo|doctor)|(?:handful\s[^`]*\s--|pip install\s)[^`]*)`")
COMMANDS = ("handful ", "pip ")
PYTHON = "Python"
# Where a way to begin starts in a page that has several.
DOOR = re.compile(r"^## (?=I have )", re.MULTILINE)
# Photographs that are drawn for the README.
N_PHOTOGRAPHS = 60
# Seconds within which a review asks, and between two looks whether it does.
PATIENCE, LOOK = 300, 0.1


def doors_of(page: str) -> dict[str, str]:
    r"""Return the ways to begin that a page has, by their headings; the whole page if it has one.

    Examples
    --------
    >>> doors_of("# x\n## I have a folder\na\n## I have a table\nb\n## Limits\nc\n")
    {'I have a folder': 'a\n', 'I have a table': 'b\n'}
    >>> doors_of("# Install\n")
    {'': '# Install\n'}
    """
    _, *doors = DOOR.split(page)
    if not doors:
        return {"": page}
    return {title: text for title, _, text in (re.split("^## ", one, flags=re.M)[0].partition("\n") for one in doors)}


def steps_of(page: str) -> list[str]:
    """Return what a page asks a reader to do, in its order and each thing once.

    Lines of blocks without a language, commands in the text that can be run, and `PYTHON` where the first block of
    Python begins.
    """
    found: list[tuple[int, str]] = []
    for block in FENCED.finditer(page):
        if block[1] == "python":
            found.append((block.start(), PYTHON))
        elif not block[1]:
            lines = block[2].replace("\\\n", " ").splitlines()
            found += [(block.start(), line) for line in lines if line.startswith(COMMANDS)]
    text = FENCED.sub(lambda block: " " * len(block[0]), page)
    found += [(inline.start(), inline[1]) for inline in INLINE.finditer(text)]
    return list(dict.fromkeys(" ".join(line.split()) for _, line in sorted(found, key=lambda step: step[0])))


def installs_torch(steps: Sequence[str]) -> bool:
    """Return whether steps install torch, by its name or by an extra that needs it.

    Examples
    --------
    >>> installs_torch(['pip install ".[images,review]"', "handful review photos/"])
    False
    >>> installs_torch(['pip install "handful[plots,torch]"'])
    True
    """
    installed = [step for step in steps if step.startswith("pip install")]
    extras = [extra for step in installed for named in re.findall(r"\[([\w,-]+)\]", step) for extra in named.split(",")]
    return any(" torch" in step for step in installed) or any(map(needs_torch, extras))


def _processor_seconds() -> float:
    """Return what the processes that were started and have ended took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def finished(command: Sequence[str], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def asked(command: Sequence[str], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a review until its page asks, and end it; a page that asks nothing has failed."""
    process = subprocess.Popen(
        [*command, "--no-open"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    printed = ""
    while "http://" not in printed and (line := process.stdout.readline()):
        printed += line
    address = re.search(r"http://\S+", printed)
    failed = address is None or not asks(address[0])
    process.terminate()
    printed += process.stdout.read()
    process.wait()
    return subprocess.CompletedProcess(command, int(failed), printed, "")


def asks(address: str) -> bool:
    """Wait until the page at an address asks; False if it ends, or does not ask in time."""
    browser = build_opener(HTTPCookieProcessor(CookieJar()))
    until = time.monotonic() + PATIENCE
    try:
        with browser.open(address, timeout=PATIENCE) as page:
            state = f"{page.url}state"
        while time.monotonic() < until:
            # Nothing is asked while the batch is being opened.
            with browser.open(state, timeout=PATIENCE) as answer:
                if json.load(answer).get("ask") is not None:
                    return True
            time.sleep(LOOK)
    except OSError as error:
        print(f"the page ended: {error}", flush=True)
    return False


def draw_photographs(folder: Path, each: int = 4) -> None:
    """Draw so many pictures of each of four classes, one folder per class."""
    from PIL import Image, ImageDraw

    for colour in ("black", "blue", "green", "red"):
        (folder / colour).mkdir(parents=True)
        for number in range(each):
            picture = Image.new("RGB", (220, 220), "white")
            edge = 20 + 60 * number // each
            ImageDraw.Draw(picture).ellipse((edge, edge, edge + 110, edge + 110), fill=colour)
            picture.save(folder / colour / f"{number}.png")


def write_messages(path: Path) -> None:
    """Write a table of messages, a third of them with a topic."""
    said = {"weather": "will it rain on {} in my town", "travel": "book a train to the sea on {}"}
    days = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
    rows = [(text.format(day), topic if at < 2 else "") for topic, text in said.items() for at, day in enumerate(days)]
    path.write_text("text,topic\n" + "".join(f"{text},{topic}\n" for text, topic in rows), encoding="utf-8")


def draw_vectors(folder: Path) -> None:
    """Draw six classes of vectors: catalogue.parquet with their intents, and batch.parquet with two of them."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    centres = rng.normal(size=(6, 16))
    for name, codes in (("catalogue", np.arange(6).repeat(4)), ("batch", np.arange(2).repeat(10))):
        vectors = centres[codes] + 0.3 * rng.normal(size=(len(codes), 16))
        columns = {"embedding": vectors.tolist()}
        if name == "catalogue":
            columns["intent"] = [f"intent {code}" for code in codes]
        parquet.write_table(pa.table(columns), folder / f"{name}.parquet")


class Newcomer:
    """A new environment, and a record of what was done in it and how long it took."""

    def __init__(self, place: Path, *, cached: bool = True) -> None:
        self.place = place
        self.cached = cached
        self.bin = place / "beneath" / "bin"
        self.steps: list[dict[str, Any]] = []

    @property
    def environment(self) -> dict[str, str]:
        """Nothing of the caller's Python: neither its packages nor its paths."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
        path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        return {**kept, "PATH": path, "COLUMNS": "120", **({} if self.cached else {"PIP_NO_CACHE_DIR": "1"})}

    def do(self, what: str, command: Sequence[str], within: Path | None = None, **extra: str) -> bool:
        """Run a command, note its seconds and whether it succeeded, and print its output if it did not."""
        begun = time.perf_counter()
        used = _processor_seconds()
        run = asked if "review" in command else finished
        done = run(command, within or self.place, {**self.environment, **extra})
        seconds, processor = time.perf_counter() - begun, _processor_seconds() - used
        times = {"seconds": round(seconds, 1), "processor_seconds": round(processor, 1)}
        self.steps.append({"what": what, **times, "ended_well": done.returncode == 0})
        print(
            f"{'ok  ' if done.returncode == 0 else 'FAIL'} {seconds:7.1f} s, {processor:6.1f} of processor  {what}",
            flush=True,
        )
        if done.returncode:
            print(done.stdout[-4000:], done.stderr[-4000:], sep="\n", flush=True)
        return done.returncode == 0

    def prepare(self, torch: str) -> None:
        """Clone the repository, and make the environment that has torch."""
        self.do("git clone", ["git", "clone", "--quiet", str(ROOT), "handful"])
        self.do("python -m venv", [sys.executable, "-m", "venv", "beneath"])
        self.do(f"pip install {torch}", [str(self.bin / "python"), "-m", "pip", "install", "--quiet", torch])

    def begin(self, name: str, *, torch: bool) -> None:
        """Make an environment that is empty, or sees torch beneath it and nothing else, and go there."""
        venv = self.place / f"venv-{name}"
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        if torch:
            beneath, above = (next(place.glob("lib/python*/site-packages")) for place in (self.place / "beneath", venv))
            (above / "beneath.pth").write_text(f"import site; site.addsitedir({str(beneath)!r})\n", encoding="utf-8")
        self.bin = venv / "bin"

    def read(self, page: str) -> None:
        """Do what a page says, each of its doors in an environment of its own."""
        for title, text in doors_of((ROOT / page).read_text(encoding="utf-8")).items():
            name = f"{page}, {title}" if title else page
            first = len(self.steps)
            self.follow(name, page, text)
            self.say_first_result(name, self.steps[first:])

    def follow(self, name: str, page: str, text: str) -> None:
        """Do what a text says, in the folder in which its Python left its files."""
        folder = within = self.place / re.sub(r"\W+", "_", name)
        folder.mkdir()
        copy = folder / Path(page).name
        copy.write_text(text, encoding="utf-8")
        self.begin(folder.name, torch=installs_torch(steps_of(text)))
        if page == "README.md":
            draw_photographs(folder / "photos", N_PHOTOGRAPHS // 4)
            shutil.copytree(folder / "photos" / "red", folder / "next_folder")
            write_messages(folder / "messages.csv")
        for line in steps_of(text):
            if line == PYTHON:
                command = [str(self.bin / "python"), "-m", "doctest", copy.name]
                self.do(f"{name}: its Python", command, folder, TMPDIR=str(folder))
                made = (path for path in sorted(folder.iterdir()) if path.is_dir() and path.name.startswith("tmp"))
                within = next(made, folder)
                if page == "docs/learn/sentences.md":
                    draw_photographs(within / "photos")
                    draw_vectors(within)
                continue
            words = shlex.split(line, comments=True)
            installs = words[0] == "pip"
            self.do(f"{name}: {shlex.join(words)}", self.command(words), self.place / "handful" if installs else within)

    def say_first_result(self, name: str, steps: Sequence[dict[str, Any]]) -> None:
        """Print what had to be installed for the first result, and the time of both."""
        at = next((at for at, step in enumerate(steps) if ": pip install" not in step["what"]), len(steps) - 1)
        until = steps[: at + 1]
        seconds, processor = (sum(step[what] for step in until) for what in ("seconds", "processor_seconds"))
        print(f"     {seconds:7.1f} s, {processor:6.1f} of processor  until the first result of {name}", flush=True)

    def command(self, words: Sequence[str]) -> list[str]:
        """Return a command as it is run here: in the clone, handful is what lies there."""
        if words[0] == "pip":
            wanted = [re.sub(r"^handful(?=\[|$)", ".", word) for word in words[2:]]
            if "torch" in wanted:
                wanted = ["torch"]
            return [str(self.bin / "python"), "-m", *words[:2], "--quiet", *wanted]
        return [str(self.bin / words[0]), *words[1:]]


def main() -> None:
    """Do all of it and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=None, help="JSON file for the times")
    parser.add_argument("pages", nargs="*", default=PAGES, help="pages to follow; by default all")
    parser.add_argument("--torch", default="torch==2.13.0", help="which torch to install")
    parser.add_argument("--without-cache", action="store_true", help="download everything again")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        newcomer = Newcomer(Path(place), cached=not given.without_cache)
        newcomer.prepare(given.torch)
        for page in given.pages:
            newcomer.read(page)
    failed = [step["what"] for step in newcomer.steps if not step["ended_well"]]
    if given.out is not None:
        given.out.write_text(json.dumps({"cores": os.cpu_count(), "steps": newcomer.steps}, indent=1) + "\n")
    print(f"{len(newcomer.steps) - len(failed)} of {len(newcomer.steps)} steps ended well")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
