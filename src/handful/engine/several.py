"""Items that hold several classes or none: `p_nk = P_k σ(L_nk + logit π_k)`, a chance for each class by itself.

**Presence.** P_k is the chance of `handful.engine.presence`, as if every item had one class: an item of two classes
gives weight to both. But a class that always occurs together with others may lose all its items to these. So a class is
also present if it holds `r ≥ 1/2` of what a typical class found holds, items labelled alone: P_k is at least
`r⁴ / (r⁴ + 1/16)`.

**Items.** With c nats per standard deviation of the scores of absent classes,

    L_nk = c s_nk - ln mean_{m, j absent} exp(c s_mj)

is the log-likelihood ratio that item n holds class k: under the null hypothesis the mean of a likelihood ratio is one,
and scores of absent classes are what the null hypothesis looks like. So it needs neither the level of the sigmoids nor
the share of positives that they were trained with. π_k is the share of items that hold the class, by expectation
maximisation, `π_k = Σ_n σ(...) / (m + 1)`. A class that is not listed is not held.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit, logsumexp, softmax

from handful.engine.model import Context, JointAnswer
from handful.engine.scores import NATS, Bools, Floats, label_scores, possible

# Examples that a class counts as having: each is scored against the rest, so its errors are shared less than those of
# classes of which one is right. With one example, classes that share their items are not found.
SHOTS = 5.0
# A class is absent below this chance of being present.
ABSENT = 0.5
# Of the items of a typical class found, the share at which a class is as likely present as not, how steep that is, and
# the fewest items.
HALF_TYPICAL, STEEP, FEWEST = 0.5, 4.0, 1.5
# The first share of items that hold a class, the least of it and of its opposite, and updates.
FIRST_SHARE, LEAST_SHARE, STEPS = 0.1, 1e-6, 30


def holding(nats: Floats, best: Floats, context: Context | None = None) -> JointAnswer:
    """Return the chances that items hold each class, and that they hold none, as their chance of being unknown.

    Parameters
    ----------
    nats
        `S_nk` of all classes, listed or not, relative to the best of each item.
    best
        These best ones, in the same unit.
    context
        What is known about the batch. Classes that an item does not list are not `allowed`.
    """
    context = context or Context()
    found, (scores, _) = label_scores(nats, context, SHOTS), possible(nats, context)
    presence = together(np.asarray(found.presence, np.float64), softmax(scores, axis=1).sum(0))
    chances = held(nats.astype(np.float64) + best[:, None], presence, np.isfinite(scores))
    return replace(
        found,
        probabilities=chances,
        expected_counts=chances.sum(0),
        presence=presence,
        unknown=np.exp(np.log1p(-chances.clip(max=1 - 1e-12)).sum(1)),
    )


def together(presence: npt.NDArray[np.float64], alone: Floats) -> npt.NDArray[np.float64]:
    """Raise the chance of classes that hold about as much as those found, items labelled alone."""
    if not (presence >= ABSENT).any():
        return presence
    share = np.where(alone < FEWEST, 0, alone / np.median(alone[presence >= ABSENT])) ** STEEP
    return np.asarray(np.maximum(presence, share / (share + HALF_TYPICAL**STEEP)))


def held(scores: Floats, presence: Floats, allowed: Bools) -> Floats:
    """`p_nk` from scores of any scale; zero where a class is not allowed."""
    usable = allowed.any(0)
    absent = usable & (presence < ABSENT)
    # Where all are present, there is nothing better than all of them.
    null = scores[:, absent if absent.any() else usable]
    deviation = float(np.sqrt(((null - null.mean(1, keepdims=True)) ** 2).mean()))
    scale = NATS / deviation if deviation > 0 else 1.0
    ratios = scores * scale - logsumexp(null * scale) + np.log(null.size)
    shares = np.full(len(presence), FIRST_SHARE)
    for _ in range(STEPS):
        chances = expit(ratios + logit(shares)) * allowed
        shares = (chances.sum(0) / (len(scores) + 1)).clip(LEAST_SHARE, 1 - LEAST_SHARE)
    return np.asarray(chances * presence)
