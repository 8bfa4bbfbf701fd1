"""`handful` without the packages of the command line: help, version and doctor; other commands name what they need."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from types import MappingProxyType

from handful import __version__

SUMMARY = "Label a whole batch at once when only a few of your many classes occur in it, and you don't know which."
# Packages that all other commands need.
NEEDED = ("typer", "rich")
# Each command with what it does, and the extras that it needs.
COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "classify": (
            "label a batch",
            "'handful[images]' for photographs, 'handful[text]' for sentences, or 'handful[cli]' for vectors",
        ),
        "features": ("make, inspect and convert banks of features", "'handful[cli]'"),
        "tasks": ("draw tasks from a bank", "'handful[cli]'"),
        "bench": ("compare methods on the same tasks", "'handful[cli]'"),
        "report": ("write a page about a benchmark", "'handful[cli,plots]'"),
        "train": ("train a network on base classes", "'handful[cli,train]'"),
        "demo": ("compare five methods on real sentences", "'handful[cli,plots]'"),
    }
)
DOCTOR = "doctor"


def is_bare() -> bool:
    """Tell whether a package of the command line is missing."""
    return any(find_spec(name) is None for name in NEEDED)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line as far as it goes, and return the exit code."""
    listed = "\n".join(f"  {name:<10}{what}; pip install {extra}" for name, (what, extra) in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="handful",
        description=SUMMARY,
        epilog=f"commands:\n  {DOCTOR:<10}list what is installed, and any problems with it\n\n"
        f"commands that need more packages:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"handful {__version__}")
    parser.add_argument("command", nargs="?", choices=[DOCTOR, *COMMANDS], metavar="command")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    try:
        given = parser.parse_args(arguments)
    except SystemExit as end:
        return int(end.code or 0)
    if given.command is None:
        parser.print_help()
        return 2
    if given.command != DOCTOR:
        sys.stderr.write(
            f"handful: {given.command} needs packages that are not installed; run: pip install "
            f"{COMMANDS[given.command][1]}\n"
        )
        return 1
    from handful.cli.doctor import doctor

    try:
        doctor()
    except SystemExit as end:
        return int(end.code or 0)
    return 0
