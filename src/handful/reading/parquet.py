"""Parquet by pyarrow: a file, a folder of files, or a folder with Hive partitions (`day=1/part.parquet`).

The vectors are a column of lists or fixed-size lists of numbers, all of the same length, or one column of numbers per
dimension. Other columns are read when they are asked for.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from handful.arguments import some_of
from handful.banks.bank import BLOCK_ROWS, Provenance
from handful.banks.parquet import METADATA_KEY
from handful.banks.store import FEATURE_TYPES
from handful.errors import BankError
from handful.machine.extras import import_pyarrow
from handful.machine.untrusted import Budget, parse_json, refuse_irregular, unreadable
from handful.reading.header import (
    FEATURE_NAMES,
    PATH_NAME,
    TEXT_NAMES,
    Asked,
    chosen_measurements,
    dimension_columns,
    find_column,
    no_items,
)
from handful.reading.measurements import not_measured
from handful.reading.table import NotMeasured, Table
from handful.shapes import Float

ENDINGS = (".parquet", ".pq")
PARQUET = "Parquet"
# A file may always hold this many numbers in its column of vectors; a larger one, this many for each of its bytes.
ALWAYS_NUMBERS = 2**24
NUMBERS_PER_BYTE = 32
# A table larger than this is read into an unnamed mapped file rather than into memory.
MOST_BYTES_IN_MEMORY = 2**30
# The value of a partition that stands for none.
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
# Values that are scanned at once.
SCANNED_AT_ONCE = 2**16


def read_parquet(path: Path, asked: Asked) -> Table:
    """Read Parquet files, taken together as one table; rows without a vector are skipped and listed.

    Class names that handful or Hugging Face `datasets` stored in the metadata are used.
    """
    pa, _ = import_pyarrow()
    files = parquet_files(path)
    where = str(files[0]) if len(files) == 1 else f"{path} ({len(files)} files)"
    try:
        schema = _schema(files)
        ours = _metadata(schema, METADATA_KEY)
        vectors = _vector_columns(pa, schema, asked, where)
        numbers = measured = _measured(pa, schema, asked, where)
        columns = _Columns(files, schema, vectors, partitions(path, files), where, kept=numbers)
        aside = dict[str, NotMeasured]()
        if numbers and not asked.features:
            aside = not_measured({name: columns[name].to_numpy().astype(np.float64) for name in numbers})
            others = [name for name in schema.names if name not in aside]
            vectors = measured = chosen_measurements(others, asked, lambda name: name in numbers, where)
            if not measured:
                raise no_items(schema.names, where)
        matrix, lost = _matrix(pa, columns.tables, vectors, where, gaps=asked.gaps) if vectors else (None, {})
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(where, PARQUET, error) from error
    noted = _metadata(schema, b"huggingface")
    named = {name: names for name in schema.names if (names := _hugging_face_names(noted, name)) is not None}
    about: dict[str, Any] = {"class_names": named}
    try:
        if ours:
            about = {
                "class_names": {"label": list(ours["class_names"])},
                "label_names": ("label",),
                "provenance": Provenance.from_mapping(ours["provenance"]),
                "splits": dict(ours["splits"]),
            }
            if ours["dtype"] not in FEATURE_TYPES:
                raise ValueError(f"{ours['dtype']!r} is not a type of features")
            matrix = None if matrix is None else matrix.astype(ours["dtype"], copy=False)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise damaged_notes(where, error) from error
    about |= {"features": tuple(vectors), "measured": tuple(measured), "not_measured": aside}
    return Table(where, columns.n_rows, vectors=matrix, columns=columns, **about).without(lost)


def without_views(column: Any) -> Any:
    """Return a column of text or bytes that are views, which few functions of Arrow take, as one of usual values."""
    pa, _ = import_pyarrow()
    usual = {"string_view": pa.large_string(), "binary_view": pa.large_binary()}  # older versions know neither
    return column.cast(usual[str(column.type)]) if str(column.type) in usual else column


def parquet_files(path: Path) -> list[Path]:
    """Return the file itself, the files in a folder, or else those in its Hive partitions; none if there are none."""
    if not path.is_dir():
        return [path] if path.suffix.lower() in ENDINGS else []
    return sorted(path.glob("*.parquet")) or sorted(path.glob("*=*/**/*.parquet"))


class _Columns(Mapping[str, Any]):
    """Columns other than the vectors, as Arrow arrays, each read when it is asked for, and those of the partitions."""

    def __init__(
        self,
        files: Sequence[Path],
        schema: Any,
        vectors: Sequence[str],
        partitions: Mapping[str, Sequence[Any]],
        where: str,
        kept: Sequence[str] = (),
    ) -> None:
        """Open the files; of the columns of the vectors, those in `kept` are columns too."""
        pa, parquet = import_pyarrow()
        # Text is read as a dictionary, so that a long text that occurs in every row is held once.
        texts = {field.name for field in schema if _is_text(pa, field.type)}
        beside = {*vectors} - {*kept} | {*partitions}
        self._names = dict.fromkeys(name for name in schema.names if name not in beside)
        self._partitions = partitions
        self._files = files
        self._where = where
        self._read: dict[str, Any] = {}
        self._budgets = [Budget.of(file) for file in files]
        self.tables = []
        for file, budget in zip(files, self._budgets, strict=True):
            own = [name for name in parquet.read_schema(file).names if name in texts]
            table = parquet.ParquetFile(file, read_dictionary=own, page_checksum_verification=True)
            if lost := set(vectors) - set(table.schema_arrow.names):
                raise BankError(
                    f"{file} has no column {min(lost)!r} for the vectors, which {len(files)} files have in common; it "
                    f"has {some_of(table.schema_arrow.names)}: name another one with `features`, or move the file"
                )
            numbers = _check_size(file, table, vectors, budget)
            if not table.metadata.num_rows >= 0 or (vectors and table.metadata.num_rows > numbers):
                raise BankError(
                    f"{file} says that it has {table.metadata.num_rows} rows; it is damaged: write it again"
                )
            self.tables.append(table)
        self.n_rows = sum(table.metadata.num_rows for table in self.tables)
        for name in partitions:
            self._check_partition(name)

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise KeyError(name)
        if name not in self._read:
            pa, _ = import_pyarrow()
            try:
                self._read[name] = self._column(pa, name)
            except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
                raise unreadable(self._where, PARQUET, error) from error
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names or name in self._partitions

    def __iter__(self) -> Iterator[str]:
        return iter([*self._names, *self._partitions])

    def __len__(self) -> int:
        return len(self._names) + len(self._partitions)

    def _column(self, pa: Any, name: str) -> Any:
        if name in self._partitions:
            sizes = [table.metadata.num_rows for table in self.tables]
            values = pa.array(self._partitions[name])
            return pa.chunked_array([values.take(pa.array(np.arange(len(sizes)).repeat(sizes)))])
        parts = [part for number in range(len(self._files)) for part in self._parts(pa, number, name)]
        if sum(map(len, parts)) != self.n_rows:
            raise _other_number(self._where, self.n_rows)
        return _joined(pa, parts) if parts else pa.chunked_array([], pa.null())

    def _parts(self, pa: Any, number: int, name: str) -> Iterator[Any]:
        """Yield a column of one file in parts; in a file without it, all values are missing."""
        table = self.tables[number]
        if name not in table.schema_arrow.names:
            yield pa.nulls(table.metadata.num_rows)
            return
        _check_size(self._files[number], table, [name], self._budgets[number], numbers=False)
        for batch in table.iter_batches(BLOCK_ROWS, columns=[name]):
            batch.validate(full=True)  # a damaged file can hold offsets that point outside the data
            yield without_views(batch.column(0))

    def _check_partition(self, name: str) -> None:
        """Refuse files that have a column of the name of a folder, and other values in it."""
        pa, _ = import_pyarrow()
        for number, (file, value) in enumerate(zip(self._files, self._partitions[name], strict=True)):
            if name in self.tables[number].schema_arrow.names:
                folder = next((part for part in reversed(file.parent.parts) if part.startswith(f"{name}=")), "")
                expected = {str(value), unquote(folder.removeprefix(f"{name}="))}  # 1 and 01
                found = {str(one) for part in self._parts(pa, number, name) for one in part.drop_null().to_pylist()}
                if other := sorted(found - expected):
                    raise BankError(
                        f"{file} is in the folder {folder}, but its own column {name!r} has {other[0]!r:.60}; "
                        "rename the folder, or drop the column"
                    )


def partitions(path: Path, files: Sequence[Path]) -> dict[str, list[Any]]:
    """Return the columns that Hive partitions stand for, one value per file; whole numbers if all values are."""
    folders = [file.relative_to(path).parts[:-1] for file in files]
    keys = [dict(part.split("=", 1) for part in parts if part.find("=") > 0) for parts in folders]
    columns = dict[str, list[Any]]()
    for name in dict.fromkeys(name for one in keys for name in one):
        texts = [unquote(one.get(name, NO_VALUE)) for one in keys]
        whole = all(text == NO_VALUE or re.fullmatch("-?[0-9]{1,18}", text) for text in texts)
        columns[name] = [None if text == NO_VALUE else int(text) if whole else text for text in texts]
    return columns


def _vector_columns(pa: Any, schema: Any, asked: Asked, where: str) -> list[str]:
    """Return the one column of lists, or else the columns of numbers that are one dimension each; none for texts."""
    features = asked.features
    if asked.text and not features:
        return []
    lists = any(is_list(pa, field.type) and is_number(pa, field.type.value_type) for field in schema)
    if features in schema.names or (features is None and lists):
        column = features or vector_column(pa, schema, where)
        return [find_column(schema.names, column, FEATURE_NAMES, "features", where)]
    numbers = [field.name for field in schema if is_number(pa, field.type)]
    if wide := dimension_columns(numbers, features, where) or _measured(pa, schema, asked, where):
        return wide
    if {*TEXT_NAMES, PATH_NAME} & set(schema.names):
        return []
    if features is not None:
        return [find_column(schema.names, features, (), "features", where)]
    raise no_items(schema.names, where)


def _measured(pa: Any, schema: Any, asked: Asked, where: str) -> list[str]:
    """Return the columns of measurements, if there are no other vectors."""
    numbers = [field.name for field in schema if is_number(pa, field.type)]
    lists = any(is_list(pa, field.type) and is_number(pa, field.type.value_type) for field in schema)
    if asked.features in schema.names:
        return [name for name in numbers if name == asked.features]
    if asked.text or (asked.features is None and lists):
        return []
    if dimension_columns(numbers, asked.features, where):
        return []
    return chosen_measurements(schema.names, asked, lambda name: name in numbers, where)


def _matrix(
    pa: Any,
    tables: Sequence[Any],
    vectors: Sequence[str],
    where: str,
    gaps: bool = False,
) -> tuple[Float[np.ndarray, "row dim"], dict[int, str]]:
    """Read the vectors into an array allocated for them; return also the rows without a vector."""
    n_rows = sum(table.metadata.num_rows for table in tables)
    matrix: np.ndarray | None = None
    lost = dict[int, str]()
    start = 0
    for batch in (part for table in tables for part in table.iter_batches(BLOCK_ROWS, columns=list(vectors))):
        batch.validate(full=True)  # a damaged file can hold offsets that point outside the data
        valid = np.stack([np.asarray(batch.column(name).is_valid()) for name in vectors])
        there = valid.any(0) if gaps else valid.all(0)
        lost |= {start + row: "it has no vector" for row in np.flatnonzero(~there).tolist()}
        if start + batch.num_rows > n_rows:
            raise _other_number(where, n_rows)
        if there.any():
            block = _block(pa, batch if there.all() else batch.filter(pa.array(there)), vectors, where, start)
            if matrix is None:
                matrix = _room((n_rows, block.shape[1]), block.dtype)
            if block.shape[1] != matrix.shape[1]:
                raise BankError(
                    f"{where}: vectors of column {vectors[0]!r} have lengths {matrix.shape[1]} and {block.shape[1]}; "
                    "all must be equally long"
                )
            matrix[start + np.flatnonzero(there)] = block
        start += batch.num_rows
    if start != n_rows:
        raise _other_number(where, n_rows)
    if matrix is None:
        raise BankError(f"{where} has no rows with a vector")
    return matrix, lost


def _block(pa: Any, batch: Any, vectors: Sequence[str], where: str, start: int) -> Float[np.ndarray, "row dim"]:
    if len(vectors) == 1 and not is_number(pa, batch.column(vectors[0]).type):
        return matrix_of(pa, batch.column(vectors[0]), f"{where}, column {vectors[0]!r}", start)
    with np.errstate(over="ignore"):  # values that are not finite are refused where they are used
        parts = [batch.column(name).to_numpy(zero_copy_only=False).astype(np.float32) for name in vectors]
    return np.stack(parts, axis=1)


def damaged_notes(where: str, error: Exception) -> BankError:
    """Return the error for what handful itself has written into the metadata, and what contradicts the file."""
    return BankError(f"what handful noted in the metadata of {where} is damaged ({error}); export it again")


def _other_number(where: str, n_rows: int) -> BankError:
    return BankError(f"{where} says that it has {n_rows} rows but has another number; it is damaged: write it again")


def vector_column(pa: Any, schema: Any, where: str) -> str:
    """Return the column of lists of numbers; of several, the one with a usual name."""
    columns = [str(f.name) for f in schema if is_list(pa, f.type) and is_number(pa, f.type.value_type)]
    if not columns:
        raise BankError(f"{where} has no column of lists of numbers; it has {some_of(schema.names)}")
    usual = [name for likely in FEATURE_NAMES for name in columns if name.lower() == likely]
    if len(columns) > 1 and not usual:
        raise BankError(
            f"{where} has {len(columns)} columns of vectors, {some_of(columns)}; name the right one with `features`, "
            "or --features on the command line"
        )
    return (usual or columns)[0]


def is_list(pa: Any, kind: Any) -> bool:
    """Whether an Arrow type is one of lists."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_number(pa: Any, kind: Any) -> bool:
    """Whether an Arrow type is one of numbers."""
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _schema(files: Sequence[Path]) -> Any:
    """Return the columns of all files, and what is noted in the first of them."""
    pa, parquet = import_pyarrow()
    for file in files:
        refuse_irregular(file, BankError)
    fields: dict[str, Any] = {}
    for file in files:
        schema = parquet.read_schema(file)
        if len(set(schema.names)) != len(schema.names):
            raise BankError(f"{file} has two columns of the same name; it has {some_of(schema.names)}")
        for field in schema:
            fields.setdefault(field.name, field)
    return pa.schema(fields.values(), parquet.read_schema(files[0]).metadata)


def _check_size(file: Path, table: Any, columns: Sequence[str], budget: Budget, *, numbers: bool = True) -> int:
    """Return how many values the columns have, by the table of contents, if a file of that size can hold them.

    Equal numbers are stored as one number and a count, so 900 bytes can mean a vector of 200 million numbers. The
    contents are scanned first, a few values at a time: what pyarrow says of a damaged table of contents ends the
    process, but a scan of it raises an error.
    """
    size = file.stat().st_size
    about = table.metadata
    paths = [table.schema.column(k).path for k in range(len(table.schema))]
    names = set(columns)
    wanted = [k for k, path in enumerate(paths) if path in names or path.split(".")[0] in names]
    if not wanted:
        return 0
    table.reader.scan_contents(wanted, SCANNED_AT_ONCE)
    read = [about.row_group(k).column(number) for k in range(about.num_row_groups) for number in wanted]
    budget.spend(sum(part.total_uncompressed_size for part in read))
    values = int(sum(part.num_values for part in read))
    if numbers and values > max(ALWAYS_NUMBERS, NUMBERS_PER_BYTE * size):
        raise BankError(
            f"{file} has {size} bytes and says that column {columns[0]!r} has {values} numbers; features do not "
            "compress like that, so it is refused"
        )
    return values


def _is_text(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind))


def _joined(pa: Any, parts: Sequence[Any]) -> Any:
    """Put parts of a column one after another; files may hold text differently, or have no values."""
    typed = next((part.type for part in parts if not pa.types.is_null(part.type)), pa.null())
    parts = [pa.nulls(len(part), typed) if pa.types.is_null(part.type) else part for part in parts]
    if len({part.type for part in parts}) == 1:
        return pa.chunked_array(parts).unify_dictionaries()
    plain = [part.dictionary_decode() if pa.types.is_dictionary(part.type) else part for part in parts]
    return pa.chunked_array([part.cast(plain[0].type) for part in plain])


def _first(flags: Any) -> int:
    return int(np.flatnonzero(np.asarray(flags))[0])


def matrix_of(pa: Any, column: Any, where: str, start: int) -> Float[np.ndarray, "row dim"]:
    """Turn a column of lists of equal length into a matrix, float16 if the numbers are, else float32.

    `start` is the number of the first row, for messages.
    """
    if not is_list(pa, column.type):
        raise BankError(f"{where}: not lists of numbers but {column.type}; name another column")
    if column.null_count:
        raise BankError(f"{where}: row {start + _first(column.is_null())} has no vector; drop such rows")
    values = column.flatten()
    offsets = None if pa.types.is_fixed_size_list(column.type) else np.asarray(column.offsets)
    lengths = np.array([column.type.list_size]) if offsets is None else np.diff(offsets)
    if (other := lengths != lengths[0]).any():
        row = _first(other)
        raise BankError(
            f"{where}: row {start} has {lengths[0]} numbers, row {start + row} has {lengths[row]}; all vectors must be "
            "equally long"
        )
    if values.null_count or not is_number(pa, values.type):
        raise BankError(f"{where}: vectors must be numbers, none missing, got {values.type}")
    numbers = values.to_numpy(zero_copy_only=False)
    kind = np.float16 if numbers.dtype == np.float16 else np.float32
    with np.errstate(over="ignore"):  # values that are not finite are refused where they are used
        matrix: np.ndarray = numbers.astype(kind, copy=False)
    return matrix.reshape(len(column), int(lengths[0]))


def _room(shape: tuple[int, int], dtype: np.dtype[Any]) -> np.ndarray:
    if shape[0] * shape[1] * dtype.itemsize <= MOST_BYTES_IN_MEMORY:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, dtype, "w+", shape=shape)


def _hugging_face_names(noted: Mapping[str, Any], column: str) -> list[Any] | None:
    """Names of a `ClassLabel` column, as Hugging Face `datasets` keeps them in the schema's metadata."""
    about: Any = noted
    for key in ("info", "features", column, "names"):
        about = about.get(key) if isinstance(about, dict) else None
    return about if isinstance(about, list) else None


def _metadata(schema: Any, key: bytes) -> dict[str, Any]:
    """Read a JSON object from the schema's metadata; other JSON counts as nothing."""
    try:
        found = parse_json((schema.metadata or {}).get(key, b"{}"))
    except ValueError as error:
        raise BankError(f"the metadata {key.decode()!r} is not JSON ({error}); write the file again") from error
    return found if isinstance(found, dict) else {}
