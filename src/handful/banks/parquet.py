"""Read and write banks in Parquet: one column of vectors, or one per dimension, and one of labels."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from handful.arguments import some_of
from handful.banks.bank import BLOCK_ROWS, FeatureBank, Provenance
from handful.banks.tables import FEATURE_NAMES, LABEL_NAMES, bank_of, find_column
from handful.banks.wide import dimension_columns
from handful.errors import BankError
from handful.machine.extras import import_pyarrow
from handful.machine.untrusted import parse_json, refuse_irregular, refuse_unfolding
from handful.machine.whole_file import written_whole
from handful.shapes import Float

# What a bank knows beyond its columns travels in the metadata of the schema, under this key.
METADATA_KEY = b"handful"
# A file may always hold this many numbers in its column of vectors; a larger one, this many for each of its bytes.
ALWAYS_NUMBERS, NUMBERS_PER_BYTE = 2**24, 32
# A table larger than this is read into an unnamed mapped file rather than into memory.
MOST_BYTES_IN_MEMORY = 2**30


def read_parquet(files: Sequence[Path], *, features: str | None = None, labels: str | None = None) -> FeatureBank:
    """Read a bank from Parquet files, taken together as one table.

    The vectors are a column of lists or fixed-size lists of numbers, all of the same length, or one column of numbers
    per dimension; labels are numbers or names. Class names that handful or Hugging Face `datasets` stored in the
    metadata are used.
    """
    pa, _ = import_pyarrow()
    where = str(files[0]) if len(files) == 1 else f"{files[0].parent} ({len(files)} files)"
    try:
        schema = _schema(files)
        ours = _metadata(schema, METADATA_KEY)
        vectors = _vector_columns(pa, schema, features, where)
        classes = labels or ("label" if ours else None)
        classes = find_column([n for n in schema.names if n not in vectors], classes, LABEL_NAMES, "labels", where)
        names = ours.get("class_names") if ours and classes == "label" else _hugging_face_names(schema, classes)
        if not isinstance(names, (list, type(None))):
            raise BankError(f"what handful noted in the metadata of {where} is damaged; export it again")
        matrix, others = _columns(pa, _opened(pa, files, vectors, [classes]), vectors, [classes], where)
        bank = bank_of(matrix, plain_values(pa, others[classes]), names, where)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(where, error) from error
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
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise BankError(
            f"what handful noted in the metadata of {where} is damaged ({error}); export it again"
        ) from error


def read_vectors(
    files: Sequence[Path], *, features: str | None = None, groups: Sequence[str] = ()
) -> tuple[Float[np.ndarray, "row dim"], dict[str, Any]]:
    """Read the vectors of Parquet files that need no labels, and all other columns as Arrow arrays."""
    pa, _ = import_pyarrow()
    where = str(files[0]) if len(files) == 1 else f"{files[0].parent} ({len(files)} files)"
    try:
        schema = _schema(files)
        vectors = _vector_columns(pa, schema, features, where)
        left = [name for name in schema.names if name not in vectors]
        for name in groups:
            find_column(left, name, (), "groups", where)
        return _columns(pa, _opened(pa, files, vectors, left), vectors, left, where)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(where, error) from error


def copy_vectors(files: Sequence[Path], path: Path) -> None:
    """Copy the vectors of Parquet files, which need no labels, into one `.npy` file, complete or not at all."""
    pa, _ = import_pyarrow()
    where = str(files[0])
    try:
        schema = _schema(files)
        vectors = _vector_columns(pa, schema, None, where)
        with written_whole(path) as place:

            def room(shape: tuple[int, int], dtype: np.dtype[Any]) -> np.ndarray:
                return np.lib.format.open_memmap(place, "w+", dtype, shape)

            matrix, _ = _columns(pa, _opened(pa, files, vectors, []), vectors, [], where, room)
            assert isinstance(matrix, np.memmap)
            matrix.flush()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(where, error) from error


def write_parquet(bank: FeatureBank, path: str | os.PathLike[str]) -> None:
    """Write columns `features` (fixed-size lists of float32), `label` and `class_name`, for DuckDB, pandas and others.

    float16 becomes float32, which every reader knows; `read_parquet` turns it back. The file appears complete or not
    at all.

    Parameters
    ----------
    bank : FeatureBank
        The bank.
    path : path
        The file.

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
    with written_whole(final) as place, parquet.ParquetWriter(place, schema, write_page_checksum=True) as writer:
        start = 0
        for block in bank.blocks():
            labels = bank.labels[start : start + len(block)]
            flat = pa.array(block.astype(np.float32, copy=False).reshape(-1))
            vectors = pa.FixedSizeListArray.from_arrays(flat, bank.dim)
            columns = [vectors, pa.array(labels), pa.array(names[labels], pa.string())]
            writer.write_batch(pa.record_batch(columns, schema=schema))
            start += len(block)


def unreadable(where: str, error: Exception) -> BankError:
    """Return the error for a file that Arrow cannot read."""
    return BankError(f"{where} cannot be read as Parquet ({error}); it is cut short or of another kind")


def vector_column(pa: Any, schema: Any, where: str) -> str:
    """Return the column of lists of numbers; of several, the one with a usual name."""
    columns = [str(f.name) for f in schema if _is_list(pa, f.type) and is_number(pa, f.type.value_type)]
    if not columns:
        raise BankError(f"{where} has no column of lists of numbers; it has {some_of(schema.names)}")
    usual = [name for likely in FEATURE_NAMES for name in columns if name.lower() == likely]
    if len(columns) > 1 and not usual:
        raise BankError(
            f"{where} has {len(columns)} columns of vectors, {some_of(columns)}; name the right one with `features`, "
            "or --features on the command line"
        )
    return (usual or columns)[0]


def _vector_columns(pa: Any, schema: Any, asked: str | None, where: str) -> list[str]:
    """Return the one column of lists, or else the columns of numbers that are one dimension each."""
    lists = any(_is_list(pa, field.type) and is_number(pa, field.type.value_type) for field in schema)
    if asked in schema.names or (asked is None and lists):
        column = asked or vector_column(pa, schema, where)
        return [find_column(schema.names, column, FEATURE_NAMES, "features", where)]
    numbers = [field.name for field in schema if is_number(pa, field.type)]
    if wide := dimension_columns(numbers, asked, where):
        return wide
    if asked is not None:
        return [find_column(schema.names, asked, (), "features", where)]
    raise BankError(
        f"{where} has neither a column of lists of numbers nor one numbered column per dimension (0, 1, … or emb_0, "
        f"emb_1, …); it has {some_of(schema.names)}"
    )


def _is_list(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_number(pa: Any, kind: Any) -> bool:
    """Whether an Arrow type is one of numbers."""
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _schema(files: Sequence[Path]) -> Any:
    _, parquet = import_pyarrow()
    for file in files:
        refuse_irregular(file, BankError)
    with parquet.ParquetFile(files[0]) as table:
        schema = table.schema_arrow
    if len(set(schema.names)) != len(schema.names):
        raise BankError(f"{files[0]} has two columns of the same name; it has {some_of(schema.names)}")
    return schema


def _opened(pa: Any, files: Sequence[Path], vectors: Sequence[str], others: Sequence[str]) -> list[Any]:
    """Open files, refusing those whose columns are too large for the file's size.

    Text is read as a dictionary, so that a long text that occurs in every row is held once.
    """
    _, parquet = import_pyarrow()
    tables = []
    for file in files:
        schema = parquet.read_schema(file)
        if not {*vectors, *others} <= set(schema.names):
            raise BankError(f"{file} lacks columns that {files[0]} has; it has {some_of(schema.names)}")
        texts = [name for name in others if _is_text(pa, schema.field(name).type)]
        table = parquet.ParquetFile(file, read_dictionary=texts, page_checksum_verification=True)
        _check_size(file, table.metadata, vectors, others)
        tables.append(table)
    return tables


def _check_size(file: Path, about: Any, vectors: Sequence[str], others: Sequence[str]) -> None:
    """Refuse a file whose table of contents asks for more than a file of that size can hold.

    Equal numbers are stored as one number and a count, so 900 bytes can mean a vector of 200 million numbers.
    """
    size = file.stat().st_size
    groups = [about.row_group(k) for k in range(about.num_row_groups)]
    parts = [group.column(k) for group in groups for k in range(group.num_columns)]
    read = [part for part in parts if part.path_in_schema.split(".")[0] in {*vectors, *others}]
    numbers = sum(part.num_values for part in read if part.path_in_schema.split(".")[0] in vectors)
    try:
        refuse_unfolding(str(file), size, sum(part.total_uncompressed_size for part in read))
    except ValueError as error:
        raise BankError(f"{file} cannot be read as Parquet ({error}); it is damaged or refused") from error
    if numbers > max(ALWAYS_NUMBERS, NUMBERS_PER_BYTE * size):
        raise BankError(
            f"{file} has {size} bytes and says that column {vectors[0]!r} has {numbers} numbers; features do "
            "not compress like that, so it is refused"
        )
    if vectors and not 0 <= about.num_rows <= numbers:
        raise BankError(f"{file} says that it has {about.num_rows} rows; it is damaged: write it again")


def _is_text(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind))


def _columns(
    pa: Any,
    tables: Sequence[Any],
    vectors: Sequence[str],
    others: Sequence[str],
    where: str,
    room: Callable[[tuple[int, int], np.dtype[Any]], np.ndarray] | None = None,
) -> tuple[Float[np.ndarray, "row dim"], dict[str, Any]]:
    """Read the vectors into an array allocated for them, and other columns as Arrow arrays."""
    n_rows = sum(table.metadata.num_rows for table in tables)
    matrix: np.ndarray | None = None
    values: dict[str, list[Any]] = {name: [] for name in others}
    start = 0
    for batch in (part for table in tables for part in table.iter_batches(BLOCK_ROWS, columns=[*vectors, *others])):
        batch.validate(full=True)  # a damaged file can hold offsets that point outside the data
        if len(vectors) == 1:
            block = matrix_of(pa, batch.column(vectors[0]), f"{where}, column {vectors[0]!r}", start)
        else:
            block = _stacked(batch, vectors, where, start)
        if matrix is None:
            matrix = (room or _room)((n_rows, block.shape[1]), block.dtype)
        if block.shape[1] != matrix.shape[1]:
            raise BankError(
                f"{where}: vectors of column {vectors[0]!r} have lengths {matrix.shape[1]} and {block.shape[1]}; "
                "all must be equally long"
            )
        if start + len(block) > n_rows:
            break
        matrix[start : start + len(block)] = block
        for name in others:
            values[name].append(batch.column(name))
        start += len(block)
    if start != n_rows:
        raise BankError(f"{where} says that it has {n_rows} rows but has another number; it is damaged: write it again")
    if matrix is None:
        raise BankError(f"{where} has no rows")
    return matrix, {name: _joined(pa, parts) for name, parts in values.items()}


def _joined(pa: Any, parts: Sequence[Any]) -> Any:
    """Put parts of a column one after another; parts of several files may differ in how they hold text."""
    if len({part.type for part in parts}) == 1:
        return pa.chunked_array(parts).unify_dictionaries()
    plain = [part.dictionary_decode() if pa.types.is_dictionary(part.type) else part for part in parts]
    return pa.chunked_array([part.cast(plain[0].type) for part in plain])


def plain_values(pa: Any, column: Any) -> list[Any]:
    """Return a column as Python values, with one object for all rows of equal text."""
    if not pa.types.is_dictionary(column.type):
        return column.to_pylist()  # type: ignore[no-any-return]
    return [
        None if k is None else words[k]
        for part in column.chunks
        for words in [part.dictionary.to_pylist()]
        for k in part.indices.to_pylist()
    ]


def _stacked(batch: Any, columns: Sequence[str], where: str, start: int) -> Float[np.ndarray, "row dim"]:
    """Turn columns of numbers into a matrix; `start` is the number of the first row, for messages."""
    empty = next((name for name in columns if batch.column(name).null_count), None)
    if empty is not None:
        row = start + _first(batch.column(empty).is_null())
        raise BankError(f"{where}: row {row} has no number in column {empty!r}; fill in or drop such rows")
    with np.errstate(over="ignore"):  # values that are not finite are refused where they are used
        parts = [batch.column(name).to_numpy(zero_copy_only=False).astype(np.float32) for name in columns]
    return np.stack(parts, axis=1)


def _first(flags: Any) -> int:
    return int(np.flatnonzero(np.asarray(flags))[0])


def matrix_of(pa: Any, column: Any, where: str, start: int) -> Float[np.ndarray, "row dim"]:
    """Turn a column of lists of equal length into a matrix, float16 if the numbers are, else float32.

    `start` is the number of the first row, for messages.
    """
    if not _is_list(pa, column.type):
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
        raise BankError(f"{where}: vectors must hold numbers and nothing missing, got {values.type}")
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


def _hugging_face_names(schema: Any, column: str) -> list[Any] | None:
    """Names of a `ClassLabel` column, as Hugging Face `datasets` keeps them in the schema's metadata."""
    about: Any = _metadata(schema, b"huggingface")
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
