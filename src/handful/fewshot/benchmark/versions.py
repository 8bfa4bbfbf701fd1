"""What made a row: versions of the packages used, and a hash of the code that computed it.

A cell says what was asked; the columns `versions` and `code` of a row say what computed it. They are not part of the
cell's hash, so that a run made by an earlier version can still be read and reported by a later one.

The code of a method is the source text of every module of handful that computes its rows: the method's own file,
`handful.fewshot.benchmark.run` (which draws, gathers, transforms and scores), and all modules of handful that these
import, directly or not. Other methods, the command line and the reports are not among them. A comment changes the hash
as well: telling comments from code is not worth the risk of a mistake, and a run that is refused needlessly can be
told to continue.
"""

from __future__ import annotations

import ast
import hashlib
import platform
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import metadata, resources

import numpy as np

import handful

# Packages that rows are computed with; scikit-learn fits the logistic regression of `ici`.
COMPUTING = ("numpy", "scikit-learn", "torch")
METHODS_PACKAGE = "handful.fewshot.methods"
# Packages that list all methods: following them would make each method depend on all the others.
NOT_FOLLOWED = ("handful", "handful.fewshot", METHODS_PACKAGE)
MAKES_ROWS = "handful.fewshot.benchmark.run"


@cache
def versions_text() -> str:
    """Versions of handful, Python and the packages that rows are computed with, as one line.

    Examples
    --------
    >>> [part.split()[0] for part in versions_text().split(", ")]
    ['handful', 'numpy', 'python', 'scikit-learn', 'torch']
    """
    found = {"handful": handful.__version__, "python": platform.python_version()}
    found |= {name: metadata.version(name) for name in COMPUTING}
    return ", ".join(f"{name} {version}" for name, version in sorted(found.items()))


@cache
def code_version(method: str) -> str:
    """First 16 hex digits of the SHA-256 of the modules that compute a row of this method, by name and text.

    Examples
    --------
    >>> code_version("paddle") == code_version("paddle"), code_version("paddle") == code_version("tim")
    (True, False)
    """
    modules = modules_behind(method)
    text = "\0".join(f"{name}\0{_source(name)}" for name in modules)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def modules_behind(method: str) -> list[str]:
    """Names of the modules whose text makes up `code_version`, sorted."""
    found: set[str] = set()
    waiting = [MAKES_ROWS, f"{METHODS_PACKAGE}.{method}"]
    while waiting:
        name = waiting.pop()
        if name not in found and name not in NOT_FOLLOWED:
            found.add(name)
            waiting += _imported(name)
    return sorted(found)


def changes_since(rows: Mapping[str, np.ndarray], methods: Sequence[str]) -> list[str]:
    """Return sentences on how the versions and the code behind rows differ from the current ones; none if they do not.

    `rows` are columns of a journal; the code of these methods is compared.
    """
    now, said = versions_text(), []
    for then in sorted(set(rows["versions"])):
        if then != now:
            parts = [", ".join(sorted(set(a.split(", ")) - set(b.split(", ")))) for a, b in ((then, now), (now, then))]
            said.append(f"rows were made with {parts[0]}, but this is {parts[1]}")
    for method in dict.fromkeys(methods):
        current = code_version(method)
        if others := sorted(set(rows["code"][rows["method"] == method]) - {current}):
            said.append(
                f"the code of {method} has changed: rows were made by {', '.join(others)}, but this is {current}"
            )
    return said


@cache
def _source(module: str) -> str:
    """Text of a module of handful; empty if there is no such module."""
    folder, (*packages, last) = resources.files("handful"), module.split(".")[1:] or [""]
    for parts in ([*packages, f"{last}.py"], [*packages, last, "__init__.py"]):
        if (file := folder.joinpath(*filter(None, parts))).is_file():
            return file.read_text(encoding="utf-8")
    return ""


@cache
def _names(module: str) -> tuple[tuple[str, str, str], ...]:
    """Return all imports from handful in a module: what it imports from, the name taken, the name it is given."""
    found: list[tuple[str, str, str]] = []
    for node in ast.walk(ast.parse(_source(module))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "handful":
            found += [(str(node.module), alias.name, alias.asname or alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [(alias.name, "", "") for alias in node.names if alias.name.split(".")[0] == "handful"]
    return tuple(found)


def _imported(module: str) -> Iterator[str]:
    for source, name, _ in _names(module):
        yield _home(source, name)


def _home(module: str, name: str) -> str:
    """Name of the module that defines a name, looked up through packages that only re-export it."""
    if name and _source(f"{module}.{name}"):
        return f"{module}.{name}"
    for source, inner, given in _names(module):
        if given == name and source != module:
            return _home(source, inner)
    return module
