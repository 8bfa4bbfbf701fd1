"""`handful --version`."""

from __future__ import annotations

from typing import Annotated

import typer

from handful import __version__
from handful.cli.terminal import data


def _print_version(asked: bool) -> None:
    if asked:
        data(f"handful {__version__}")
        raise typer.Exit


def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options that belong to no command."""
