"""`handful run`: label every group of a data set, partition by partition; again, and only what is new or changed."""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from handful.cli.opened import opened
from handful.cli.options import On, expected_unknown, workers_at
from handful.cli.terminal import data


def run_command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="DATA", help="A folder of Parquet files, also in Hive folders such as day=2026-01-01, or one file."
        ),
    ],
    model: Annotated[
        str, typer.Option(help="A model (`handful export birds.handful birds.model`), its URL, or a catalogue.")
    ],
    group_by: Annotated[
        list[str],
        typer.Option(help="Column of the group: each value is one batch. Repeat for several; name all Hive folders."),
    ],
    out: Annotated[
        str, typer.Option(help="Folder or URL for the tables 'items' and 'groups', a file each for every partition.")
    ],
    features: Annotated[
        list[str] | None,
        typer.Option(
            help="Column of vectors, or one column per dimension (repeat for several). By default the column of lists."
        ),
    ] = None,
    prior: Annotated[Path | None, typer.Option(help="Table (.csv) with the columns 'class' and 'weight'.")] = None,
    candidates: Annotated[Path | None, typer.Option(help="List of the classes that can occur, one per line.")] = None,
    expect_unknown: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE", help="Share of items of no class, such as 0.3; a range such as 0.1-0.5; true for any."
        ),
    ] = None,
    keep_features: Annotated[bool, typer.Option("--keep-features", help="Keep the vectors; they are large.")] = False,
    lineage: Annotated[
        bool, typer.Option("--lineage", help="Add a column with the hash of the model. The metadata always has it.")
    ] = False,
    prefix: Annotated[str, typer.Option(help="Prefix of the new columns, if their names are taken.")] = "",
    bad_rows: Annotated[
        str, typer.Option(help="keep rows that cannot be labelled, with a reason; or refuse their partition.")
    ] = "keep",
    keep_labelled: Annotated[
        bool,
        typer.Option(
            "--keep-labelled", help="Keep what another model, version or other settings labelled, if rows are the same."
        ),
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print partitions, rows, time and memory, and do nothing.")
    ] = False,
    on: On = "",
) -> None:
    """Label every group of a data set as a batch of its own, partition by partition.

    A partition is a Hive folder, or a file. If a group has rows in several files, they are brought together first.
    Finished partitions are noted in OUT/_handful. Run it again after days were added, files changed, outputs were
    damaged, or it was interrupted: only what is new or changed is labelled.

    By default a process for each core labels a partition at a time, in about half a gigabyte.

    \b
    Examples:
      handful run photos/ --model birds.model --group-by site --group-by day --out labelled/
      handful run s3://bucket/photos --model s3://bucket/birds.model --group-by day --out s3://bucket/labelled
      handful run photos/ --model birds.handful --group-by site --out labelled/ --plan
    """
    from handful.errors import PartitionsError
    from handful.machine.outputs import refuse_overwriting
    from handful.machine.threads import available_cores
    from handful.progress import bars
    from handful.reading.class_lists import read_candidates, read_weights
    from handful.scale.cost import cost
    from handful.scale.driver import job_of, run
    from handful.scale.labeller import LabelOptions
    from handful.scale.models import opened as opened_model

    refuse_overwriting(
        {"data set": source, "model": model, "prior": prior, "candidates": candidates}, {"folder of labels": out}
    )
    with _model_at(model) as fitted:
        classes = list(map(str, opened_model(fitted).classes))
        how: LabelOptions = {
            "features": features[0] if features and len(features) == 1 else features or None,
            "prior": None if prior is None else read_weights(prior, classes),
            "candidates": None if candidates is None else read_candidates(candidates, classes),
            "expect_unknown": expected_unknown(expect_unknown),
            "keep_features": keep_features,
            "lineage": lineage,
            "prefix": prefix,
        }
        if plan:
            job, found = job_of(source, fitted, out, group_by, bad_rows, how)
            for line in cost(job, found, available_cores(), relabel=not keep_labelled):
                data(line)
            return
        _log_to_standard_error()
        try:
            with bars(f"labelling {source}") as on_progress:
                report = run(
                    source,
                    fitted,
                    out,
                    group_by=group_by,
                    bad_rows=bad_rows,
                    relabel=not keep_labelled,
                    workers=workers_at(on) if on else None,
                    on_progress=on_progress,
                    **how,
                )
        except PartitionsError as error:
            _print(error.report)
            raise
    _print(report)


def _print(report: Any) -> None:
    """Print what was done."""
    from handful.arguments import counted, some_of

    data(f"{counted(len(report.labelled), 'partition')} labelled, {len(report.unchanged):,} were labelled before")
    data(f"{counted(report.rows, 'row')}, {report.bad_rows:,} without a label: see their column 'reason'")
    for failed in report.failed:
        data(f"failed: {failed.partition}: {failed.reason}")
    if report.gone:
        data(f"no longer in the data set, and their labels are kept: {some_of(report.gone)}")
    data(f"Items: {report.items}")
    data(f"Groups: {report.groups}")


@contextmanager
def _model_at(place: str) -> Iterator[str]:
    """Yield the place of a model; a catalogue is exported to one."""
    from handful.catalogue.file import is_catalogue_file
    from handful.machine.outputs import is_remote
    from handful.review.exporting import export

    if is_remote(place) or not is_catalogue_file(Path(place)):
        yield place
        return
    with tempfile.TemporaryDirectory(prefix="handful-") as folder, opened(Path(place)) as file:
        yield str(export(file, Path(folder) / "exported.model").path)


def _log_to_standard_error() -> None:
    """Say what becomes of each partition where no bar is shown."""
    if not sys.stderr.isatty():
        log = logging.getLogger("handful.scale")
        log.setLevel(logging.INFO)
        log.addHandler(logging.StreamHandler())
