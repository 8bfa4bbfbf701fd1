"""`handful classify`: a catalogue and a batch to labels, and optionally a page about them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from handful.cli.options import HERE, TRUE, Options, executor_at, known_of, reading_of, refuse, with_options

# Options that do not apply, and why.
BY_SCORES = "with --scores labels come from the scores alone, without examples and vectors, and no item is unknown"
NOT_BY_SCORES = (
    *("--segments", "--precursor", "--backbone", "--features", "--labels", "--text", "--id-column", "--missing"),
    *("--sheet", "--header-row"),
    *("--tasks", "--method", "--unknown", "--expect-unknown", "--device", "--on", "--trust-pickle", "--skip-bad"),
)
ONLY_BY_SCORES = ("--sites", "--annotate", "--pictures")
IN_GROUPS = "with --group-by every group is labelled here, in memory"
NOT_IN_GROUPS = ("--on",)


class ClassifyCommand(TyperCommand):
    """The command; `--expect-unknown` needs no value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give `--expect-unknown` the value true if it has none."""
        for place in reversed([place for place, one in enumerate(args) if one == "--expect-unknown"]):
            if place + 1 == len(args) or args[place + 1].startswith("-"):
                args.insert(place + 1, TRUE)
        return super().parse_args(ctx, args)


@with_options(*Options.__annotations__)
def classify_command(
    context: typer.Context,
    out: Annotated[
        Path,
        typer.Option(
            help="Predictions, one row per item: .parquet or .csv; .rttm for named voices; or, with the same ending, a "
            "labelled copy of the batch (.h5ad, .mgf) or of the scores."
        ),
    ],
    **options: Any,
) -> None:
    """Label a batch as a whole; print the classes present, items in doubt, unknown items, and the files written.

    Each class is printed with its expected number of items and the chance that it is present. An item that looks like
    none of the classes still gets a label, that of the closest class or that of --unknown; the column 'unknown' is the
    chance that no class fits. The predictions keep all other columns of the batch.

    Classes are given by examples (--catalogue), by their names (--names), or both. The backbone of the items embeds
    the names, so photographs need one that also reads text: one of open_clip. Underscores and CamelCase become spaces.

    A batch too large for memory, or any batch with --on ray, is streamed, without --sequence or candidates of
    single items. Until the predictions are written, the run is kept in a folder beside them that ends in .run: the same
    command resumes after an interruption.

    With --group-by every group of rows is one batch, labelled in memory. Predictions then have the columns of the
    group, and a table of groups and their classes is written beside them: labels.groups.parquet for labels.parquet.

    With --scores no examples are needed: all items of a file of scores, or of each group, are labelled jointly, and
    the labels go into a copy of the file.

    The page (--report) shows the batch; `handful review` asks about it. With --given, items that a person answered keep
    their labels and count as examples, and the rest of the batch is labelled again.

    \b
    Examples:
      handful classify --catalogue photos.bank --batch new_photos/ --out labels.parquet --report labels.html
      handful classify --catalogue intents.jsonl --batch today.jsonl --out labels.csv
      handful classify --names intents.txt --batch today.jsonl --out labels.csv
      handful classify --catalogue photos.bank --batch new_photos/ --method paddle --out labels.csv
      handful classify --catalogue embeddings.parquet --labels intent --batch today.parquet --out labels.parquet
      handful classify --catalogue intents.xlsx --labels intent --text question --batch today.csv --out labels.csv
      handful classify --catalogue photos.bank --batch cameras/ --group-by folder --out labels.csv --report labels.html
      handful classify --catalogue c.bank --batch b/ --given b.corrections.json --out labels.csv
      handful classify --catalogue c.bank --batch b/ --candidates of_this_site.txt --unknown other --out labels.csv
      handful classify --catalogue c.parquet --batch b.parquet --group-by site --group-by day --out labels.parquet
      handful classify --catalogue atlas.h5ad --labels cell_type --batch new.h5ad --group-by donor --out labelled.h5ad
      handful classify --catalogue voices.npz --batch d.npy --segments d.rttm --group-by file --out named.rttm
      handful classify --scores predictions.json --sites cct.json --sequence seq_id --group-by location --out new.json
      handful classify --scores predictions.json --group-by folder:1 --out new.json --report new.html --pictures photos
      handful classify --scores birds.csv --candidates species_list.txt --group-by file --out better.csv
    """
    from handful.classification.files import (
        check_ending,
        group_table_path,
        paths_read,
        paths_written,
        replaceable,
        write_predictions,
        writes_back,
    )
    from handful.classification.label import classify
    from handful.classification.label_studio import write_label_studio
    from handful.classification.page import write_page
    from handful.classification.scores import classify_scores, write_annotations, write_scores
    from handful.cli.printed import print_batch
    from handful.errors import OptionError
    from handful.exchange.rttm import ENDING as RTTM
    from handful.machine.outputs import refuse_overwriting
    from handful.runs.progress import bars

    known = known_of(options)
    group_by = options["group_by"] or None
    catalogue, names, batch, scores, sites = (
        options[name] for name in ("catalogue", "names", "batch", "scores", "sites")
    )
    annotate = options["annotate"]
    report = options["report"]
    tasks = options["tasks"]
    given_from = scores if scores is not None else batch
    run = out.parent / f"{out.name}.run"
    what = "predictions, one row per item"
    if scores is not None:
        if catalogue is not None or batch is not None or names is not None:
            raise OptionError("give --scores, or --batch with --catalogue or --names, not both")
        refuse(context, NOT_BY_SCORES, BY_SCORES)
        if annotate is not None and sites is None:
            raise OptionError("--annotate writes into a copy of the file of sites; name that file with --sites")
        if writes_back(scores, out):
            what = f"{scores.name} with joint labels"
        else:
            check_ending(out)
    else:
        if batch is None or (catalogue is None and names is None):
            raise OptionError("give --batch with --catalogue, --names or both, or give --scores")
        refuse(context, ONLY_BY_SCORES, "this is for --scores")
        if group_by:
            refuse(context, NOT_IN_GROUPS, IN_GROUPS)
        check_ending(out, batch)
        if out.suffix.lower() == RTTM:
            what = "segments with the names of their voices"
    read = {name: options[name] for name in ("catalogue", "batch", "names", "segments", "scores", "sites", "backbone")}
    refuse_overwriting(
        paths_read(known, **read),
        paths_written(
            predictions=out,
            grouped=group_by is not None,
            run=run if scores is None else None,
            annotations=annotate,
            page=report,
            tasks=tasks,
        ),
        replaces=replaceable(out, scores, sites),
    )
    with bars(f"labelling {given_from}") as on_progress:
        if scores is not None:
            classified = classify_scores(scores, group_by=group_by, sites=sites, pictures=options["pictures"], **known)
            write_scores(classified, scores, out)
            if annotate is not None and sites is not None:
                write_annotations(classified, scores, sites, annotate)
        else:
            classified = classify(
                catalogue,
                batch,
                group_by=group_by,
                folder=run,
                executor=None if options["on"] == HERE else executor_at(options["on"], 1, {}),
                on_progress=on_progress,
                **{name: options[name] for name in ("names", "segments", "method", "unknown")},
                **reading_of(options),
                **known,
            )
            write_predictions(classified, out)
        if tasks is not None:
            write_label_studio(classified, tasks)
        if classified.streamed:
            shutil.rmtree(run)
        if report is not None:
            write_page(classified, report, title=given_from.stem)
    written = [(out, what)]
    if group_by:
        written.append((group_table_path(out), "groups and their classes"))
    if annotate is not None:
        written.append((annotate, "labels as annotations of the sites' files"))
    if report is not None:
        written.append((report, "a page about them"))
    if tasks is not None:
        written.append((tasks, f"tasks for Label Studio; its interface is in {tasks.with_suffix('.xml').name}"))
    print_batch(classified, written)
