"""Answers on disk or at a URL: one Parquet file per shard and one row per query, in the order of the queries.

Pages have checksums, and rows their numbers, so a file that was cut, changed or exchanged is refused when it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from typing import Any

import numpy as np

from handful.errors import FileFormatError
from handful.machine.extras import import_pyarrow
from handful.machine.folders import Folder

COLUMNS = {
    "row": "int64",
    "label": "int32",
    "certainty": "float32",
    "runner_up": "int32",
    "runner_up_certainty": "float32",
    "unknown": "float32",
}
FOLDER = "answers"


def write_answers(folder: Folder, shard: int, columns: Mapping[str, np.ndarray]) -> None:
    """Write the answers of a shard; the file appears complete or not at all."""
    pa, parquet = import_pyarrow()
    table = pa.table({name: pa.array(columns[name], kind) for name, kind in COLUMNS.items()})
    with folder.written(answers_of(shard)) as file:
        parquet.write_table(table, file, write_page_checksum=True)


def answers_of(shard: int) -> str:
    """Return the name of the file with the answers of a shard."""
    return f"{FOLDER}/part-{shard:06d}.parquet"


def answered(folder: Folder) -> list[str]:
    """Return the names of the files with answers, in the order of the shards."""
    return [f"{FOLDER}/{name}" for name in folder.names(FOLDER) if fnmatch(name, "part-*.parquet")]


def read_answers(folder: Folder) -> Iterator[dict[str, Any]]:
    """Yield the answers shard by shard, as arrays by column."""
    pa, parquet = import_pyarrow()
    start = 0
    for name in answered(folder):
        try:
            with folder.opened(name) as file:
                table = parquet.read_table(file, page_checksum_verification=True)
            columns = {name: table[name].to_numpy() for name in COLUMNS}
            if not np.array_equal(columns["row"], np.arange(start, start + len(table))):
                raise ValueError(f"its rows are not those from {start} on")
        except (pa.ArrowException, OSError, KeyError, ValueError) as error:
            raise FileFormatError(
                f"{folder.address}/{name} was cut short, changed or exchanged for another file ({error}); call "
                "handful.large.solve again with the same arguments: the answers will be written again"
            ) from error
        start += len(table)
        yield columns
