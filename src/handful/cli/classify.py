"""`handful classify`: a catalogue and a batch to labels, and optionally a page about them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from handful.classification.label import classify
from handful.classification.page import write_batch_page
from handful.classification.predictions import check_ending, write_predictions
from handful.cli.passes import passes
from handful.cli.places import HERE, On, executor_at
from handful.cli.terminal import data
from handful.large.crew import in_process
from handful.large.on_ray import on_ray


def classify_command(
    catalogue: Annotated[
        Path,
        typer.Option(
            help="Labelled examples: a bank, .parquet or .npz with vectors and labels; or images, one folder per class "
            "(also in a .zip), or a table (.csv, .jsonl, also .gz) with the columns 'label' and 'text' or 'path'."
        ),
    ],
    batch: Annotated[
        Path,
        typer.Option(
            help="Items to label, all at once: a bank, .parquet, .npz or .npy with vectors; or a folder or .zip of "
            "images, or a table with a column 'text' or 'path'."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Predictions, one row per item: .parquet or .csv.")],
    report: Annotated[Path | None, typer.Option(help="A page about the batch, .html.")] = None,
    backbone: Annotated[
        str | None,
        typer.Option(
            help="What turns items into vectors, see `handful features extract --help`. By default the one that made "
            "the catalogue; where both sides are items, efficientnet-lite0 for images and minilm for sentences."
        ),
    ] = None,
    features: Annotated[str | None, typer.Option(help="Column of vectors, where it cannot be detected.")] = None,
    labels: Annotated[str | None, typer.Option(help="Column of labels, where it cannot be detected.")] = None,
    device: Annotated[str, typer.Option(help="Where the backbone runs, as torch names devices.")] = "cpu",
    on: On = HERE,
) -> None:
    """Label a batch as a whole, and print the classes present: expected count, probability of presence, name.

    A last line says how many items look like none of the classes, if there are any; their labels are then the least
    bad ones, and the column 'unknown' holds the chance that an item has no class.

    A batch too large for memory is streamed, here or over Ray (--on applies only then). Its run is kept beside the
    predictions, in a folder that ends in .run, until they are written: the same command resumes after an interruption.

    \b
    Examples:
      handful classify --catalogue photos.bank --batch new_photos/ --out labels.parquet --report labels.html
      handful classify --catalogue intents.jsonl --batch today.jsonl --out labels.csv
      handful classify --catalogue embeddings.parquet --labels intent --batch today.parquet --out labels.parquet
    """
    check_ending(out)
    executor = executor_at(on, in_process, on_ray, {})
    run = out.with_name(f"{out.name}.run")
    with passes(f"labelling {batch}") as on_progress:
        classified = classify(
            catalogue,
            batch,
            backbone=backbone,
            features=features,
            labels=labels,
            device=device,
            folder=run,
            executor=executor,
            on_progress=on_progress,
        )
        write_predictions(classified, out)
        if classified.streamed:
            shutil.rmtree(run)
        if report is not None:
            write_batch_page(classified, report, title=batch.stem)
    for skipped in classified.batch.skipped:
        sys.stderr.write(f"skipped {skipped}\n")
    for diagnostic in classified.diagnostics:
        sys.stderr.write(f"warning: {diagnostic.message}\n")
    for k in classified.present:
        data(f"{classified.expected_counts[k]:8.1f}  {classified.presence[k]:.3f}  {classified.class_names[k]}")
    if classified.unknown is not None and (said := classified.unknown.said(len(classified.class_names))):
        data(said)
