"""`handful classify`: a catalogue and a batch to labels, and optionally a page about them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from handful.cli.options import (
    WHAT_IS_LABELLED,
    known_of,
    reading_of,
    with_options,
)

OPTIONS = (
    *("names", "sequence", "pool", "order", "coarse", "candidates", "prior", "method"),
    *("unknown", "expect_unknown", "group_by", "encoder", "features", "labels", "text", "id_column"),
    *("missing", "header_row", "skip_bad", "device"),
)


@with_options(*OPTIONS)
def classify_command(
    paths: Annotated[
        list[Path], typer.Argument(metavar="[CATALOGUE] BATCH", help=WHAT_IS_LABELLED, show_default=False)
    ],
    out: Annotated[
        list[Path] | None,
        typer.Option(
            help="Where the labels are written; by default only the summary is printed. Predictions, one row per item: "
            ".parquet or .csv; .rttm for named voices; or, with the same ending, a labelled copy of the batch (.h5ad, "
            ".mgf). A page about the batch: .html. Tasks with predictions to import into Label Studio: .json. Repeat "
            "for several.",
            show_default=False,
        ),
    ] = None,
    **options: Any,
) -> None:
    """Label a batch; print the classes present, doubtful items, unknown items, and the files written.

    Each class is printed with its expected number of items and the probability that it is present. An unknown item
    still gets a label, that of the closest class or that of --unknown; the column 'unknown' is the probability that no
    class fits. The predictions keep all other columns of the batch.

    Classes are given by examples, by their names (--names), or both. The encoder of the items embeds
    the names, so photographs need one that also reads text: one of open_clip. Underscores and CamelCase become spaces.

    With --group-by every group of rows is one batch. Predictions then have the columns of the
    group, and a table of groups and their classes is written beside them: labels.groups.parquet for labels.parquet.

    A page (--out labels.html) shows the batch; `handful review` asks about it, and keeps the answers in a catalogue.

    \b
    Examples:
      handful classify photos.bank new_photos/ --out labels.parquet --out labels.html
      handful classify intents.jsonl today.jsonl --out labels.csv
      handful classify today.jsonl --names intents.txt --out labels.csv
      handful classify photos.bank new_photos/ --method paddle --out labels.csv
      handful classify embeddings.parquet today.parquet --labels intent --out labels.parquet
      handful classify intents.xlsx today.csv --labels intent --text question --out labels.csv
      handful classify photos.bank cameras/ --group-by folder --out labels.csv --out labels.html
      handful classify c.bank b/ --candidates of_this_site.txt --unknown other --out labels.csv
      handful classify c.parquet b.parquet --group-by site --group-by day --out labels.parquet
      handful classify atlas.h5ad new.h5ad --labels cell_type --group-by donor --out labelled.h5ad
      handful classify voices.npz d.rttm --group-by file --out named.rttm
    """
    from handful.classification.files import (
        check_ending,
        outputs_of,
        paths_read,
        paths_written,
        replaceable,
    )
    from handful.classification.steps import classify
    from handful.cli.printed import print_batch
    from handful.cli.written import write_outputs
    from handful.machine.outputs import refuse_overwriting
    from handful.progress import bars

    catalogue, batch = _inputs(paths, options["names"])
    known = known_of(options)
    group_by = options["group_by"] or None
    outputs = outputs_of(out or ())
    if outputs.predictions is not None:
        check_ending(outputs.predictions, batch)
    read = {name: options[name] for name in ("names", "encoder")}
    refuse_overwriting(
        paths_read(known, catalogue=catalogue, batch=batch, **read),
        paths_written(grouped=group_by is not None, **outputs._asdict()),
        replaces=replaceable(outputs.predictions),
    )
    with bars(f"labelling {batch}") as on_progress:
        answer = classify(
            catalogue,
            batch,
            group_by=group_by,
            on_progress=on_progress,
            **{name: options[name] for name in ("names", "method", "unknown")},
            **reading_of(options),
            **known,
        )
        written = write_outputs(answer, outputs, batch.stem)
    print_batch(answer, written)


def _inputs(paths: list[Path], names: Path | None) -> tuple[Path | None, Path]:
    """Return the catalogue, if there is one, and the batch."""
    from handful.errors import OptionError

    if len(paths) == 2:
        return paths[0], paths[1]
    if len(paths) == 1 and names is not None:
        return None, paths[0]
    if len(paths) == 1:
        raise OptionError(
            f"{paths[0]} alone has no classes; give a catalogue before the batch, or the names of the classes with "
            "--names. To name the items of a batch yourself: handful review"
        )
    raise OptionError(f"give a catalogue and a batch, in this order; got {', '.join(map(str, paths))}")
