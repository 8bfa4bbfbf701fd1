"""What examples say about a head that has not seen them: its temperature, and how likely each label is right.

`T, ε = argmax Σ_n (1/s_y) ln[(1-ε) p_n(y_n) + ε/K]` with `p_n = softmax((l_n - ln s)/T)` of the left-out logits l.
`r_n = (1-ε) p_n(y_n) / [...]` is the chance that a label is right.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from handful.model.limits import IN_CACHE, LEAST_WRONG_SHARE, NEAR_TEMPERATURES, TEMPERATURE_EXAMPLES
from handful.model.settings import DEFAULT, Settings

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.integer[Any]]
Bools = npt.NDArray[np.bool_]


class LeftOutExamples(NamedTuple):
    """What was found about examples that a head had not seen; arrays of one length, in the order of the rows."""

    rows: Ints  # which of the examples given
    right: Floats  # chance that the label is right
    own: Floats  # probability of its own class
    rival: Ints  # the most probable other class
    lead: Floats  # nats by which the rival is more probable than its own class
    score: Floats  # S of its own class, if it were an item; NaN with class means
    rival_score: Floats  # S of the rival


class Margins(NamedTuple):
    """Left-out logits, compared with that of the example's own class."""

    temperatures: Floats  # T
    behind: Floats  # -ln p(y) at each of them, [temperature, some]
    lead: Floats  # logit of the best other class minus its own
    rival: Ints

    @classmethod
    def of(cls, logits: Floats, own: Ints, temperatures: Floats) -> Margins:
        """Compare logits [some, class]; they are overwritten."""
        rows = np.arange(len(own))
        logits -= logits[rows, own][:, None]
        top = logits.max(1, keepdims=True)
        below = logits - top
        part = np.empty_like(below)
        behind = np.empty((len(temperatures), len(own)))
        for at, t in enumerate(temperatures.tolist()):
            np.exp(np.divide(below, t, out=part), out=part)
            behind[at] = top[:, 0] / t + np.log(part.sum(1))
        logits[rows, own] = -np.inf
        rival = logits.argmax(1)
        return cls(temperatures, behind, logits[rows, rival].astype(np.float64), rival)

    @classmethod
    def joined(cls, parts: list[Margins]) -> Margins:
        """Put those of several sets of examples, at the same temperatures, one after the other."""
        behind = np.concatenate([part.behind for part in parts], axis=1)
        lead = np.concatenate([part.lead for part in parts])
        return cls(parts[0].temperatures, behind, lead, np.concatenate([part.rival for part in parts]))


class Fold(NamedTuple):
    """Examples, and a head that has not seen them."""

    rows: Ints
    points: Floats
    own: Ints
    weights: Floats
    offsets: Floats
    log_shots: Floats  # logarithm of the numbers of examples that the head has seen

    def margins(self, temperatures: Floats, every: int = 1) -> list[Margins]:
        """Score the examples, or every k-th of them (`every` = k), block by block; ln s is taken off."""
        offsets = self.offsets - self.log_shots
        points = self.points[::every]
        own = self.own[::every]
        return [
            Margins.of(points[some] @ self.weights.T + offsets, own[some], temperatures)
            for some in blocks(len(own), len(offsets))
        ]

    def logits(self, classes: Ints) -> Floats:
        """Logit of one class for each example."""
        return np.asarray((self.points * self.weights[classes]).sum(1) + self.offsets[classes])


class HeadCalibration(NamedTuple):
    """What left-out examples say: about each of them, T, ε, and the mean of their largest probabilities."""

    examples: LeftOutExamples
    temperature: float
    wrong_share: float
    confidence: float | None

    @classmethod
    def without_examples(cls, temperature: float) -> HeadCalibration:
        """Nothing can be left out."""
        no_row = np.zeros(0, np.int64)
        no_number = np.zeros(0)
        examples = LeftOutExamples(no_row, no_number, no_number, no_row, no_number, no_number, no_number)
        return cls(examples, temperature, 0.0, None)

    @classmethod
    def of_folds(cls, folds: list[Fold], shots: Floats, settings: Settings = DEFAULT) -> HeadCalibration:
        """Judge by heads that have not seen an example each; classes weigh alike."""
        own = np.concatenate([fold.own for fold in folds])
        rows = np.concatenate([fold.rows for fold in folds])
        return cls.of(_margins_near_best(folds, shots, settings), rows, 1 / shots[own], len(shots), settings=settings)

    @classmethod
    def of(
        cls,
        margins: Margins,
        rows: Ints,
        weights: Floats,
        n_classes: int,
        share: float | None = None,
        settings: Settings = DEFAULT,
    ) -> HeadCalibration:
        """T and ε maximise the likelihood, or ε is the `share`; `weights` are those of the examples."""
        likelihoods, wrong = log_likelihood(margins, weights, n_classes, share, settings)
        best = int(likelihoods.argmax())
        share = float(wrong[best])
        temperature = float(margins.temperatures[best])
        p = np.exp(-margins.behind[best])
        lead = margins.lead / temperature
        top = np.exp(np.maximum(lead, 0) - margins.behind[best])
        right = (1 - share) * p / ((1 - share) * p + share / n_classes)
        o = np.argsort(rows)
        unknown = np.full_like(p, np.nan)
        examples = LeftOutExamples(rows[o], right[o], p[o], margins.rival[o], lead[o], unknown, unknown)
        return cls(examples, temperature, share, float(np.average(top, weights=weights)))

    def with_scores(self, folds: list[Fold], mass: Floats, *, shorter: bool) -> HeadCalibration:
        """Add the scores that a head of all examples would give.

        A head that saw s' of the s examples of a class has `shorter` weights. Logits times √(s/s') have the level of
        items. Weights that start from class means are not shorter.
        """
        scores = np.empty((2, len(self.examples.rows)))
        for fold in folds:
            at = np.searchsorted(self.examples.rows, fold.rows)
            longer = np.exp(0.5 * (np.log(mass[fold.own]) - fold.log_shots[fold.own])) if shorter else 1.0
            for row, classes in enumerate((fold.own, self.examples.rival[at])):
                scores[row, at] = (longer * fold.logits(classes) - np.log(mass[classes])) / self.temperature
        return self._replace(examples=self.examples._replace(score=scores[0], rival_score=scores[1]))


def _margins_near_best(folds: list[Fold], shots: Floats, settings: Settings) -> Margins:
    """Return the margins of all examples, at all temperatures or at those near the one that maximises the likelihood.

    The likelihood has one maximum, and some of the examples tell about where.
    """
    every = -(-sum(len(fold.own) for fold in folds) // TEMPERATURE_EXAMPLES)
    temperatures = np.array(settings.temperatures)
    first = 0
    last = len(temperatures)
    while True:
        margins = Margins.joined([part for fold in folds for part in fold.margins(temperatures[first:last], every)])
        own = np.concatenate([fold.own[::every] for fold in folds])
        best = first + int(log_likelihood(margins, 1 / shots[own], len(shots), settings=settings)[0].argmax())
        is_inside = (best > first or first == 0) and (best < last - 1 or last == len(temperatures))
        if every == 1 and is_inside:
            return margins
        every = 1
        first = max(best - NEAR_TEMPERATURES, 0)
        last = min(best + NEAR_TEMPERATURES + 1, len(temperatures))


def log_likelihood(
    margins: Margins, weights: Floats, n_classes: int, share: float | None = None, settings: Settings = DEFAULT
) -> tuple[Floats, Floats]:
    """Return at each temperature the mean log-likelihood and ε: the `share`, or that which maximises it."""
    w = weights.astype(np.float64) / weights.sum(dtype=np.float64)
    p = np.exp(-margins.behind)
    wrong = np.full((len(margins.behind), 1), settings.wrong_share_start if share is None else share)
    for _ in range(settings.wrong_share_steps if share is None else 0):
        right = (1 - wrong) * p / ((1 - wrong) * p + wrong / n_classes)
        wrong = np.clip((1 - right) @ w, LEAST_WRONG_SHARE, 0.5)[:, None]
    return np.log((1 - wrong) * p + wrong / n_classes) @ w, wrong[:, 0]


def assign_folds(points: Floats, codes: Ints, named: Bools, settings: Settings = DEFAULT) -> Ints:
    """Return a fold for each example, -1 if its class has one distinct example and is not `named`.

    The distinct rows of a class take turns in the order of their distance from the mean of all examples. Folds
    therefore depend neither on the order of the examples nor on numbers of classes, origin or orientation.
    """
    classes, inverse, shots = distinct(points, codes)
    away = ((points - points.mean(0, dtype=np.float64).astype(points.dtype)) ** 2).sum(1, dtype=np.float64)
    distances = np.zeros(len(classes))
    np.maximum.at(distances, inverse, away)
    order = np.lexsort((distances, classes))
    counts = np.bincount(classes)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order)) - (np.cumsum(counts) - counts)[classes[order]]
    # Not the same fold first in all classes; those without examples are the last.
    means = np.where(counts > 0, np.bincount(classes, distances * shots) / np.maximum(np.bincount(codes), 1), np.inf)
    folds = (rank + means.argsort(kind="stable").argsort()[classes]) % settings.folds
    return np.where((counts[classes] > 1) | named[classes], folds, -1)[inverse]


def distinct(points: Floats, codes: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the class of each distinct row, by class and content; the row of each example; its number of examples."""
    whole = np.ascontiguousarray(points + 0.0)  # minus zero is zero
    _, content = np.unique(whole.view(np.dtype((np.void, whole.strides[0])))[:, 0], return_inverse=True)
    keys, inverse, shots = np.unique(codes * len(codes) + content, return_inverse=True, return_counts=True)
    return keys // len(codes), inverse, shots


def blocks(n_rows: int, n_classes: int, numbers: int = IN_CACHE) -> list[slice]:
    """Cut rows into parts whose scores of all classes fit a second-level cache."""
    size = max(1, numbers // n_classes)
    return [slice(at, at + size) for at in range(0, n_rows, size)]
