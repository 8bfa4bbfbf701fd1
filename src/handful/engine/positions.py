"""Class means move with the items given to them: `μ'_k = (s_k μ_k + a Σ_n q_nk z_n) / (s_k + a Σ_n q_nk)`.

The head's slope turns a move into nats, `κ_k = <W_k - W̄, μ_k - μ̄> / |μ_k - μ̄|²`. A score gains

    f κ_k { (<z, μ'> - |μ'|²/2) - (<z, μ> - |μ|²/2) - V/2 (1/s - e) },    e = (s + a² Σ q²) / (s + a Σ q)²,

with every item left out of its own class. The last term is what the mean of more examples gains for any item: V/s of
its squared length is noise. Only sums over the items are needed, so a part of a batch can move the means for all of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from handful.shapes import PerBatch

Floats = npt.NDArray[np.floating]

# What an item given to a class counts, in examples, and the share of the gain in nats that is believed.
PULL, BELIEVED = 2.0, 0.5


def slopes_of(weights: Floats, means: Floats) -> Floats:
    """κ of each class, from the head's weights and the class means, [class, dim] each."""
    tilted, centred = weights - weights.mean(0), means - means.mean(0)
    return np.asarray((tilted * centred).sum(1) / np.maximum((centred**2).sum(1), np.finfo(np.float32).tiny))


class Moved(NamedTuple):
    """Some classes, and the items that were given to them; leading axes are the batches of a stack."""

    means: Floats  # [..., class, dim]
    shots: Floats  # [..., class]
    slopes: Floats  # [..., class], κ
    spread: PerBatch  # [...], V
    sums: Floats  # [..., class, dim], a Σ q z
    mass: Floats  # [..., class], a Σ q
    squares: Floats  # [..., class], a² Σ q²

    @classmethod
    def of(cls, points: Floats, given: Floats, slopes: Floats, means: Floats, shots: Floats, spread: PerBatch) -> Moved:
        """Give items [..., item, dim] to classes, as far as `given` [..., item, class] says."""
        sums = PULL * given.swapaxes(-1, -2) @ points
        return cls(means, shots, slopes, spread, sums, PULL * given.sum(-2), PULL**2 * (given**2).sum(-2))

    def gains(self, points: Floats, given: Floats | None = None) -> Floats:
        """Return what the scores of items gain, [..., item, class].

        `given` says how far these items themselves were given to the classes; None if they were not among them.

        Examples
        --------
        >>> means, points = np.eye(2), np.array([[0.6, 0.4], [0.7, 0.3], [0.1, 1.0]])
        >>> given = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
        >>> moved = Moved.of(points, given, np.full(2, 5.0), means, np.ones(2), spread=0.1)
        >>> bool(np.allclose(moved.gains(points, given)[:, 1], 0))  # nothing is given to the second class: it stays
        True
        """
        near, squares = points @ self.means.swapaxes(-1, -2), (self.means**2).sum(-1)
        sums = self.shots[..., None] * self.means + self.sums
        dot, length = points @ sums.swapaxes(-1, -2), (sums**2).sum(-1)[..., None, :]
        mass, noise = (self.shots + self.mass)[..., None, :], (self.shots + self.squares)[..., None, :]
        if given is not None:
            pull, own = PULL * given, (points**2).sum(-1)[..., None]
            length = length - 2 * pull * dot + pull**2 * own
            dot, mass, noise = dot - pull * own, mass - pull, noise - pull**2
        gained = dot / mass - length / mass**2 / 2 - (near - (squares / 2)[..., None, :])
        half = np.asarray(self.spread)[..., None, None].astype(gained.dtype) / 2
        gained -= half * ((1 / self.shots)[..., None, :] - noise / mass**2)
        return np.asarray(BELIEVED * self.slopes[..., None, :] * gained)
