"""The data set: Parquet files taken as one table, read by ranges of rows and never held whole.

A range is read from the row groups that hold it. Within a row group, pages are read one after the other, so memory
does not depend on the size of files or row groups.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from handful.arguments import some_of
from handful.banks.tables import FEATURE_NAMES, find_column
from handful.errors import TaskError
from handful.machine.extras import import_pyarrow
from handful.machine.untrusted import refuse_irregular
from handful.many.keys import check_kinds
from handful.reading.parquet import is_number, matrix_of, unreadable, vector_column
from handful.shapes import Float

# Numbers in the vectors of a batch that is read at once, and rows of one without vectors.
BATCH_NUMBERS, BATCH_ROWS = 2**21, 2**16
# Bytes that are read from a file at once, so that a large row group is not read whole.
READ_BYTES = 2**20

Range = tuple[int, int]


@dataclass(frozen=True)
class Source:
    """Files in the order of their names, and which of their columns is what.

    Attributes
    ----------
    root : Path
        The folder that the names of files are relative to.
    names : tuple of str
        Files, relative to `root`.
    starts : tuple of int
        Row of the whole table at which each file starts; one more entry, the number of rows.
    group_by, features, others : tuple of str
        Columns of the group, of the vectors (one of lists, or one per dimension), and all other columns.
    """

    root: Path
    names: tuple[str, ...]
    starts: tuple[int, ...]
    group_by: tuple[str, ...]
    features: tuple[str, ...]
    others: tuple[str, ...]
    dim: int

    @classmethod
    def of(
        cls,
        path: str | os.PathLike[str],
        group_by: str | Sequence[str],
        features: str | Sequence[str] | None,
        dim: int,
    ) -> Source:
        """Look at the columns of every file; no rows are read yet."""
        pa, parquet = import_pyarrow()
        root, files = _files(Path(path))
        groups = (group_by,) if isinstance(group_by, str) else tuple(group_by)
        if not groups or len(set(groups)) < len(groups):
            raise TaskError(f"group_by must name one column or several, each once, got {group_by!r}")
        starts, first = [0], None
        vectors: tuple[str, ...] = ()
        try:
            for file in files:
                with parquet.ParquetFile(file) as opened:
                    schema, n_rows = opened.schema_arrow, opened.metadata.num_rows
                if first is None:
                    first = schema
                    vectors = _vectors(schema, features, dim, str(file))
                    for name in groups:
                        find_column(schema.names, name, (), "group", str(file))
                    check_kinds(schema, groups, str(file))
                _check_alike(schema, first, (*groups, *vectors), file, files[0])
                starts.append(starts[-1] + n_rows)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise unreadable(str(file), error) from error
        assert first is not None
        others = tuple(name for name in first.names if name not in {*groups, *vectors})
        names = tuple(file.relative_to(root).as_posix() for file in files)
        return cls(root, names, tuple(starts), groups, vectors, others, dim)

    @property
    def n_rows(self) -> int:
        """Rows of all files."""
        return self.starts[-1]

    def file(self, place: int) -> Path:
        """Return the path of a file."""
        return self.root / self.names[place]

    def schema(self, place: int) -> Any:
        """Return the Arrow schema of a file, with its metadata."""
        _, parquet = import_pyarrow()
        return parquet.read_schema(self.file(place))

    def where(self, row: int) -> str:
        """Name a row of the whole table by its file and the row there."""
        place = int(np.searchsorted(self.starts, row, side="right")) - 1
        return f"{self.file(place)}, from row {row - self.starts[place]}"

    def fingerprint(self) -> str:
        """SHA-256 of names, sizes, times of change and tables of contents of all files.

        The vectors themselves are not hashed: that would take as long as reading all of them once more.
        """
        digest = hashlib.sha256(repr((self.group_by, self.features)).encode())
        for place, name in enumerate(self.names):
            about = self.file(place).stat()
            with self.file(place).open("rb") as stream:
                stream.seek(max(0, about.st_size - 8))
                length = int.from_bytes(stream.read(4), "little")
                stream.seek(max(0, about.st_size - 8 - length))
                contents = hashlib.sha256(stream.read(length)).hexdigest()
            digest.update(repr((name, about.st_size, about.st_mtime_ns, contents)).encode())
        return digest.hexdigest()

    def batches(
        self, columns: Sequence[str], wanted: Sequence[Range], rows_at_once: int = BATCH_ROWS
    ) -> Iterator[tuple[int, Any]]:
        """Yield Arrow batches, each with its first row, from all row groups that hold rows of the ranges wanted."""
        pa, parquet = import_pyarrow()
        ends = np.array([stop for _, stop in wanted])
        for place in range(len(self.names)):
            if not _overlap(wanted, ends, self.starts[place], self.starts[place + 1]):
                continue
            file = self.file(place)
            try:
                with parquet.ParquetFile(
                    file, buffer_size=READ_BYTES, pre_buffer=False, page_checksum_verification=True
                ) as opened:
                    about = opened.metadata
                    sizes = [about.row_group(k).num_rows for k in range(about.num_row_groups)]
                    edges = self.starts[place] + np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
                    for k in range(len(sizes)):
                        if not _overlap(wanted, ends, int(edges[k]), int(edges[k + 1])):
                            continue
                        row = int(edges[k])
                        for batch in opened.iter_batches(rows_at_once, [k], list(columns), use_threads=False):
                            batch.validate(full=True)  # a damaged file can hold offsets that point outside the data
                            yield row, batch
                            row += len(batch)
                        if row != edges[k + 1]:
                            raise TaskError(f"{file} has another number of rows than it says; it is damaged")
            except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
                raise unreadable(str(file), error) from error

    def pieces(self, columns: Sequence[str], wanted: Sequence[Range]) -> Iterator[tuple[int, list[tuple[int, Any]]]]:
        """Yield each range by its place among the ranges, as Arrow batches with their first rows.

        Ranges are sorted and do not overlap. What is decoded once serves all ranges that it belongs to.
        """
        place, held = 0, list[tuple[int, Any]]()
        for row, batch in self.batches(columns, wanted, max(1, BATCH_NUMBERS // self.dim)):
            while place < len(wanted):
                start, stop = wanted[place]
                a, b = max(row, start), min(row + len(batch), stop)
                if a < b:
                    held.append((a, batch.slice(a - row, b - a)))
                if row + len(batch) < stop:
                    break
                yield place, held
                place, held = place + 1, []

    def matrix(self, batch: Any, row: int) -> Float[np.ndarray, "row dim"]:
        """Return the vectors of an Arrow batch; values that are not finite are refused."""
        pa, _ = import_pyarrow()
        where = self.where(row)
        if len(self.features) == 1 and not is_number(pa, batch.column(self.features[0]).type):
            file, _, first = where.rpartition(", from row ")
            matrix = matrix_of(pa, batch.column(self.features[0]), f"{file}, column {self.features[0]!r}", int(first))
        else:
            matrix = np.empty((len(batch), len(self.features)), np.float32)
            for place, name in enumerate(self.features):
                column = batch.column(name)
                if column.null_count:
                    raise TaskError(f"{where}: column {name!r} has missing values; drop these rows")
                matrix[:, place] = column.to_numpy(zero_copy_only=False)
        if matrix.shape[1] != self.dim:
            raise TaskError(f"{where}: vectors have {matrix.shape[1]} numbers, and those of the catalogue {self.dim}")
        if not np.isfinite(matrix).all():
            raise TaskError(f"{where}: some vectors have NaN or infinity; drop or impute these rows")
        return matrix


def _files(path: Path) -> tuple[Path, list[Path]]:
    """Return a folder and the Parquet files in it, those of its folders included; hidden ones are left out."""
    if not path.exists():
        raise TaskError(f"{path} does not exist; give a Parquet file or a folder of them")
    if not path.is_dir():
        refuse_irregular(path, TaskError)
        return path.parent, [path]
    files = sorted(
        file
        for file in path.rglob("*.parquet")
        if not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
    )
    for file in files:
        refuse_irregular(file, TaskError)
    if not files:
        raise TaskError(f"{path} has no files that end in .parquet; give the folder that holds them")
    return path, files


def _vectors(schema: Any, asked: str | Sequence[str] | None, dim: int, where: str) -> tuple[str, ...]:
    """Return the columns of the vectors: those asked for, or the one of lists."""
    pa, _ = import_pyarrow()
    if asked is not None and not isinstance(asked, str):
        names = tuple(asked)
        for name in names:
            find_column(schema.names, name, (), "features", where)
            if not is_number(pa, schema.field(name).type):
                raise TaskError(f"{where}: column {name!r} holds {schema.field(name).type}; features are numbers")
        if len(names) != dim:
            raise TaskError(f"{where}: features names {len(names)} columns, and the catalogue has {dim} dimensions")
        return names
    found = vector_column(pa, schema, where) if asked is None else asked
    return (find_column(schema.names, found, FEATURE_NAMES, "features", where),)


def _check_alike(schema: Any, first: Any, columns: Sequence[str], file: Path, first_file: Path) -> None:
    """Refuse a file whose columns differ from those of the first."""
    if len(set(schema.names)) < len(schema.names):
        raise TaskError(f"{file} has two columns of the same name; it has {some_of(schema.names)}")
    if schema.names != first.names:
        raise TaskError(f"{file} has the columns {some_of(schema.names)}, and {first_file} {some_of(first.names)}")
    for name in columns:
        here, there = schema.field(name).type, first.field(name).type
        if here != there:
            raise TaskError(
                f"column {name!r} holds {here} in {file} and {there} in {first_file}; write them with the same columns"
            )


def _overlap(wanted: Sequence[Range], ends: np.ndarray, start: int, stop: int) -> bool:
    """Whether a range of rows holds some that are wanted; `ends` are the ends of the sorted ranges."""
    place = int(np.searchsorted(ends, start, side="right"))
    return start < stop and place < len(wanted) and wanted[place][0] < stop
