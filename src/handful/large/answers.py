"""Answers on disk or at a URL: one Parquet file per shard and one row per query, in the order of the queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from typing import Any

import numpy as np

from handful.machine.extras import import_extra
from handful.machine.folders import Folder

COLUMNS = {
    "row": "int64",
    "label": "int32",
    "probability": "float32",
    "runner_up": "int32",
    "runner_up_probability": "float32",
    "unknown": "float32",
}
FOLDER = "answers"


def write_answers(folder: Folder, shard: int, columns: Mapping[str, np.ndarray]) -> None:
    """Write the answers of a shard; the file appears complete or not at all."""
    pa, parquet = import_extra("pyarrow", "parquet"), import_extra("pyarrow.parquet", "parquet")
    table = pa.table({name: pa.array(columns[name], kind) for name, kind in COLUMNS.items()})
    with folder.written(f"{FOLDER}/part-{shard:06d}.parquet") as file:
        parquet.write_table(table, file)


def answered(folder: Folder) -> list[str]:
    """Return the names of the files with answers, in the order of the shards."""
    return [f"{FOLDER}/{name}" for name in folder.names(FOLDER) if fnmatch(name, "part-*.parquet")]


def read_answers(folder: Folder) -> Iterator[dict[str, Any]]:
    """Yield the answers shard by shard, as arrays by column."""
    parquet = import_extra("pyarrow.parquet", "parquet")
    for name in answered(folder):
        with folder.opened(name) as file:
            table = parquet.read_table(file)
        yield {name: table[name].to_numpy() for name in COLUMNS}
