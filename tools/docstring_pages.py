"""Pages from docstrings: python tools/docstring_pages.py. They are in the repository, so that they can be read there.

The page of a method has the paper, what the class of options says about the use of the method, its options with the
comments beside them, and the docstring of the file, which has the formulas. `batch_classifier` and `paddle` have pages
that people wrote, and are left alone. The page about the rules of a review has the docstrings of four files, and their
numbers with the comments above them.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import Any

from handful_fewshot import METHODS

UNDERSTAND = Path(__file__).resolve().parents[1] / "docs" / "understand"
PAGES = UNDERSTAND / "methods"
WRITTEN = ("batch_classifier", "paddle")
RULES = UNDERSTAND / "review_rules.md"
RULES_OF = ("stopping", "oddest", "requests", "clusters", "from_nothing")


def names() -> list[str]:
    """Return the methods whose pages are made here."""
    return [name for name in METHODS.own if name not in WRITTEN]


def comments(options: type[Any]) -> dict[str, str]:
    """Return what the source says about each option, beside it or above it."""
    found: dict[str, str] = {}
    for owner in reversed(options.__mro__[:-1]):
        above: list[str] = []
        for line in inspect.getsource(owner).splitlines():
            field = re.match(r"    (\w+): [^#]*?(?:  # (.*))?$", line)
            if line.startswith("    # "):
                above.append(line.removeprefix("    # "))
            elif field:
                said = " ".join([*above, *([field[2]] if field[2] else [])])
                found[field[1]] = said or found.get(field[1], "")
                above = []
    return found


def text(name: str) -> str:
    """Return the page of a method."""
    method = METHODS[name]
    said = comments(method.options)
    listed = [
        f"- `{field.name}` = {field.default!r}{': ' if said.get(field.name) else ''}{said.get(field.name, '')}"
        for field in dataclasses.fields(method.options)
    ]
    published = f"Published with the transform `{method.transform}`."
    rejects = " It rejects: `Solution.unknown` says how sure it is that an item has none of the classes."
    parts = [
        f"# {name}",
        method.citation,
        inspect.cleandoc(method.options.__doc__ or "").partition("\n\n")[2],
        published + (rejects if method.rejects else ""),
        "## Formulas",
        inspect.cleandoc(sys.modules[method.options.__module__].__doc__ or ""),
        "## Options",
        inspect.cleandoc(method.options.__doc__ or "").partition("\n\n")[0],
        "\n".join(listed),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def numbers(source: str) -> list[str]:
    """Return the constants of a module with the comments above them; a comment holds for those right below it."""
    found: list[str] = []
    said: list[str] = []
    begun = False
    for line in source.splitlines():
        constant = re.match(r"([A-Z][A-Z_]+) = (.*)$", line)
        if line.startswith("# "):
            said = [] if begun else said
            said.append(line.removeprefix("# "))
            begun = False
        elif constant and said:
            value = constant[2].removeprefix("np.")
            found.append(f"- `{constant[1]}` = {value}" + ("" if begun else f": {' '.join(said)}"))
            begun = True
        else:
            said = []
            begun = False
    return found


def rules() -> str:
    """Return the page about the rules of a review."""
    parts = [
        "# The rules of a review",
        "When a [review](../do/review.md) may stop, what it asks next, and how it labels a batch without examples, as "
        "`handful.session` says it. What it takes: [with a catalogue](../measured/sessions.md), "
        "[from nothing](../measured/from_nothing.md).",
    ]
    for name in RULES_OF:
        module = importlib.import_module(f"handful.session.{name}")
        first, _, rest = inspect.cleandoc(module.__doc__ or "").partition("\n\n")
        listed = numbers(inspect.getsource(module))
        parts += [f"## {first.partition(':')[0]}", first, rest, "\n".join(listed)]
    return "\n\n".join(part for part in parts if part) + "\n"


def behind() -> dict[Path, str]:
    """Return the pages that are not as they should be, and what they should be."""
    made = {PAGES / f"{name}.md": text(name) for name in names()} | {RULES: rules()}
    return {
        place: page for place, page in made.items() if not place.is_file() or place.read_text(encoding="utf-8") != page
    }


def write() -> None:
    """Write the pages that are not as they should be."""
    for place, page in behind().items():
        place.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    write()
