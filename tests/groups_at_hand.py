"""A fitted classifier, and a table of many small groups."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np

from handful.estimators import BatchClassifier
from tests.worlds import Clouds

N_CLASSES, DIM = 30, 16
NAMES = np.array([f"class {k:02}" for k in range(N_CLASSES)])


def world_of_groups() -> tuple[BatchClassifier, Any, np.ndarray, np.ndarray]:
    """A classifier; a table of 60 groups of 1 to 40 rows in random order; its vectors, and the group of each row."""
    import pyarrow as pa

    rng = np.random.default_rng(0)
    clouds = Clouds(N_CLASSES, DIM, rng)
    X = clouds.examples(5, 0.8).astype(np.float32)
    classifier = BatchClassifier().fit(X, NAMES.repeat(5))
    groups = rng.permutation(np.repeat(np.arange(60), rng.integers(1, 40, 60)))
    present = rng.integers(0, N_CLASSES, (60, 3))
    truth = present[groups, rng.integers(0, 3, len(groups))]
    points = clouds.around(truth, 0.8).astype(np.float32)
    columns = {
        "row": np.arange(len(groups)),
        "site": [f"site {group // 6}" for group in groups],
        "day": groups % 6,
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(points.reshape(-1)), DIM),
    }
    return classifier, pa.table(columns), points, groups


def lines_for_ray_data(folder: Path) -> str:
    """The lines of the documentation for users of Ray Data, from `folder/in` to `folder/out` and with five buckets."""
    page = Path(__file__).resolve().parents[1] / "docs" / "do" / "many_and_large.md"
    found = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    (lines,) = [code for code in found if "ray.data" in code]
    for old, new in (("s3://bucket/rows", folder / "in"), ("s3://bucket/labelled", folder / "out"), ("% 256", "% 5")):
        assert lines.count(old) == 1
        lines = lines.replace(old, str(new))
    return lines


def table_of_sites(folder: Path) -> tuple[BatchClassifier, np.ndarray, Any]:
    """Write the table of groups, one name each, in four files to `folder/in`; return classifier, sites and answer."""
    import pyarrow as pa
    from pyarrow import parquet

    classifier, table, points, groups = world_of_groups()
    sites = np.array([f"site {group}" for group in groups])
    table = table.set_column(1, "site", pa.array(sites)).drop_columns(["day"])
    (folder / "in").mkdir()
    ends = np.linspace(0, len(table), 5).astype(int).tolist()
    for part, (start, end) in enumerate(itertools.pairwise(ends)):
        parquet.write_table(table.slice(start, end - start), folder / "in" / f"{part}.parquet")
    return classifier, sites, classifier.infer(points, groups=sites)
