"""`handful report`: one page about a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from handful.benchmark.journal import Journal
from handful.cli.terminal import data, waiting
from handful.reports.page import write_report


def report(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    out: Annotated[Path, typer.Option(help="Folder for the page, and for every table and figure on its own.")],
) -> None:
    """Write one self-contained page about a run, and print where it is.

    \b
    Examples:
      handful report runs/first --out reports/first
    """
    with waiting(f"reporting {run}"):
        page = write_report(Journal(run), out)
    data(str(page))
