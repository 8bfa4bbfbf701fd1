"""Large problems in small: many classes, few of them present, class sizes with a heavy tail or all alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from handful.banks import FeatureBank


class Problem(NamedTuple):
    """A catalogue, queries, and what the queries are."""

    catalogue: FeatureBank
    queries: FeatureBank
    truth: np.ndarray


def large_problem(
    seed: int = 0,
    *,
    n_classes: int = 60,
    n_query: int = 400,
    n_present: int = 8,
    dim: int = 24,
    shots: int | Sequence[int] = 4,
    apart: float = 2.5,
    even: bool = False,
) -> Problem:
    """Gaussian classes whose spread falls off over the dimensions, their centres that many times as far `apart`.

    Class sizes go as 1/rank, which the model may label alone, or are `even`, which it labels jointly. `shots` is one
    number for all classes, or several that take turns.
    """
    rng = np.random.default_rng(seed)
    spectrum = 1 / np.sqrt(np.arange(1, dim + 1))
    centres = apart * spectrum * rng.standard_normal((n_classes, dim))
    sizes = np.ones(n_present) if even else 1 / np.arange(1, n_present + 1)
    truth = rng.permutation(n_classes)[:n_present][rng.choice(n_present, n_query, p=sizes / sizes.sum())]
    labels = np.repeat(np.arange(n_classes), np.resize(shots, n_classes))

    def around(classes: np.ndarray) -> np.ndarray:
        noise = spectrum * rng.standard_normal((len(classes), dim))
        return (centres[classes] + noise).astype(np.float32)

    names = [f"class {k}" for k in range(n_classes)]
    return Problem(
        FeatureBank.from_arrays(around(labels), labels, names),
        FeatureBank.from_arrays(around(truth), truth, names),
        truth,
    )
