"""Class means move with the items given to them: `μ'_k = (s_k μ_k + a Σ_n q_nk z_n) / (s_k + a Σ_n q_nk)`.

The head's slope turns a move into nats, `κ_k = <W_k - W̄, μ_k - μ̄> / |μ_k - μ̄|²`. A score gains

    f κ_k { (<z, μ'> - |μ'|²/2) - (<z, μ> - |μ|²/2) - V/2 (1/s - e) },    e = (s + a² Σ q²) / (s + a Σ q)²,

with every item left out of its own class. The last term is what the mean of more examples gains for any item: V/s of
its squared length is noise.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# What an item given to a class counts, in examples, and the share of the gain in nats that is believed.
PULL, BELIEVED = 2.0, 0.5


def gains(points: Floats, given: Floats, weights: Floats, means: Floats, shots: Floats, spread: float | None) -> Floats:
    """Return what the scores [item, class] gain when the class means move.

    Parameters
    ----------
    points, given
        Items [item, dim] without the offset of the batch, and how far each is given to each class, [item, class].
    weights, means, shots
        Of the head.
    spread
        V; half the mean squared distance of an item from its nearest mean if it is not known.

    Examples
    --------
    >>> means, points = np.eye(2), np.array([[0.6, 0.4], [0.7, 0.3], [0.1, 1.0]])
    >>> given = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    >>> found = gains(points, given, 5 * means, means, np.ones(2), spread=0.1)
    >>> bool(np.allclose(found[:, 1], 0))  # nothing is given to the second class: its mean stays
    True
    """
    tilted, centred = weights - weights.mean(0), means - means.mean(0)
    slopes = (tilted * centred).sum(1) / np.maximum((centred**2).sum(1), np.finfo(np.float64).tiny)
    lengths, near, squares = (points**2).sum(1)[:, None], points @ means.T, (means**2).sum(1)
    if spread is None:
        spread = float((lengths - 2 * near + squares).min(1).mean() / 2)
    among = points @ (points.T @ given)
    mass = shots + PULL * (given.sum(0) - given)
    dot = (shots * near + PULL * (among - given * lengths)) / mass
    square = (
        shots**2 * squares
        + 2 * shots * PULL * (given * near).sum(0)
        + PULL**2 * (given * among).sum(0)
        - 2 * PULL * given * (shots * near + PULL * among)
        + (PULL * given) ** 2 * lengths
    ) / mass**2
    noise = (shots + PULL**2 * ((given**2).sum(0) - given**2)) / mass**2
    gained = (dot - square / 2) - (near - squares / 2) - spread / 2 * (1 / shots - noise)
    return np.asarray(BELIEVED * slopes * gained)
