"""A batch without a catalogue: read, checked and embedded; what a person names in it becomes a catalogue of its own."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from handful.classification.batch import Batch, Reading, asked_of, extracted, load_network
from handful.classification.building import EmbeddedExamples, bank_of, fitted_catalogue
from handful.classification.files import paths_read
from handful.classification.labelled import About
from handful.classification.measured import filled, scaled
from handful.classification.task import MOST_DENSE_BYTES, PathLike, dense_bytes
from handful.errors import OptionError
from handful.estimators.answer import Answer
from handful.estimators.containers import FrameOf, frame_of, new_frame
from handful.extraction.extract import skipped_items
from handful.fitted import save_catalogue
from handful.fitted.record import PreviewKind
from handful.machine.outputs import written_whole
from handful.progress import Listener
from handful.reading.read import kind_of, read_input, refuse_useless
from handful.reading.table import Table, warn_of_skipped

# Column of the labels in a table of examples.
LABEL = "label"


@dataclass(frozen=True, eq=False)
class Unlabelled:
    """Items to name, with their vectors.

    Attributes
    ----------
    batch : Batch
        The items.
    kind : "image", "text" or ""
        What they are; empty for vectors.
    measured : bool
        Whether the vectors are measurements, which are scaled for each batch: a file of a catalogue cannot keep them.
    unknown_label : str or None
        As in `About`.
    paths : mapping of str to Path
        The files and folders that were read, by what they are.
    frame_of : FrameOf
        Makes tables of the kind of the batch, if that was a frame.
    """

    batch: Batch
    kind: PreviewKind
    measured: bool = False
    unknown_label: str | None = None
    paths: Mapping[str, Path] = field(default_factory=dict)
    frame_of: FrameOf = new_frame

    def answer(self, answer: Answer, given: Mapping[int, str | None]) -> Answer:
        """Return the answer with what it is about; `given` is what a person named, by positions."""
        names = answer.classes.tolist()
        place = {name: k for k, name in enumerate(names)}
        codes = {item: None if name is None else place[name] for item, name in given.items()}
        about = About(
            self.batch,
            sum(name is not None for name in given.values()),
            self.batch.encoder,
            unknown_label=self.unknown_label,
            given=codes,
            n_named=len(names),
            inputs=self.paths,
        )
        return replace(answer, about=about, _frame_of=self.frame_of.rows(np.asarray(self.batch.rows)))

    def examples_file(self, catalogue: Path) -> Path:
        """Return where named items go: to the catalogue, or for measurements to a table beside it."""
        return catalogue.with_suffix(".examples.csv") if self.measured else catalogue

    def write_examples(self, items: Sequence[int], labels: Sequence[str], out: Path, folder: Path, **said: Any) -> Path:
        """Write named items into a folder, as they are to stand at `out`, and return the file.

        `said` is who named them, and in which review, as in `fitted_catalogue`.
        """
        some = self.batch.take(items)
        file = folder / out.name
        if self.measured:
            return _write_table(some, labels, file)
        assert some.points is not None
        examples = EmbeddedExamples(bank_of(some.points, labels), some, self.kind, self.batch.encoder)
        save_catalogue(fitted_catalogue(examples, self.paths["batch"], out, **said), file)
        return file


def _write_table(batch: Batch, labels: Sequence[str], out: Path) -> Path:
    """Write measurements with their labels."""
    columns = {name: values for name, values in batch.columns.values().items() if name != LABEL}
    with written_whole(out) as temporary, temporary.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*columns, LABEL])
        writer.writerows(zip(*columns.values(), labels, strict=True))
    return out


def read_unlabelled(
    batch: Any,
    work: PathLike,
    *,
    unknown: str | None = None,
    on_progress: Listener | None = None,
    **reading: Unpack[Reading],
) -> Unlabelled:
    """Read a batch, and embed images and sentences.

    Parameters
    ----------
    batch, unknown
        As in `classify`.
    work
        Folder for the vectors of images and sentences, which stay there.
    on_progress
        Called with a `handful.progress.Progress`.
    **reading
        How it is read and embedded, see `Reading`.
    """
    asked = asked_of(reading)
    paths = paths_read({}, batch=batch)
    if asked.skip_bad and not any(kind_of(path).rows for path in paths.values()):
        raise OptionError("the batch is no table, so it has no rows that cannot be read; leave skip_bad out")
    refuse_useless([batch], asked)
    table = read_input(batch, asked)
    id_column = reading.get("id_column")
    measured = bool(table.measured)
    table = _comparable(table, reading, {reading.get("labels"), id_column})
    items = Batch.of(table, id_column=id_column)
    kind: PreviewKind = "text" if isinstance(items.contents, tuple) else ""
    if items.items is not None:
        kind = items.items.kind
        network = load_network(kind, reading.get("encoder"), reading.get("device", "cpu"))
        _refuse_large(len(items.rows), network.dim)
        bank = extracted(items.items, network, Path(work) / "batch", on_progress)
        warn_of_skipped(table.where, skipped_items(bank), len(items.rows))
        items, _ = items.embedded(bank)
    elif reading.get("encoder") is not None:
        raise OptionError("an encoder is for images and sentences, and the batch has features; leave it out")
    assert items.points is not None
    _refuse_large(*items.points.shape)
    return Unlabelled(items, kind, measured, unknown, paths, frame_of(batch))


def _comparable(table: Table, reading: Reading, named: set[str | None]) -> Table:
    """Return a table whose numbers can be compared: measurements are scaled by their own spread, gaps filled."""
    if table.measured:
        found: Table = scaled(table, table, named, reading.get("missing"), reading.get("features"))["batch"]
        return found
    return table if reading.get("missing") is None else filled(table)


def _refuse_large(n_items: int, dim: int) -> None:
    if dense_bytes(n_items, 0, 0, dim) > MOST_DENSE_BYTES:
        raise OptionError(
            f"{n_items:,} items are too many to be labelled after every answer; review a part of them, and classify "
            "the rest with the catalogue that Finish writes"
        )
