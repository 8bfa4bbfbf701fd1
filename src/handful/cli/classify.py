"""`handful classify`: a catalogue and a batch to labels, and optionally a page about them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from handful.cli.options import HERE, HeaderRow, Missing, On, Sheet, SkipBad, Trust, executor_at, refuse

# Options that do not apply, and why.
BY_SCORES = "with --scores labels come from the scores alone, without examples and vectors, and no item is unknown"
NOT_BY_SCORES = (
    *(
        "--segments",
        "--precursor",
        "--backbone",
        "--features",
        "--labels",
        "--text",
        "--id-column",
        "--missing",
        "--sheet",
        "--header-row",
        "--tasks",
        "--method",
        "--unknown",
        "--expect-unknown",
        "--device",
        "--on",
    ),
    "--trust-pickle",
    "--skip-bad",
)
ONLY_BY_SCORES = ("--sites", "--annotate", "--pictures")
TRUE = "true"
IN_GROUPS, NOT_IN_GROUPS = "with --group-by every group is labelled here, in memory", ("--on",)


class ClassifyCommand(TyperCommand):
    """The command; `--expect-unknown` needs no value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give `--expect-unknown` the value true if it has none."""
        for place in reversed([place for place, one in enumerate(args) if one == "--expect-unknown"]):
            if place + 1 == len(args) or args[place + 1].startswith("-"):
                args.insert(place + 1, TRUE)
        return super().parse_args(ctx, args)


def expected_unknown(said: str | None) -> Any:
    """Return what --expect-unknown says: nothing, True, a share, a range, or the path of predictions."""
    if said is None or said == TRUE:
        return None if said is None else True
    try:
        found = tuple(map(float, re.split(r"(?<=[\d.])[-,]\s*", said)))
    except ValueError:
        return Path(said)
    return found[0] if len(found) == 1 else found


def classify_command(
    context: typer.Context,
    out: Annotated[
        Path,
        typer.Option(
            help="Predictions, one row per item: .parquet or .csv; .rttm for named voices; or, with the same ending, a "
            "labelled copy of the batch (.h5ad, .mgf) or of the scores."
        ),
    ],
    catalogue: Annotated[
        Path | None,
        typer.Option(
            help="A catalogue (.handful, see `handful catalogue --help`), or labelled examples: a bank, .npz or .h5ad "
            "with vectors and labels; a table (.parquet, .csv, .tsv, "
            ".xlsx, .jsonl) with labels, and vectors, a column 'text', or a column 'path' of images; or images, one "
            "folder per class (also in a .zip)."
        ),
    ] = None,
    names: Annotated[
        Path | None,
        typer.Option(
            help="Names of the classes, instead of or in addition to examples: .txt with one per line (and texts "
            "about it after tabs), .json, or a table with the columns 'label' and 'text'; or their vectors, .npz or "
            ".parquet."
        ),
    ] = None,
    batch: Annotated[
        Path | None,
        typer.Option(
            help="Items to label, all at once: the same kinds of files without labels, or .npy; images may be "
            "anywhere in a folder or .zip."
        ),
    ] = None,
    segments: Annotated[
        Path | None,
        typer.Option(
            help="Output of a diarisation tool for a batch of voice vectors, .rttm: one line per vector, in the same "
            "order. Adds the columns file, start, end, speaker and channel."
        ),
    ] = None,
    precursor: Annotated[
        float | None,
        typer.Option(
            metavar="DA",
            help="For mass spectra: candidates are the compounds of the catalogue with a precursor this close, in "
            "Da; a spectrum without candidates is unknown.",
        ),
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option(
            help="Instead of catalogue and batch: scores of another model, from SpeciesNet or MegaDetector (.json), "
            "BirdNET (.csv) or Raven (.txt)."
        ),
    ] = None,
    sites: Annotated[
        Path | None,
        typer.Option(
            help="Sites and times of scored files: COCO Camera Traps, datapackage.json of Camtrap DP, or .csv."
        ),
    ] = None,
    sequence: Annotated[
        list[str] | None,
        typer.Option(
            help="Column that marks items of the same class: a sequence of photographs, a voice. Repeat it for several "
            "columns, for example if numbers start again at every site."
        ),
    ] = None,
    pool: Annotated[
        str | None,
        typer.Option(help="Column with the same value for similar groups, which then help each other."),
    ] = None,
    order: Annotated[
        str | None, typer.Option(help="Column with the time of a group, for --pool: only earlier groups help.")
    ] = None,
    coarse: Annotated[
        str | None,
        typer.Option(
            help="Column of the catalogue with a coarse class, such as the genus of a species; a table (.csv) with the "
            "columns 'class' and 'coarse'; or a level of SpeciesNet's taxa: genus, family, order. Where classes cannot "
            "be told apart, the column 'sure_label' has the coarse one."
        ),
    ] = None,
    candidates: Annotated[
        Path | None,
        typer.Option(
            help="List of the classes that can occur, one per line; all others are ruled out. Or a table (.csv) with "
            "the column 'class' and a column of the batch, to list the classes of each item or group."
        ),
    ] = None,
    prior: Annotated[
        Path | None,
        typer.Option(
            help="Table (.csv) with the columns 'class' and 'weight': how likely classes are before the batch is seen. "
            "Missing classes get the smallest weight in the table. With the column of --group-by, weights are per "
            "group."
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="A method of the few-shot literature instead of the default, such as 'paddle' (needs the extra "
            "'fewshot'). It says neither how likely a class is present nor which items are unknown.",
        ),
    ] = None,
    unknown: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
            help="Label of items that look like none of the classes, for example 'other'; by default, the closest "
            "class.",
        ),
    ] = None,
    expect_unknown: Annotated[
        str | None,
        typer.Option(
            metavar="[SHARE]",
            help="Expect items of no class: any share of the batch if none is named; a share such as 0.3; a range such "
            "as 0.1-0.5; as many as in the predictions of an earlier batch (.csv, .parquet), best corrected; or 0.",
        ),
    ] = None,
    annotate: Annotated[
        Path | None,
        typer.Option(
            help="Copy of --sites with labels: COCO Camera Traps (.json), or observations of Camtrap DP (.csv)."
        ),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="A page about the batch, .html.")] = None,
    pictures: Annotated[
        Path | None,
        typer.Option(
            help="Folder that the paths of scored images start from, for the page; by default that of the scores."
        ),
    ] = None,
    group_by: Annotated[
        list[str] | None,
        typer.Option(
            help="Column that splits the batch, for example by site or day; each value is labelled as a separate "
            "batch. For files, 'folder' is where they are, and 'folder:1' the first folder of their paths. Repeat for "
            "several columns."
        ),
    ] = None,
    backbone: Annotated[
        str | None,
        typer.Option(
            help="What turns items into vectors, see `handful features extract --help`. By default the one that made "
            "the vectors of the catalogue; else efficientnet-lite0 for images and minilm for sentences."
        ),
    ] = None,
    features: Annotated[
        str | None, typer.Option(help="Column of vectors, prefix of their columns, or height,width.")
    ] = None,
    labels: Annotated[str | None, typer.Option(help="Column of labels, if it cannot be detected.")] = None,
    text: Annotated[
        str | None,
        typer.Option(help="Column of sentences, if not 'text'; with --features, what the page shows."),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option(help="Column of the batch that identifies an item, for example a ticket.")
    ] = None,
    missing: Missing = None,
    sheet: Sheet = None,
    header_row: HeaderRow = None,
    given: Annotated[
        Path | None,
        typer.Option(help="Corrections saved on the page of this batch, or an export of Label Studio: .json."),
    ] = None,
    new_class: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL",
            help="A label of --given, such as an export of Label Studio, that the catalogue does not have yet. "
            "Corrections saved from the page need no such option. Repeat it for several.",
        ),
    ] = None,
    tasks: Annotated[
        Path | None, typer.Option(help="Tasks with predictions to import into Label Studio: .json.")
    ] = None,
    trust_pickle: Trust = False,
    skip_bad: SkipBad = False,
    device: Annotated[str, typer.Option(help="Device of the backbone, as in torch: cpu, cuda.")] = "cpu",
    on: On = HERE,
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

    On the page (--report) you can correct labels and save the corrections. With --given, corrected items keep
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
    from handful.classification.voices import is_rttm
    from handful.cli.printed import print_batch
    from handful.cli.terminal import passes
    from handful.errors import OptionError
    from handful.machine.outputs import refuse_overwriting

    known: Any = {
        "candidates": candidates,
        "precursor": precursor,
        "prior": prior,
        "given": given,
        "new_classes": new_class or None,
        "sequence": sequence or None,
        "pool": pool,
        "order": order,
        "coarse": coarse,
        "expect_unknown": expected_unknown(expect_unknown),
    }
    given_from, run = scores if scores is not None else batch, out.parent / f"{out.name}.run"
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
        if is_rttm(out):
            what = "segments with the names of their voices"
    assert given_from is not None
    refuse_overwriting(
        paths_read(
            known,
            catalogue=catalogue,
            batch=batch,
            names=names,
            segments=segments,
            scores=scores,
            sites=sites,
            backbone=backbone,
        ),
        paths_written(
            predictions=out,
            grouped=bool(group_by),
            run=run if scores is None else None,
            annotations=annotate,
            page=report,
            tasks=tasks,
        ),
        replaces=replaceable(out, scores, sites),
    )
    with passes(f"labelling {given_from}") as on_progress:
        if scores is not None:
            classified = classify_scores(scores, group_by=group_by or None, sites=sites, pictures=pictures, **known)
            write_scores(classified, scores, out)
            if annotate is not None and sites is not None:
                write_annotations(classified, scores, sites, annotate)
        else:
            assert batch is not None
            classified = classify(
                catalogue,
                batch,
                names=names,
                segments=segments,
                group_by=group_by or None,
                backbone=backbone,
                features=features,
                labels=labels,
                text=text,
                id_column=id_column,
                missing=missing,
                sheet=sheet,
                header_row=header_row,
                trust_pickle=trust_pickle,
                skip_bad=skip_bad,
                method=method,
                unknown=unknown,
                device=device,
                folder=run,
                executor=None if on == HERE else executor_at(on, 1, {}),
                on_progress=on_progress,
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
