"""Data sets of groups in Parquet, the answers that memory gives about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from handful.estimators import BatchClassifier
from handful.many.write import GROUPS, ITEMS
from tests.worlds import Clouds

N_CLASSES, DIM = 30, 16
# Numbers held in memory, so that a small data set has many portions.
SMALL = 100 * DIM


@dataclass(frozen=True, eq=False)
class World:
    """A fitted classifier, and items with their groups."""

    classifier: BatchClassifier
    vectors: np.ndarray
    groups: np.ndarray

    def table(self, rows: Any = slice(None), **columns: Any) -> pa.Table:
        """Rows as a table: `site`, `vector` and other columns."""
        own = {"site": self.groups[rows], "vector": lists(self.vectors[rows])}
        return pa.table(own | columns)


def world(n_groups: int = 60, seed: int = 0) -> World:
    """Groups of 1 to 150 items, the rows of each together, groups in random order."""
    rng = np.random.default_rng(seed)
    clouds = Clouds(N_CLASSES, DIM, rng)
    X = clouds.examples(5, 0.8).astype(np.float32)
    classifier = BatchClassifier().fit(X, np.array([f"class {k:02}" for k in range(N_CLASSES)]).repeat(5))
    sizes = np.concatenate([np.exp(rng.uniform(0, 4, n_groups - 3)).astype(int), [150, 1, 1]])
    names = rng.permutation(n_groups) * 10
    groups = np.repeat(names, sizes)
    present = {name: rng.choice(N_CLASSES, rng.integers(1, 6), replace=False) for name in names}
    truth = np.array([rng.choice(present[name]) for name in groups])
    return World(classifier, clouds.around(truth, 0.8).astype(np.float32), groups)


def lists(vectors: np.ndarray, kind: Any = None, fixed: bool = False) -> pa.Array:
    """Vectors as lists of numbers of some kind."""
    kind = pa.float32() if kind is None else kind
    flat = pa.array(np.ascontiguousarray(vectors).reshape(-1)).cast(kind)
    if fixed:
        return pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
    return pa.ListArray.from_arrays(np.arange(len(vectors) + 1) * vectors.shape[1], flat)


def written(tables: Sequence[pa.Table], folder: Path, **options: Any) -> Path:
    """Write tables as files of a data set, `part-0.parquet` and so on."""
    folder.mkdir(parents=True, exist_ok=True)
    for place, table in enumerate(tables):
        pq.write_table(table, folder / f"part-{place}.parquet", **options)
    return folder


def read(folder: Path) -> pa.Table:
    """Read all files of a folder in the order of their names."""
    return pa.concat_tables([pq.read_table(file) for file in sorted(folder.rglob("*.parquet"))])


def contents(out: Path) -> dict[str, bytes]:
    """Bytes of every file of the output by name."""
    files = [file for kind in (ITEMS, GROUPS) for file in (out / kind).rglob("*") if file.is_file()]
    return {str(file.relative_to(out)): file.read_bytes() for file in files}
