"""Head: S_k(z) = <z, W_k> + b_k, nats under equal shares of all classes; fitted once per catalogue.

1. `W, b` by logistic regression on the examples, `min Σ_n r_n CE(y_n, x_n W + b) + |W|²/(2C)`, with r = 1 at first and
   C = 30 for rows of unit length.
2. Every example is scored by a head that did not see it (five folds). Copies of a row share a fold. A class with one
   distinct example stays in training.
3. Scale and doubt: `T, ε = argmax Σ_n (1/s_y) ln[(1-ε) p_n(y_n) + ε/K]` with `p_n = softmax((l_n - a ln s)/T)` of the
   left-out logits l; a is 1 if all s are equal, else the most likely multiple. `r_n = (1-ε) p_n(y_n) / [...]` is the
   chance that a label is right. If at least one label is expected to be wrong, the head is fitted again with these
   weights.
4. `S = (x W + b - a ln s)/T`: subtracting ln s takes the numbers of examples out of the odds.

Names of classes are further examples, of a weight that left-out examples choose (`handful.inference.names`); s is then
the number of examples and that weight together.

Training costs N·K·d per evaluation. Beyond `FULL_WORK` each example is compared with the `RIVALS` classes nearest to
its own; beyond `NEAR_NUMBERS`, or if some examples are not known, the head is made of class means: `Head.of_means`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from handful.inference.calibration import evenly
from handful.inference.joint import typical_shots
from handful.inference.left_out import (
    BLOCK_SCORES,
    FOLDS,
    TEMPERATURES,
    LeftOut,
    Scaled,
    compared,
    copies,
    folds,
    joined,
    no_left_out,
    scale,
    scale_and_doubt,
    with_scores,
)
from handful.inference.names import USUAL_WORTH, Names, TrainingRows
from handful.numerics.logistic import Linear, logistic, logistic_near, nearest_classes
from handful.shapes import Bool, Float, Int

# Inverse ridge for rows of unit length; divided by the mean squared norm of the rows.
INVERSE_RIDGE = 30.0
# A head of class means: κ times the mean squared distance of the class means from their centre, in nats, at T = 1. At
# one shot the most likely values were 11 to 16 on three banks.
NATS_OF_MEANS = 14.0
# Slope at which training against near classes starts, for rows of unit length.
NEAR_SLOPE = 20.0
# Other classes that an example is compared with, its own included.
RIVALS = 64
# A mean of s examples lies V/s too far from the items of its class, V being the spread; this share of it is taken off.
# All of it is too much: such a distance is also noisy, and noise of variance v in a score adds v/2 to the mean of its
# exponential, so means of few examples win too often by chance. That accounts for only a part of what is seen on two of
# three banks; shares between 0.5 and 0.75 are most accurate on all.
SHARE_OF_EXCESS = 0.7
# With fewer examples to leave out, T is a constant. Left-out temperatures at one shot were 0.35 to 0.43 on three banks.
FEWEST_LEFT_OUT, USUAL_TEMPERATURE = 20, 0.37
# A class keeps at least the weight of one example, however doubtful its examples are. With less, its offset would win
# items that look like nothing in particular.
LEAST_MASS = 1.0
# Left-out examples by which the worth of names is chosen; each worth that is tried takes a head per fold.
ENOUGH_TO_CHOOSE = 200.0
# The spread is known if there are this many more examples than classes.
ENOUGH_FOR_SPREAD = 10
# N·K·d up to which an example is compared with all classes. By extrapolation one head then takes 10 to 20 s on one
# core.
FULL_WORK = 2**32
# One comparison with a near class costs as much as this many with all classes: rows have to be gathered.
COST_OF_NEAR = 8
# Up to this cost all folds are left out, beyond it one of them.
FOLDED_WORK = 2**30
# Numbers of the examples, and of the class means, up to which a head is trained: about two minutes on one core, by
# extrapolation.
NEAR_NUMBERS, NEAR_MEANS = 2**25, 2**23
# Scores of left-out examples, for class means.
LEFT_OUT_SCORES = 2**24


@dataclass(frozen=True, eq=False)
class Head:
    """S_k(z) = <z, W_k> + b_k: nats under equal shares of all classes, whatever their numbers of examples.

    Make one with `fit_head` or `Head.of_means`. Points and means have the origin of the points given there.

    Attributes
    ----------
    weights, offsets : Float[Tensor, "class dim"], Float[Tensor, "class"]
        W and b.
    means : Float[Tensor, "class dim"]
        Class means; doubtful examples count less.
    mass : Float[Tensor, "class"]
        Effective number of examples of each class, Σ r_n.
    spread : float or None
        Mean squared distance of an example from the mean of its class, unbiased; None if there are too few examples.
    temperature : float
        T, already part of weights and offsets.
    wrong_share : float
        ε, the share of wrong labels among the examples.
    confidence : float or None
        Mean of the largest probability of left-out examples; None if nothing could be left out.
    left_out : LeftOut
        What was found about single examples; may be empty.

    Examples
    --------
    >>> generator = torch.Generator().manual_seed(0)
    >>> codes = torch.arange(10).repeat_interleave(5)
    >>> points = torch.randn(10, 16, generator=generator)[codes] + 0.5 * torch.randn(50, 16, generator=generator)
    >>> head = fit_head(points, codes, 10)
    >>> scores = points @ head.weights.T + head.offsets
    >>> bool((scores.argmax(1) == codes).all()), head.typical_shots, len(head.left_out.rows)
    (True, 5.0, 50)
    """

    weights: Float[Tensor, "class dim"]
    offsets: Float[Tensor, "class"]
    means: Float[Tensor, "class dim"]
    mass: Float[Tensor, "class"]
    spread: float | None
    temperature: float
    wrong_share: float
    confidence: float | None
    left_out: LeftOut

    @property
    def typical_shots(self) -> float:
        """Harmonic mean of the numbers of examples, K / Σ 1/mass."""
        return float(typical_shots(self.mass.double()))

    def to(self, device: torch.device | str) -> Head:
        """Return the head on another device."""
        return replace(
            self,
            weights=self.weights.to(device),
            offsets=self.offsets.to(device),
            means=self.means.to(device),
            mass=self.mass.to(device),
            left_out=LeftOut(*(tensor.to(device) for tensor in self.left_out)),
        )

    @classmethod
    def of_names(cls, names: Float[Tensor, "class dim"]) -> Head:
        """W = t - mean of t, b = 0: a catalogue of names alone, whose scale the items have to tell."""
        nothing = no_left_out(torch.zeros(0, dtype=torch.int64, device=names.device))
        offsets, mass = torch.zeros_like(names[:, 0]), torch.ones_like(names[:, 0])
        return cls(names - names.mean(0), offsets, names, mass, None, 1.0, 0.0, None, nothing)

    @classmethod
    def of_means(
        cls,
        means: Float[Tensor, "class dim"],
        shots: Float[Tensor, "class"],
        points: Float[Tensor, "point dim"],
        codes: Int[Tensor, "point"],
    ) -> Head:
        """W = κμ, b = -½κ|μ|² + ½κ g V/s, with κ by the likelihood of those of the points that can be left out.

        Parameters
        ----------
        means, shots
            Mean and number of all examples of each class, known or not.
        points, codes
            Some of these examples. Each is left out of its own mean: `(s μ - x)/(s - 1)`.
        """
        slope = _slope(means)
        many_of = copies(points, codes)
        kept = (shots[codes] > many_of).nonzero()[:, 0]
        kept = kept[evenly(len(kept), max(1, LEFT_OUT_SCORES // len(means))).to(kept.device)] if len(kept) else kept
        x, own, many = points[kept], codes[kept], many_of[kept]
        s = shots[own]
        spread = None
        if len(kept) >= ENOUGH_FOR_SPREAD:
            squares = (x - means[own]).square().sum(1) * s / (s - 1)
            spread = float(squares.double().mean())
        excess = SHARE_OF_EXCESS * (spread or 0.0)
        offsets = 0.5 * slope * (excess / shots - means.square().sum(1))
        # Its own mean, without the example and its copies.
        rest = s - many
        without = (means[own] * s.unsqueeze(1) - x * many.unsqueeze(1)) / rest.unsqueeze(1)
        alone = slope * ((x * without).sum(1) + 0.5 * (excess / rest - without.square().sum(1)))
        scaled = Scaled(no_left_out(codes), 1.0, 0.0, None)
        if len(kept) >= FEWEST_LEFT_OUT and len(means) > 1:
            rows = max(1, BLOCK_SCORES // len(means))
            parts = []
            for start in range(0, len(kept), rows):
                block = slice(start, start + rows)
                logits = torch.addmm(offsets, x[block], means.T, alpha=slope)
                logits.scatter_(1, own[block].unsqueeze(1), alone[block].unsqueeze(1))
                parts.append(compared(logits, own[block], TEMPERATURES))
            scaled = scale_and_doubt(joined(parts), kept, 1 / s, len(means))
        return cls(
            weights=slope / scaled.temperature * means,
            offsets=offsets / scaled.temperature,
            means=means,
            mass=shots,
            spread=spread,
            temperature=scaled.temperature,
            wrong_share=scaled.wrong_share,
            confidence=scaled.confidence,
            left_out=scaled.found,
        )


def fit_head(
    points: Float[Tensor, "point dim"],
    codes: Int[Tensor, "point"],
    n_classes: int,
    square_norm: float | None = None,
    names: Names | None = None,
) -> Head:
    """Fit a head to all examples of a catalogue, and to the names of its classes.

    Parameters
    ----------
    points, codes
        The examples, at least one of every class that has no name, and their classes 0 … K-1.
    n_classes
        K.
    square_norm
        Mean squared norm of the examples before their origin was moved, so that the ridge does not depend on the
        origin; that of `points` if it was not moved.
    names
        Names of some of the classes or of all, about the same origin.
    """
    if square_norm is None:
        square_norm = float(points.square().sum(1).double().mean())
    n_rows = len(points) if names is None else len(points) + len(names.codes)
    training = _Training.planned(n_rows, n_classes, points.shape[1], square_norm)
    rows, right = TrainingRows(points, codes, n_classes), torch.ones_like(points[:, 0])
    shots = rows.shots
    if training is None:
        means = rows.means(right, shots.clamp(min=1))
        return Head.of_means(*(means, shots) if names is None else names.blended(means, shots), points, codes)
    if names is not None:
        rows = _with_names(rows, names, training)
    mass = rows.mass(shots)
    means = rows.means(right, mass)

    scaled = Scaled(no_left_out(codes), training.usual_temperature(means), 0.0, None)
    slope, left_out = 1.0, _left_out(rows, training.folds)
    if left_out:
        unseen = [rows.unseen(training.fit, out) for out in left_out]
        scaled, slope = scale(unseen, shots)
        scaled = with_scores(scaled, unseen, mass, slope, shorter=not training.near)
    found, temperature = scaled.found, scaled.temperature

    right[found.rows] = found.right.to(right)
    doubtful = float((1 - right).sum(dtype=torch.float64)) >= 1
    if doubtful:
        # A class keeps the least mass that it may have, in the proportions of its examples' chances.
        of_examples = torch.zeros_like(shots).index_add_(0, codes, right)
        right *= (LEAST_MASS / of_examples).clamp(min=1)[codes]
        mass = rows.mass(of_examples.clamp(min=LEAST_MASS).where(shots > 0, 0))
        means = rows.means(right, mass)
    else:
        right = torch.ones_like(right)
    linear = rows.fit(training.fit, torch.ones_like(codes, dtype=torch.bool), right if doubtful else None)
    return Head(
        weights=linear.weights / temperature,
        offsets=(linear.offsets - slope * mass.log()) / temperature,
        means=means,
        mass=mass,
        spread=_spread(rows, right),
        temperature=temperature,
        wrong_share=scaled.wrong_share,
        confidence=scaled.confidence,
        left_out=found,
    )


def _with_names(rows: TrainingRows, names: Names, training: _Training) -> TrainingRows:
    """Add names, each worth as many examples as left-out examples say."""
    everywhere, named = bool((rows.shots > 0).all()), replace(rows, names=names)
    means = rows.means(torch.ones_like(rows.points[:, 0]), rows.shots.clamp(min=1))
    if not names.say_something(means, rows.shots):
        return rows if everywhere else named
    usual = replace(named, worth=USUAL_WORTH)
    left_out = _left_out(usual, FOLDS, ENOUGH_TO_CHOOSE)
    if not left_out:
        return usual
    best = usual.of_best_worth(training.fit, left_out)
    return rows if best.worth == 0 and everywhere else best


def _left_out(rows: TrainingRows, n_folds: int, enough: float = math.inf) -> list[Bool[Tensor, "point"]]:
    """Return sets of examples to leave out, until there are enough; none if there are too few examples or classes."""
    dealt = folds(rows.points, rows.codes, rows.named > 0)
    if int((dealt >= 0).sum()) < FEWEST_LEFT_OUT or rows.n_classes == 1:
        return []
    sets = [dealt == fold for fold in range(n_folds) if bool((dealt == fold).any())]
    n_out = torch.stack(sets).sum(1).cumsum(0)
    return sets[: 1 + int((n_out < enough).sum())]


@dataclass(frozen=True)
class _Training:
    """How heads of one catalogue are trained."""

    near: bool
    folds: int
    square_norm: float

    @classmethod
    def planned(cls, n_points: int, n_classes: int, dim: int, square_norm: float) -> _Training | None:
        """Choose by what it costs; None if only class means can be afforded."""
        cost = n_points * n_classes * min(n_points, dim)
        near = cost > FULL_WORK
        if near:
            if n_points * dim > NEAR_NUMBERS or n_classes * dim > NEAR_MEANS:
                return None
            cost = COST_OF_NEAR * n_points * RIVALS * dim
        return cls(near, FOLDS if cost <= FOLDED_WORK else 1, square_norm or 1.0)

    def usual_temperature(self, means: Float[Tensor, "class dim"]) -> float:
        """Return the temperature if nothing can be left out."""
        return NEAR_SLOPE / self.square_norm / _slope(means) if self.near else USUAL_TEMPERATURE

    def fit(
        self,
        points: Float[Tensor, "point dim"],
        codes: Int[Tensor, "point"],
        n_classes: int,
        right: Float[Tensor, "point"] | None,
    ) -> Linear:
        """Fit one head; its offsets follow the numbers of examples."""
        # About their mean and of unit length, rows of any origin and scale take the same steps to the minimum.
        centre, length = points.mean(0), self.square_norm**0.5
        linear = self._fit_scaled((points - centre) / length, codes, n_classes, right)
        weights = linear.weights / length
        return Linear(weights, linear.offsets - weights @ centre)

    def _fit_scaled(
        self,
        points: Float[Tensor, "point dim"],
        codes: Int[Tensor, "point"],
        n_classes: int,
        right: Float[Tensor, "point"] | None,
    ) -> Linear:
        if not self.near:
            return logistic(points, codes, n_classes, INVERSE_RIDGE, example_weights=right)
        each = torch.ones_like(points[:, 0]) if right is None else right
        mass = torch.zeros(n_classes, dtype=points.dtype, device=points.device).index_add_(0, codes, each)
        means = _class_means(points, codes, mass, each)
        # Of examples with unequal weights, a mean is as good as one of (Σr)²/Σr² equal ones.
        shots = mass.square() / torch.zeros_like(mass).index_add_(0, codes, each.square())
        excess = SHARE_OF_EXCESS * (_spread(TrainingRows(points, codes, n_classes), each) or 0.0)
        offsets = 0.5 * NEAR_SLOPE * (excess / shots - means.square().sum(1)) + mass.log()
        start, near = Linear(NEAR_SLOPE * means, offsets), nearest_classes(means, RIVALS)
        return logistic_near(points, codes, near, start, INVERSE_RIDGE, INVERSE_RIDGE, example_weights=right)


def _slope(means: Float[Tensor, "class dim"]) -> float:
    """κ of a head of class means at T = 1."""
    around = float((means - means.mean(0)).square().sum(1).mean())
    return NATS_OF_MEANS / around if around > 0 else 1.0


def _class_means(
    points: Float[Tensor, "point dim"],
    codes: Int[Tensor, "point"],
    mass: Float[Tensor, "class"],
    right: Float[Tensor, "point"],
) -> Float[Tensor, "class dim"]:
    """Σ r_n x_n / Σ r_n of each class."""
    sums = points.new_zeros(len(mass), points.shape[1]).index_add_(0, codes, points * right.unsqueeze(1))
    return sums / mass.unsqueeze(1)


def _spread(rows: TrainingRows, right: Float[Tensor, "point"]) -> float | None:
    """Σ r_n |x_n - μ_y|² / (Σ r_n - K) with the means μ of the examples, or None if there are too few examples."""
    points, codes = rows.points, rows.codes
    mass = torch.zeros_like(rows.shots).index_add_(0, codes, right)
    freedom = float(right.sum(dtype=torch.float64)) - int((mass > 0).sum())
    if freedom < ENOUGH_FOR_SPREAD:
        return None
    means = _class_means(points, codes, mass.clamp(min=LEAST_MASS), right)
    return float(torch.dot(right, (points - means[codes]).square().sum(1))) / freedom
