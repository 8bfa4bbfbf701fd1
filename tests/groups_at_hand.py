"""A fitted classifier, and a table of many small groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from handful.estimators import BatchClassifier

N_CLASSES, DIM = 30, 16
NAMES = np.array([f"class {k:02}" for k in range(N_CLASSES)])


def world_of_groups() -> tuple[BatchClassifier, Any, np.ndarray, np.ndarray]:
    """A classifier; a table of 60 groups of 1 to 40 rows in random order; its vectors, and the group of each row."""
    import pyarrow as pa

    rng = np.random.default_rng(0)
    centres = rng.normal(size=(N_CLASSES, DIM))
    X = (centres.repeat(5, axis=0) + 0.8 * rng.normal(size=(5 * N_CLASSES, DIM))).astype(np.float32)
    classifier = BatchClassifier().fit(X, NAMES.repeat(5))
    groups = rng.permutation(np.repeat(np.arange(60), rng.integers(1, 40, 60)))
    present = rng.integers(0, N_CLASSES, (60, 3))
    truth = present[groups, rng.integers(0, 3, len(groups))]
    points = (centres[truth] + 0.8 * rng.normal(size=(len(truth), DIM))).astype(np.float32)
    columns = {
        "row": np.arange(len(groups)),
        "site": [f"site {group // 6}" for group in groups],
        "day": groups % 6,
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(points.reshape(-1)), DIM),
    }
    return classifier, pa.table(columns), points, groups
