"""The output: one file of items and one of groups for each file of the data set, with its columns as they were."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from handful.errors import OptionError
from handful.machine.extras import import_pyarrow
from handful.machine.outputs import explain_refusal, written_whole
from handful.machine.untrusted import read_bytes
from handful.many.portions import GROUP, ITEM
from handful.many.source import TableFiles
from handful.reading.parquet import without_views

ITEMS = "items"
GROUPS = "groups"
# SHA-256 of every finished file, in the format of `sha256sum`.
SUMS = "SHA256SUMS"
# Figures that are places among the classes.
CODES = ("label", "class")


class Written:
    """The finished files of the output: those whose bytes are the ones noted in `SHA256SUMS`.

    The lines of a file are appended after the file is complete. A file without its line, or with other bytes, is
    written again, and its old line goes. In the end the lines have the order of the data set, so `SHA256SUMS` of a run
    that was interrupted is that of an undisturbed one.
    """

    def __init__(self, out: Path, names: Sequence[str]) -> None:
        """`names` are the files of the data set, in their order."""
        self._out = out
        self._names = names
        self._sums = out / SUMS
        there = read_bytes(self._sums, OptionError) if self._sums.exists() else b""
        noted = set(there.split(b"\n"))
        self._lines: dict[str, bytes] = {}
        for name in names:
            if all((out / file).is_file() for file in _files(name)):
                lines = self._lines_of(name)
                if noted.issuperset(lines.splitlines()):
                    self._lines[name] = lines
        self._rewrite(there)

    def has(self, name: str) -> bool:
        """Whether the items and the groups of a file of the data set are there as they were written."""
        return name in self._lines

    def add(self, name: str) -> None:
        """Note the items and the groups of a file of the data set."""
        lines = self._lines_of(name)
        with explain_refusal(self._sums), self._sums.open("ab") as sums:
            sums.write(lines)
        self._lines[name] = lines

    def finish(self) -> None:
        """Bring the lines into the order of the data set."""
        self._rewrite(read_bytes(self._sums, OptionError))

    def _rewrite(self, there: bytes) -> None:
        content = b"".join(self._lines[name] for name in self._names if name in self._lines)
        if content != there:
            with written_whole(self._sums) as unfinished:
                unfinished.write_bytes(content)

    def _lines_of(self, name: str) -> bytes:
        return b"".join(b"%s  %s\n" % (self._digest(file).encode(), os.fsencode(file)) for file in _files(name))

    def _digest(self, file: str) -> str:
        with (self._out / file).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()


def _files(name: str) -> list[str]:
    """Return the files of the output for a file of the data set."""
    return [f"{kind}/{name}" for kind in (ITEMS, GROUPS)]


@dataclass(frozen=True)
class Layout:
    """What the output looks like; `classes` are their labels as an Arrow array."""

    source: TableFiles
    classes: Any
    keep_features: bool
    prefix: str

    @classmethod
    def of(cls, source: TableFiles, classes: npt.NDArray[Any], keep_features: bool, prefix: str) -> Layout:
        """Make one; names of new columns that the data set has already are refused."""
        pa, _ = import_pyarrow()
        try:
            layout = cls(source, pa.array(classes.tolist()), keep_features, prefix)
        except (pa.ArrowException, TypeError) as error:
            raise OptionError(f"labels of the classes must be numbers, text or dates for Parquet ({error})") from error
        kept = (*layout.kept_columns, *source.partitions)
        for there, new in ((kept, layout.new(ITEM)), (source.group_by, layout.new(GROUP))):
            taken = [name for name in new if name in there]
            if taken:
                raise OptionError(
                    f"the data set has a column {taken[0]!r} already; give the new columns another prefix, for example "
                    "prefix='handful_'"
                )
        return layout

    @property
    def kept_columns(self) -> tuple[str, ...]:
        """Columns of the data set that go into the table of items, in their order."""
        left_out = () if self.keep_features else self.source.features
        names = self.source.schema(0).names
        return tuple(name for name in names if name in self.source.group_by or name not in left_out)

    def new(self, figures: np.dtype[Any]) -> dict[str, Any]:
        """Return the new columns of items or of groups: their types by name."""
        pa, _ = import_pyarrow()
        names = [name for name in figures.names or () if name != "row"]
        kinds = [self.classes.type if name in CODES else pa.from_numpy_dtype(figures[name]) for name in names]
        return {f"{self.prefix}{name}": kind for name, kind in zip(names, kinds, strict=True)}


class InOrder:
    """Rows of a long table that come in the order of its column `row`, taken from the front; there may be none."""

    def __init__(self, batches: Iterator[Any], figures: np.dtype[Any]) -> None:
        """`figures` are the columns of the table."""
        self._batches = batches
        self._held: Any = columns_of(np.empty(0, figures))

    def until(self, row: int) -> Any:
        """Take all that come before a row, as an Arrow table.

        It is in one piece: how Parquet is written depends on the pieces, and these on the files that are missing.
        """
        taken = []
        while True:
            n = int(np.searchsorted(self._held.column("row").to_numpy(), row))
            taken.append(self._held.slice(0, n))
            self._held = self._held.slice(n)
            if len(self._held) or (following := next(self._batches, None)) is None:
                return import_pyarrow()[0].Table.from_batches(taken).combine_chunks()
            self._held = following


def columns_of(figures: np.ndarray) -> Any:
    """Return an array of figures about items or groups as an Arrow batch, with a column for each figure."""
    pa, _ = import_pyarrow()
    return pa.record_batch({name: np.ascontiguousarray(figures[name]) for name in figures.dtype.names or ()})


def write_file(layout: Layout, place: int, items: InOrder, groups: InOrder, out: Path) -> None:
    """Write the items and the groups of one file of the data set; each file appears complete or not at all."""
    pa, _ = import_pyarrow()
    source = layout.source
    name = source.names[place]
    schema = source.schema(place)
    with (
        _writer(layout, out / ITEMS / name, ITEM, layout.kept_columns, schema, schema.metadata) as write_items,
        _writer(layout, out / GROUPS / name, GROUP, source.group_columns, schema, None) as write_groups,
    ):
        for row, batch in source.batches(layout.kept_columns, [place]):
            found = items.until(row + len(batch))
            classes = groups.until(row + len(batch))
            rows = np.arange(row, row + len(batch))
            assert np.array_equal(found["row"].to_numpy(), rows), f"{source.where(row)}: some items have no answer"
            write_items(batch, found)
            first = pa.array(classes["row"].to_numpy() - row)
            of_groups = [without_views(batch.column(name)).take(first) for name in source.group_columns]
            write_groups(pa.record_batch(of_groups, source.group_columns), classes)


@contextmanager
def _writer(
    layout: Layout, path: Path, figures: np.dtype[Any], kept_columns: Sequence[str], schema: Any, metadata: Any
) -> Iterator[Any]:
    """Open a file for columns of the data set and new ones."""
    pa, parquet = import_pyarrow()
    fields = [*map(schema.field, kept_columns), *(pa.field(*column) for column in layout.new(figures).items())]
    schema = pa.schema(fields, metadata)
    with (
        written_whole(path) as unfinished,
        parquet.ParquetWriter(unfinished, schema, write_page_checksum=True) as writer,
    ):

        def write(batch: Any, found: Any) -> None:
            new = [layout.classes.take(found[n]) if n in CODES else found[n] for n in found.column_names if n != "row"]
            kept = [batch.column(name).cast(schema.field(name).type) for name in kept_columns]
            writer.write_table(pa.Table.from_arrays([*kept, *new], schema=schema))

        yield write
