"""Which classes are present, and labels given that: spike and slab on the scores of a head.

**Model.** h of K classes are present, `P(z) = P(h) / C(K, h)` with `P(h) ∝ 1/h`, with equal shares. With
`E_nk = exp(S_nk)`, an item has the likelihood

    L_n(z) = (1-ε) Σ_k z_k E_nk / h + ε mean_k E_nk.

The head is wrong about a class once, for all its items, so the evidence is `Π_n L_n^τ` with the design effect
`1/τ = 1 + (M/h - 1) ρ/(1+ρ)`, `ρ = c/s`: errors of the items of one class are correlated by c after one example.
Labels are `q_nk ∝ E_nk [(1-ε) z_k/h + ε/K]`, averaged over z.

**Inference.** Relaxed Gibbs sampling: in each step about half of the classes get the weight
`z_k = σ((log-odds given the others + noise) / T)`, noise being logistic. A few chains run side by side as one array;
the last steps are averaged. On small problems this agrees with the sum over all sets of classes (a test).
The noise of a class is a smooth function of its own position (`class_noise`), so answers are deterministic, do not
depend on the order of the classes, and change little when the data do.

**Natural batches.** Equal shares do not describe a batch whose sizes are very uneven, and rare classes are then missed.
The counts of the classes present are compared under a Dirichlet with α = 1 and with α = 10; the answer for a natural
batch is that of each item alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, gammaln, ndtr

Floats = npt.NDArray[np.float64]

# ε, the share of strays: items of classes that are otherwise absent.
STRAYS = 0.02
# c: correlation of the errors of two items of a class that has one example, as odds.
SHARED_ERROR = 0.2
# α of natural and of even batches, and the log-odds of a natural batch before anything is seen.
NATURAL, EVEN, NATURAL_LOG_ODDS = 1.0, 10.0, -3.0
# Chains, their steps, and those that are not counted; temperature of the relaxation.
CHAINS, STEPS, FIRST_COUNTED, SOFTNESS = 4, 20, 8, 0.5
# A chain begins with the classes that hold this many items when each is labelled alone.
BEGIN = 1.0
# A class that holds less than this when each item is labelled alone is absent.
LEAST_ALONE = 2e-3
# Waves of the noise of a class, and their frequency for positions of unit spread.
WAVES, FREQUENCY = 8, 30.0
# Items whose likelihood ratios are multiplied before a logarithm is taken; each is at most e to the power LARGEST.
MULTIPLIED, LARGEST = 12, 25.0


class Present(NamedTuple):
    """What is known about one batch."""

    probabilities: Floats  # [item, class]
    presence: Floats  # [class], the chance that the class has an item in the batch
    given: Floats  # [item, class], the labels if the batch is even
    natural: float  # the chance that it is not


def class_noise(means: Floats) -> Floats:
    """Return logistic noise [class, number]: sums of cosines of the class's own position.

    Examples
    --------
    >>> means = np.random.default_rng(0).normal(size=(50, 8))
    >>> found = class_noise(means)
    >>> bool(np.allclose(found, class_noise(3 * means + 1), atol=1e-6))  # no origin, no scale
    True
    """
    centred = means - means.mean(0, dtype=np.float64)
    centred /= max(float(np.sqrt((centred**2).sum(1).mean())), np.finfo(np.float64).tiny)
    rng, n = np.random.default_rng(0), 2 * CHAINS * STEPS
    total = np.zeros((len(means), n))
    for _ in range(WAVES):
        directions = FREQUENCY * rng.normal(size=(means.shape[1], n))
        total += np.cos(centred @ directions + 2 * np.pi * rng.random(n))
    chance = ndtr(total * np.sqrt(2 / WAVES)).clip(1e-6, 1 - 1e-6)
    return np.asarray(np.log(chance / (1 - chance)))


def present(scores: Floats, shots: Floats, noise: Floats) -> Present:
    """Say which classes are present in one batch, and label its items.

    Parameters
    ----------
    scores
        [item, class], nats; -inf for a class that is ruled out.
    shots
        Number of examples of each class.
    noise
        `class_noise` of the class means.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> means = rng.normal(size=(20, 8))
    >>> points = means[np.repeat([3, 7], 10)] + 0.7 * rng.normal(size=(20, 8))
    >>> scores = points @ means.T - (means**2).sum(1) / 2
    >>> found = present(scores, np.full(20, 5.0), class_noise(means))
    >>> np.flatnonzero(found.presence > 0.5).tolist()
    [3, 7]
    """
    scores = scores.astype(np.float64)
    likelihood = np.exp(scores - scores.max(1, keepdims=True))
    alone = likelihood / likelihood.sum(1, keepdims=True)
    held = alone.sum(0)
    n_classes = int(np.isfinite(scores).any(0).sum())
    columns = np.flatnonzero(held >= min(LEAST_ALONE, float(held.max())))
    any_class = likelihood.sum(1) / n_classes
    near = (1 - STRAYS) * likelihood[:, columns] + STRAYS * any_class[:, None]
    chains = _chains(near, held[columns], shots[columns], noise[columns], n_classes)

    stray = likelihood * (STRAYS / n_classes * chains.inverse)[:, None]
    given = stray.copy()
    given[:, columns] += (1 - STRAYS) * likelihood[:, columns] * chains.weights
    total = given.sum(1, keepdims=True)
    given /= total
    here = np.zeros(len(held))
    here[columns] = chains.presence
    presence = _any(here, stray / total)
    natural = chains.natural
    return Present(
        (1 - natural) * given + natural * alone,
        (1 - natural) * presence + natural * _any(np.zeros(len(held)), alone),
        given,
        natural,
    )


class _Chains(NamedTuple):
    """Averages over chains and steps."""

    weights: Floats  # [item, column], z_k/h divided by the likelihood of the item
    inverse: Floats  # [item], one divided by that likelihood
    presence: Floats  # [column]
    natural: float


def _chains(near: Floats, held: Floats, shots: Floats, noise: Floats, n_classes: int) -> _Chains:
    n_items, n_columns = near.shape
    noise = noise.T.reshape(2, STEPS, CHAINS, n_columns)
    shared = SHARED_ERROR / shots / (1 + SHARED_ERROR / shots)
    here = np.repeat(expit(4 * np.log(np.maximum(held, 1e-300) / BEGIN))[None], CHAINS, 0)
    # The likeliest class is there from the beginning, so that there is one.
    here = np.maximum(here, (held >= held.max()) * 1.0)
    weights, inverse, chance, natural = np.zeros((n_items, n_columns)), np.zeros(n_items), np.zeros(n_columns), 0.0
    rows = near.T.copy()
    for step in range(STEPS):
        found = np.maximum(here.sum(1, keepdims=True), 1)
        total = here @ rows
        ratio = total[:, :, None] - here[:, None, :] * near
        np.maximum(ratio, np.exp(-LARGEST) * total[:, :, None], out=ratio)
        np.divide(near, ratio, out=ratio)
        evidence = _log_of_product(ratio)
        others = np.maximum(found - here, 1)
        temper = 1 / (1 + np.maximum(n_items / found - 1, 0) * (here @ shared)[:, None] / found)
        log_odds = np.log(others / np.maximum(n_classes - others, 0.5))
        log_odds = log_odds + temper * (evidence - n_items * np.log1p(1 / others))
        if step >= FIRST_COUNTED:
            each = 1 / total
            chance += (expit(log_odds) * -np.expm1(-evidence)).mean(0)
            weights += each.T @ here / CHAINS
            inverse += (found * each).mean(0)
            counts = each @ near  # of a class, if it were present for certain
            bayes = _log_dirichlet(here, counts, n_items, NATURAL) - _log_dirichlet(here, counts, n_items, EVEN)
            natural += float(expit(temper[:, 0] * bayes + NATURAL_LOG_ODDS).mean())
        # Not all at once: of two classes that share their items, both would leave, or both would come.
        turn = expit(noise[1, step] / SOFTNESS)
        here = here + turn * (expit((log_odds + noise[0, step]) / SOFTNESS) - here)
    counted = STEPS - FIRST_COUNTED
    return _Chains(weights / counted, inverse / counted, chance / counted, natural / counted)


def _log_of_product(ratio: Floats) -> Floats:
    """`Σ_n ln(1 + x_n)` over the second axis; products of a few need one logarithm."""
    ratio += 1
    total = np.zeros((ratio.shape[0], ratio.shape[2]))
    for start in range(0, ratio.shape[1], MULTIPLIED):
        total += np.log(np.multiply.reduce(ratio[:, start : start + MULTIPLIED], axis=1))
    return total


def _log_dirichlet(here: Floats, counts: Floats, n_items: int, alpha: float) -> Floats:
    """Log-probability of the counts of the classes that are here, whose shares are Dirichlet(α)."""
    found = here.sum(1)
    each = (here * (gammaln(counts + alpha) - gammaln(alpha))).sum(1)
    return np.asarray(each + gammaln(alpha * found) - gammaln(alpha * found + n_items))


def _any(presence: Floats, chances: Floats) -> Floats:
    """Chance that a class is present, or that one of the items has it by itself."""
    return np.asarray(1 - (1 - presence) * np.exp(np.log1p(-chances.clip(0, 1 - 1e-9)).sum(0)))
