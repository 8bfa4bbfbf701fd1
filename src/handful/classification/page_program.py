"""The program of a page: modules of `browser/`, put together as one, so that a page needs no other file.

A browser runs the modules in the order of their imports, each after those that it needs. So does the program: without
the lines that import, and without the word `export`, the modules are one. Names at the top of a module therefore differ
from those of all others.
"""

from __future__ import annotations

import re
from importlib import resources

IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+\.js)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?function|const|let)", re.MULTILINE)
REPORT = "report.js"
REVIEW = "review.js"


def page_program(start: str) -> str:
    """Return the program that starts with this module, `REPORT` or `REVIEW`."""
    return "".join(EXPORT.sub("", IMPORT.sub("", packaged(name))) for name in modules_of(start))


def modules_of(start: str) -> list[str]:
    """Return the modules that a program needs, each after those that it imports.

    Examples
    --------
    >>> modules_of("names.js")
    ['elements.js', 'state.js', 'names.js']
    """
    found = list[str]()
    begun = set[str]()

    def visit(name: str) -> None:
        if name in begun:
            return
        begun.add(name)
        for needed in IMPORT.findall(packaged(name)):
            visit(needed)
        found.append(name)

    visit(start)
    return found


def page_style(start: str) -> str:
    """Return how the page of this program looks."""
    return packaged("page.css") + (packaged("review.css") if start == REVIEW else "")


def packaged(name: str) -> str:
    """Return a file of the page."""
    return resources.files("handful.classification").joinpath("browser", name).read_text(encoding="utf-8")
