"""`handful export`: what a catalogue says, as a table, a folder per class, or a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from handful.cli.opened import opened
from handful.cli.terminal import data


def export_command(
    catalogue: Annotated[Path, typer.Argument(help="The catalogue, .handful.")],
    out: Annotated[
        Path | None,
        typer.Argument(
            help="A table: .csv, .xlsx, .parquet, .jsonl. A model: .model. Or a new folder, which gets a folder per "
            "class.",
        ),
    ] = None,
    batch: Annotated[
        list[str] | None,
        typer.Option(help="A batch whose items are written; by default all. Repeat for several."),
    ] = None,
    links: Annotated[bool, typer.Option("--links", help="Links to the images in a folder per class, not copies.")] = (
        False
    ),
    keywords: Annotated[
        bool,
        typer.Option("--keywords", help="Keywords next to the photographs, photo.jpg.xmp, for photo programs."),
    ] = False,
) -> None:
    """Write what people said and what the model says about the items of a catalogue.

    A table has one row per item: its label, what people said, who and when, what the model says or said when a person
    answered, and its other columns. Numbers in .csv and .xlsx are rounded for people; .parquet and .jsonl have all
    digits.

    A folder per class has every image below its label: the class that people named, or else what the model says.

    Keywords are in a file next to each photograph, in `dc:subject`; what other programs wrote there stays, and the
    photographs are never changed.

    A model is small, and has no names of files or people. `handful classify` takes it where it takes the catalogue.

    \b
    Examples:
      handful export birds.handful labels.csv
      handful export birds.handful monday.xlsx --batch monday
      handful export birds.handful by_class/ --links
      handful export birds.handful birds.model
      handful export birds.handful --keywords
    """
    from handful.errors import OptionError
    from handful.machine.outputs import refuse_overwriting
    from handful.progress import bars
    from handful.review.exporting import export, export_keywords

    if out is None and not keywords:
        raise OptionError("name what is written: a table, a folder or a model; or say --keywords")
    refuse_overwriting({"catalogue": catalogue}, {"export": out})
    written = []
    with opened(catalogue) as file, bars(f"exporting {catalogue}"):
        if out is not None:
            written.append(export(file, out, batches=batch or (), links=links))
        if keywords:
            written.append(export_keywords(file, batches=batch or ()))
    for found in written:
        data(f"Written: {found}")
