"""The rows of a data set: Parquet files anywhere, in partitions of complete groups.

A partition is the unit of work. Which rows are one follows from the layout:

    folders   Hive folders that `group_by` names, such as `site=a/day=1`: a folder is a partition, with all its files
    files     no folders, and no group in two files: a file is a partition
    buckets   groups that lie in several files: rows are brought together first, by a hash of their group
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from handful.arguments import some_of
from handful.errors import BankError, TaskError
from handful.machine.extras import import_pyarrow
from handful.machine.folders import FileAt, Folder, LocalFolder, folder_at
from handful.machine.outputs import is_remote, local_path
from handful.machine.untrusted import refuse_irregular, unreadable
from handful.reading.parquet import NO_VALUE, PARQUET
from handful.scale.groups import key_column

ENDING = ".parquet"
ARROW = ".arrow"
FOLDERS = "folders"
FILES = "files"
BUCKETS = "buckets"
# Bytes that are read from a file at once, so that a large row group is not read whole. [bytes; work]
READ_BYTES = 2**20
# Rows of a table, where nothing else is asked for. [rows; work]
ROWS_AT_ONCE = 2**16


class Partition(NamedTuple):
    """Rows of complete groups: the files they are in, and values that these have by their folders."""

    name: str
    files: tuple[FileAt, ...]
    of_folder: Mapping[str, str | None]

    @property
    def out(self) -> str:
        """Name of its file in either table of the output."""
        return f"{self.name}/labelled{ENDING}" if self.of_folder else self.name


@dataclass(frozen=True)
class DataSet:
    """A data set: where it is, and its files."""

    folder: Folder
    files: tuple[FileAt, ...]

    @classmethod
    def at(cls, place: str | os.PathLike[str]) -> DataSet:
        """List the Parquet files of a folder, a URL, or take a single one."""
        if str(place).endswith(ENDING):
            if is_remote(place):
                above, _, name = str(place).rpartition("/")
            else:
                above, name = os.path.split(os.path.abspath(local_path(place)))
            folder = folder_at(above)
            one = folder.about(name)
            if one is not None and not (isinstance(folder, LocalFolder) and (folder.path / name).is_dir()):
                return cls(folder, (one,))
        folder = folder_at(place)
        if isinstance(folder, LocalFolder):
            folder = LocalFolder(Path(os.path.abspath(folder.path)))
            if not folder.path.is_dir():
                raise TaskError(f"{place} does not exist; give a Parquet file, or a folder or URL of them")
        files = folder.files(ENDING)
        if not files:
            raise TaskError(f"{place} has no files that end in {ENDING}; give the folder that contains them")
        if isinstance(folder, LocalFolder):
            for file in files:
                refuse_irregular(folder.path / file.name, TaskError)
        return cls(folder, tuple(files))

    def folders(self, group_by: Sequence[str]) -> list[Partition] | None:
        """Return the partitions that the folders are; None if no folder keeps groups apart.

        Folders that `group_by` does not name are refused: rows of several would become one batch, and nobody said so.
        """
        values = [_of_folder(file.name) for file in self.files]
        names = list(dict.fromkeys(name for one in values for name in one))
        apart = [name for name in names if name not in group_by and len({one.get(name) for one in values}) > 1]
        if apart:
            parts = (part for file in self.files for part in file.name.split("/"))
            example = next(part for part in parts if part.startswith(f"{apart[0]}="))
            raise TaskError(
                f"{self.folder.address} has Hive partitions by {some_of(apart)} (one is {example}), which group_by "
                f"does not name, so rows of several would become one batch; add {apart[0]!r} to group_by, or make it a "
                "column of the files if they belong together"
            )
        keys = [name for name in names if name in group_by]
        if not keys:
            return None
        found: dict[tuple[str | None, ...], list[FileAt]] = {}
        for file, one in zip(self.files, values, strict=True):
            if lost := [name for name in keys if name not in one]:
                raise TaskError(
                    f"{file.name} has no value of the Hive partition {lost[0]!r}, so its rows belong to no group; move "
                    f"it into a folder {lost[0]}=…, or leave it out"
                )
            found.setdefault(tuple(one[name] for name in keys), []).append(file)
        return [
            Partition(_folder_of(files[0].name, keys), tuple(files), dict(zip(keys, of, strict=True)))
            for of, files in found.items()
        ]

    def by_file(self) -> list[Partition]:
        """Return every file as a partition."""
        return [Partition(file.name, (file,), {}) for file in self.files]


def _of_folder(name: str) -> dict[str, str | None]:
    """Return what the folders of a file say, None for the value that stands for none."""
    parts = (part.split("=", 1) for part in name.split("/")[:-1] if part.find("=") > 0)
    return {key: None if value == NO_VALUE else unquote(value) for key, value in parts}


def _folder_of(name: str, keys: Sequence[str]) -> str:
    """Return the folders of a file that are keys, as they are written."""
    return "/".join(part for part in name.split("/")[:-1] if part.partition("=")[0] in keys)


class PartitionRows:
    """The rows of a partition, whose files are on a disk; columns have the usual types that all files share.

    Files are Parquet, or Arrow streams that a run made of it.
    """

    def __init__(self, files: Sequence[Path], of_folder: Mapping[str, str | None], where: Sequence[str]) -> None:
        """`where` are names of the files for messages."""
        pa, _ = import_pyarrow()
        self._files = list(zip(files, where, strict=True))
        self._of_folder = of_folder
        self.n_rows = 0
        schemas = []
        for file, name in self._files:
            with opened_file(file, name) as (schema, n_rows, _):
                schemas.append(_usual(schema))
                self.n_rows += n_rows
            if len(set(schema.names)) < len(schema.names):
                raise BankError(f"{name} has two columns of the same name; it has {some_of(schema.names)}")
        try:
            self.schema = pa.unify_schemas(schemas, promote_options="permissive")
        except pa.ArrowException as error:
            raise BankError(
                f"{where[0]} and the other files of its partition have columns of one name that do not go together "
                f"({error}); write them with the same columns"
            ) from error
        self.of_files = frozenset(self.schema.names)
        for name, value in of_folder.items():
            if value is None and name not in self.of_files:
                self.schema = self.schema.append(pa.field(name, pa.string()))

    def tables(self, columns: Sequence[str] | None = None, rows_at_once: int = ROWS_AT_ONCE) -> Iterator[Any]:
        """Yield the rows in tables of at most so many; of all columns, or of some."""
        pa, _ = import_pyarrow()
        wanted = self.schema.names if columns is None else [name for name in self.schema.names if name in columns]
        for file, name in self._files:
            with opened_file(file, name) as (schema, _, batches):
                for batch in batches([one for one in schema.names if one in wanted], rows_at_once):
                    table = pa.Table.from_batches([batch])
                    self._check_folder(table, name)
                    yield _aligned(table, pa.schema([self.schema.field(one) for one in wanted]))

    def _check_folder(self, table: Any, where: str) -> None:
        """Refuse rows that say something else than the folder they are in."""
        for name, value in self._of_folder.items():
            if name in table.column_names:
                found = {str(one) for one in key_column(table, name).unique().to_pylist()}
                if other := found - {str(value), str(value).lstrip("0") or "0"}:
                    raise BankError(
                        f"{where} is in the folder {name}={value}, but its own column {name!r} has {min(other)!r:.60}; "
                        "rename the folder, or drop the column"
                    )


@contextmanager
def opened_file(file: Path, where: str) -> Iterator[tuple[Any, int, Callable[[list[str], int], Iterator[Any]]]]:
    """Yield the schema of a file, the number of its rows, and what reads batches of some columns."""
    pa, parquet = import_pyarrow()

    def checked(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            batch.validate(full=True)  # a damaged file can hold offsets that point outside the data
            yield batch

    try:
        if file.suffix == ARROW:
            with pa.memory_map(str(file)) as mapped:
                n_rows = sum(map(len, pa.ipc.open_stream(mapped)))
            # Pages that are mapped would count as memory of the process, so rows are read.
            with pa.OSFile(str(file)) as stream, pa.ipc.open_stream(stream) as reader:
                yield (
                    reader.schema,
                    n_rows,
                    lambda names, rows: (
                        part
                        for batch in reader
                        for part in pa.Table.from_batches([batch]).select(names).to_batches(rows)
                    ),
                )
            return
        with parquet.ParquetFile(
            file, buffer_size=READ_BYTES, pre_buffer=False, page_checksum_verification=True
        ) as opened:
            yield (
                opened.schema_arrow,
                opened.metadata.num_rows,
                lambda names, rows: checked(opened.iter_batches(rows, columns=names, use_threads=False)),
            )
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(where, PARQUET, error) from error


def _usual(schema: Any) -> Any:
    """Return a schema with types that all files can share: no dictionaries and no views."""
    pa, _ = import_pyarrow()
    usual = {
        "string_view": pa.string(),
        "binary_view": pa.binary(),
        "large_string": pa.string(),
        "large_binary": pa.binary(),
    }

    def kind_of(kind: Any) -> Any:
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        return usual.get(str(kind), kind)

    return pa.schema([pa.field(field.name, kind_of(field.type)) for field in schema])


def _aligned(table: Any, schema: Any) -> Any:
    """Return a table with the columns of a schema; those that it lacks are null."""
    pa, _ = import_pyarrow()
    columns = []
    for field in schema:
        if field.name in table.column_names:
            column = table.column(field.name)
            column = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
            columns.append(column if column.type == field.type else column.cast(field.type))
        else:
            columns.append(pa.nulls(len(table), field.type))
    return pa.table(columns, schema=schema)


def sha256_of(file: Path) -> str:
    """SHA-256 of all bytes of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
