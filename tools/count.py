"""Count lines of Python, long functions and words of the documentation: python tools/count.py [--functions].

Lines are all lines of the files. A function is long if it has more than 60 lines, its docstring left out, or more than
9 parameters; functions of the command line are not counted, because their parameters are its options. Words are what
white space separates, code and tables included; the reference, the gallery and the changelog are not counted. There is
no limit on any of them: limits are met by packing lines and taking names away.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BESIDE = ("tests", "studies", "perf", "tools")
MOST_LINES, MOST_PARAMETERS = 60, 9
DOCS = ("learn", "do", "understand", "measured", "project")
NO_DOCS = {"_build", "_templates", "auto_gallery", "api", "gallery"}


def lines(folder: Path) -> int:
    """Return the number of lines of all Python files below a folder."""
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in folder.rglob("*.py"))


def long_functions(source: Path) -> Iterator[str]:
    """Yield each long function of a package: file, name, lines and parameters."""
    for file in sorted(source.rglob("*.py")):
        if "cli" not in file.relative_to(source).parts:
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef):
                    n, parameters = _lines_of(node), _parameters_of(node)
                    if n > MOST_LINES or parameters > MOST_PARAMETERS:
                        yield f"{file.relative_to(source)} {node.name}: {n} lines, {parameters} parameters"


def _lines_of(function: ast.FunctionDef) -> int:
    n = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function, clean=False) is not None:
        n -= (first.end_lineno or first.lineno) - first.lineno + 1
    return n


def _parameters_of(function: ast.FunctionDef) -> int:
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return sum(one is not None and one.arg not in ("self", "cls") for one in every)


def words(docs: Path) -> dict[Path, int]:
    """Return the number of words of each page, by its path in the folder."""
    pages = (page.relative_to(docs) for page in sorted(docs.rglob("*.md")) if page.name != "changelog.md")
    return {
        page: len((docs / page).read_text(encoding="utf-8").split()) for page in pages if page.parts[0] not in NO_DOCS
    }


def main() -> None:
    """Print all counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", action="store_true", help="name the long functions")
    named = parser.parse_args().functions
    for folder in ("src", *BESIDE):
        print(f"{folder:<14} {lines(ROOT / folder):>7,} lines")
    print(f"{'beside src':<14} {sum(lines(ROOT / folder) for folder in BESIDE):>7,} lines")
    found = list(long_functions(ROOT / "src"))
    print(f"{'long functions':<14} {len(found):>7,}", *(found if named else ()), sep="\n  ")
    pages = words(ROOT / "docs")
    for part in (*DOCS, ""):
        mine = [n for page, n in pages.items() if (page.parts[0] if len(page.parts) > 1 else "") == part]
        print(f"{part or 'front page':<14} {sum(mine):>7,} words {len(mine):>4} pages")
    print(f"{'docs':<14} {sum(pages.values()):>7,} words {len(pages):>4} pages")


if __name__ == "__main__":
    main()
