"""What made a row: versions of the packages used, and a hash of the code that computed it.

A cell says what was asked; the columns `versions` and `code` of a row say what computed it. They are not part of the
cell's hash, so that a run made by an earlier version can still be read and reported by a later one.

The code of a method is the source text of its own file and of all shared modules that compute rows. Other methods, the
command line and the reports are not among them. A comment changes the hash as well: telling comments from code is not
worth the risk of a mistake, and a run that is refused needlessly can be told to continue.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path

import numpy as np

import handful

# Packages that rows are computed with; scikit-learn fits the logistic regression of `ici`.
COMPUTING = ("numpy", "scikit-learn", "torch")
PACKAGE = Path(handful.__file__).parent
# Modules that compute the rows of every method, below the package; the engine is that of `roll_call`.
SHARED = (
    *(
        "arguments.py",
        "shapes.py",
        "banks/*.py",
        "engine/*.py",
        "machine/*.py",
        "fewshot/*.py",
        "fewshot/numerics/*.py",
    ),
    *("fewshot/solvers/*.py", "fewshot/tasks/*.py", "fewshot/methods/method.py"),
    *("fewshot/benchmark/plan.py", "fewshot/benchmark/run.py", "fewshot/benchmark/score.py"),
    *("fewshot/benchmark/versions.py", "fewshot/benchmark/method_file.py"),
)


@cache
def versions_text() -> str:
    """Versions of handful, Python and the packages that rows are computed with, as one line.

    Examples
    --------
    >>> [part.split()[0] for part in versions_text().split(", ")]
    ['handful', 'numpy', 'python', 'scikit-learn', 'torch']
    """
    versions = {"handful": handful.__version__, "python": platform.python_version()}
    versions |= {name: metadata.version(name) for name in COMPUTING}
    return ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))


def modules_behind(method: str) -> list[str]:
    """Paths of the modules whose text makes up `code_version`, below the package."""
    patterns = (*SHARED, f"fewshot/methods/{method}.py")
    return sorted(path.relative_to(PACKAGE).as_posix() for pattern in patterns for path in PACKAGE.glob(pattern))


@cache
def code_version(method: str) -> str:
    """First 16 hex digits of the SHA-256 of the modules that compute a row of this method, by name and text.

    Examples
    --------
    >>> code_version("paddle") == code_version("paddle"), code_version("paddle") == code_version("tim")
    (True, False)
    """
    text = "\0".join(f"{name}\0{(PACKAGE / name).read_text(encoding='utf-8')}" for name in modules_behind(method))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


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
