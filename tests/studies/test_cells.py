"""The study of cells: files are written as described, and intervals are those of the mean."""

import numpy as np
import pytest

pytest.importorskip("anndata", reason="anndata is not installed")
import cells


def test_a_small_atlas_and_sample(tmp_path):
    rng = np.random.default_rng(0)
    centres = 5 * rng.normal(size=(5, 8))
    known, types = np.repeat(centres, 6, axis=0) + rng.normal(size=(30, 8)), np.repeat(np.arange(5), 6)
    sample = centres[[1] * 10 + [3] * 10] + rng.normal(size=(20, 8))
    obs = cells.labelled(
        tmp_path, known.astype(np.float32), [f"t{k}" for k in types], sample.astype(np.float32), ["d0", "d1"] * 10
    )
    assert obs["handful_label"].tolist() == ["t1"] * 10 + ["t3"] * 10


def test_the_interval_is_that_of_the_mean():
    right = np.repeat([0.0, 1.0], [40, 160])
    low, high = cells.interval(right, np.arange(200) % 4)
    assert low < 0.8 < high
    assert 0.04 < (high - low) / 2 < 0.07
