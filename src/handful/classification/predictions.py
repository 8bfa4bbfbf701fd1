"""A labelled batch: its items, their answers, and the file of predictions.

One long file: a batch, its answer and the files of it share their columns, and counts must agree everywhere.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from handful import __version__, large
from handful.banks.carried import Carried
from handful.classification.second_look import SecondLook
from handful.errors import OptionError
from handful.estimators import Diagnostic, Proposal
from handful.estimators.answer import PRESENT, are_doubtful, counted, undecided
from handful.exchange.cells import write_labelled_cells
from handful.machine.extras import import_pyarrow
from handful.machine.untrusted import writable
from handful.machine.whole_file import written_whole
from handful.reading.cells import is_h5ad
from handful.reading.contents import Source
from handful.reading.records import Skipped
from handful.shapes import Bool, Float, Int

# Items listed one by one on the page.
MOST_ITEMS = 240
# Predictions written at once.
ROWS_AT_ONCE = 65_536
# Types as Arrow names them.
PREDICTION_TYPES = {
    "row": "int64",
    "item": "string",
    "label": "string",
    "probability": "float64",
    "runner_up": "string",
    "runner_up_probability": "float64",
    "unknown": "float64",
    "rejected": "bool",
    "proposal": "int64",
}
PREDICTION_COLUMNS = tuple(PREDICTION_TYPES)
# What an item is called that looks like no class.
NONE = "none of these"
# Backbone of answers that come from scores.
BY_SCORES = "scores of another model"
# What tables are written as.
TABLE_ENDINGS = (".parquet", ".csv")


@dataclass(frozen=True, eq=False)
class Batch:
    """Items to label.

    Attributes
    ----------
    rows, names : sequence of int, tuple of str
        Position of each item in what was given, from 0, and its name there.
    contents : Source or None
        The images or sentences, not yet read; None if only vectors were given.
    skipped : tuple of Skipped
        Items that could not be read and have no vector, each with its position in what was given, name and reason.
    carried : Carried
        The other columns of what was given, which come back with the predictions.
    source : Path or None
        The file they came from, where answers can go back into a file of its kind.
    fingerprint : str
        Tells one batch from another: a hash of its items.
    """

    rows: Sequence[int]
    names: tuple[str, ...]
    contents: Source | None
    skipped: tuple[Skipped, ...]
    carried: Carried = field(default_factory=Carried)
    source: Path | None = None
    fingerprint: str = ""


@dataclass(frozen=True, eq=False)
class Answers:
    """The two most likely classes of every item, as positions in the class names; runner-up -1 if there is none.

    `table` has the probabilities of all classes, where these are written.
    """

    labels: Int[np.ndarray, "item"]
    probabilities: Float[np.ndarray, "item"]
    runners_up: Int[np.ndarray, "item"]
    runner_up_probabilities: Float[np.ndarray, "item"]
    table: Float[np.ndarray, "item class"] | None = None

    @property
    def doubtful(self) -> Bool[np.ndarray, "item"]:
        """Items with `p₁ < (1 + p₂) / 2`, for the probabilities of the likeliest class and of the next."""
        return are_doubtful(self.probabilities, self.runner_up_probabilities)

    @classmethod
    def joined(cls, parts: Sequence[Answers]) -> Answers:
        """Put those of several batches one after another."""
        return cls(
            np.concatenate([part.labels for part in parts]),
            np.concatenate([part.probabilities for part in parts]),
            np.concatenate([part.runners_up for part in parts]),
            np.concatenate([part.runner_up_probabilities for part in parts]),
            None
            if parts[0].table is None
            else np.concatenate([part.table for part in parts if part.table is not None]),
        )

    def of_items(self, items: Int[np.ndarray, "chosen"]) -> Answers:
        """Return those of some items."""
        return Answers(
            self.labels[items],
            self.probabilities[items],
            self.runners_up[items],
            self.runner_up_probabilities[items],
            None if self.table is None else self.table[items],
        )

    @classmethod
    def of(cls, table: Float[np.ndarray, "item class"], *, keep: bool = False) -> Answers:
        """Read them off the probabilities of all classes; `keep` these too."""
        kept = table if keep else None
        places = np.arange(len(table))
        first = table.argmax(-1)
        if table.shape[1] == 1:
            return cls(first, table[:, 0], np.full(len(table), -1), np.zeros(len(table)), kept)
        others = table.copy()
        others[places, first] = -1
        second = others.argmax(-1)
        return cls(first, table[places, first], second, table[places, second], kept)

    def with_given(self, given: Mapping[int, int]) -> Answers:
        """Return the answers with these labels of items fixed: positions in the batch to positions of classes."""
        if not given:
            return self
        items, codes = list(given), list(given.values())
        labels, runners_up = self.labels.copy(), self.runners_up.copy()
        chances, others = self.probabilities.copy(), self.runner_up_probabilities.copy()
        moved = np.where(labels[items] == codes, runners_up[items], labels[items])
        labels[items], runners_up[items], chances[items], others[items] = codes, moved, 1.0, 0.0
        return replace(
            self, labels=labels, probabilities=chances, runners_up=runners_up, runner_up_probabilities=others
        )

    def least_certain(self, most: int) -> Int[np.ndarray, "place"]:
        """Return the items with the least probable labels, in that order."""
        return np.argsort(self.probabilities, kind="stable")[:most]

    @classmethod
    def streamed(cls, found: large.LargeSolution) -> Answers:
        """Read them from the files of a large run."""
        parts = list(found.answers())
        columns = ("label", "probability", "runner_up", "runner_up_probability")
        return cls(*(np.concatenate([part[name] for part in parts]) for name in columns))


@dataclass(frozen=True, eq=False)
class Unknown:
    """Items that look like none of the classes.

    Attributes
    ----------
    chances, rejected : Float[ndarray, "item"], Bool[ndarray, "item"]
        Chance that the item belongs to no class, and whether it is rejected, see `Answer`.
    interval : tuple of float
        Of the share of such items, 90 %.
    proposals : tuple of Proposal
        Groups of rejected items; `nearest` is the name of a class.
    """

    chances: Float[np.ndarray, "item"]
    rejected: Bool[np.ndarray, "item"]
    interval: tuple[float, float]
    proposals: tuple[Proposal, ...]

    def said(self, n_classes: int) -> str:
        """Say it in one sentence; empty if no item is rejected and few can be unknown."""
        n, groups = int(self.rejected.sum()), len(self.proposals)
        if n == 0:
            return undecided(self.interval[1])
        look = "1 item looks" if n == 1 else f"{n:,} items look"
        sentence = f"{look} like none of your {n_classes:,} {'class' if n_classes == 1 else 'classes'}"
        if groups == 0:
            return f"{sentence}."
        in_groups = sum(proposal.size for proposal in self.proposals)
        fall = "they fall" if in_groups == n else f"{in_groups:,} of them fall"
        return f"{sentence}; {fall} into {groups:,} {'group' if groups == 1 else 'groups'}."


@dataclass(frozen=True, eq=False)
class Shown:
    """Images or sentences of the catalogue, to be shown beside items.

    Attributes
    ----------
    contents, names, classes : Source, tuple of str, ndarray of str
        The examples, not yet read, their names, and the class name of each.
    nearest : mapping
        Of the items listed on the page, the nearest example that has the item's label: positions in the batch to
        positions in `contents`.
    """

    contents: Source
    names: tuple[str, ...]
    classes: npt.NDArray[np.str_]
    nearest: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Classified:
    """A labelled batch.

    Attributes
    ----------
    batch : Batch
        The items.
    answers : Answers
        Their labels, with probabilities.
    expected_counts, presence : Float[ndarray, "class"]
        Expected number of items of each class, and the chance that there is at least one, see `Answer`.
    joint_weight : float
        Weight of the joint answer against that of each item alone, see `Answer`; 0 where each was labelled alone.
    diagnostics : tuple of Diagnostic
        What looks wrong.
    class_names : tuple of str
        Name of each class.
    n_examples : int
        Rows of the catalogue.
    backbone : str
        What made the features, where that is known.
    streamed : bool
        Whether the batch was too large to be labelled in memory.
    unknown : Unknown or None
        Items that look like none of the classes, without proposals if the batch was streamed; None if the catalogue
        cannot tell.
    unknown_label : str or None
        The label of rejected items in the predictions; None if they have that of the least bad class.
    shown : Shown or None
        What the catalogue was made of, if that can be shown.
    given : mapping
        Items whose class a person gave, as positions in the batch, to positions in `class_names`, or to None if the
        person said none of these.
    n_named : int
        Classes that a person named, and the catalogue did not have; they are the last ones of `class_names`.
    look : SecondLook or None
        For questions and explanations on the page; None if the batch was streamed.
    unknown_reason : str or None
        Why unknown items were not judged, as a sentence; None if they were.
    """

    batch: Batch
    answers: Answers
    expected_counts: Float[np.ndarray, "class"]
    presence: Float[np.ndarray, "class"]
    joint_weight: float
    diagnostics: tuple[Diagnostic, ...]
    class_names: tuple[str, ...]
    n_examples: int
    backbone: str
    streamed: bool
    unknown: Unknown | None = None
    unknown_label: str | None = None
    shown: Shown | None = None
    given: Mapping[int, int | None] = field(default_factory=dict)
    n_named: int = 0
    look: SecondLook | None = None
    unknown_reason: str | None = None

    @property
    def rejected(self) -> Bool[np.ndarray, "item"]:
        """Items that count as unknown."""
        return rejected_of(self)

    @property
    def unknown_said(self) -> str:
        """How many items are unknown, or why that was not judged, in one sentence; empty if none are."""
        found = "" if self.unknown is None else self.unknown.said(len(self.class_names))
        return " ".join(filter(None, (found, self.unknown_reason)))

    @property
    def doubtful(self) -> Bool[np.ndarray, "item"]:
        """Items in doubt between two classes; rejected ones look like none."""
        doubtful: Bool[np.ndarray, "item"] = self.answers.doubtful & ~self.rejected
        return doubtful

    @property
    def how(self) -> str:
        """How the items were labelled, and with what, in words."""
        n_items = len(self.batch.rows)
        jointly = "labelled jointly" if self.joint_weight > 0 else "each labelled alone"
        return f"{counted(n_items, 'item')}, {jointly if n_items > 1 else 'labelled on its own'}{labelled_with(self)}"

    @property
    def present(self) -> list[int]:
        """Positions in `class_names` of the classes present, the largest first."""
        order = np.argsort(-self.expected_counts, kind="stable")
        return order[self.presence[order] >= PRESENT].tolist()  # type: ignore[no-any-return]

    @property
    def proposals(self) -> Int[np.ndarray, "item"]:
        """Number of the proposed class that each item is in, from 1; 0 if it is in none."""
        numbers = np.zeros(len(self.batch.rows), np.int64)
        for number, proposal in enumerate(() if self.unknown is None else self.unknown.proposals, start=1):
            numbers[proposal.items] = number
        return numbers

    def predictions(self, items: Sequence[int] | None = None) -> dict[str, list[Any]]:
        """Return one entry per item: its row and name, its label and the next most likely one, with probabilities.

        Also the chance that it is unknown, whether it is rejected (its label is then the least bad one), and the number
        of the proposed class, from 1, if it is in one. The columns of the batch stand between name and label, under
        their own names, or as `given_label` where these are taken. With an `unknown_label`, a rejected item has this
        label with its chance of being unknown, and the most likely class is the next: `1 - unknown` times its
        probability.

        `items` are positions in the batch; by default all.
        """
        chosen = range(len(self.batch.rows)) if items is None else items
        return predicted(self, self.proposals, chosen)


def rejected_of(classified: Any) -> Bool[np.ndarray, "item"]:
    """Return which items of a batch, or of groups, count as unknown: page, terminal and files all ask this."""
    if classified.unknown is None:
        return np.zeros(len(classified.batch.rows), dtype=bool)
    rejected: Bool[np.ndarray, "item"] = classified.unknown.rejected
    return rejected


def label_counts(classified: Any) -> Int[np.ndarray, "class"]:
    """Return how many items have each class as their label; rejected ones count at the end, as one more class."""
    n_classes = len(classified.class_names)
    codes = np.where(rejected_of(classified), n_classes, classified.answers.labels)
    return np.bincount(codes, minlength=n_classes + 1)


def labelled_with(classified: Any) -> str:
    """Say what a batch, or groups, were labelled with, as the end of a sentence."""
    n_classes = counted(len(classified.class_names), "class")
    if classified.backbone == BY_SCORES:
        return f" by the scores of {n_classes}"
    made_by = f"; features of {classified.backbone.partition(', weights ')[0]}" if classified.backbone else ""
    if classified.n_examples == 0:
        return f" by the names of {n_classes}{made_by}"
    return f", with a catalogue of {n_classes} and {counted(classified.n_examples, 'example')}{made_by}"


def predicted(classified: Any, proposals: Int[np.ndarray, "item"], items: Sequence[int]) -> dict[str, list[Any]]:
    """Return the columns of predictions of some items of a batch, or of groups, see `Classified.predictions`."""
    batch: Batch = classified.batch
    answers, class_names = classified.answers, classified.class_names
    unknown, final = classified.unknown, classified.unknown_label
    places = np.asarray(items, dtype=np.int64)
    labels = [class_names[k] for k in answers.labels[places].tolist()]
    chances = answers.probabilities[places].tolist()
    others = [None if k < 0 else class_names[k] for k in answers.runners_up[places].tolist()]
    next_chances = [
        None if name is None else chance
        for name, chance in zip(others, answers.runner_up_probabilities[places].tolist(), strict=True)
    ]
    if unknown is not None and final is not None:
        for i in np.flatnonzero(unknown.rejected[places]).tolist():
            chance = float(unknown.chances[places[i]])
            others[i], next_chances[i] = labels[i], (1 - chance) * chances[i]
            labels[i], chances[i] = final, chance
    columns = (
        [batch.rows[i] for i in items],
        [batch.names[i] for i in items],
        labels,
        chances,
        others,
        next_chances,
        *(
            ([None] * len(places),) * 2
            if unknown is None
            else (unknown.chances[places].tolist(), unknown.rejected[places].tolist())
        ),
        [number or None for number in proposals[places].tolist()],
    )
    ours = dict(zip(PREDICTION_COLUMNS, columns, strict=True))
    carried: dict[str, list[Any]] = batch.carried.of_items(items).beside(PREDICTION_TYPES).values()
    return in_front(ours) | carried | ours


def in_front(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that come first: position and name of the item."""
    return {name: columns[name] for name in ("row", "item")}


def check_ending(path: Path, source: Path | None = None) -> None:
    """Refuse a path that `write_predictions` would refuse for a batch from `source`, before any work is done."""
    if is_h5ad(path):
        if source is None or not is_h5ad(source):
            raise OptionError(f"{path} would be a copy of the batch, which is not an .h5ad file; use .parquet or .csv")
    elif path.suffix.lower() not in TABLE_ENDINGS:
        raise OptionError(f"predictions are written as .parquet or .csv, got {path}; change the ending")
    elif path.suffix.lower() == ".parquet":
        import_pyarrow()


def write_predictions(classified: Classified, path: str | os.PathLike[str]) -> None:
    """Write the predictions as Parquet or CSV, by the ending of the path; the file appears complete or not at all.

    Predictions of cells can also go into a copy of their `.h5ad` file, which may replace it: columns `handful_label`
    and so on in `obs`, probabilities in `obsm`, and what was done in `uns["handful"]`.
    """
    if is_h5ad(Path(path)):
        write_back(classified, (), path)
        return
    write_table(
        path,
        column_types(classified.batch, Path(path)),
        map(classified.predictions, runs_of(len(classified.batch.rows))),
    )


def write_back(classified: Any, group_by: Sequence[str], path: str | os.PathLike[str]) -> None:
    """Write the predictions of a batch, or of groups, into a copy of the file that the items came from."""
    source, rows = classified.batch.source, classified.batch.rows
    check_ending(Path(path), source)
    found = classified.predictions()
    ours = {name: found[name] for name in PREDICTION_COLUMNS if name not in in_front(PREDICTION_TYPES)}
    about = {
        "version": __version__,
        "vectors": classified.backbone,
        "examples": classified.n_examples,
        "group_by": np.array(group_by, dtype=object),
    }
    write_labelled_cells(source, Path(path), rows, ours, classified.class_names, classified.answers.table, about)


def column_types(batch: Batch, path: Path) -> dict[str, Any]:
    """Return the types of the columns of the predictions, in their order; a CSV file needs none of carried columns."""
    carried = batch.carried.beside(PREDICTION_TYPES)
    others = dict.fromkeys(carried.columns) if path.suffix.lower() == ".csv" else carried.types()
    return in_front(PREDICTION_TYPES) | others | PREDICTION_TYPES


def runs_of(n_items: int) -> Iterator[range]:
    """Cut the positions of all items into those written at once; one empty run if there are none."""
    for start in range(0, max(1, n_items), ROWS_AT_ONCE):
        yield range(start, min(start + ROWS_AT_ONCE, n_items))


def write_table(
    path: str | os.PathLike[str], types: Mapping[str, Any], parts: Iterable[Mapping[str, Sequence[Any]]]
) -> None:
    """Write parts of a table as Parquet or CSV, by the ending of the path; it appears complete or not at all.

    `types` are those of the columns, in their order: an Arrow type or its name. CSV needs the names of columns alone.
    """
    final = Path(path)
    check_ending(final)
    final.parent.mkdir(parents=True, exist_ok=True)
    kind = _csv_file if final.suffix.lower() == ".csv" else _parquet_file
    with written_whole(final) as place, kind(place, types) as write:
        for part in parts:
            write(part)


@contextmanager
def _csv_file(path: Path, types: Mapping[str, Any]) -> Iterator[Callable[[Mapping[str, Sequence[Any]]], None]]:
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(types)
        yield lambda columns: writer.writerows(zip(*columns.values(), strict=True))


@contextmanager
def _parquet_file(path: Path, types: Mapping[str, Any]) -> Iterator[Callable[[Mapping[str, Sequence[Any]]], None]]:
    pa, parquet = import_pyarrow()
    known = {name: pa.type_for_alias(t) if isinstance(t, str) else t for name, t in types.items()}
    schema = pa.schema([(writable(name), kind) for name, kind in known.items()])

    def column(name: str, values: Sequence[Any]) -> Any:
        if pa.types.is_string(known[name]):
            values = [None if value is None else writable(value) for value in values]
        return pa.array(values, known[name])

    with parquet.ParquetWriter(path, schema, write_page_checksum=True) as writer:
        yield lambda columns: writer.write_table(pa.table([column(*one) for one in columns.items()], schema=schema))
