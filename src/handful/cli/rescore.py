"""`handful rescore`: the scores of another model to joint labels, in a copy of its own file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from handful.cli.options import known_of, with_options

OPTIONS = (
    *("sites", "pictures", "group_by", "sequence", "pool", "order", "coarse", "candidates", "prior"),
    "annotate",
)


@with_options(*OPTIONS)
def rescore_command(
    scores: Annotated[
        Path,
        typer.Argument(
            metavar="SCORES",
            help="Scores of another model: from SpeciesNet or MegaDetector (.json), BirdNET (.csv) or Raven (.txt).",
            show_default=False,
        ),
    ],
    out: Annotated[
        list[Path],
        typer.Option(
            help="With the ending of the scores, a copy of them with joint labels; otherwise predictions, one row per "
            "item: .parquet or .csv. A page about them: .html. Repeat for both."
        ),
    ],
    **options: Any,
) -> None:
    """Label all items of a file of scores jointly, or those of each group; no examples are needed.

    Scores do not tell which items belong to none of the classes, so this is not judged.

    \b
    Examples:
      handful rescore predictions.json --sites cct.json --sequence seq_id --group-by location --out new.json
      handful rescore predictions.json --group-by folder:1 --out new.json --out new.html --pictures photos
      handful rescore birds.csv --candidates species_list.txt --group-by file --out better.csv
    """
    from handful.classification.files import (
        check_ending,
        outputs_of,
        paths_read,
        paths_written,
        replaceable,
        writes_back,
    )
    from handful.classification.scores import rescore, write_annotations
    from handful.cli.printed import print_batch
    from handful.cli.written import write_outputs
    from handful.errors import OptionError
    from handful.machine.outputs import refuse_overwriting
    from handful.progress import bars

    known = known_of(options)
    group_by = options["group_by"] or None
    sites = options["sites"]
    annotate = options["annotate"]
    outputs = outputs_of(out, tasks=False)
    labels = outputs.predictions
    if annotate is not None and sites is None:
        raise OptionError("--annotate writes into a copy of the file of sites; name that file with --sites")
    if labels is not None and not writes_back(scores, labels):
        check_ending(labels)
    refuse_overwriting(
        paths_read(known, scores=scores, sites=sites),
        paths_written(grouped=group_by is not None, annotations=annotate, **outputs._asdict()),
        replaces=replaceable(labels, scores, sites),
    )
    with bars(f"labelling {scores}"):
        answer = rescore(scores, group_by=group_by, sites=sites, pictures=options["pictures"], **known)
        written = write_outputs(answer, outputs, scores.stem)
        if annotate is not None and sites is not None:
            write_annotations(answer, scores, sites, annotate)
            written.append((annotate, "labels as annotations of the sites' files"))
    print_batch(answer, written)
