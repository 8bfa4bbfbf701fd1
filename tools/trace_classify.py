"""Trace `handful classify` from a table to a table and a page, and count what it passes.

    python tools/trace_classify.py            files, functions, changes of package, shapes of items and of what is known
    python tools/trace_classify.py --list     and every function, in the order of its first call

A change of package is counted where a function is called for the first time and the function that was first called
before it is in another package. The command runs twice, and the second run is traced, so that imports do not count.

A shape of the items is a class of handful that holds something about each of them: its length, or that of one of its
fields, is the number of items in the batch. Values of the model's steps are counted apart. A shape of what is known is
a class, or a dict with declared keys, that has a field in a run with labels, weights and candidates given, and has
nothing there in a run without.
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
from typing import Any, is_typeddict

import numpy as np

import handful
from handful.cli.main import main

ROOT = Path(handful.__file__).parent
# Items of the batch; nothing else there has this number.
N_ITEMS = 31
# Comprehensions are part of the function around them.
PARTS = ("<module>", "<lambda>", "<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>")


def write_tables(folder: Path) -> None:
    """Write a catalogue of twelve classes with five examples each, and a batch of three of them, as vectors."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(12, 16))
    for name, classes in (("catalogue", np.arange(12).repeat(5)), ("batch", np.arange(N_ITEMS) % 3)):
        vectors = centres[classes] + 0.4 * rng.normal(size=(len(classes), 16))
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(["id", *(["label"] if name == "catalogue" else []), *range(16)])
            for number, (k, vector) in enumerate(zip(classes.tolist(), vectors.tolist(), strict=True)):
                writer.writerow([f"{name} {number}", *([f"class {k}"] if name == "catalogue" else []), *vector])


class Trace:
    """What a run passed, in the order of the first calls.

    Attributes
    ----------
    called
        File and name of every function of handful.
    fields
        Classes of the values that functions got, and the fields that had something in them.
    items
        Classes that hold something about each item, and their package.
    """

    def __init__(self) -> None:
        self.called: dict[tuple[str, str], None] = {}
        self.fields: dict[str, set[str]] = {}
        self.items: dict[str, str] = {}

    def notice(self, frame: FrameType, event: str, argument: Any) -> None:
        """Note a call."""
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(str(ROOT)) or code.co_name in PARTS:
            return
        self.called.setdefault((str(Path(code.co_filename).relative_to(ROOT)), code.co_qualname))
        for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
            value = frame.f_locals.get(name)
            kind = type(value).__name__
            if isinstance(value, dict):
                kind = declared_keys(frame, name)
            elif not type(value).__module__.startswith("handful."):
                continue
            values = fields_of(value)
            if kind and values:
                filled = {field for field, one in values.items() if one is not None and length_of(one) != 0}
                self.fields.setdefault(kind, set()).update(filled)
                if kind not in self.items and holds_items(value, values):
                    self.items[kind] = type(value).__module__.split(".")[1]


def fields_of(value: Any) -> dict[str, Any]:
    """Return what a value keeps, by name."""
    if isinstance(value, dict):
        return value
    return value._asdict() if hasattr(value, "_asdict") else dict(getattr(value, "__dict__", {}))


def holds_items(value: Any, fields: dict[str, Any]) -> bool:
    """Whether a value, or one of its fields, has an entry for each item."""
    return any(N_ITEMS in getattr(one, "shape", (length_of(one),)) for one in (value, *fields.values()))


def length_of(value: Any) -> int | None:
    """Return the length of a value; None if it has none."""
    try:
        return len(value)
    except (TypeError, AttributeError, AssertionError):
        return None


def declared_keys(frame: FrameType, name: str) -> str:
    """Return the name of the type of a dict with declared keys, by the annotation of the argument; else nothing."""
    function: Any = sys.modules[frame.f_globals["__name__"]]
    for part in frame.f_code.co_qualname.split("."):
        function = getattr(function, part, None)
    declared = str(getattr(function, "__annotations__", {}).get(name, "")).removeprefix("Unpack[").removesuffix("]")
    return declared if is_typeddict(frame.f_globals.get(declared)) else ""


def traced(arguments: list[str]) -> Trace:
    """Run the command, and return what it passed."""
    found = Trace()
    sys.setprofile(found.notice)
    try:
        with redirect_stdout(StringIO()):
            status = main(arguments)
    finally:
        sys.setprofile(None)
    if status:
        raise SystemExit(f"the command failed with status {status}")
    return found


def package(file: str) -> str:
    """Return the package of a file; a module at the top is its own."""
    return Path(file).parts[0]


def trace() -> tuple[Trace, Trace]:
    """Label a small table, and trace it; then once more with something known about it."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_tables(place)
        inputs = [str(place / "catalogue.csv"), str(place / "batch.csv")]
        arguments = ["classify", *inputs, "--out", str(place / "labels.csv"), "--out", str(place / "page.html")]
        traced(arguments)
        plain = traced(arguments)
        classes = [f"class {k}" for k in range(6)]
        (place / "candidates.txt").write_text("\n".join(classes), encoding="utf-8")
        (place / "prior.csv").write_text("class,weight\nclass 0,3\n", encoding="utf-8")
        for name in ("candidates.txt", "prior.csv"):
            arguments += [f"--{Path(name).stem}", str(place / name)]
        return plain, traced(arguments)


if __name__ == "__main__":
    plain, informed = trace()
    functions = list(plain.called)
    if "--list" in sys.argv[1:]:
        for file, function in functions:
            print(f"{file}: {function}")
    changes = sum(package(one) != package(other) for (one, _), (other, _) in pairwise(functions))
    known = [name for name, fields in informed.fields.items() if fields - plain.fields.get(name, set())]
    shapes = [name for name, room in plain.items.items() if room != "model"]
    steps = [name for name, room in plain.items.items() if room == "model"]
    print(f"{len({file for file, _ in functions})} files, {len(functions)} functions, {changes} changes of package")
    print(f"{len(shapes)} shapes of items: {', '.join(shapes)}")
    print(f"{len(steps)} more in the steps of the model: {', '.join(steps)}")
    print(f"{len(known)} shapes of what is known: {', '.join(known)}")
