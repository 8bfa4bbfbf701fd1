"""Table: the contents of any kind of file: vectors, texts or images, and their columns.

Which column has the labels, groups, names or texts is chosen afterwards, by `find_column`.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from handful.arguments import some_of
from handful.banks.bank import FeatureBank, Provenance
from handful.errors import BankError, SkippedRowsWarning
from handful.machine.extras import import_extra, import_pyarrow
from handful.machine.untrusted import printable
from handful.reading.class_names import NO_LABEL
from handful.reading.contents import FolderFiles, ZipFiles, pick
from handful.reading.header import (
    ITEM_NAMES,
    LABEL_NAMES,
    find_column,
    no_rows,
)
from handful.shapes import Float

Why: TypeAlias = Literal["unreadable", "unsupported", "no file", "blank", "without label", "failed"]
# What each kind is called after a number.
WORDS: dict[Why, str] = {
    "unreadable": "unreadable",
    "unsupported": "of an unsupported kind",
    "no file": "that are not files",
    "blank": "blank",
    "without label": "without a label",
    "failed": "failed in the other tool",
}
# Items that a sentence lists.
MOST_LISTED = 5


@dataclass(frozen=True, slots=True)
class Skipped:
    """An item that was skipped.

    Attributes
    ----------
    row : int
        Its position among the items.
    name : str
        Its name there, or its line in the file; a name may contain any character.
    reason : str
        Why it was skipped, in words.
    kind : str
        `unreadable`; `unsupported`, a kind of file that is not read, such as HEIC; `no file`, such as a link that leads
        to nothing, or a pipe; `blank`; `without label`; or `failed`, in the tool that wrote the file.

    Examples
    --------
    >>> str(Skipped(3, "line 5", "it has 2 values, the header has 3"))
    'line 5: it has 2 values, the header has 3'
    """

    row: int
    name: str
    reason: str
    kind: Why = "unreadable"

    def __str__(self) -> str:
        """`name: reason` on one line."""
        return printable(f"{self.name}: {self.reason}")


def skipped_counts(skipped: Sequence[Skipped]) -> dict[Why, int]:
    """Return how many items of each kind were skipped.

    Examples
    --------
    >>> skipped_counts([Skipped(0, "a.heic", "HEIC is not read", "unsupported"), Skipped(4, "b.jpg", "cut short")])
    {'unreadable': 1, 'unsupported': 1}
    """
    counts = Counter(one.kind for one in skipped)
    return {kind: counts[kind] for kind in WORDS if kind in counts}


def skipped_summary(skipped: Sequence[Skipped], n_items: int, things: str = "items") -> str:
    """Say how many of all items, or what else they are called, were skipped, and why.

    Examples
    --------
    >>> skipped_summary([Skipped(0, "a.heic", "HEIC is not read", "unsupported"), Skipped(4, "b.jpg", "cut short")], 12)
    '2 of 12 items are skipped: 1 unreadable, 1 of an unsupported kind'
    """
    kinds = ", ".join(f"{n:,} {WORDS[kind]}" for kind, n in skipped_counts(skipped).items())
    return f"{len(skipped):,} of {n_items:,} {things} {'is' if len(skipped) == 1 else 'are'} skipped: {kinds}"


def warn_of_skipped(where: str, skipped: Sequence[Skipped], n_items: int, *, stacklevel: int = 2) -> None:
    """Warn that items of a file were skipped, if there are any, and list the first of them."""
    if skipped:
        message = f"{where}: {skipped_summary(skipped, n_items)}: {'; '.join(first_listed(skipped))}"
        warnings.warn(SkippedRowsWarning(message), stacklevel=stacklevel + 1)


def first_listed(skipped: Sequence[Skipped], most: int = MOST_LISTED) -> list[str]:
    """Return the first items with their reasons, and how many more there are."""
    more = len(skipped) - most
    return [*map(str, skipped[:most]), *([f"and {more:,} more"] if more > 0 else [])]


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of the input, each a list, an array with one axis or an Arrow array; one value per item.

    Arrow arrays stay as they are until they are written, so a long table costs little memory.

    Examples
    --------
    >>> columns = Columns({"ticket": ["T1", "T2", "T3"], "open": np.array([True, False, True])})
    >>> columns.of_items([2, 0]).values()
    {'ticket': ['T3', 'T1'], 'open': [True, True]}
    """

    by_name: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Keep times that Python cannot hold as the numbers that the file has."""
        object.__setattr__(self, "by_name", {name: _readable(name, column) for name, column in self.by_name.items()})

    def of_items(self, items: Sequence[int]) -> Columns:
        """Keep these items alone, in this order."""
        return Columns({name: _taken(column, items) for name, column in self.by_name.items()})

    def values(self) -> dict[str, list[Any]]:
        """Return the columns as lists of plain values."""
        return {name: _plain(column) for name, column in self.by_name.items()}

    def beside(self, taken: Collection[str]) -> Columns:
        """Rename columns whose names are taken: `label` becomes `given_label`; what has no free name is dropped."""
        free = {name: f"given_{name}" if name in taken else name for name in self.by_name}
        kept = {new: self.by_name[name] for name, new in free.items() if new == name or new not in self.by_name}
        return Columns(kept)

    def types(self) -> dict[str, Any]:
        """Return the Arrow type of each column; values of several kinds are written as text."""
        return {name: _type_of(column) for name, column in self.by_name.items()}


def _taken(column: Any, items: Sequence[int]) -> Any:
    if isinstance(column, list):
        return [column[item] for item in items]
    if isinstance(column, np.ndarray):
        return column[np.asarray(items, dtype=np.int64)]
    return column.take(np.asarray(items, dtype=np.int64))


def _plain(column: Any) -> list[Any]:
    if isinstance(column, list):
        return column
    if isinstance(column, np.ndarray):
        return column.tolist()  # type: ignore[no-any-return]
    pa, _ = import_pyarrow()
    if not pa.types.is_dictionary(column.type):
        return column.to_pylist()  # type: ignore[no-any-return]
    # One object for all rows of equal text.
    return [
        None if k is None else words[k]
        for part in column.chunks
        for words in [part.dictionary.to_pylist()]
        for k in part.indices.to_pylist()
    ]


def _readable(name: str, column: Any) -> Any:
    if isinstance(column, (list, np.ndarray)):
        return column
    pa, _ = import_pyarrow()
    if pa.types.is_temporal(column.type):
        numbers = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
        ends = import_extra("pyarrow.compute", "parquet").min_max(numbers).as_py()
        try:  # if Python can hold the first and the last, it can hold all
            pa.array(list(ends.values()), numbers.type).cast(column.type).to_pylist()
        except (pa.ArrowException, OverflowError, ValueError, LookupError):
            return numbers
    elif pa.types.is_nested(column.type):
        try:
            column.to_pylist()
        except (pa.ArrowException, OverflowError, ValueError, LookupError) as error:
            raise BankError(f"column {name!r} has values that cannot be read ({error}); drop that column") from error
    return column


def _type_of(column: Any) -> Any:
    pa, _ = import_pyarrow()
    if not isinstance(column, (list, np.ndarray)):
        return column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    try:
        found = pa.array(column).type
    except (pa.ArrowException, OverflowError, UnicodeError):
        return pa.string()
    return pa.string() if pa.types.is_null(found) else found


@dataclass(frozen=True, eq=False, slots=True)
class NotMeasured:
    """A column of numbers that are no measurements.

    Attributes
    ----------
    kind : str
        What they are: running numbers, numbers of items, years or dates.
    numbers : Float[ndarray, "row"]
        The numbers in double precision; NaN where there is none.
    """

    kind: str
    numbers: Float[np.ndarray, "row"]


# A table is refused if more of its rows are unreadable, unless it is only one.
MOST_UNREADABLE = 0.05


@dataclass(frozen=True, eq=False)
class Table:
    """The contents of a file or folder, one row per item.

    Attributes
    ----------
    where : str
        The file, for messages.
    n_rows : int
        Number of rows that could be read.
    vectors : Float[ndarray, "row dim"] or None
        One vector per row, if the file has vectors.
    text : str or None
        The column of texts, if there is one.
    images : FolderFiles, ZipFiles or None
        The images, not yet read, if the rows are images.
    columns : mapping of str to column
        All other columns by name: lists, arrays or Arrow arrays.
    skipped : tuple of Skipped
        Rows that were skipped, each with its line in the file, the reason and the kind of reason.
    names : tuple of str or None
        Names of the rows where the kind of file has them: paths of images, names of cells.
    classes : sequence or None
        Class of each row where the kind of file has it: the folder of an image, `labels.npy`.
    class_names : mapping of str to sequence
        What the numbers of a column of labels stand for; under the empty name, those of `classes`.
    label_names, no_label : sequence of str
        Usual names of the column of labels, and values of it that stand for no label.
    bank : FeatureBank or None
        The bank, if that is what was read.
    provenance : Provenance
        Where it all came from, if the file says so.
    splits : mapping or None
        Classes of each split, if the file says so.
    positions : sequence of int or None
        Position of each row in the file; None means that every row could be read.
    lines : callable or None
        Returns the line in the file of each position, where a file has lines.
    features : tuple of str
        The columns that the vectors were made of, where they have names.
    measured : tuple of str
        The same columns, if each is a measurement with a name of its own. They have different units, so `classify`
        scales each of them by the examples. They are among `columns` too.
    not_measured : mapping of str to NotMeasured
        Columns of numbers beside them that were left out of the vectors: running numbers, years, dates.

    Examples
    --------
    >>> table = Table("a list", 3, vectors=np.eye(3), columns={"id": ["a7", "b3", "c1"]})
    >>> table
    Table('a list', 3 rows, vectors of 3 numbers, columns id)
    >>> table.of_rows([2, 0]).columns
    {'id': ['c1', 'a7']}
    """

    where: str
    n_rows: int
    vectors: Float[np.ndarray, "row dim"] | None = None
    text: str | None = None
    images: FolderFiles | ZipFiles | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    skipped: tuple[Skipped, ...] = ()
    names: tuple[str, ...] | None = None
    classes: Any = None
    class_names: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    label_names: Sequence[str] = LABEL_NAMES
    no_label: Sequence[str] = NO_LABEL
    bank: FeatureBank | None = None
    provenance: Provenance = field(default_factory=Provenance)
    splits: Mapping[str, Sequence[int]] | None = None
    positions: Sequence[int] | None = None
    lines: Callable[[], Sequence[int]] | None = None
    features: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()
    not_measured: Mapping[str, NotMeasured] = field(default_factory=dict)

    def __repr__(self) -> str:
        parts = [repr(self.where), f"{self.n_rows:,} rows"]
        if self.vectors is not None:
            parts.append(f"vectors of {self.vectors.shape[1]:,} numbers")
        parts += ["images"] if self.images is not None else []
        parts += [f"columns {some_of(list(self.columns))}"] if self.columns else []
        parts += [f"{len(self.skipped):,} skipped"] if self.skipped else []
        return f"Table({', '.join(parts)})"

    @property
    def rows(self) -> Sequence[int]:
        """Position of each row in the file."""
        return range(self.n_rows) if self.positions is None else self.positions

    def row_name(self, position: int) -> str:
        """Return how a message calls the row at a position of the file."""
        return f"row {position}" if self.lines is None else f"line {self.lines()[position]}"

    @property
    def n_given(self) -> int:
        """Number of rows with those that were skipped."""
        return self.n_rows + len(self.skipped)

    def without(self, reasons: Mapping[int, str], kind: Why = "unreadable") -> Table:
        """Leave out rows and list them with the reasons."""
        if not reasons:
            return self
        called = None if self.lines is not None else self.names
        lost = [
            Skipped(p := self.rows[row], self.row_name(p) if called is None else called[row], reason, kind)
            for row, reason in reasons.items()
        ]
        table = replace(self, skipped=tuple(sorted((*self.skipped, *lost), key=lambda one: one.row)))
        return table.of_rows([row for row in range(self.n_rows) if row not in reasons])

    def checked(self, skip_bad: bool) -> Table:
        """Refuse a table of which no row is left, or, unless `skip_bad`, of which too many rows are unreadable."""
        bad = [one for one in self.skipped if one.kind == "unreadable"]
        if not self.n_rows:
            if not self.skipped:
                raise no_rows(self.where)
            raise BankError(
                f"{self.where}: none of the {self.n_given:,} rows can be read; the first is {self.skipped[0]}"
            )
        if not skip_bad and len(bad) > max(1, MOST_UNREADABLE * self.n_given):
            raise BankError(
                f"{self.where}: {len(bad):,} of {self.n_given:,} rows cannot be read, more than {MOST_UNREADABLE:.0%}; "
                f"the first is {bad[0]}; fix such rows, or leave them out with skip_bad (--skip-bad)"
            )
        return self

    def warn_of_skipped(self) -> None:
        """Warn of rows that were skipped, and list the first of them."""
        warn_of_skipped(self.where, self.skipped, self.n_given, stacklevel=3)

    def of_rows(self, rows: Sequence[int]) -> Table:
        """Keep these rows alone."""
        images = None if self.images is None else pick(self.images, rows)
        assert images is None or isinstance(images, (FolderFiles, ZipFiles))
        return replace(
            self,
            n_rows=len(rows),
            vectors=None if self.vectors is None else self.vectors[np.asarray(rows, dtype=np.int64)],
            images=images,
            columns=self.row_columns().of_items(rows).by_name,
            names=None if self.names is None else tuple(self.names[row] for row in rows),
            classes=None if self.classes is None else [self.classes[row] for row in rows],
            positions=[self.rows[row] for row in rows],
            bank=None,
            not_measured={
                name: replace(one, numbers=one.numbers[np.asarray(rows, dtype=np.int64)])
                for name, one in self.not_measured.items()
            },
        )

    def values(self, column: str) -> list[Any]:
        """Return a column as plain values."""
        return Columns({column: self.columns[column]}).values()[column]

    def item_names(self, column: str | None = None) -> tuple[str, ...]:
        """Return the names of the rows: of a column, of the kind of file, of a column with a usual name, or numbers."""
        if column is not None:
            return self._names_in(column)
        if self.names is not None:
            return self.names
        there = {name.lower(): name for name in reversed(list(self.row_columns().by_name))}
        for name in (there[likely] for likely in ITEM_NAMES if likely in there and there[likely] != self.text):
            values = self.values(name)
            if not any(value is None or value == "" for value in values):
                return tuple(map(str, values))
        return tuple(f"row {row}" for row in self.rows)

    def _names_in(self, column: str) -> tuple[str, ...]:
        """Return the names of the rows, from a column that has one for each."""
        find_column(self.columns, column, (), "items", self.where)
        values = self.values(column)
        gap = next((row for row, value in enumerate(values) if value is None or value == ""), None)
        if gap is not None:
            raise BankError(
                f"{self.where}: {self.row_name(self.rows[gap])} has no {column!r}; fill it in, or name the items by "
                "another column"
            )
        return tuple(map(str, values))

    def row_columns(self) -> Columns:
        """Return the columns that have one value for each row."""
        return Columns({name: column for name, column in self.columns.items() if _length(column) == self.n_rows})


def _length(column: Any) -> int:
    return -1 if isinstance(column, np.ndarray) and column.ndim != 1 else len(column)
