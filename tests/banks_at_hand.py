"""Random banks for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from handful.banks import FeatureBank, Provenance


def random_bank(
    seed: int = 0,
    *,
    n_classes: int = 4,
    dim: int = 6,
    least: int = 3,
    most: int = 12,
    dtype: str = "float32",
    splits: Mapping[str, Sequence[int]] | None = None,
    provenance: Provenance | None = None,
) -> FeatureBank:
    """Gaussian classes of unequal sizes, their rows in random order."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(n_classes), rng.integers(least, most + 1, n_classes)))
    features = 3 * rng.standard_normal((n_classes, dim))[labels] + rng.standard_normal((len(labels), dim))
    names = [f"class {k}" for k in range(n_classes)]
    return FeatureBank.from_arrays(features.astype(dtype), labels, names, splits=splits, provenance=provenance)
