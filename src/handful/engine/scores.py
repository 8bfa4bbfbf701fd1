"""Scores of another model: `S_nk = c d_nk / u`, with c = 2 nats per unit u, which the best scores tell themselves.

**Differences.** Only differences d between the classes of one item count: of logits and similarities themselves, of
`ln p` for probabilities, of `ln p/(1-p)` for sigmoids. A model that was trained on classes of unequal weight prefers
the frequent ones; where these weights are known, `ln w_k` is subtracted.

**Unit.** The best scores of an item lie like the largest of an exponential sample, but for the very best, which leads
because it is right. With u the scale of that sample, `E[d_(j) - d_(j+1)] = u/j` for j ≥ 2. A class that is always taken
for the right one widens the first of these gaps, and scores near zero the last ones; so the least of the three that a
list of five has tells u. Then the best five say the same as all, and a factor on all scores or a number added to those
of an item changes nothing.

**Not listed.** A class without a score, or with a probability that was rounded to zero, is not the label of the item.
If it may be, the K - m classes that an item does not list lie `ln(K/m)` nats below the last of the m that it does: at
c = 2 they weigh as much together as the lower part of an exponential sample does. An item that lists nothing may have
any class.

**Labels.** Those of `handful.engine.presence`. There are no examples, and another model is wrong about a class once,
for all its items: a class counts as if it had one example, so errors of two of its items are correlated by 0.17.
With h classes found among m items, joint labels have at most the weight 1 - h/m: a single item is labelled alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from handful.engine.model import NO_CLASS, Context, JointAnswer
from handful.engine.presence import Alone, absent_of, call_roll, chance_of_any, labels_of
from handful.engine.prior import lean
from handful.engine.sizes import deciding_rows
from handful.shapes import PerBatch

Floats = npt.NDArray[np.floating]
Bools = npt.NDArray[np.bool_]

# c, nats per unit, and examples of a class.
NATS, SHOTS = 2.0, 1.0
# Best scores of an item that tell the unit: as many as tools list.
BEST = 5
# ln of the factor on c: its standard deviation among models, and the most that labelled items can make of it.
LOG_FACTOR_SD, MOST_LOG_FACTOR = 0.25, 2.0


def _log_odds(p: Floats) -> Floats:
    # A sigmoid that was rounded to one is as far from one as its precision can tell.
    return np.asarray(np.log(p) - np.log(np.maximum(1 - p, np.finfo(p.dtype).eps / 2)))


# How values of each kind become numbers whose differences are nats, up to a factor.
KINDS: dict[str, Callable[[Floats], Floats]] = {
    "logits": np.array,
    "probabilities": np.log,
    "sigmoid": _log_odds,
    "similarities": np.array,
}


def differences(
    values: Floats, kind: str, model_weights: Floats | None = None, *, unlisted: bool = False
) -> tuple[Floats, Floats]:
    """Return scores [item, class] relative to the best of each item, NaN if not listed, and these best ones [item].

    A probability of zero is not listed. If unlisted classes count, it is the smallest one of all that are not zero.
    """
    with np.errstate(divide="ignore"):
        scores = KINDS[kind](values)
    lowest = scores[np.isfinite(scores)].min(initial=np.inf)
    lowest = lowest if np.isfinite(lowest) else 0.0
    scores[np.isneginf(scores)] = lowest if unlisted else np.nan
    if model_weights is not None:
        scores -= np.log(model_weights).astype(scores.dtype)
    best = np.where(np.isnan(scores), -np.inf, scores).max(1)
    best[np.isneginf(best)] = lowest
    return scores - best[:, None], best


def unit_of(scores: Floats, banned: Bools | None = None) -> float:
    """u: the least of the means of `j (d_(j) - d_(j+1))` over the items that list as many, j = 2, 3, 4.

    A j counts if half of the items, or of those that list three, list j + 1 classes. If nothing does, j is one; without
    any difference the unit is one.

    Parameters
    ----------
    scores
        [item, class], NaN if not listed.
    banned
        Classes that cannot occur, [class] or [item, class].

    Examples
    --------
    >>> sample = np.random.default_rng(0).exponential(3, size=(4000, 80))
    >>> round(unit_of(sample), 1)
    3.0
    """
    most = min(BEST, scores.shape[1])
    ranked = np.where(np.isnan(scores) if banned is None else np.isnan(scores) | banned, -np.inf, scores)
    ranked = np.sort(np.partition(ranked, -most, axis=1)[:, -most:].astype(np.float64), axis=1)[:, ::-1]
    found, n_listing = dict[int, float](), np.isfinite(ranked).sum(0)
    for j in range(1, most):
        some = ranked[np.isfinite(ranked[:, j])]
        if len(some) and 2 * len(some) >= n_listing[min(j, 2)] and (some[:, j - 1] > some[:, j]).any():
            found[j] = float(j * (some[:, j - 1] - some[:, j]).mean())
    return min((u for j, u in found.items() if j > 1), default=found.get(1, 1.0))


def in_nats(scores: Floats, unit: float, *, unlisted: bool = False) -> Floats:
    """`S_nk`; -inf for classes that are not listed, or `ln(K/m)` below the last of m if they count."""
    nats = scores * (NATS / unit)
    missing = np.isnan(nats)
    if not unlisted:
        nats[missing] = -np.inf
    elif missing.any():
        n_listed = (~missing).sum(1)
        last = np.where(missing, 0, nats).min(1) - np.log(missing.shape[1] / np.maximum(n_listed, 1))
        nats = np.where(missing, last[:, None].astype(nats.dtype), nats)
    return np.asarray(nats)


def factor_of_labelled(nats: Floats, codes: npt.NDArray[np.integer]) -> float:
    """Return the factor on c under which labelled items are most likely, with `ln f ~ N(0, 1/16)`.

    Items whose class is not listed for them say nothing about c.
    """
    own = nats[np.arange(len(codes)), codes]
    nats, codes = nats[np.isfinite(own)].astype(np.float64), codes[np.isfinite(own)]

    def loss(log_factor: float) -> float:
        chances = log_softmax(nats * math.exp(log_factor), axis=1)[np.arange(len(codes)), codes]
        return 0.5 * (log_factor / LOG_FACTOR_SD) ** 2 - float(chances.sum())

    return math.exp(minimize_scalar(loss, bounds=(-MOST_LOG_FACTOR, MOST_LOG_FACTOR), method="bounded").x)


def label_scores(nats: Floats, context: Context | None = None, n_examples: float = SHOTS) -> JointAnswer:
    """Label one batch jointly by `S_nk` [item, class]; -inf is no label of the item.

    Classes count as if they had `n_examples` each.

    Examples
    --------
    A model that is right about half of the items, and a batch of two of a hundred classes:

    >>> rng = np.random.default_rng(0)
    >>> truth, logits = np.repeat([3, 58], 20), rng.normal(size=(40, 100))
    >>> logits[np.arange(40), truth] += 2.5
    >>> found = label_scores(in_nats(logits, unit_of(logits)))
    >>> np.flatnonzero(found.presence > 0.5).tolist(), bool((found.probabilities.argmax(1) == truth).mean() > 0.9)
    ([3, 58], True)
    """
    context = context or Context()
    scores, left = possible(nats, context)
    n_classes = int(left.sum())
    none = np.zeros(len(scores), bool) if context.given is None else context.given == NO_CLASS
    alone = softmax(scores, axis=1)
    tilts: Floats = np.zeros(scores.shape[1])
    prior_weight: PerBatch = 1.0
    counting = (~none).astype(np.float64)
    if context.log_shares is not None:

        def count(tilts: Floats) -> Floats:
            return np.asarray(counting @ softmax(scores + tilts, axis=1))

        tilts, prior_weight = lean(context.log_shares, context.concentration, float(counting.sum()), count)
    near = softmax(scores + tilts.astype(scores.dtype), axis=1)
    shots = np.full(len(tilts), n_examples)
    decided = np.arange(len(near)) if none.all() else np.flatnonzero(~none)
    decided = decided[deciding_rows(len(decided), len(tilts))]
    roll = call_roll(Alone.of(near[decided]), shots, n_classes)
    # The first item of a class tells nothing about itself: h of m items are no better labelled with the others.
    roll = roll._replace(alone=1 - (1 - roll.alone) * max(1 - max(float(roll.found), 1.0) / len(decided), 0.0))
    everyone = Alone.of(near)
    few, others = labels_of(everyone, roll, n_classes)
    absent = absent_of(everyone._replace(scale=everyone.scale * counting), others)
    own = (1 - roll.alone) * few + roll.alone * near[:, roll.columns]
    q = everyone.spread((1 - roll.alone) * others + roll.alone, roll.columns, own)
    counts = counting @ q
    presence = chance_of_any(roll, shots, absent, counts, float(counting.sum()))
    if context.given is not None:
        presence[context.given[context.given >= 0]] = 1
    return JointAnswer(
        probabilities=q,
        confidence=alone.max(1),
        expected_counts=counts,
        presence=np.minimum(presence, counts) if none.any() else presence,
        joint_weight=float(1 - roll.alone),
        prior_weight=float(prior_weight),
        far=1.0,
        unknown=np.where(none, 1.0, np.nan),
        interval=(0.0, 1.0),
        none=none,
    )


def possible(nats: Floats, context: Context) -> tuple[Floats, Bools]:
    """Scores with -inf for what an item cannot have, and which classes are not ruled out for all items.

    An item of which nothing is left may have any of these classes, all equally.
    """
    left = np.ones(nats.shape[1], bool) if context.log_shares is None else ~np.isneginf(context.log_shares)
    scores = np.where(left if context.allowed is None else left & context.allowed, nats, -np.inf)
    scores[np.isneginf(scores).all(1)] = np.where(left, 0, -np.inf)
    if context.given is not None:
        fixed = np.flatnonzero(context.given >= 0)
        scores[fixed] = -np.inf
        scores[fixed, context.given[fixed]] = 0
    return scores, left
