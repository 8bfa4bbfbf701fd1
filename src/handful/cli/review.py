"""`handful review`: answer a few questions about a batch on a page, and watch the other labels follow."""

from __future__ import annotations

import getpass
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from handful.cli.options import WHAT_IS_LABELLED, known_of, reading_of, with_options
from handful.cli.terminal import Interrupted, data, warn

LAST_PORT = 65_535
# Ending of a catalogue.
ENDING = ".handful"
# Options of `classify` that a review has too.
FROM_CLASSIFY = (
    *("names", "sequence", "pool", "order", "coarse", "candidates", "prior", "unknown"),
    *("expect_unknown", "group_by", "encoder", "features", "labels", "text", "id_column", "missing"),
    *("header_row", "skip_bad", "device"),
)


@with_options(*FROM_CLASSIFY)
def review_command(
    context: typer.Context,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="[CATALOGUE] [BATCH]",
            help=f"{WHAT_IS_LABELLED} With a batch alone, the catalogue is made beside it; with a catalogue alone, its "
            "last batch goes on.",
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
            help="Where the labels are written in the end, as by `handful export`: .csv, .xlsx, .parquet, .jsonl; by "
            "default BATCH.labels.csv, here. A page about the batch: .html. Tasks with predictions to import into "
            "Label Studio: .json. Repeat for several."
        ),
    ] = None,
    sure: Annotated[
        float,
        typer.Option(
            help="You may stop when at most 5% of the labels are wrong, with this probability.", min=0.5, max=0.999
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

    A catalogue is one file, photos.handful: the items, their vectors, and everything that you say about them. What you
    named is an example for all other items, and for the next batch. With a batch alone there are no examples yet: the
    page shows items that look alike, and asks what they are. Names are typed once, and then offered.

    With examples, the page asks about single items while that corrects most, then it shows sheets of items with one
    label, which you accept at a glance. Every answer teaches, and tells how far the other labels can be trusted: the
    page says how many are expected to be right, and when you may stop; a class with one or two items may still be
    missed then. Every answer is on the disk before the page goes on. Stop with Ctrl-C whenever you like; the same
    command goes on. Items may come, go and move meanwhile: only what is new is read and embedded.

    Finish on the page writes the labels to --out, as `handful export` does, and a folder per class or keywords that
    photo programs read, if you want them.

    \b
    Examples:
      handful review photos/
      handful review photos.handful
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
        raise OptionError(f"a review has a catalogue and a batch, or one of them; got {len(paths)} paths")
    catalogue = paths[0] if len(paths) > 1 or paths[0].suffix == ENDING else None
    batch = None if catalogue is paths[-1] else paths[-1]
    unfinished = [batch]
    if opens_next:
        if out or batch is None:
            raise OptionError("--next names the labels of each batch of a folder: name the folder, and leave --out out")
        unfinished = [*_unfinished(batch)]
        if not unfinished:
            data(f"every batch in {batch} has labels here")
            return
        batch = unfinished[0]
    files, serving = (import_extra(f"handful.review.{name}", "review") for name in ("files", "serve"))
    asked = outputs_of(out or ())
    final = asked.predictions or _labels_of(batch or paths[0])
    if not files.is_table(final):
        raise OptionError(f"labels are written as .csv, .xlsx, .parquet or .jsonl, got {final}; change the ending")
    check_ending(final.with_suffix(".csv") if final.suffix == ".jsonl" else final)
    outputs = files.Outputs(final, asked.page, asked.tasks)
    place = serving.Address(*_host_and_port(address), opens, _announce, warn)
    found = _reviewed(catalogue, batch, outputs, place, sure, options)
    if found is None:
        raise Interrupted("everything you said is kept; run the same command again to go on")
    for path in found.written:
        data(f"wrote {path}")
    if found.next_batch:
        data(f"for the next batch: {found.next_batch}")
    if unfinished[1:]:
        data(f"next is {unfinished[1]}: run the same command again")


def _reviewed(
    catalogue: Path | None, batch: Path | None, outputs: Any, address: Any, sure: float, options: dict[str, Any]
) -> Any:
    """Open the catalogue, bring the batch, and serve the review."""
    from handful.machine.extras import import_extra
    from handful.machine.outputs import refuse_overwriting
    from handful.progress import bars

    review = {
        name: import_extra(f"handful.review.{name}", "review")
        for name in ("file_source", "files", "opening", "serve", "server", "starting", "watching")
    }
    path = review["starting"].catalogue_path(catalogue, batch or Path())
    names = options["names"]
    candidates = options["candidates"]
    inputs = {"catalogue": catalogue or path, "batch": batch, "names": names, "candidates": candidates}
    refuse_overwriting(inputs, outputs.written)
    how = review["opening"].OpenOptions(names, options["group_by"] or None, options["unknown"], sure, known_of(options))
    page = review["server"].Page(None, path.stem, out=str(outputs.labels), catalogue=str(path))
    finish = review["files"].finish
    with bars(f"reading {batch or path}") as on_progress:
        source = review["file_source"].FileSource(
            page,
            catalogue,
            batch,
            how,
            getpass.getuser(),
            reading_of(options),
        )
        watching = review["watching"].Watching(page, source, on_progress)
        try:
            return review["serve"].serve(
                page,
                lambda found, wanted: finish(found, outputs, source.name, wanted),
                address,
                catalogue=path,
                watching=watching,
            )
        finally:
            source.end()


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
