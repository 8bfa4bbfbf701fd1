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
With h classes present among m items, joint labels have at most the weight 1 - h/m: a single item is labelled alone.

**Several classes per item**, or none: `p_nk = P_k σ(L_nk + logit π_k)`, a chance for each class by itself. P_k is
the chance of `handful.engine.presence`, as if every item had one class: an item of two classes gives weight to both.
But a class that always occurs together with others may lose all its items to these. So a class is also present if it
has `r ≥ 1/2` of the expected count of a typical class that is present, items labelled alone: P_k is at least
`r⁴ / (r⁴ + 1/16)`. With c nats per standard deviation of the scores of absent classes,

    L_nk = c s_nk - ln mean_{m, j absent} exp(c s_mj)

is the log-likelihood ratio that item n has class k: under the null hypothesis the mean of a likelihood ratio is one,
and scores of absent classes are what the null hypothesis looks like. So it needs neither the level of the sigmoids nor
the share of positives that they were trained with. π_k is the share of items that have the class, by expectation
maximisation, `π_k = Σ_n σ(...) / (m + 1)`. An item does not have a class that is not listed for it.

**Names alone**: `S_nk = c <x_n, t_k> / u`, scores like those of any model without examples. u is that of the batch
itself, so no batch changes the answer about another. Names stay where they are. Moving them towards their items gained
up to two points on clinc150 where 10 or more classes occur, and lost up to seventeen on real requests where few do:
items do not lie where names do, and the first names to have items would take all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, logit, logsumexp, softmax

from handful.engine.limits import SMALL_CHANCE, SMALLEST_CHANCE
from handful.engine.model import Context, ItemLabels, JointAnswer, deciding_rows, summarize
from handful.engine.presence import ItemPosterior, joint_posterior, log_absence, sample_presence
from handful.engine.settings import DEFAULT, Settings
from handful.engine.tilt import tilt_by_prior
from handful.shapes import PerBatch

Floats = npt.NDArray[np.floating]
Bools = npt.NDArray[np.bool_]


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


def unit_of(scores: Floats, excluded: Bools | None = None, settings: Settings = DEFAULT) -> float:
    """u: the least of the means of `j (d_(j) - d_(j+1))` over the items that list as many, j = 2, 3, 4.

    A j counts if half of the items, or of those that list three, list j + 1 classes. If nothing does, j is one; without
    any difference the unit is one.

    Parameters
    ----------
    scores
        [item, class], NaN if not listed.
    excluded
        Classes that cannot occur, [class] or [item, class].

    Examples
    --------
    >>> sample = np.random.default_rng(0).exponential(3, size=(4000, 80))
    >>> round(unit_of(sample), 1)
    3.0
    """
    most = min(settings.listed_scores, scores.shape[1])  # as many as tools list
    ranked = np.where(np.isnan(scores) if excluded is None else np.isnan(scores) | excluded, -np.inf, scores)
    ranked = np.sort(np.partition(ranked, -most, axis=1)[:, -most:].astype(np.float64), axis=1)[:, ::-1]
    gaps = dict[int, float]()
    n_listing = np.isfinite(ranked).sum(0)
    for j in range(1, most):
        some = ranked[np.isfinite(ranked[:, j])]
        if len(some) and 2 * len(some) >= n_listing[min(j, 2)] and (some[:, j - 1] > some[:, j]).any():
            gaps[j] = float(j * (some[:, j - 1] - some[:, j]).mean())
    return min((u for j, u in gaps.items() if j > 1), default=gaps.get(1, 1.0))


def in_nats(scores: Floats, unit: float, *, unlisted: bool = False, settings: Settings = DEFAULT) -> Floats:
    """`S_nk`; -inf for classes that are not listed, or `ln(K/m)` below the last of m if they count."""
    nats = scores * (settings.nats_per_unit / unit)
    missing = np.isnan(nats)
    if not unlisted:
        nats[missing] = -np.inf
    elif missing.any():
        n_listed = (~missing).sum(1)
        last = np.where(missing, 0, nats).min(1) - np.log(missing.shape[1] / np.maximum(n_listed, 1))
        nats = np.where(missing, last[:, None].astype(nats.dtype), nats)
    return np.asarray(nats)


def factor_of_labelled(nats: Floats, codes: npt.NDArray[np.integer], settings: Settings = DEFAULT) -> float:
    """Return the factor on c under which labelled items are most likely, with `ln f ~ N(0, 1/16)`.

    Items whose class is not listed for them say nothing about c.
    """
    own = nats[np.arange(len(codes)), codes]
    nats = nats[np.isfinite(own)].astype(np.float64)
    codes = codes[np.isfinite(own)]

    def loss(log_factor: float) -> float:
        chances = log_softmax(nats * math.exp(log_factor), axis=1)[np.arange(len(codes)), codes]
        return 0.5 * (log_factor / settings.log_factor_sd) ** 2 - float(chances.sum())

    return math.exp(minimize_scalar(loss, bounds=(-2, 2), method="bounded").x)


def label_scores(
    nats: Floats, context: Context | None = None, *, several: bool = False, settings: Settings = DEFAULT
) -> JointAnswer:
    """Label one batch jointly by `S_nk` [item, class]; -inf is no label of the item.

    With `several` classes per item, the chances of an item are shares, and say nothing about the presence of a class.
    Each class is then scored against the rest, so its errors are shared less than those of classes of which one is
    right: it counts as five examples, and with one, classes that share their items are not found.

    Examples
    --------
    A model that is right about half of the items, and a batch of two of a hundred classes:

    >>> rng = np.random.default_rng(0)
    >>> truth, logits = np.repeat([3, 58], 20), rng.normal(size=(40, 100))
    >>> logits[np.arange(40), truth] += 2.5
    >>> answer = label_scores(in_nats(logits, unit_of(logits)))
    >>> np.flatnonzero(answer.presence > 0.9).tolist(), bool((answer.probabilities.argmax(1) == truth).mean() > 0.9)
    ([3, 58], True)
    """
    context = context or Context()
    scores, left = restricted(nats, context)
    n_classes = int(left.sum())
    tilts: Floats = np.zeros(scores.shape[1])
    prior_weight: PerBatch = np.ones(())
    if context.log_shares is not None:

        def count(tilts: Floats) -> Floats:
            return np.asarray(softmax(scores + tilts, axis=1).sum(0))

        tilts, prior_weight = tilt_by_prior(
            context.log_shares, context.concentration, float(len(scores)), count, settings
        )
    posterior = ItemPosterior.of(softmax(scores + tilts.astype(scores.dtype), axis=1))
    shots = np.full(len(tilts), settings.examples_of_several if several else settings.examples_of_scores)
    decided = deciding_rows(len(scores), len(tilts), settings)
    some = ItemPosterior(*(part[decided] for part in posterior))
    samples = sample_presence(some, shots, n_classes, settings=settings)
    # The first item of a class tells nothing about itself: h of m items are no better labelled with the others.
    most = max(1 - settings.alone_per_class * max(float(samples.n_present), 1.0) / len(decided), 0.0)
    samples = samples._replace(alone_weight=1 - (1 - samples.alone_weight) * most)
    joint, others = joint_posterior(posterior, samples, n_classes, settings)
    columns = samples.columns
    alone = samples.alone_weight
    own = (1 - alone) * joint + alone * posterior.of_columns(columns)
    q = posterior.with_columns((1 - alone) * others + alone, columns, own)
    labels = ItemLabels(q, softmax(scores, axis=1).max(1), log_absence(posterior, others), np.full(len(scores), np.nan))
    totals = labels.totals()
    if several:
        totals = totals._replace(largest=np.zeros_like(totals.largest))
    summary = summarize(samples, shots, totals, float(len(scores)), settings=settings)
    return JointAnswer.of(labels, labels.named(len(tilts), settings), summary, prior_weight)


def restricted(nats: Floats, context: Context) -> tuple[Floats, Bools]:
    """Scores with -inf for what an item cannot have, and which classes are not ruled out for all items.

    An item of which nothing is left may have any of these classes, all equally.
    """
    left = np.ones(nats.shape[1], bool) if context.log_shares is None else ~np.isneginf(context.log_shares)
    scores = np.where(left if context.allowed is None else left & context.allowed, nats, -np.inf)
    scores[np.isneginf(scores).all(1)] = np.where(left, 0, -np.inf)
    if context.fixed_labels is not None:
        fixed = np.flatnonzero(context.fixed_labels >= 0)
        scores[fixed] = -np.inf
        scores[fixed, context.fixed_labels[fixed]] = 0
    return scores, left


def label_several(
    nats: Floats, best: Floats, context: Context | None = None, settings: Settings = DEFAULT
) -> JointAnswer:
    """Return the chances that items have each class, and that they have none, as their chance of being unknown.

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
    answer = label_scores(nats, context, several=True, settings=settings)
    (scores, _) = restricted(nats, context)
    presence = raised_presence(np.asarray(answer.presence, np.float64), softmax(scores, axis=1).sum(0), settings)
    chances = several_probabilities(nats.astype(np.float64) + best[:, None], presence, np.isfinite(scores), settings)
    return replace(
        answer,
        probabilities=chances,
        expected_counts=chances.sum(0),
        presence=presence,
        unknown=np.exp(np.log1p(-chances.clip(max=1 - SMALLEST_CHANCE)).sum(1)),
    )


def raised_presence(
    presence: npt.NDArray[np.float64], alone: Floats, settings: Settings = DEFAULT
) -> npt.NDArray[np.float64]:
    """Raise the chance of classes with expected counts like those of classes that are present, items labelled alone."""
    if not (presence >= 0.5).any():
        return presence
    typical = np.median(alone[presence >= 0.5])
    share = np.where(alone < settings.several_least, 0, alone / typical) ** settings.several_power
    return np.asarray(np.maximum(presence, share / (share + 0.5**settings.several_power)))


def several_probabilities(scores: Floats, presence: Floats, allowed: Bools, settings: Settings = DEFAULT) -> Floats:
    """`p_nk` from scores of any scale; zero where a class is not allowed."""
    usable = allowed.any(0)
    absent = usable & (presence < 0.5)
    # Where all are present, there is nothing better than all of them.
    null = scores[:, absent if absent.any() else usable]
    deviation = float(np.sqrt(((null - null.mean(1, keepdims=True)) ** 2).mean()))
    scale = settings.nats_per_unit / deviation if deviation > 0 else 1.0
    ratios = scores * scale - logsumexp(null * scale) + np.log(null.size)
    shares = np.full(len(presence), settings.several_start)
    for _ in range(settings.several_steps):
        chances = expit(ratios + logit(shares)) * allowed
        shares = (chances.sum(0) / (len(scores) + 1)).clip(SMALL_CHANCE, 1 - SMALL_CHANCE)
    return np.asarray(chances * presence)


def label_by_names(
    points: Floats, names: Floats, context: Context | None = None, settings: Settings = DEFAULT
) -> JointAnswer:
    """Label one batch [item, dim] by names [class, dim], both in their own space.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> centres, truth = rng.normal(size=(60, 24)), np.repeat([3, 40], 20)
    >>> names, points = centres + 0.9 * rng.normal(size=(60, 24)), centres[truth] + 0.9 * rng.normal(size=(40, 24))
    >>> answer = label_by_names(points, names)
    >>> np.flatnonzero(answer.presence > 0.5).tolist()
    [3, 40]
    """
    context = context or Context()
    scores = points @ (names - names.mean(0)).T
    excluded = None if context.allowed is None else ~context.allowed
    if context.log_shares is not None:
        of_batch = np.isneginf(context.log_shares)
        excluded = of_batch if excluded is None else excluded | of_batch
    unit = unit_of(scores, excluded, settings)
    return label_scores(in_nats(scores, unit, settings=settings), context, settings=settings)
