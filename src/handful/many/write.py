"""The output: one file of items and one of groups for each file of the data set, columns carried along untouched."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from handful.errors import OptionError
from handful.machine.extras import import_pyarrow
from handful.machine.untrusted import read_bytes
from handful.machine.whole_file import written_whole
from handful.many.portions import SEGMENT_ROWS, Answered
from handful.many.source import Source

ITEMS, GROUPS = "items", "groups"
# SHA-256 of every finished file, in the format of `sha256sum`.
SUMS = "SHA256SUMS"


class Written:
    """The finished files of the output: those whose bytes are the ones noted in `SHA256SUMS`.

    The line of a file is appended after the file is complete. A file without its line is written again.
    """

    def __init__(self, out: Path) -> None:
        self._out = out
        sums = out / SUMS
        content = read_bytes(sums, OptionError) if sums.exists() else b""
        lines, half, _ = content.rpartition(b"\n")
        if len(lines + half) < len(content):  # the writer was killed in the middle of a line
            os.truncate(sums, len(lines + half))
        pairs = (line.partition(b"  ") for line in lines.split(b"\n"))
        self._noted = {os.fsdecode(name): digest.decode("ascii", "replace") for digest, _, name in pairs}

    def has(self, name: str) -> bool:
        """Whether the items and the groups of a file of the data set are there as they were written."""
        files = [f"{kind}/{name}" for kind in (ITEMS, GROUPS)]
        return all(
            file in self._noted and (self._out / file).is_file() and self._noted[file] == self._digest(file)
            for file in files
        )

    def add(self, name: str) -> None:
        """Note the items and the groups of a file of the data set."""
        files = [f"{kind}/{name}" for kind in (ITEMS, GROUPS)]
        with (self._out / SUMS).open("ab") as sums:
            sums.write(b"".join(b"%s  %s\n" % (self._digest(file).encode(), os.fsencode(file)) for file in files))

    def _digest(self, file: str) -> str:
        with (self._out / file).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()


@dataclass(frozen=True)
class Layout:
    """What the output looks like.

    Attributes
    ----------
    classes : Array
        Labels of the classes, as an Arrow array.
    keep_features : bool
        Whether vectors are carried along.
    prefix : str
        What the names of new columns begin with.
    """

    source: Source
    classes: Any
    keep_features: bool
    prefix: str

    @classmethod
    def of(cls, source: Source, classes: npt.NDArray[Any], keep_features: bool, prefix: str) -> Layout:
        """Make one; names of new columns that the data set has already are refused."""
        pa, _ = import_pyarrow()
        try:
            layout = cls(source, pa.array(classes.tolist()), keep_features, prefix)
        except (pa.ArrowException, TypeError) as error:
            raise OptionError(f"labels of the classes must be numbers, text or dates for Parquet ({error})") from error
        for there, new in ((layout.carried, layout.of_items()), (source.group_by, layout.of_groups())):
            taken = [name for name in new if name in there]
            if taken:
                raise OptionError(
                    f"the data set has a column {taken[0]!r} already; give the new columns another prefix, for example "
                    "prefix='handful_'"
                )
        return layout

    @property
    def carried(self) -> tuple[str, ...]:
        """Columns of the data set that go into the table of items, in their order."""
        left_out = () if self.keep_features else self.source.features
        names = self.source.schema(0).names
        return tuple(name for name in names if name in self.source.group_by or name not in left_out)

    def of_items(self) -> dict[str, tuple[str, Any]]:
        """Return the new columns of the items by name: the figure of the portions they hold, and their type."""
        pa, _ = import_pyarrow()
        new = {
            "label": ("code", self.classes.type),
            "probability": ("probability", pa.float32()),
            "unknown": ("unknown", pa.float32()),
        }
        return {f"{self.prefix}{name}": what for name, what in new.items()}

    def of_groups(self) -> dict[str, tuple[str, Any]]:
        """Return the new columns of the groups by name, like `of_items`."""
        pa, _ = import_pyarrow()
        new = {
            "items": ("items", pa.int64()),
            "joint_weight": ("joint_weight", pa.float32()),
            "unknown_items": ("unknown_items", pa.int64()),
            "class": ("code", self.classes.type),
            "expected_count": ("expected_count", pa.float32()),
            "presence": ("presence", pa.float32()),
        }
        return {f"{self.prefix}{name}": what for name, what in new.items()}


def write_file(layout: Layout, answered: Answered, place: int, out: Path) -> None:
    """Write the items and the groups of one file of the data set; each file appears complete or not at all."""
    pa, _ = import_pyarrow()
    source = layout.source
    start, stop = source.starts[place], source.starts[place + 1]
    schema = source.schema(place)
    kept = [schema.field(name) for name in layout.carried]
    grouped = [schema.field(name) for name in source.group_by]
    with (
        _writer(out / ITEMS / source.names[place], kept, layout.of_items(), schema.metadata) as write_items,
        _writer(out / GROUPS / source.names[place], grouped, layout.of_groups(), None) as write_groups,
    ):
        number, tables = -1, dict[str, dict[str, npt.NDArray[Any]]]()
        for row, whole in source.batches(layout.carried, [(start, stop)]):
            end, at = row + len(whole), row
            while at < end:  # a batch may touch two segments, a segment two files
                if at // SEGMENT_ROWS != number:
                    number = at // SEGMENT_ROWS
                    tables = answered.segment(number)
                until = min(end, (number + 1) * SEGMENT_ROWS)
                batch = whole.slice(at - row, until - at)
                items, groups, classes = (
                    {name: column[slice(*np.searchsorted(table["row"], (at, until)))] for name, column in table.items()}
                    for table in (tables["item"], tables["group"], tables["class"])
                )
                assert len(items["row"]) == len(batch), f"{source.where(at)}: some items have no answer"
                write_items([batch.column(name) for name in layout.carried], _filled(layout, items, layout.of_items()))
                of_class = np.searchsorted(groups["row"], classes["row"])
                figures = {name: column[of_class] for name, column in groups.items()} | classes
                chosen = pa.array(classes["row"] - at)
                write_groups(
                    [batch.column(name).take(chosen) for name in source.group_by],
                    _filled(layout, figures, layout.of_groups()),
                )
                at = until


def _filled(layout: Layout, figures: dict[str, npt.NDArray[Any]], new: dict[str, tuple[str, Any]]) -> list[Any]:
    """Return the new columns as Arrow arrays; codes become labels."""
    pa, _ = import_pyarrow()
    return [
        layout.classes.take(pa.array(figures[figure])) if figure == "code" else pa.array(figures[figure], kind)
        for figure, kind in new.values()
    ]


@contextmanager
def _writer(path: Path, old: list[Any], new: dict[str, tuple[str, Any]], metadata: Any) -> Iterator[Any]:
    """Open a file for tables of columns of the data set and new ones."""
    pa, parquet = import_pyarrow()
    schema = pa.schema([*old, *(pa.field(name, kind) for name, (_, kind) in new.items())], metadata)
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        written_whole(path) as unfinished,
        parquet.ParquetWriter(unfinished, schema, write_page_checksum=True) as writer,
    ):
        yield lambda carried, columns: writer.write_table(pa.Table.from_arrays([*carried, *columns], schema=schema))
