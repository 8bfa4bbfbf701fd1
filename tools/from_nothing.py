"""Follow the first steps of a new user in a new environment with only the wheel, and time them.

    python tools/from_nothing.py --out perf/results/from_nothing.json

The wheel is built from this repository and installed with its extras; the README, *First steps* and the tutorials are
then run as written, in empty folders: first their Python (as doctests), then every `handful …` line that they give for
a terminal. Where the README's lines need a reader's own pictures, those drawn by the tutorial are used. Exits with 1
if anything fails.
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
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# In the order in which they are read; the README comes last because it borrows a tutorial's pictures.
PAGES = (
    "docs/first_steps.md",
    *(f"docs/tutorials/{name}.md" for name in ("sentences", "images", "parquet")),
    "README.md",
)
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(handful\s[^`]*--[^`]*)`")


def terminal_lines(page: str) -> list[str]:
    """Return the page's commands: lines of blocks without a language, and those in the text that have an option."""
    blocks = "".join(block for language, block in FENCED.findall(page) if not language)
    fenced = [line for line in blocks.replace("\\\n", " ").splitlines() if line.startswith("handful ")]
    return [" ".join(line.split()) for line in fenced + INLINE.findall(FENCED.sub("", page))]


def _processor_seconds() -> float:
    """Return what the processes that were started and have ended took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Newcomer:
    """A new environment, and a record of what was done in it and how long it took."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.bin = place / "venv" / "bin"
        self.steps: list[dict[str, Any]] = []
        # Nothing of the caller's Python: neither its packages nor its paths.
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
        self.environment = {**kept, "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "120"}

    def do(self, what: str, command: Sequence[str], within: Path | None = None, **extra: str) -> bool:
        """Run a command, note its seconds and whether it succeeded, and print its output if it did not."""
        begun, used = time.perf_counter(), _processor_seconds()
        done = subprocess.run(
            command, cwd=within or self.place, env={**self.environment, **extra}, capture_output=True, text=True
        )
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

    def install(self, torch: str) -> None:
        """Build the wheel, make the environment, install torch and then the package with its extras."""
        self.do("build the wheel", [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", "wheel", str(ROOT)])
        wheel = next((self.place / "wheel").glob("*.whl"))
        pip = [str(self.bin / "python"), "-m", "pip", "install", "--quiet"]
        self.do("python -m venv", [sys.executable, "-m", "venv", "venv"])
        self.do(f"pip install {torch}", [*pip, torch])
        self.do("pip install 'handful[cli,plots]'", [*pip, f"{wheel}[cli,plots]"])
        (self.place / "first").mkdir()
        self.do("handful demo", [str(self.bin / "handful"), "demo"], self.place / "first")
        self.do("handful doctor", [str(self.bin / "handful"), "doctor"])
        self.do("pip install 'handful[images,parquet,text]'", [*pip, f"{wheel}[images,parquet,text]"])

    def read(self, page: str) -> None:
        """Run a page's Python, then its lines for a terminal, in the folder in which its Python left its files."""
        folder = self.place / Path(page).stem
        folder.mkdir()
        copy = Path(shutil.copy(ROOT / page, folder))
        self.do(
            f"{page}: its Python", [str(self.bin / "python"), "-m", "doctest", str(copy)], folder, TMPDIR=str(folder)
        )
        within = next((path for path in sorted(folder.iterdir()) if path.is_dir()), folder)
        if page == "README.md":
            self.lend(within)
        for line in terminal_lines(copy.read_text(encoding="utf-8")):
            words = shlex.split(line, comments=True)
            self.do(f"{page}: {shlex.join(words)}", [str(self.bin / words[0]), *words[1:]], within)

    def lend(self, folder: Path) -> None:
        """Put the files that the README needs into the folder."""
        photos = next((self.place / "images").rglob("catalogue"))
        shutil.copytree(photos, folder / "photos")
        shutil.copytree(next(photos.iterdir()), folder / "new_photos")


def main() -> None:
    """Do all of it and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=None, help="JSON file for the times")
    parser.add_argument("--torch", default="torch==2.13.0", help="which torch to install")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        newcomer = Newcomer(Path(place))
        newcomer.install(given.torch)
        for page in PAGES:
            newcomer.read(page)
    failed = [step["what"] for step in newcomer.steps if not step["ended_well"]]
    if given.out is not None:
        given.out.write_text(json.dumps({"cores": os.cpu_count(), "steps": newcomer.steps}, indent=1) + "\n")
    print(f"{len(newcomer.steps) - len(failed)} of {len(newcomer.steps)} steps ended well")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
