"""export: what people said and what the model says about items of a catalogue, as files that other programs read.

A table has one row per item, and another one beside it one row per kind; a folder has a folder per class, and the table
of kinds; keywords are in files next to the photographs; a model is what was fitted, without names of files or people.
Each file appears complete or not at all, and never over something that was read.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from handful.arguments import counted, did_you_mean
from handful.catalogue.file import CatalogueFile
from handful.errors import OptionError
from handful.fitted import Record, save_model
from handful.items.bringing import source_of
from handful.items.fitting import model_of
from handful.machine.outputs import refuse_overwriting
from handful.reading.delimited import delimiter_of
from handful.review.batch_review import BatchReview
from handful.review.class_folders import write_class_folders
from handful.review.item_rows import SaidRow, item_rows
from handful.review.item_tables import ENDINGS, kinds_beside, write_items, write_kinds
from handful.review.keywords import write_keywords

# Endings of models.
MODELS = (".model", ".safetensors")
# Endings of tables that have a delimiter.
DELIMITED = (".csv", ".tsv")


class Exported(NamedTuple):
    """What was written: the path, how many items, and what these are; `lost` are items whose image is gone."""

    path: Path
    n_items: int
    what: str
    lost: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return it as a sentence."""
        lost = f"; {counted(len(self.lost), 'image')} cannot be read, the first is {self.lost[0]}" if self.lost else ""
        return f"{self.path}: {counted(self.n_items, self.what)}{lost}"


def export(
    file: CatalogueFile,
    out: str | os.PathLike[str],
    *,
    batches: Sequence[str] = (),
    links: bool = False,
    review: BatchReview | None = None,
) -> Exported:
    """Write what a catalogue says.

    Parameters
    ----------
    file
        The catalogue.
    out
        A table (.csv, .xlsx, .parquet, .jsonl), a model (.model, .safetensors), or else a new folder, which gets a
        folder per class.
    batches
        The batches whose items are written; by default all.
    links
        Whether a folder per class has links to the images instead of copies.
    review
        The review of one of the batches, if it is open.
    """
    final = Path(out)
    named = _batches(file, batches)
    reads = {"catalogue": file.path, **{f"batch {name}": source_of(file, name) for name in file.said.sources}}
    refuse_overwriting(reads, {"export": final, "kinds": kinds_beside(final)})
    ending = final.suffix.lower()
    if links and ending in (*ENDINGS, *MODELS):
        raise OptionError("links are for a folder per class; leave them out, or name a folder")
    if ending in MODELS:
        return _model(file, final, batches)
    if ending not in ENDINGS and (ending == ".handful" or final.is_file()):
        raise OptionError(
            f"an export is a table ({', '.join(ENDINGS)}), a model ({', '.join(MODELS)}) or a new folder, got {final}; "
            "change the ending. A catalogue is copied like any file"
        )
    rows = _rows(file, named, review)
    if ending in ENDINGS:
        delimiter = _delimiter(file, named)
        write_items(rows, final, delimiter=delimiter)
        write_kinds(rows, kinds_beside(final), delimiter=delimiter)
        return Exported(final, len(rows), "row")
    lost = write_class_folders(file, rows, final, links=links)
    return Exported(final, len(rows) - len(lost), "image", tuple(lost))


def export_keywords(file: CatalogueFile, *, batches: Sequence[str] = (), review: BatchReview | None = None) -> Exported:
    """Write the class of each photograph as a keyword into a file next to it, `photo.jpg.xmp`.

    Parameters
    ----------
    file, batches, review
        As in `export`.
    """
    named = _batches(file, batches)
    n_items, lost = write_keywords(file, _rows(file, named, review))
    folders = dict.fromkeys(source_of(file, name) for name in named)
    return Exported(next((folder for folder in folders if folder is not None), Path()), n_items, "keyword", tuple(lost))


def _rows(file: CatalogueFile, batches: Sequence[str], review: BatchReview | None) -> list[SaidRow]:
    reviews = {} if review is None else {review.session.batch: review}
    return [row for name in batches for row in item_rows(file, name, reviews.get(name))]


def _batches(file: CatalogueFile, asked: Sequence[str]) -> list[str]:
    there = [name for name, items in file.said.places.items() if items]
    for name in asked:
        if name not in there:
            raise OptionError(f"the catalogue has no batch {name!r}{did_you_mean(name, there)}; check its name")
    return list(dict.fromkeys(asked)) or there


def _model(file: CatalogueFile, final: Path, batches: Sequence[str]) -> Exported:
    if batches:
        raise OptionError("a model is fitted to all that was named; leave the batches out")
    model = model_of(file)
    # Columns may name files, places and people.
    save_model(model.with_record(Record(model.record.encoder)), final)
    return Exported(final, model.n_classes, "class")


def _delimiter(file: CatalogueFile, batches: Sequence[str]) -> str:
    """Return the delimiter of the table that the first of these batches came from, if it was one."""
    for name in batches:
        source = source_of(file, name)
        if source is not None and source.suffix.lower() in DELIMITED and source.is_file():
            return delimiter_of(source)
    return ","
