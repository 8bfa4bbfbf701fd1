"""`handful report`: one page about a run."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from handful.cli.terminal import data, waiting


def report(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    out: Annotated[Path, typer.Option(help="Folder for the page, and for every table and figure as a file.")],
) -> None:
    """Write one self-contained page about a run, and print where it is.

    If the run compares PADDLE with its projected gradient, and its banks are still in place, a task is solved again for
    the convergence figure.

    \b
    Examples:
      handful report runs/first --out reports/first
    """
    from handful.cli.banks import find_bank
    from handful.fewshot.benchmark.journal import Journal
    from handful.fewshot.reports.page import write_report

    with waiting(f"reporting {run}"):
        journal = Journal(run)
        page = write_report(journal, out, partial(find_bank, journal.bank_places))
    data(str(page))
