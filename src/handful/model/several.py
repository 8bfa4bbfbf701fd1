"""Several classes per item, or none: a chance for each class by itself, from the scores of sigmoids.

`p_nk = P_k σ(L_nk + logit π_k)`. P_k is the presence of the class, as if every item had one class: an item of two
classes gives weight to both. But a class that always occurs together with others may lose all its items to these. So a
class is also present if it has `r ≥ 1/2` of the expected count of a typical class present, items labelled alone: P_k is
at least `r⁴ / (r⁴ + 1/16)`. With c nats per standard deviation of the scores of absent classes,

    L_nk = c s_nk - ln mean_{j, l absent} exp(c s_jl)

is the log-likelihood ratio that item n has class k: under the null hypothesis the mean of a likelihood ratio is one,
and scores of absent classes are what the null hypothesis looks like. So it needs neither the level of the sigmoids nor
the share of positives that they were trained with. π_k is the share of items that have the class, by expectation
maximisation, `π_k = Σ_n σ(...) / (m + 1)`. An item does not have a class that is not listed for it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import expit, logit, logsumexp, softmax

from handful.model.answer import JointAnswer
from handful.model.arrays import Bools, Doubles, Floats
from handful.model.knowledge import Knowledge
from handful.model.labelling import label_scores
from handful.model.limits import SMALL_CHANCE, SMALLEST_CHANCE
from handful.model.scores import Scores
from handful.model.settings import DEFAULT, Settings


def label_several(
    nats: Floats, best: Floats, knowledge: Knowledge | None = None, settings: Settings = DEFAULT
) -> JointAnswer:
    """Return the chances that items have each class, and that they have none, as their chance of being unknown.

    Parameters
    ----------
    nats
        `S_nk` of all classes, listed or not, relative to the best of each item.
    best
        These best ones, in the same unit.
    knowledge
        What is known about the batch. Classes that an item does not list are not `allowed`.
    """
    knowledge = knowledge or Knowledge()
    answer = label_scores(nats, knowledge, several=True, settings=settings)
    scores = Scores.of_nats(nats, settings.examples_of_several, knowledge).nats[0]
    presence = raised_presence(np.asarray(answer.presence, np.float64), softmax(scores, axis=1).sum(0), settings)
    chances = several_probabilities(nats.astype(np.float64) + best[:, None], presence, np.isfinite(scores), settings)
    return replace(
        answer,
        probabilities=chances,
        expected_counts=chances.sum(0),
        presence=presence,
        unknown=np.exp(np.log1p(-chances.clip(max=1 - SMALLEST_CHANCE)).sum(1)),
    )


def raised_presence(presence: Doubles, alone: Floats, settings: Settings = DEFAULT) -> Doubles:
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
