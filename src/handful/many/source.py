"""The data set: Parquet files taken as one table, read in order and never held whole.

Within a file, pages are read one after the other, so memory does not depend on the size of files or row groups.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from handful.arguments import some_of
from handful.errors import TaskError
from handful.machine.extras import import_pyarrow
from handful.machine.untrusted import refuse_irregular, unreadable
from handful.reading.header import FEATURE_NAMES, find_column
from handful.reading.parquet import PARQUET, is_number, matrix_of, partitions, vector_column
from handful.shapes import Float, Int

# Numbers in the vectors of a batch that is read at once. [numbers; work]
BATCH_NUMBERS = 2**21
# Rows of a batch without vectors. [rows; work]
BATCH_ROWS = 2**16
# Bytes that are read from a file at once, so that a large row group is not read whole. [bytes; work]
READ_BYTES = 2**20
# Odd constants of splitmix64: after both products every bit of a number influences every other.
# [factor; convention: splitmix64]
MIXING = np.array([0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)
# By which a product is shifted. [bits; convention: splitmix64]
MIXING_SHIFT = 31
# A Parquet file ends with the length of its table of contents, and with a mark. [bytes; convention: Parquet]
FOOTER_BYTES = 8
LENGTH_BYTES = 4
# Width of the longer kinds of dates and times. [bits; convention: Arrow]
LONG_BITS = 64


@dataclass(frozen=True)
class TableFiles:
    """Files in the order of their names (relative to `root`), and which of their columns is what.

    `starts` has the row of the whole table at which each file starts, and the number of rows. The column of vectors is
    one of lists, or there is one per dimension. `partitions` has the keys of the group that are no columns but folders,
    such as `day=1`, with a value for each file.
    """

    root: Path
    names: tuple[str, ...]
    starts: tuple[int, ...]
    group_by: tuple[str, ...]
    features: tuple[str, ...]
    dim: int
    partitions: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, path: str | os.PathLike[str], group_by: str | Sequence[str], features: str | Sequence[str] | None, dim: int
    ) -> TableFiles:
        """Look at the columns of every file; no rows are read yet."""
        pa, parquet = import_pyarrow()
        root, files = _files(Path(path))
        groups = (group_by,) if isinstance(group_by, str) else tuple(group_by)
        if not groups or len(set(groups)) < len(groups):
            raise TaskError(f"group_by must name one column or several, each once, got {group_by!r}")
        starts = [0]
        first = None
        vectors: tuple[str, ...] = ()
        folders = partitions(root, files)
        try:
            for file in files:
                with parquet.ParquetFile(file) as opened:
                    schema = opened.schema_arrow
                    n_rows = opened.metadata.num_rows
                if first is None:
                    first = schema
                    vectors = _vectors(schema, features, dim, str(file))
                    # What is also a column needs no folder: its values are in the rows.
                    folders = {name: values for name, values in folders.items() if name not in schema.names}
                    _check_groups(schema, groups, folders, str(file))
                    _check_partitions(root, files, folders, groups)
                _check_alike(schema, first, (*(g for g in groups if g not in folders), *vectors), file, files[0])
                starts.append(starts[-1] + n_rows)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise unreadable(file, PARQUET, error) from error
        names = tuple(file.relative_to(root).as_posix() for file in files)
        return cls(root, names, tuple(starts), groups, vectors, dim, {n: folders[n] for n in groups if n in folders})

    @property
    def group_columns(self) -> tuple[str, ...]:
        """Keys of the group that are columns of the files."""
        return tuple(name for name in self.group_by if name not in self.partitions)

    @property
    def n_rows(self) -> int:
        """Rows of all files."""
        return self.starts[-1]

    def file(self, place: int) -> Path:
        """Return the path of a file."""
        return self.root / self.names[place]

    def schema(self, place: int) -> Any:
        """Return the Arrow schema of a file, with its metadata."""
        return import_pyarrow()[1].read_schema(self.file(place))

    def where(self, row: int) -> str:
        """Name a row of the whole table by its file and the row there."""
        place = self._place(row)
        return f"{self.file(place)}, from row {row - self.starts[place]}"

    def _place(self, row: int) -> int:
        return int(np.searchsorted(self.starts, row, side="right")) - 1

    def fingerprint(self) -> str:
        """SHA-256 of names, sizes, times of change and tables of contents of all files.

        The vectors themselves are not hashed: that would take as long as reading all of them once more.
        """
        digest = hashlib.sha256(repr((self.group_by, self.features)).encode())
        for place, name in enumerate(self.names):
            about = self.file(place).stat()
            with self.file(place).open("rb") as stream:
                stream.seek(max(0, about.st_size - FOOTER_BYTES))
                length = int.from_bytes(stream.read(LENGTH_BYTES), "little")
                stream.seek(max(0, about.st_size - FOOTER_BYTES - length))
                contents = hashlib.sha256(stream.read(length)).hexdigest()
            digest.update(repr((name, about.st_size, about.st_mtime_ns, contents)).encode())
        return digest.hexdigest()

    def batches(
        self, columns: Iterable[str], places: Iterable[int] | None = None, rows_at_once: int = BATCH_ROWS
    ) -> Iterator[tuple[int, Any]]:
        """Yield Arrow batches of all files, or of those at some places, each with its first row."""
        pa, parquet = import_pyarrow()
        for place in range(len(self.names)) if places is None else places:
            file = self.file(place)
            row = self.starts[place]
            try:
                with parquet.ParquetFile(
                    file, buffer_size=READ_BYTES, pre_buffer=False, page_checksum_verification=True
                ) as opened:
                    for batch in opened.iter_batches(rows_at_once, columns=list(columns), use_threads=False):
                        batch.validate(full=True)  # a damaged file can hold offsets that point outside the data
                        yield row, batch
                        row += len(batch)
            except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
                raise unreadable(file, PARQUET, error) from error
            if row != self.starts[place + 1]:
                raise TaskError(f"{file} has another number of rows than it says; it is damaged")

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

    def keys(self, batch: Any, row: int) -> list[Any]:
        """Return Arrow columns that are equal where those of the group are, each of int64 or large_binary."""
        pa, _ = import_pyarrow()
        columns = {name: batch.column(name) for name in self.group_columns}
        for name, values in self.partitions.items():
            columns[name] = pa.repeat(values[self._place(row)], len(batch))
        return [key_of(columns[name], f"{self.where(row)}, column {name!r}") for name in self.group_by]


def key_of(column: Any, where: str) -> Any:
    """Return the values of a column as whole numbers or bytes, which every engine orders alike; none is missing."""
    pa, _ = import_pyarrow()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    numbers = None
    if pa.types.is_temporal(kind):
        column = column.view(pa.int64() if kind.bit_width == LONG_BITS else pa.int32())
    elif pa.types.is_floating(kind):
        numbers = column.to_numpy(zero_copy_only=False).astype(np.float64) + 0.0  # 0.0 and -0.0 are one group
    if column.null_count or (numbers is not None and np.isnan(numbers).any()):
        raise TaskError(f"{where}: some values are missing (null or NaN), so rows belong to no group; drop these rows")
    if numbers is not None:
        return pa.array(numbers.view(np.int64))
    if pa.types.is_boolean(kind) or pa.types.is_integer(column.type):
        return pa.array(column.to_numpy(zero_copy_only=False).astype(np.int64, casting="unsafe"))
    return (column.cast(pa.string()) if pa.types.is_decimal(kind) else column).cast(pa.large_binary())


def spread(keys: Sequence[Any], n_parts: int) -> Int[np.ndarray, "row"]:
    """Spread rows over parts, evenly and all rows of a group to the same; keys are those of `TableFiles.keys`."""
    mixed = np.zeros(len(keys[0]), np.uint64)
    for column in keys:
        if column.type == "int64":
            numbers = column.to_numpy()
        else:
            coded = column.dictionary_encode()
            sums = np.array([zlib.crc32(value) for value in coded.dictionary.to_pylist()], np.int64)
            numbers = sums[coded.indices.to_numpy()]
        for factor in MIXING:
            mixed = (mixed ^ numbers.view(np.uint64)) * factor
            mixed ^= mixed >> np.uint64(MIXING_SHIFT)
    return (mixed % np.uint64(n_parts)).astype(np.int64)


def _check_groups(schema: Any, group_by: Sequence[str], folders: Iterable[str], where: str) -> None:
    """Refuse columns that are not there, or cannot name a group: lists and structures."""
    pa, _ = import_pyarrow()
    for name in group_by:
        find_column([*schema.names, *folders], name, (), "group", where)
        if name in folders:
            continue
        kind = schema.field(name).type
        if pa.types.is_nested(kind) or pa.types.is_null(kind):
            raise TaskError(f"{where}: column {name!r} contains {kind}; group by numbers, text, dates or booleans")


def _check_partitions(
    root: Path, files: Sequence[Path], folders: Mapping[str, Sequence[Any]], group_by: Sequence[str]
) -> None:
    """Refuse groups that would span Hive partitions, and files without a value of a partition that is a key.

    A folder `day=2` keeps its rows apart, and nothing else does: no column says which day they are of.
    """
    apart = [name for name, values in folders.items() if name not in group_by and len(set(values)) > 1]
    if apart:
        parts = (part for file in files for part in file.relative_to(root).parts)
        one = next(part for part in parts if part.startswith(f"{apart[0]}="))
        raise TaskError(
            f"{root} has Hive partitions by {some_of(apart)} (one is {one}), which group_by does not name, so rows of "
            f"several would become one batch; add {apart[0]!r} to group_by, or make it a column of the files if they "
            "belong together"
        )
    for name in group_by:
        if None in folders.get(name, ()):
            raise TaskError(
                f"{files[folders[name].index(None)]} has no value of the Hive partition {name!r}, so its rows belong "
                f"to no group; move it into a folder {name}=…, or leave it out"
            )


def _files(path: Path) -> tuple[Path, list[Path]]:
    """Return a folder and the Parquet files in it, those of its folders included; hidden ones are left out."""
    if not os.path.exists(path):
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
        raise TaskError(f"{path} has no files that end in .parquet; give the folder that contains them")
    return path, files


def _vectors(schema: Any, asked: str | Sequence[str] | None, dim: int, where: str) -> tuple[str, ...]:
    """Return the columns of the vectors: those asked for, or the one of lists."""
    pa, _ = import_pyarrow()
    if asked is not None and not isinstance(asked, str):
        names = tuple(asked)
        for name in names:
            find_column(schema.names, name, (), "features", where)
            if not is_number(pa, schema.field(name).type):
                raise TaskError(f"{where}: column {name!r} contains {schema.field(name).type}; features are numbers")
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
        here = schema.field(name).type
        there = first.field(name).type
        if here != there:
            raise TaskError(
                f"column {name!r} contains {here} in {file} and {there} in {first_file}; write them with the same "
                "columns"
            )
