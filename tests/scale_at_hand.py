"""Tables of groups, and what memory says about them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from handful.estimators import BatchClassifier
from tests.worlds import Clouds

N_CLASSES, DIM = 30, 16
# What single precision and the order of rows may change. [chance]
SAME = 1e-5


@dataclass(frozen=True, eq=False)
class World:
    """A saved model, and items with their groups."""

    classifier: BatchClassifier
    path: Path
    vectors: np.ndarray
    sites: np.ndarray
    truth: np.ndarray

    def table(self, rows: Any = slice(None), **columns: Any) -> pa.Table:
        """Rows as a table: `id`, `site`, `vector` and other columns."""
        ids = np.arange(len(self.vectors))[rows]
        own = {"id": ids, "site": self.sites[rows], "vector": lists(self.vectors[rows])}
        return pa.table(own | columns)


def world(folder: Path, sizes: Any = (1, 1, 2, 3, 7, 20, 20, 61, 150), seed: int = 0, strangers: int = 4) -> World:
    """Groups of these sizes in random order, the rows of all mixed; some items are of classes that nobody has."""
    rng = np.random.default_rng(seed)
    clouds = Clouds(N_CLASSES + strangers, DIM, rng)
    X = clouds.examples(5, 0.8, N_CLASSES).astype(np.float32)
    classifier = BatchClassifier().fit(X, np.array([f"class {k:02}" for k in range(N_CLASSES)]).repeat(5))
    classifier.save(folder / "birds.model")
    group_of = rng.permutation(np.repeat(rng.permutation(len(sizes)), sizes))
    present = rng.integers(0, N_CLASSES + strangers, (len(sizes), 5))
    truth = present[group_of, rng.integers(0, 5, len(group_of))]
    vectors = clouds.around(truth, 0.8).astype(np.float32)
    sites = np.array([f"site {group}" for group in group_of], dtype=object)
    return World(classifier, folder / "birds.model", vectors, sites, truth)


def lists(vectors: np.ndarray, kind: Any = None, fixed: bool = True) -> Any:
    """Vectors as lists of numbers of some kind."""
    flat = pa.array(np.ascontiguousarray(vectors).reshape(-1)).cast(kind or pa.float32())
    if fixed:
        return pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
    return pa.ListArray.from_arrays(np.arange(len(vectors) + 1, dtype=np.int32) * vectors.shape[1], flat)


def ordered(table: Any, *by: str) -> Any:
    """The rows in the order of some columns."""
    return table.sort_by([(name, "ascending") for name in by]).combine_chunks()


def assert_same(one: Any, other: Any, *by: str, atol: float = SAME) -> None:
    """Tables with equal rows, whatever their order; numbers to within rounding."""
    assert one.column_names == other.column_names
    one, other = ordered(one, *by), ordered(other, *by)
    assert len(one) == len(other)
    for name in one.column_names:
        a, b = one[name], other[name]
        if pa.types.is_floating(a.type):
            assert a.is_null().equals(b.is_null()), name
            np.testing.assert_allclose(
                a.drop_null().to_numpy(), b.drop_null().to_numpy(), atol=atol, rtol=1e-4, err_msg=name
            )
        else:
            assert a.to_pylist() == b.to_pylist(), name
