"""Scores `S_nk`: the nats by which class k describes item n under equal shares, however they came about.

**Vectors**: `S = x Wᵀ + b`, by the head of a catalogue.

**Another model**: `S_nk = c Δ_nk / U`, with c = 2 nats per unit U, which the best scores tell themselves. Only
differences Δ between the classes of one item count: of logits and similarities themselves, of `ln p` for probabilities,
of `ln p/(1-p)` for sigmoids. A model that was trained on classes of unequal weight prefers the frequent ones; where
these weights are known, `ln w_k` is subtracted.

The best scores of an item lie like the largest of an exponential sample, but for the very best, which leads because it
is right. With U the scale of that sample, `E[Δ_(j) - Δ_(j+1)] = U/j` for j ≥ 2. A class that is always taken for the
right one widens the first of these gaps, and scores near zero the last ones; so the least of the three that a list of
five has tells U. Then the best five say the same as all, and a factor on all scores or a number added to those of an
item changes nothing.

A class without a score, or with a probability that was rounded to zero, is not the label of the item. If it may be, the
K - l classes that an item does not list lie `ln(K/l)` nats below the last of the l that it does: at c = 2 they weigh as
much together as the lower part of an exponential sample does. An item that lists nothing may have any class.

**Names alone**: `S_nk = c <x_n, θ_k> / U`, scores like those of any model without examples. U is that of the batch
itself, so no batch changes the answer about another. Names stay where they are. Moving them towards their items gained
up to two points on clinc150 where 10 or more classes occur, and lost up to seventeen on real requests where few do:
items do not lie where names do, and the first names to have items would take all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax

from handful.model.arrays import Bools, Doubles, Floats
from handful.model.knowledge import Knowledge
from handful.model.limits import LOWEST
from handful.model.reference import Reference
from handful.model.settings import DEFAULT, Settings


@dataclass(frozen=True, eq=False)
class Scores:
    """`S` of items and classes, and what is known about the classes of items is part of it.

    Attributes
    ----------
    nats
        [batch, item, class]; -inf where an item cannot have the class.
    shots
        [class], numbers of examples, or what a class counts as without any.
    labelled
        [batch, item], items that a person labelled.
    possible
        [batch, class], classes that can occur.
    restricted
        Whether something is known about the classes of items.
    """

    nats: Floats
    shots: Floats
    labelled: Bools
    possible: Bools
    restricted: bool

    @classmethod
    def of_vectors(cls, points: Floats, reference: Reference, knowledge: Knowledge) -> Scores:
        """`S = x Wᵀ + b` of points [batch, item, dim]: the only product of items and classes."""
        head = reference.head
        nats = (points.reshape(-1, points.shape[-1]) @ head.weights.T).reshape(*points.shape[:2], -1)
        nats += head.offsets
        if knowledge.prior is not None:
            np.copyto(nats, -np.inf, where=~knowledge.prior.possible[:, None])
        if knowledge.allowed is not None:
            nats[~knowledge.allowed] = -np.inf
        labelled: Bools = np.zeros(points.shape[:2], bool)
        if knowledge.labels is not None:
            codes, labelled = knowledge.labels
            unnamed = labelled & (codes >= reference.n_named)
            nats[labelled & ~unnamed] = -np.inf
            # Of an item that is none of these, which class is nearest is still worth knowing.
            nats[unnamed] -= nats[unnamed].max(-1, keepdims=True) + reference.settings.ruled_out
            nats[(*np.nonzero(labelled), codes[labelled])] = 0
        possible = np.ones((len(nats), nats.shape[-1]), bool)
        if knowledge.restricts:
            possible = np.asarray(np.isfinite(nats).any(1))
        return cls(nats, head.mass, labelled, possible, knowledge.restricts)

    @classmethod
    def of_nats(cls, nats: Floats, n_examples: float, knowledge: Knowledge) -> Scores:
        """Make those of one batch from `S` [item, class] of another model; a class counts as `n_examples`.

        An item of which nothing is left may have any class that can occur, all equally.
        """
        n_items, n_classes = nats.shape
        possible = np.ones(n_classes, bool) if knowledge.prior is None else knowledge.prior.possible[0]
        some = possible if knowledge.allowed is None else possible & knowledge.allowed[0]
        left = np.where(some, nats, -np.inf)
        left[np.isneginf(left).all(1)] = np.where(possible, 0, -np.inf)
        labelled = np.zeros(n_items, bool)
        if knowledge.labels is not None:
            labelled = knowledge.labels.given[0]
            rows = np.flatnonzero(labelled)
            left[rows] = -np.inf
            left[rows, knowledge.labels.code[0, rows]] = 0
        return cls(left[None], np.full(n_classes, n_examples), labelled[None], possible[None], True)

    @property
    def n_items(self) -> int:
        """Number of the items of a batch."""
        return int(self.nats.shape[1])

    @cached_property
    def top(self) -> Floats:
        """The largest score of each item, [batch, item, 1]."""
        return np.asarray(self.nats.max(-1, keepdims=True))

    @cached_property
    def likelihood(self) -> Floats:
        """`exp S_nk`, by that of the best class; with no exponent below `LOWEST` unless it is -inf."""
        likelihood = self.nats - self.top
        np.exp(np.maximum(likelihood, LOWEST, out=likelihood), out=likelihood)
        if self.restricted:
            likelihood[np.isneginf(self.nats)] = 0
        return likelihood

    @cached_property
    def confidence(self) -> Floats:
        """The largest probability of each item under the scores, [batch, item]."""
        return np.asarray(1 / (self.likelihood @ np.ones(self.likelihood.shape[-1], self.likelihood.dtype)))

    @property
    def n_possible(self) -> npt.NDArray[np.intp]:
        """K without the classes that are ruled out, [batch]."""
        return np.asarray(self.possible.sum(-1))

    @cached_property
    def restriction(self) -> Floats:
        """`1 - ln c / ln K` if c of K classes are allowed, [batch, item]: `t` of unknown items grows in proportion."""
        n_classes = self.nats.shape[-1]
        if not self.restricted or n_classes == 1:
            return np.zeros(self.nats.shape[:2])
        allowed = np.where(self.labelled, n_classes, np.isfinite(self.nats).sum(-1))
        return np.asarray(1 - np.log(allowed) / np.log(n_classes))

    def counts(self, tilts: Floats) -> Doubles:
        """`Σ_n p_nk` [batch, class] under constants [batch, class]."""
        if not tilts.any():
            return np.asarray((self.confidence[:, None] @ self.likelihood)[:, 0], dtype=np.float64)
        factors = class_factors(tilts).astype(self.likelihood.dtype)
        each = 1 / (self.likelihood @ factors[..., None])
        sums = (each.swapaxes(1, 2) @ self.likelihood)[:, 0]
        return np.asarray(sums * factors, dtype=np.float64)

    def certain_counts(self, tilts: Floats) -> Doubles:
        """`Σ_n p_nk²` [batch, class] under constants [batch, class]: an item counts as far as its class is certain."""
        factors = class_factors(tilts).astype(self.likelihood.dtype)
        each = 1 / (self.likelihood @ factors[..., None])
        sums = ((each * each).swapaxes(1, 2) @ self._squared_likelihood)[:, 0]
        return np.asarray(sums * factors * factors, dtype=np.float64)

    @cached_property
    def _squared_likelihood(self) -> Floats:
        return self.likelihood * self.likelihood

    def rows(self, rows: npt.NDArray[np.integer] | slice) -> Scores:
        """Return some of the items of each batch."""
        if isinstance(rows, slice) and rows.indices(self.n_items) == (0, self.n_items, 1):
            return self  # with what was computed from them
        return Scores(self.nats[:, rows], self.shots, self.labelled[:, rows], self.possible, self.restricted)


def class_factors(tilts: Floats) -> Floats:
    """`exp t_k`, by the largest, with no exponent below `LOWEST`, [batch, class]."""
    return np.asarray(np.exp(np.maximum(tilts - tilts.max(-1, keepdims=True), LOWEST)))


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
    """U: the least of the means of `j (Δ_(j) - Δ_(j+1))` over the items that list as many, j = 2, 3, 4.

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
    """`S_nk`; -inf for classes that are not listed, or `ln(K/l)` below the last of l if they count."""
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

    from scipy.optimize import minimize_scalar

    return math.exp(minimize_scalar(loss, bounds=(-2, 2), method="bounded").x)


def scores_of_names(points: Floats, names: Floats, knowledge: Knowledge, settings: Settings = DEFAULT) -> Floats:
    """`S` [item, class] of one batch [item, dim] by names [class, dim], both in their own space."""
    scores = points @ (names - names.mean(0)).T
    excluded = None if knowledge.allowed is None else ~knowledge.allowed[0]
    if knowledge.prior is not None:
        of_batch = ~knowledge.prior.possible[0]
        excluded = of_batch if excluded is None else excluded | of_batch
    return in_nats(scores, unit_of(scores, excluded, settings), settings=settings)
