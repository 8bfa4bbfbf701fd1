"""Optional packages, imported where they are used; if one is missing, the error says what to install."""

from __future__ import annotations

import importlib
import json
import sys
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from handful.errors import MissingExtraError

# The repository, if handful runs from one.
ROOT = Path(__file__).resolve().parents[3]
IN_REPOSITORY = "  # in the folder of the repository"
SMALL_TORCH = "pip install torch --index-url https://download.pytorch.org/whl/cpu"


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this handful, from where it was installed.

    That is its repository, a wheel or an address, as pip notes it (`direct_url.json`); only without such a note is it
    the registry. No path of this machine is printed: a comment says in which folder the command is run. The shells of
    all systems take double quotes.
    """
    if (ROOT / "pyproject.toml").is_file():
        return f'pip install --editable ".[{extra}]"{IN_REPOSITORY}'
    try:
        noted = json.loads(metadata.distribution("handful").read_text("direct_url.json") or "{}")
    except metadata.PackageNotFoundError:
        noted = {}
    address = noted.get("url", "")
    if address.startswith("file:") and "archive_info" in noted:
        wheel = PurePosixPath(unquote(urlsplit(address).path)).name
        return f'pip install "./{wheel}[{extra}]"  # in the folder of that file'
    if address.startswith("file:"):
        return f'pip install ".[{extra}]"{IN_REPOSITORY}'
    wanted = f"handful[{extra}]"
    if address:
        system = noted.get("vcs_info", {}).get("vcs")
        wanted += f" @ {system}+{address}" if system else f" @ {address}"
    return f'pip install "{wanted}"'


def how_to_install(package: str | None, extra: str) -> str:
    """Return the end of a sentence about a package that is missing: what to run.

    For Linux, PyPI has PyTorch with gigabytes of libraries for graphics cards, so that has to be said before.
    """
    small = package == "torch" and sys.platform == "linux"
    first = f"first run, without a graphics card: {SMALL_TORCH}; then run: " if small else "run: "
    return f"{first}{install_command(extra)}"


def import_extra(module: str, extra: str) -> Any:
    """Import a module that an extra of handful installs."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"this needs the package {error.name!r}, which is not installed; {how_to_install(error.name, extra)}"
        ) from error


def import_pyarrow() -> tuple[Any, Any]:
    """Import `pyarrow` and `pyarrow.parquet`."""
    return import_extra("pyarrow", "parquet"), import_extra("pyarrow.parquet", "parquet")
