"""Banks in Parquet, in and out: one column of vectors and one of labels."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from handful.errors import BankError
from handful.features.bank import BLOCK_ROWS, FeatureBank, Provenance
from handful.features.extras import import_pyarrow
from handful.features.tables import FEATURE_NAMES, LABEL_NAMES, bank_of, find_column
from handful.shapes import Float
from handful.whole_file import written_whole

# What a bank knows beyond its columns travels in the metadata of the schema, under this key.
METADATA_KEY = b"handful"
# A table larger than this is read into a file without a name, mapped, rather than into memory.
MOST_BYTES_IN_MEMORY = 2**30


def read_parquet(files: Sequence[Path], *, features: str | None = None, labels: str | None = None) -> FeatureBank:
    """Read a bank from Parquet files, taken together as one table.

    The vectors are a column of lists or fixed-size lists of numbers, all of the same length; labels are numbers or
    names. Class names that handful or Hugging Face `datasets` left in the metadata are used.
    """
    pa, parquet = import_pyarrow()
    where = str(files[0]) if len(files) == 1 else f"{files[0].parent} ({len(files)} files)"
    try:
        tables = [parquet.ParquetFile(file) for file in files]
        schema = tables[0].schema_arrow
        ours = _metadata(schema, METADATA_KEY)
        vectors = features or _vector_column(pa, schema, where)
        vectors = find_column(schema.names, vectors, FEATURE_NAMES, "features", where)
        classes = labels or ("label" if ours else None)
        classes = find_column([n for n in schema.names if n != vectors], classes, LABEL_NAMES, "labels", where)
        names = ours.get("class_names") if ours and classes == "label" else _hugging_face_names(schema, classes)
        matrix, others = _columns(pa, tables, vectors, [classes], where)
        if None in others[classes]:
            raise BankError(f"{where}: column {classes!r} has missing labels; drop these rows")
        bank = bank_of(matrix, np.asarray(others[classes]), names, where)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(where, error) from error
    if not ours:
        return bank
    try:
        return FeatureBank.from_arrays(
            bank.stored.astype(ours["dtype"], copy=False),
            bank.labels,
            bank.class_names,
            provenance=Provenance.from_mapping(ours["provenance"]),
            splits=ours["splits"],
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BankError(
            f"what handful noted in the metadata of {where} is damaged ({error}); export it again"
        ) from error


def read_vectors(
    files: Sequence[Path], *, features: str | None = None, others: Sequence[str] = ()
) -> tuple[Float[np.ndarray, "row dim"], dict[str, list[Any]]]:
    """Read the vectors of Parquet files that need not have labels, and those of the other columns that are there."""
    pa, parquet = import_pyarrow()
    where = str(files[0]) if len(files) == 1 else f"{files[0].parent} ({len(files)} files)"
    try:
        tables = [parquet.ParquetFile(file) for file in files]
        schema = tables[0].schema_arrow
        vectors = features or _vector_column(pa, schema, where)
        vectors = find_column(schema.names, vectors, FEATURE_NAMES, "features", where)
        return _columns(pa, tables, vectors, [name for name in others if name in schema.names], where)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(where, error) from error


def copy_vectors(files: Sequence[Path], path: Path) -> None:
    """Copy the vectors of Parquet files, which need no labels, into one `.npy` file that can be mapped; or nothing."""
    pa, parquet = import_pyarrow()
    where = str(files[0])
    try:
        tables = [parquet.ParquetFile(file) for file in files]
        schema = tables[0].schema_arrow
        vectors = find_column(schema.names, _vector_column(pa, schema, where), FEATURE_NAMES, "features", where)
        n_rows = sum(table.metadata.num_rows for table in tables)
        room: np.memmap[Any, Any] | None = None
        start = 0
        with written_whole(path) as place:
            for table in tables:
                for batch in table.iter_batches(BLOCK_ROWS, columns=[vectors]):
                    block = _matrix(pa, batch.column(vectors), f"{where}, column {vectors!r}, from row {start}")
                    if room is None:
                        room = np.lib.format.open_memmap(place, "w+", block.dtype, (n_rows, block.shape[1]))
                    room[start : start + len(block)] = block
                    start += len(block)
            if room is None:
                raise BankError(f"{where} has no rows")
            room.flush()
    except (pa.ArrowException, OSError) as error:
        raise BankError(f"{where} cannot be read as Parquet ({error}); it is cut short or of another kind") from error


def write_parquet(bank: FeatureBank, path: str | os.PathLike[str]) -> None:
    """Write columns `features` (fixed-size lists of float32), `label` and `class_name`, for DuckDB, pandas and others.

    float16 becomes float32, which every reader knows; `read_parquet` turns it back. The file appears complete or not
    at all.

    Examples
    --------
    >>> import tempfile
    >>> from handful import FeatureBank, read_bank
    >>> bank = FeatureBank.from_arrays([[0.0, 1.0], [1.0, 0.0]], [0, 1], ["ant", "bee"])
    >>> file = tempfile.mkdtemp() + "/bank.parquet"
    >>> write_parquet(bank, file)
    >>> read_bank(file).class_names
    ('ant', 'bee')
    """
    pa, parquet = import_pyarrow()
    final = Path(path)
    if final.exists():
        raise BankError(f"{final} already exists; remove it, or choose another name")
    extra = {
        "class_names": bank.class_names,
        "provenance": bank.provenance.to_mapping(),
        "splits": dict(bank.splits),
        "dtype": bank.dtype,
    }
    schema = pa.schema(
        [("features", pa.list_(pa.float32(), bank.dim)), ("label", pa.int32()), ("class_name", pa.string())],
        metadata={METADATA_KEY: json.dumps(extra)},
    )
    final.parent.mkdir(parents=True, exist_ok=True)
    names = np.array(bank.class_names, dtype=object)
    with written_whole(final) as place, parquet.ParquetWriter(place, schema) as writer:
        start = 0
        for block in bank.blocks():
            labels = bank.labels[start : start + len(block)]
            flat = pa.array(block.astype(np.float32, copy=False).reshape(-1))
            vectors = pa.FixedSizeListArray.from_arrays(flat, bank.dim)
            columns = [vectors, pa.array(labels), pa.array(names[labels], pa.string())]
            writer.write_batch(pa.record_batch(columns, schema=schema))
            start += len(block)


def _unreadable(where: str, error: Exception) -> BankError:
    return BankError(f"{where} cannot be read as Parquet ({error}); it is cut short or of another kind")


def _vector_column(pa: Any, schema: Any, where: str) -> str | None:
    """Return the only column of lists of numbers, if there is just one; None leaves the choice to the names."""
    columns = [f.name for f in schema if _is_list(pa, f.type) and _is_number(pa, f.type.value_type)]
    if not columns:
        raise BankError(f"{where} has no column of lists of numbers; it has {', '.join(schema.names)}")
    return columns[0] if len(columns) == 1 else None


def _is_list(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_number(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _columns(
    pa: Any, tables: Sequence[Any], vectors: str, others: Sequence[str], where: str
) -> tuple[Float[np.ndarray, "row dim"], dict[str, list[Any]]]:
    """Read the column of vectors, and other columns as plain values."""
    n_rows = sum(table.metadata.num_rows for table in tables)
    matrix: np.ndarray | None = None
    values: dict[str, list[Any]] = {name: [] for name in others}
    start = 0
    for batch in (part for table in tables for part in table.iter_batches(BLOCK_ROWS, columns=[vectors, *others])):
        block = _matrix(pa, batch.column(vectors), f"{where}, column {vectors!r}, from row {start}")
        if matrix is None:
            matrix = _room((n_rows, block.shape[1]), block.dtype)
        if block.shape[1] != matrix.shape[1]:
            raise BankError(
                f"{where}: vectors of column {vectors!r} have lengths {matrix.shape[1]} and {block.shape[1]}; "
                "all must be equally long"
            )
        matrix[start : start + len(block)] = block
        for name in others:
            values[name].extend(batch.column(name).to_pylist())
        start += len(block)
    if matrix is None:
        raise BankError(f"{where} has no rows")
    return matrix, values


def _matrix(pa: Any, column: Any, where: str) -> Float[np.ndarray, "row dim"]:
    """Turn a column of equally long lists into a matrix, float16 if the numbers are, else float32."""
    if not _is_list(pa, column.type):
        raise BankError(f"{where}: not lists of numbers but {column.type}; name another column")
    if column.null_count:
        raise BankError(f"{where}: some vectors are missing; drop these rows")
    values = column.flatten()
    offsets = None if pa.types.is_fixed_size_list(column.type) else np.asarray(column.offsets)
    lengths = {column.type.list_size} if offsets is None else set(np.diff(offsets).tolist())
    if len(lengths) != 1:
        raise BankError(
            f"{where}: vectors have lengths from {min(lengths)} to {max(lengths)}; all must be equally long"
        )
    if values.null_count or not _is_number(pa, values.type):
        raise BankError(f"{where}: vectors must hold numbers and nothing missing, got {values.type}")
    numbers = values.to_numpy(zero_copy_only=False)
    kind = np.float16 if numbers.dtype == np.float16 else np.float32
    matrix: np.ndarray = numbers.astype(kind, copy=False).reshape(len(column), -1)
    return matrix


def _room(shape: tuple[int, int], dtype: np.dtype[Any]) -> np.ndarray:
    if shape[0] * shape[1] * dtype.itemsize <= MOST_BYTES_IN_MEMORY:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, dtype, "w+", shape=shape)


def _hugging_face_names(schema: Any, column: str) -> list[str] | None:
    """Names of a `ClassLabel` column, as Hugging Face `datasets` keeps them in the schema's metadata."""
    about: Any = _metadata(schema, b"huggingface")
    for key in ("info", "features", column, "names"):
        about = about.get(key) if isinstance(about, dict) else None
    return list(map(str, about)) if isinstance(about, list) else None


def _metadata(schema: Any, key: bytes) -> dict[str, Any]:
    """Read a JSON object from the schema's metadata; whatever else is there counts as nothing."""
    try:
        found = json.loads((schema.metadata or {}).get(key, b"{}"))
    except ValueError:
        found = {}
    return found if isinstance(found, dict) else {}
