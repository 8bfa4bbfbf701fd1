"""A method in a file of its own: `file.py:name` is the `Method` that a Python file calls `name`.

The file is run as it is when its hash is taken, so a plan can record what its rows were computed with. It is run only
if a program or a command line names it. A plan that is read from a file runs nothing.
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path
from types import ModuleType

from handful.errors import OptionError, PlanError
from handful.fewshot.methods import Method, register
from handful.machine.untrusted import read_bytes

PLACE = re.compile(r"(?P<path>.+\.py):(?P<name>[^:]+)")
# Hash of the file of each method that came from one, by the method's name.
_hashes: dict[str, str] = {}


def is_place(method: str) -> bool:
    """Whether this names a method in a file."""
    return PLACE.fullmatch(method) is not None


def load_method(place: str) -> str:
    """Run the file, register its method and return the method's name.

    The file may import installed packages, but no files beside it: these would not be part of its hash.
    """
    match = PLACE.fullmatch(place)
    if match is None:
        raise OptionError(f"a method in a file is named as FILE.py:NAME, got {place!r}")
    path, source = Path(match["path"]), read_bytes(match["path"], OptionError)
    digest = hashlib.sha256(source).hexdigest()[:16]
    module = ModuleType(f"handful_method_{digest}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where the types of its options are looked up
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)
    except Exception as error:
        raise OptionError(f"{path} cannot be run ({type(error).__name__}: {error}); correct it") from error
    method = getattr(module, match["name"], None)
    if not isinstance(method, Method):
        there = ", ".join(name for name, value in vars(module).items() if isinstance(value, Method)) or "none"
        raise OptionError(f"{path} has no handful.fewshot.Method called {match['name']!r}; it has {there}")
    register(method)
    _hashes[method.name] = digest
    return method.name


def file_hash(method: str) -> str:
    """First 16 hex digits of the SHA-256 of the file that a method came from; empty if it came from none."""
    return _hashes.get(method, "")


def refuse_another_file(method: str, expected: str) -> None:
    """Refuse to compute rows of a method whose file has not been loaded in this process, or has other content."""
    if expected and file_hash(method) != expected:
        state = "has changed since" if file_hash(method) else "is not loaded; it was given when"
        raise PlanError(
            f"the file of the method {method} {state} the run was started; repeat the whole command with --resume and "
            f"--method FILE.py:{method}, and with the same file. A cluster needs methods in a package"
        )
