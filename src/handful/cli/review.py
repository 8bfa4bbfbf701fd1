"""`handful review`: answer a few questions about a batch on a page, and watch the other labels follow."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from handful.cli.options import WHAT_IS_LABELLED, known_of, reading_of, refuse, with_options
from handful.cli.terminal import Interrupted, data

LAST_PORT = 65_535
# Options of `classify` that a review has too.
FROM_CLASSIFY = (
    *("names", "sequence", "pool", "order", "coarse", "candidates", "prior", "unknown"),
    *("expect_unknown", "group_by", "encoder", "features", "labels", "text", "id_column", "missing"),
    "header_row",
    *("given", "skip_bad", "device"),
)


# Of these, options about a catalogue or about its classes, which a batch alone cannot have.
NEED_CATALOGUE = (
    *("--sequence", "--pool", "--order", "--coarse", "--prior"),
    *("--expect-unknown", "--group-by", "--given", "--next"),
)


@with_options(*FROM_CLASSIFY)
def review_command(
    context: typer.Context,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="[CATALOGUE] BATCH",
            help=f"{WHAT_IS_LABELLED} With a batch alone, the items that you name are the examples.",
            show_default=False,
        ),
    ],
    opens_next: Annotated[
        bool,
        typer.Option("--next", help="BATCH is a folder of batches: open the first, by name, that has no labels here."),
    ] = False,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            help="Where the labels are written in the end, as in `handful classify`; by default BATCH.labels.csv, "
            "here. The review is kept in a folder beside it, and the same command goes on with it. A page about the "
            "batch: .html. Tasks with predictions to import into Label Studio: .json. Repeat it for several."
        ),
    ] = None,
    sure: Annotated[
        float,
        typer.Option(
            help="You may stop when at most 5 % of the labels are wrong, with this chance.", min=0.5, max=0.999
        ),
    ] = 0.9,
    address: Annotated[
        str,
        typer.Option(
            metavar="HOST[:PORT]",
            help="Address of this machine at which others reach the page, and its port, any that is free if none is "
            "named; by default only you reach it.",
        ),
    ] = "127.0.0.1",
    opens: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
    **options: Any,
) -> None:
    """Review a batch: answer questions on a page, and all other items are labelled again after every answer.

    With a batch alone there are no examples: the page shows items that look alike, and asks what they are. Names are
    typed once, and then offered. Finish writes the labels and a catalogue, for the next batch.

    With a catalogue, the page asks about single items while that corrects most, then it shows sheets of items with one
    label, which you accept at a glance. Every answer teaches, and tells how far the other labels can be trusted: the
    page says how many are expected to be right, and when you may stop; a class with one or two items may still be
    missed then. Every answer is on the disk before the page goes on. Stop with Ctrl-C whenever you like; the same
    command goes on.

    Finish on the page writes the labels to --out, with what you said and what the model said in columns of their own,
    and your answers beside them, for --given. The same command opens a finished review again, for instance to name a
    group of items that were none of the classes.

    \b
    Examples:
      handful review photos/
      handful review photos.handful new_photos/
      handful review photos_by_class/ new_photos/
      handful review intents.jsonl today.jsonl --out labels.parquet
      handful review photos.bank cameras/ --group-by folder --sure 0.95
      handful review birds.handful days/ --next
    """
    from handful.classification.files import check_ending, outputs_of
    from handful.errors import OptionError
    from handful.machine.extras import import_extra

    if len(paths) > 2:
        raise OptionError(f"a review has a catalogue and a batch, or a batch alone; got {len(paths)} paths")
    batch = paths[-1]
    catalogue = paths[0] if len(paths) > 1 else None
    alone = catalogue is None and options["names"] is None
    if alone:
        refuse(context, NEED_CATALOGUE, "there is no catalogue: with a batch alone, its items are what you name")
        _refuse_catalogue(batch)
    unfinished = [batch]
    if opens_next:
        if out:
            raise OptionError("--next names the labels of each batch after it; leave --out out")
        unfinished = _unfinished(batch)
        if not unfinished:
            data(f"every batch in {batch} has labels here")
            return
        batch = unfinished[0]
    files, serving = (import_extra(f"handful.review.{name}", "review") for name in ("files", "serve"))
    asked = outputs_of(out or ())
    final = asked.predictions or _labels_of(batch)
    check_ending(final, batch)
    outputs = files.Outputs(final, asked.page, asked.tasks)
    place = serving.Address(*_host_and_port(address), opens, _announce)
    if alone:
        found = _without_catalogue(batch, outputs, place, sure, options)
    else:
        found = _with_catalogue(catalogue, batch, outputs, place, sure, options)
    if found is None:
        raise Interrupted("everything you said is kept; run the same command again to go on")
    for path in found.written:
        data(f"wrote {path}")
    for note in found.notes:
        data(note)
    if found.command:
        data(f"to keep what you confirmed for later batches: {found.command}")
    if found.next_batch:
        data(f"for the next batch: {found.next_batch}")
    if unfinished[1:]:
        data(f"next is {unfinished[1]}: run the same command again")


def _with_catalogue(
    catalogue: Path | None, batch: Path, outputs: Any, address: Any, sure: float, options: dict[str, Any]
) -> Any:
    """Read and embed both, and serve the review."""
    from handful.classification.label import embed
    from handful.classification.task import check, read_inputs
    from handful.machine.extras import import_extra
    from handful.machine.outputs import refuse_overwriting
    from handful.progress import bars

    review_files = import_extra("handful.review.files", "review").review_files
    with tempfile.TemporaryDirectory(prefix="handful-") as work:
        with bars(f"labelling {batch}") as on_progress:
            inputs = read_inputs(catalogue, batch, names=options["names"], **reading_of(options))
            about = {"group_by": options["group_by"] or None, "unknown": options["unknown"]}
            task = check(inputs, **about, **known_of(options))
            refuse_overwriting(task.inputs.paths, outputs.written)
            fitted = embed(task, work, on_progress=on_progress)
        return review_files(fitted, outputs, _name_of(batch), address, sure=sure)


def _without_catalogue(batch: Path, outputs: Any, address: Any, sure: float, options: dict[str, Any]) -> Any:
    """Read and embed the batch, and serve the review."""
    from handful.classification.names import read_names
    from handful.classification.unlabelled import read_unlabelled
    from handful.machine.extras import import_extra
    from handful.machine.outputs import refuse_overwriting
    from handful.progress import bars

    review_unlabelled = import_extra("handful.review.unlabelled", "review").review_unlabelled
    candidates = options["candidates"]
    offered = None if candidates is None else read_names(candidates).labels
    with tempfile.TemporaryDirectory(prefix="handful-") as work:
        with bars(f"reading {batch}") as on_progress:
            unlabelled = read_unlabelled(
                batch, work, unknown=options["unknown"], on_progress=on_progress, **reading_of(options)
            )
            inputs = {**unlabelled.paths, **({} if candidates is None else {"candidates": candidates.absolute()})}
            refuse_overwriting(inputs, {**outputs.written, "catalogue": outputs.catalogue})
        return review_unlabelled(unlabelled, outputs, _name_of(batch), address, sure=sure, candidates=offered)


def _host_and_port(address: str) -> tuple[str, int]:
    """Return the two parts of an address; port 0 is any that is free.

    Examples
    --------
    >>> _host_and_port("192.168.0.7:8000"), _host_and_port("::1"), _host_and_port("[::1]:8000")
    (('192.168.0.7', 8000), ('::1', 0), ('::1', 8000))
    """
    from handful.errors import OptionError

    found = re.fullmatch(r"\[(?P<six>[^\]]+)\](?::(?P<of_six>[0-9]+))?|(?P<four>[^:]+):(?P<of_four>[0-9]+)", address)
    if found is None:
        return address, 0
    port = int(found["of_six"] or found["of_four"] or 0)
    if port > LAST_PORT:
        raise OptionError(f"--address must be a host, or HOST:PORT with a port up to {LAST_PORT}, got {address}")
    return found["six"] or found["four"], port


def _refuse_catalogue(batch: Path) -> None:
    from handful.errors import OptionError
    from handful.fitted.files import is_catalogue

    if is_catalogue(batch):
        raise OptionError(f"{batch} is a catalogue; name the batch after it: handful review {batch} BATCH")


def _name_of(batch: Path) -> str:
    path = batch.resolve()
    return path.name if path.is_dir() else path.stem


def _labels_of(batch: Path) -> Path:
    return Path(f"{_name_of(batch)}.labels.csv")


def _unfinished(folder: Path) -> list[Path]:
    """Return the batches in a folder that have no labels in the current folder, by name."""
    from handful.errors import OptionError

    if not folder.is_dir():
        raise OptionError(f"--next needs a folder of batches, and {folder} is none; leave --next out")
    if folder.resolve() == Path.cwd():
        raise OptionError("labels would be written among the batches; run this in another folder")
    batches = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    if not batches:
        raise OptionError(f"{folder} is empty; put one table or folder per batch into it")
    by_labels: dict[Path, Path] = {}
    for batch in batches:
        other = by_labels.setdefault(_labels_of(batch), batch)
        if other != batch:
            raise OptionError(f"the labels of {other} and {batch} would be one file; rename one of them")
    return [batch for labels, batch in by_labels.items() if not labels.exists()]


def _announce(address: str) -> None:
    data(f"review at {address}")
    sys.stdout.flush()  # somebody waits for it, also behind a pipe
