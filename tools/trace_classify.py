"""Trace `handful classify` from a table to a table and a page, and count what it passes.

    python tools/trace_classify.py            files, functions, changes of package
    python tools/trace_classify.py --list     and every function, in the order of its first call

A change of package is counted where a function is called for the first time and the function that was first called
before it is in another package. The command runs twice, and the second run is traced, so that imports do not count.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import handful
from handful.cli.main import main

ROOT = Path(handful.__file__).parent
# Comprehensions are part of the function around them.
PARTS = ("<module>", "<lambda>", "<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>")


def write_tables(folder: Path) -> None:
    """Write a catalogue of twelve classes with five examples each, and a batch of three of them, as vectors."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(12, 16))
    for name, classes in (("catalogue", np.arange(12).repeat(5)), ("batch", np.arange(3).repeat(10))):
        vectors = centres[classes] + 0.4 * rng.normal(size=(len(classes), 16))
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(["id", *(["label"] if name == "catalogue" else []), *range(16)])
            for number, (k, vector) in enumerate(zip(classes.tolist(), vectors.tolist(), strict=True)):
                writer.writerow([f"{name} {number}", *([f"class {k}"] if name == "catalogue" else []), *vector])


def traced(arguments: list[str]) -> list[tuple[str, str]]:
    """Run the command; return file and name of every function of handful, in the order of the first calls."""
    called: dict[tuple[str, str], None] = {}

    def notice(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)) and code.co_name not in PARTS:
            called.setdefault((str(Path(code.co_filename).relative_to(ROOT)), code.co_qualname))

    sys.setprofile(notice)
    try:
        with redirect_stdout(StringIO()):
            status = main(arguments)
    finally:
        sys.setprofile(None)
    if status:
        raise SystemExit(f"the command failed with status {status}")
    return list(called)


def package(file: str) -> str:
    """Return the package of a file; a module at the top is its own."""
    return Path(file).parts[0]


def trace() -> list[tuple[str, str]]:
    """Label a small table, and trace it."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_tables(place)
        inputs = [str(place / "catalogue.csv"), str(place / "batch.csv")]
        arguments = ["classify", *inputs, "--out", str(place / "labels.csv"), "--report", str(place / "page.html")]
        traced(arguments)
        return traced(arguments)


if __name__ == "__main__":
    functions = trace()
    if "--list" in sys.argv[1:]:
        for file, function in functions:
            print(f"{file}: {function}")
    changes = sum(package(one) != package(other) for (one, _), (other, _) in pairwise(functions))
    print(f"{len({file for file, _ in functions})} files, {len(functions)} functions, {changes} changes of package")
