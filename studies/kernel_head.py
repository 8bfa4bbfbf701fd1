"""Classes of several modes: `S_k(z) + β/γ ln mean_i exp γ⟨z, x_i⟩` over the examples i of class k.

Is a linear head better with such a term? β, γ and T are those under which left-out examples are most likely; β = 0 is
the head as it is.

    python studies/kernel_head.py <folder of a bank> 5
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import handful.engine.head as engine
from handful.engine.left_out import dealt
from handful.engine.logistic import Floats, Ints

BETAS, GAMMAS, TEMPERATURES = (2, 5, 10, 15, 20, 30), (10.0, 30.0, np.inf), np.logspace(-0.6, 0.6, 13)


def modes(items: Floats, points: Floats, codes: Ints, gamma: float) -> Floats:
    """`1/γ ln mean_i exp γ⟨z, x_i⟩`, [item, class]; every class needs an example."""
    order, shots = np.argsort(codes, kind="stable"), np.bincount(codes)
    products, first = items @ points[order].T, np.cumsum(shots) - shots
    if np.isinf(gamma):
        return np.asarray(np.maximum.reduceat(products, first, axis=1))
    top = products.max(1, keepdims=True)
    sums = np.add.reduceat(np.exp(gamma * (products - top)), first, axis=1)
    return np.asarray(top + np.log(np.maximum(sums / shots, 1e-30)) / gamma)


def mean_log(scores: Floats, own: Ints) -> float:
    """Mean log-probability of the own class."""
    away = scores - scores.max(1, keepdims=True)
    return float((away[np.arange(len(own)), own] - np.log(np.exp(away).sum(1))).mean())


def chosen(points: Floats, codes: Ints, n_classes: int) -> tuple[float, float, float]:
    """β, γ and T by left-out examples of one fold."""
    out = dealt(points, codes, np.zeros(n_classes, dtype=bool)) == 0
    head = engine.fit_head(points[~out], codes[~out], n_classes, 1.0)
    linear, own = head.scores(points[out]), codes[out]
    tried = [(mean_log(linear / t, own), 0.0, np.inf, float(t)) for t in TEMPERATURES]
    for gamma in GAMMAS:
        near = modes(points[out], points[~out], codes[~out], gamma)
        tried += [(mean_log((linear + b * near) / t, own), float(b), gamma, t) for b in BETAS for t in TEMPERATURES]
    return max(tried)[1:]


def main() -> None:
    """Print accuracy and log-likelihood of up to 40 other rows of each class, with the term and without."""
    folder, shots = Path(sys.argv[1]), int(sys.argv[2])
    rows, labels = np.load(folder / "features.npy").astype(np.float32), np.load(folder / "labels.npy").astype(np.int64)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rng = np.random.default_rng(0)
    dealt_rows = [rng.permutation(np.flatnonzero(labels == k)) for k in range(labels.max() + 1)]
    seen, new = (np.concatenate([of[part] for of in dealt_rows]) for part in (slice(shots), slice(shots, shots + 40)))
    points, items = rows[seen] - rows[seen].mean(0), rows[new] - rows[seen].mean(0)
    beta, gamma, t = chosen(points, labels[seen], len(dealt_rows))
    linear = engine.fit_head(points, labels[seen], len(dealt_rows), 1.0).scores(items)
    both = (linear + beta * modes(items, points, labels[seen], gamma)) / t
    for name, scores in (("linear", linear), (f"β = {beta}, γ = {gamma}", both)):
        hits = (scores.argmax(1) == labels[new]).mean()
        print(f"{name}: accuracy {100 * hits:.1f}, log-likelihood {mean_log(scores, labels[new]):.3f}")


if __name__ == "__main__":
    main()
