"""Class means that move with the items of a batch, as after more examples.

    μ'_k = (s_k μ_k + 2 Σ_n q_nk x_n) / (s_k + 2 Σ_n q_nk),    x without the offset d of the batch.

The head's slope turns a move into nats, `β_k = <W_k - W̄, μ_k - μ̄> / |μ_k - μ̄|²`. A score gains

    ½ β_k { (<x, μ'> - |μ'|²/2) - (<x, μ> - |μ|²/2) - V/2 (1/s - e) },    e = (s + 4 Σ q²) / (s + 2 Σ q)²,

with every item left out of every mean that it moved. The last term is what the mean of more examples gains for any
item: V/s of its squared length is noise. Only sums over the items are needed, so a part of a batch can move the means
for all of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from handful.model.arrays import Floats
from handful.model.settings import DEFAULT, Settings


def class_slopes(weights: Floats, means: Floats) -> Floats:
    """β of each class, from the head's weights and the class means, [class, dim] each."""
    tilted = weights - weights.mean(0)
    centred = means - means.mean(0)
    return np.asarray((tilted * centred).sum(1) / np.maximum((centred**2).sum(1), np.finfo(np.float32).tiny))


class MovedMeans(NamedTuple):
    """Some classes, and sums over the items assigned to them."""

    means: Floats  # [batch, class, dim]
    shots: Floats  # [batch, class]
    slopes: Floats  # [batch, class], β
    spread: Floats  # [batch], V
    sums: Floats  # [batch, class, dim], 2 Σ q x
    mass: Floats  # [batch, class], 2 Σ q
    squares: Floats  # [batch, class], 4 Σ q²
    settings: Settings

    @classmethod
    def of(
        cls,
        points: Floats,
        responsibilities: Floats,
        slopes: Floats,
        means: Floats,
        shots: Floats,
        spread: Floats,
        settings: Settings = DEFAULT,
    ) -> MovedMeans:
        """Assign items [batch, item, dim] to classes, with responsibilities [batch, item, class]."""
        pull = settings.pull * responsibilities
        sums = pull.swapaxes(-1, -2) @ points
        return cls(means, shots, slopes, spread, sums, pull.sum(-2), (pull**2).sum(-2), settings)

    def gains(self, points: Floats, responsibilities: Floats | None = None) -> Floats:
        """Return what the scores of items gain, [batch, item, class].

        `responsibilities` are those of these items, so that each is left out; None if they did not move the means.

        Examples
        --------
        >>> means, points = np.eye(2)[None], np.array([[[0.6, 0.4], [0.7, 0.3], [0.1, 1.0]]])
        >>> all_first, ones = np.array([[[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]]), np.ones((1, 2))
        >>> moved = MovedMeans.of(points, all_first, 5 * ones, means, ones, spread=np.array([0.1]))
        >>> bool(np.allclose(moved.gains(points, all_first)[..., 1], 0))  # the second class has no items, and stays
        True
        """
        near = points @ self.means.swapaxes(-1, -2)
        squares = (self.means**2).sum(-1)
        sums = self.shots[..., None] * self.means + self.sums
        dot = points @ sums.swapaxes(-1, -2)
        length = (sums**2).sum(-1)[..., None, :]
        mass = (self.shots + self.mass)[..., None, :]
        noise = (self.shots + self.squares)[..., None, :]
        if responsibilities is not None:
            pull = self.settings.pull * responsibilities
            own = np.einsum("...d,...d->...", points, points)[..., None]
            length = length - 2 * pull * dot + pull**2 * own
            dot = dot - pull * own
            mass = mass - pull
            noise = noise - pull**2
        gained = dot / mass - length / mass**2 / 2 - (near - (squares / 2)[..., None, :])
        half = self.spread[:, None, None].astype(gained.dtype) / 2
        gained -= half * ((1 / self.shots)[..., None, :] - noise / mass**2)
        return np.asarray(self.settings.believed * self.slopes[..., None, :] * gained)
