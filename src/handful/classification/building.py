"""A catalogue in a file, from files: built of labelled examples, and added to by what a person said about a batch.

Images and sentences are embedded here; later batches are labelled without embedding or fitting the catalogue again.
What only the model said about an item is never added, unless that is asked for.
"""

from __future__ import annotations

import base64
import math
import os
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, Unpack

import numpy as np

from handful.arguments import some_of
from handful.banks import FeatureBank
from handful.classification.batch import Batch, Reading, asked_of, extracted, load_network
from handful.classification.corrections import found_in, read_corrections
from handful.classification.labelled import NONE
from handful.classification.measured import filled
from handful.classification.page_data import SMALL, pictures
from handful.errors import BankError, LabelError, OptionError
from handful.extraction.extract import skipped_items
from handful.extraction.items import list_items
from handful.fitted import (
    Added,
    Catalogue,
    Record,
    Source,
    add_examples,
    load_catalogue,
    save_catalogue,
)
from handful.fitted import record as records
from handful.fitted.changes import relative_to
from handful.fitted.record import PreviewKind, shown_rows
from handful.machine.lock import only_changer
from handful.machine.outputs import refuse_overwriting
from handful.machine.untrusted import finite
from handful.progress import Progress, bars
from handful.reading.class_names import NO_CLASS, is_missing, plain_label
from handful.reading.header import find_column
from handful.reading.labels import label_column, labelled, missing_labels
from handful.reading.read import read, read_input, refuse_useless
from handful.reading.table import Columns, Skipped, Table, warn_of_skipped
from handful.shapes import Float

PathLike = str | os.PathLike[str]
Listener = Callable[[Progress], None]
# Columns of a table of labels; and of predictions: how sure the model was, and what a person said.
ITEM = "item"
LABEL = "label"
CERTAINTY = "certainty"
PERSON = "person"
# Session of examples that the model labelled.
BY_MODEL = "labelled by the model"
# Letters of the values of other columns that are kept.
MOST_LETTERS = 200


@dataclass(frozen=True, eq=False)
class EmbeddedExamples:
    """Labelled vectors, beside what they were made from."""

    bank: FeatureBank
    batch: Batch
    kind: PreviewKind
    encoder: str

    @property
    def labels(self) -> list[str]:
        """Label of each example."""
        return [self.bank.class_names[code] for code in self.bank.labels.tolist()]

    def sources(self, catalogue: PathLike, file: PathLike, **said: str) -> list[Source]:
        """Return where the examples came from."""
        where = relative_to(catalogue, file)
        batch = self.batch
        return [Source(name, where, batch.content(row), **said) for row, name in enumerate(batch.names)]

    def previews(self) -> dict[int, str | bytes]:
        """Return texts or small pictures of some rows, or of all if they are few."""
        contents = self.batch.contents
        rows = shown_rows(self.bank.labels)
        if contents is None:
            return {}
        if isinstance(contents, tuple):
            return {row: contents[row] for row in rows}
        drawn = zip(rows, pictures(contents, rows, SMALL), strict=True)
        return {row: base64.b64decode(picture) for row, picture in drawn if picture is not None}

    def columns(self) -> dict[str, list[Any]]:
        """Return the other columns, as far as they are short texts or numbers."""
        found = {name: list(map(_short, values)) for name, values in self.batch.columns.values().items()}
        return {name: values for name, values in found.items() if any(value is not None for value in values)}


def build_catalogue(
    examples: PathLike, out: PathLike, *, on_progress: Listener | None = None, **reading: Unpack[Reading]
) -> Catalogue:
    """Embed labelled examples, fit their catalogue, and write it as one file.

    Parameters
    ----------
    examples : path
        Anything that `handful.read` reads, with labels.
    out : path
        The file, usually `.handful`; an older one is replaced.
    on_progress : callable, optional
        Called with a `handful.progress.Progress` while images or sentences are embedded.
    **reading : object
        How the examples are read and embedded, see `Reading`.

    Returns
    -------
    Catalogue
        What was written.

    Examples
    --------
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.savez(folder / "animals.npz", features=np.eye(3), labels=["cat", "dog", "fox"])
    >>> made = build_catalogue(folder / "animals.npz", folder / "animals.handful")
    >>> made.classes.tolist(), made.record.sources[1].file
    (['cat', 'dog', 'fox'], 'animals.npz')
    >>> np.savez(folder / "more.npz", features=np.eye(3)[:2] + 0.1, labels=["cat", "dog"])
    >>> add_to_catalogue(folder / "animals.handful", folder / "more.npz", person="Ada").n_added
    2
    """
    refuse_overwriting({"examples": examples}, {"catalogue": out})
    with bars("build the catalogue", on_progress) as listener:
        return _built(Path(examples), Path(out), listener, reading)


def _built(examples: Path, out: Path, on_progress: Listener, reading: Reading) -> Catalogue:
    return write_catalogue(embedded_examples(examples, on_progress=on_progress, **reading), examples, out)


def write_catalogue(found: EmbeddedExamples, source: Path, out: Path) -> Catalogue:
    """Fit the catalogue of examples, and write it as one file."""
    made = fitted_catalogue(found, source, out)
    out.parent.mkdir(parents=True, exist_ok=True)
    with only_changer(out, OptionError):
        save_catalogue(made, out)
    return made


def fitted_catalogue(found: EmbeddedExamples, source: Path, out: Path, **said: str) -> Catalogue:
    """Fit the catalogue of examples.

    Parameters
    ----------
    found
        The examples.
    source, out
        The folder or table that has them, and the file that the catalogue is for.
    **said
        Who said what they are, and in which review, as in `Source`.
    """
    sources = found.sources(out, source, date=records.today(), **said)
    record = Record(
        found.encoder,
        found.kind,
        sources=dict(enumerate(sources)),
        previews=found.previews(),
        columns={
            name: {row: value for row, value in enumerate(values) if value is not None}
            for name, values in found.columns().items()
        },
    )
    # Fitted as `classify` fits it, so that both say the same to the last digit.
    fitted = Catalogue.of_bank(found.bank)
    _ = fitted.reference.unknown_model
    return fitted.relabelled(np.array(found.bank.class_names)).with_record(record)


def embedded_examples(
    path: Path, *, on_progress: Listener | None = None, **reading: Unpack[Reading]
) -> EmbeddedExamples:
    """Read labelled examples, and embed images and sentences."""
    table = read_examples(path, reading)
    labels = reading.get("labels")
    if table.vectors is None:
        items = list_items(table, labels=labels, id_column=reading.get("id_column"))
        beside = Columns()
        if table.classes is None:  # images in folders have no columns
            row_at = {position: row for row, position in enumerate(table.rows)}
            beside = table.row_columns().of_items([row_at[position] for position in items.rows])
        bank, batch = _embed(replace(Batch.of_items(items), columns=beside), path, reading, on_progress)
        used = {label_column(table, labels), table.text}
        return EmbeddedExamples(bank.without_empty_classes(), _without(batch, used), items.kind, batch.encoder)
    if reading.get("encoder") is not None:
        raise OptionError(f"an encoder is for images and sentences, but {path} has features; leave it out")
    return labelled_vectors(table, reading)


def labelled_vectors(table: Table, reading: Reading) -> EmbeddedExamples:
    """Return the vectors of a table that have a label."""
    labels = reading.get("labels")
    bank = labelled(table, labels)
    if labels is None and table.bank is not None:
        column = ""
    else:
        column = label_column(table, labels)
        classes = table.values(column) if column else table.classes
        table = table.without(missing_labels(classes, table), "without label")
    whole = Batch.of(table, id_column=reading.get("id_column"))
    batch = _without(whole, {column, table.text})
    kind: PreviewKind = "text" if batch.contents else ""
    return EmbeddedExamples(bank.without_empty_classes(), batch, kind, bank.provenance.encoder)


def add_to_catalogue(
    catalogue: PathLike,
    said: PathLike,
    batch: PathLike | None = None,
    *,
    person: str = "",
    session: str = "",
    by_model: float | None = None,
    on_progress: Listener | None = None,
    **reading: Unpack[Reading],
) -> Added:
    """Add what a person said to a catalogue in a file.

    Parameters
    ----------
    catalogue : path
        The file.
    said : path
        Labelled examples; or, about a batch, corrections of its page (.json), or a table with the columns `item` and
        `label`. Of predictions, those rows count that a person has labelled (column `person`).
    batch : path, optional
        The batch that `said` is about.
    person, session : str
        Who said it, and in which review, as it shall be recorded.
    by_model : float, optional
        Take labels of the model instead, of predictions with at least this certainty.
    on_progress : callable, optional
        As in `build_catalogue`.
    **reading : object
        How the batch or the examples are read, see `Reading`. The encoder is that of the catalogue.

    Returns
    -------
    Added
        The catalogue, and how many examples were added.
    """
    there = load_catalogue(catalogue)
    file = Path(said)
    encoder = there.record.encoder.partition(", weights ")[0]
    about = Path(file if batch is None else batch)
    if encoder and read_examples(about, reading).vectors is None:
        reading = {"encoder": encoder, **reading}
    if batch is None:
        if by_model is not None or file.suffix.lower() == ".json":
            raise OptionError(f"{file} is about items of a batch; name the batch as well")
        found = embedded_examples(file, on_progress=on_progress, **reading)
        if CERTAINTY in found.batch.columns.by_name:
            raise OptionError(f"{file} has labels of the model; name the batch as well, to add those of a person")
    else:
        found = _labelled_of(about, _said_about(file, by_model), on_progress, reading)
    who = {"session": BY_MODEL} if by_model is not None else {"person": person, "session": session}
    return add_examples(
        catalogue,
        np.asarray(found.bank.features, np.float32),
        found.labels,
        found.sources(catalogue, about, date=records.today(), **who),
        previews=found.previews(),
        columns={name: values for name, values in found.columns().items() if name in there.record.columns},
        encoder=found.encoder,
        kind=found.kind,
    )


# Labels of items of a batch, by their positions.
SaidAbout: TypeAlias = Callable[[Batch], Mapping[int, str]]


def _said_about(file: Path, by_model: float | None) -> SaidAbout:
    """Return what finds the items of a batch that a file gives labels to, by corrections or by a table."""
    if file.suffix.lower() == ".json":
        if by_model is not None:
            raise OptionError(f"{file} has corrections, which are a person's; leave the labels of the model out")
        return _corrected(file)
    return _in_table(file, by_model)


def _corrected(file: Path) -> SaidAbout:
    corrections = read_corrections(file)

    def find(batch: Batch) -> dict[int, str]:
        found, lost = found_in(batch, corrections)
        warn_of_skipped(str(file), lost, len(corrections))
        labels = {place: one.label for place, one in found.items()}
        # An export of another tool has it as a choice like any other.
        return {place: label for place, label in labels.items() if label is not None and label != NONE}

    return find


def _in_table(file: Path, by_model: float | None) -> SaidAbout:
    """Labels of a table with the columns item and label; of predictions, those of a person, or of the model."""
    table = read(file, text=ITEM)
    items = table.values(ITEM)
    labels = table.values(find_column(table.columns, None, (LABEL,), "labels", table.where))
    predicted = CERTAINTY in table.columns
    if predicted and by_model is None:
        if PERSON not in table.columns:
            raise OptionError(
                f"{file} has labels of the model, and no column {PERSON!r} with those of a person; give corrections, "
                "or add labels of the model by a certainty (--by-model)"
            )
        labels = [None if label in NO_CLASS else label for label in table.values(PERSON)]
    elif by_model is not None:
        if not predicted:
            raise OptionError(f"{file} has no column {CERTAINTY!r}, so its labels are not those of the model")
        sure = [finite(value) >= by_model for value in table.values(CERTAINTY)]
        refused = table.values("rejected") if "rejected" in table.columns else [None] * table.n_rows
        known = [str(value).lower() != "true" for value in refused]
        labels = [label if all(one) else None for label, *one in zip(labels, sure, known, strict=True)]
    rows = table.values("row") if "row" in table.columns else [None] * table.n_rows

    def find(batch: Batch) -> dict[int, str]:
        places: dict[str, list[int]] = {}
        for place, name in enumerate(batch.names):
            places.setdefault(name, []).append(place)
        found = dict[int, str]()
        lost = list[Skipped]()
        for at, (item, row, label) in enumerate(zip(items, rows, labels, strict=True)):
            if is_missing(label):
                continue
            own = places.get(str(item), [])
            own = own if len(own) < 2 else [place for place in own if str(batch.rows[place]) == str(row)]
            if len(own) == 1:
                found[own[0]] = str(plain_label(label))
            else:
                lost.append(Skipped(at, str(item), "it is not in the batch"))
        if not found:
            raise LabelError(f"{file} gives no item of the batch a label to add; check that it is about this batch")
        warn_of_skipped(str(file), lost, len(items))
        return found

    return find


def _labelled_of(path: Path, said: SaidAbout, on_progress: Listener | None, reading: Reading) -> EmbeddedExamples:
    """Embed the items of a batch that were given a label, and these alone."""
    whole = Batch.of(read_examples(path, reading), id_column=reading.get("id_column"))
    labels = said(whole)
    some = whole.take(sorted(labels))
    if some.items is None:
        assert some.points is not None
        kind: PreviewKind = "text" if some.contents else ""
        return EmbeddedExamples(bank_of(some.points, [labels[row] for row in sorted(labels)]), some, kind, some.encoder)
    position = {row: item for item, row in enumerate(whole.rows)}
    embedded, batch = _embed(some, path, reading, on_progress)
    bank = bank_of(embedded.features, [labels[position[row]] for row in batch.rows])
    return EmbeddedExamples(bank, batch, some.items.kind, batch.encoder)


def read_examples(path: Any, reading: Reading) -> Table:
    """Read images, sentences or vectors of a model."""
    asked = asked_of(reading)
    refuse_useless([path], asked)
    table = read_input(path, asked)
    if table.measured:
        raise BankError(
            f"{table.where} has measurements in the columns {some_of(table.measured)}, which are scaled for each "
            "batch; a catalogue file has vectors of a model: give `handful classify` the table itself"
        )
    return filled(table) if asked.gaps else table


def _embed(whole: Batch, path: Path, reading: Reading, on_progress: Listener | None) -> tuple[FeatureBank, Batch]:
    """Return vectors, in memory, and the items that have one."""
    items = whole.items
    assert items is not None
    network = load_network(items.kind, reading.get("encoder"), reading.get("device", "cpu"))
    with tempfile.TemporaryDirectory(prefix="handful-") as work:
        bank = extracted(items, network, Path(work) / "examples", on_progress)
        batch, _ = whole.embedded(bank)
        warn_of_skipped(str(path), skipped_items(bank), len(items))
        kept = FeatureBank.from_arrays(np.array(bank.features), bank.labels, bank.class_names)
    return kept, batch


def bank_of(features: Float[np.ndarray, "row dim"], labels: Sequence[str]) -> FeatureBank:
    """Make a bank of labelled vectors."""
    names, codes = np.unique(np.array(labels), return_inverse=True)
    return FeatureBank.from_arrays(np.array(features), codes, names.tolist())


def _without(batch: Batch, columns: Collection[str | None]) -> Batch:
    """Leave out columns that are kept otherwise."""
    left = {name: column for name, column in batch.columns.by_name.items() if name not in columns}
    return replace(batch, columns=Columns(left))


def _short(value: Any) -> Any:
    """Return a value if it is a number or a short text, None otherwise."""
    if isinstance(value, str):
        return value if value and len(value) <= MOST_LETTERS else None
    return value if isinstance(value, (int, float)) and math.isfinite(value) else None
