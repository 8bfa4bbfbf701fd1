"""Made-up worlds: Gaussian classes about random places, which most tests label.

A world draws from one generator in the order of the calls, so a test that depends on its draws keeps them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class Clouds:
    """Gaussian classes about random places: `centres[k] + noise * N(0, 1)` in every dimension.

    Attributes
    ----------
    rng : numpy.random.Generator
        What draws; `seed` may be a generator that a test goes on with.
    centres : array [class, dim]
        The places, drawn first: `apart * N(0, 1)`.
    """

    def __init__(self, n_classes: int, dim: int, seed: int | np.random.Generator = 0, *, apart: float = 1.0) -> None:
        self.rng = np.random.default_rng(seed)
        self.centres = apart * self.rng.normal(size=(n_classes, dim))

    def around(self, classes: Sequence[int] | np.ndarray, noise: float = 1.0) -> np.ndarray:
        """Draw one item of each of these classes."""
        places = self.centres[classes]
        return places + noise * self.rng.normal(size=places.shape)

    def examples(self, shots: int, noise: float = 1.0, n_classes: int | None = None) -> np.ndarray:
        """Draw `shots` items of each class, or of the first `n_classes`, class by class."""
        return self.around(np.arange(len(self.centres) if n_classes is None else n_classes).repeat(shots), noise)


def names_of(n_classes: int, called: str = "class {:02}") -> np.ndarray:
    """Names of classes, as an array that codes can be looked up in."""
    return np.array([called.format(k) for k in range(n_classes)])
