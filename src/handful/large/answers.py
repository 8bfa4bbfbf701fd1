"""Answers on disk: one Parquet file per shard and one row per query, in the order of the queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from handful.machine.extras import import_extra
from handful.machine.whole_file import written_whole

COLUMNS = {
    "row": "int64",
    "label": "int32",
    "probability": "float32",
    "runner_up": "int32",
    "runner_up_probability": "float32",
}
FOLDER = "answers"


def write_answers(folder: Path, shard: int, columns: Mapping[str, np.ndarray]) -> None:
    """Write the answers of a shard; the file appears complete or not at all."""
    pa, parquet = import_extra("pyarrow", "parquet"), import_extra("pyarrow.parquet", "parquet")
    place = folder / FOLDER
    place.mkdir(exist_ok=True)
    table = pa.table({name: pa.array(columns[name], kind) for name, kind in COLUMNS.items()})
    with written_whole(place / f"part-{shard:06d}.parquet") as file:
        parquet.write_table(table, file)


def read_answers(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the answers shard by shard, as arrays by column."""
    parquet = import_extra("pyarrow.parquet", "parquet")
    for file in sorted((folder / FOLDER).glob("part-*.parquet")):
        table = parquet.read_table(file)
        yield {name: table[name].to_numpy() for name in COLUMNS}
