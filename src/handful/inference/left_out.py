"""What examples say about a head that has not seen them: its temperature, and how likely each label is right.

`T, ε = argmax Σ_n (1/s_y) ln[(1-ε) p_n(y_n) + ε/K]` with `p_n = softmax((l_n - a ln s)/T)` of the left-out logits l;
a is 1 if all s are equal, else the most likely multiple. `r_n = (1-ε) p_n(y_n) / [...]` is the chance that a label is
right.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from handful.numerics.logistic import Linear
from handful.shapes import Bool, Float, Int

FOLDS = 5
TEMPERATURES = torch.logspace(-1, 1, 55, dtype=torch.float64)
# Multiples of ln s that are tried where numbers of examples are unequal, and their prior deviation from one.
SLOPES, SLOPE_DEVIATION = (0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0), 0.1
# Share of wrong labels: limits, and updates at each temperature.
LEAST_WRONG, MOST_WRONG, WRONG_STEPS = 1e-4, 0.5, 15
# Scores in one block.
BLOCK_SCORES = 2**20


class LeftOut(NamedTuple):
    """What was found about examples that a head had not seen."""

    rows: Int[Tensor, "some"]  # which of the examples given
    right: Float[Tensor, "some"]  # chance that the label is right
    own: Float[Tensor, "some"]  # probability of its own class
    rival: Int[Tensor, "some"]  # the most probable other class
    lead: Float[Tensor, "some"]  # nats by which the rival is more probable than its own class
    score: Float[Tensor, "some"]  # S of its own class, if it were an item; NaN with class means
    rival_score: Float[Tensor, "some"]  # S of the rival


class Unseen(NamedTuple):
    """A head, the examples that it has not seen, and the logarithm of the numbers of those that it has."""

    rows: Int[Tensor, "some"]
    points: Float[Tensor, "some dim"]
    own: Int[Tensor, "some"]
    head: Linear
    log_shots: Float[Tensor, "class"]

    def logits(self, classes: Int[Tensor, "some"]) -> Float[Tensor, "some"]:
        """Logit of one class for each example."""
        return (self.points * self.head.weights[classes]).sum(1) + self.head.offsets[classes]

    def compared(self, slope: float, temperatures: Float[Tensor, "temperature"]) -> Compared:
        """Score the examples; `slope` times ln s is taken off."""
        size = max(1, BLOCK_SCORES // len(self.log_shots))
        offsets = self.head.offsets - slope * self.log_shots
        blocks = [slice(start, start + size) for start in range(0, len(self.rows), size)]
        return joined(
            [
                compared(torch.addmm(offsets, self.points[rows], self.head.weights.T), self.own[rows], temperatures)
                for rows in blocks
            ]
        )


class Compared(NamedTuple):
    """Left-out logits, compared with that of the example's own class."""

    behind: Float[Tensor, "temperature some"]  # -ln p(y) at each of the temperatures
    lead: Float[Tensor, "some"]  # logit of the best other class minus its own
    rival: Int[Tensor, "some"]


def compared(
    logits: Float[Tensor, "some class"], own: Int[Tensor, "some"], temperatures: Float[Tensor, "temperature"]
) -> Compared:
    """Compare; the logits are overwritten."""
    logits -= logits.gather(1, own.unsqueeze(1))
    behind = torch.stack([torch.logsumexp(logits / t, 1) for t in temperatures.tolist()])
    best = logits.scatter_(1, own.unsqueeze(1), -torch.inf).max(1)
    return Compared(behind.double(), best.values.double(), best.indices)


def joined(parts: list[Compared]) -> Compared:
    """Put the comparisons of several sets of examples one after the other."""
    return Compared(
        torch.cat([part.behind for part in parts], 1),
        torch.cat([part.lead for part in parts]),
        torch.cat([part.rival for part in parts]),
    )


class Scaled(NamedTuple):
    """What left-out examples say: about each of them, T, ε and the mean confidence."""

    found: LeftOut
    temperature: float
    wrong_share: float
    confidence: float | None


def scale(unseen: list[Unseen], shots: Float[Tensor, "class"]) -> tuple[Scaled, float]:
    """Return what left-out examples say, and the slope of ln s that is most likely.

    The slope is one where odds follow the numbers of examples. Classes of few examples can lag behind even then: their
    weights are short. If numbers are unequal, the slope is chosen at the temperature of slope one.
    """
    rows = torch.cat([one.rows for one in unseen])
    weights = 1 / shots[torch.cat([one.own for one in unseen])]

    def at(slope: float, temperatures: Float[Tensor, "temperature"]) -> Compared:
        return joined([one.compared(slope, temperatures) for one in unseen])

    found = scale_and_doubt(at(1.0, TEMPERATURES), rows, weights, len(shots))
    if bool((shots == shots[0]).all()):
        return found, 1.0
    here = TEMPERATURES.new_tensor([found.temperature])
    # The likelihood is a mean over classes. Wrong labels make numbers of examples uneven too, and the slope look steep.
    evidence = [
        len(shots) * float(likelihood(at(slope, here), weights, len(shots))[0][0])
        - 0.5 * ((slope - 1) / SLOPE_DEVIATION) ** 2
        for slope in SLOPES
    ]
    slope = SLOPES[evidence.index(max(evidence))]
    return scale_and_doubt(at(slope, TEMPERATURES), rows, weights, len(shots)), slope


def likelihood(
    compared: Compared, weights: Float[Tensor, "some"], n_classes: int
) -> tuple[Float[Tensor, "temperature"], Float[Tensor, "temperature"]]:
    """Return at each temperature the mean log-likelihood and the ε that maximises it."""
    w = weights.double() / weights.double().sum()
    p, any_class = torch.exp(-compared.behind), 1 / n_classes
    wrong = torch.full_like(p[:, :1], 0.05)
    for _ in range(WRONG_STEPS):
        right = (1 - wrong) * p / ((1 - wrong) * p + wrong * any_class)
        wrong = ((1 - right) @ w).clamp(LEAST_WRONG, MOST_WRONG).unsqueeze(1)
    return torch.log((1 - wrong) * p + wrong * any_class) @ w, wrong.squeeze(1)


def scale_and_doubt(
    compared: Compared, rows: Int[Tensor, "some"], weights: Float[Tensor, "some"], n_classes: int
) -> Scaled:
    """Return what is known about each example, T, ε and the mean confidence: T and ε maximise the likelihood."""
    likelihoods, wrong = likelihood(compared, weights, n_classes)
    best = int(likelihoods.argmax())
    share, temperature = float(wrong[best]), float(TEMPERATURES[best])
    p, lead = torch.exp(-compared.behind[best]), compared.lead / temperature
    top = torch.exp(lead.clamp(min=0) - compared.behind[best])
    right = (1 - share) * p / ((1 - share) * p + share / n_classes)
    order = rows.argsort()
    unknown = torch.full_like(p, torch.nan)
    found = LeftOut(rows[order], right[order], p[order], compared.rival[order], lead[order], unknown, unknown)
    w = weights.double() / weights.double().sum()
    return Scaled(found, temperature, share, float(top @ w))


def with_scores(
    scaled: Scaled, unseen: list[Unseen], shots: Float[Tensor, "class"], slope: float, *, shorter: bool
) -> Scaled:
    """Add the scores that the head of all examples would give.

    A head that saw s' of the s examples of a class has `shorter` weights. Logits times √(s/s') have the level of items.
    Weights that start from class means are not shorter.
    """
    found = scaled.found
    place = torch.empty(int(found.rows.max()) + 1, dtype=torch.int64, device=found.rows.device)
    place[found.rows] = torch.arange(len(found.rows), device=place.device)
    score, rival_score = torch.empty_like(found.lead), torch.empty_like(found.lead)
    for one in unseen:
        places = place[one.rows]
        longer = (shots[one.own].log() - one.log_shots[one.own]).mul(0.5).exp() if shorter else 1.0
        for room, classes in ((score, one.own), (rival_score, found.rival[places])):
            logits = longer * one.logits(classes) - slope * shots[classes].log()
            room[places] = logits.double() / scaled.temperature
    return scaled._replace(found=found._replace(score=score, rival_score=rival_score))


def no_left_out(codes: Int[Tensor, "point"]) -> LeftOut:
    """Return what is found about single examples if none can be left out: nothing."""
    nothing, no_number = codes[:0].long(), torch.zeros(0, dtype=torch.float64, device=codes.device)
    return LeftOut(nothing, no_number, no_number, nothing, no_number, no_number, no_number)


def folds(
    points: Float[Tensor, "point dim"], codes: Int[Tensor, "point"], named: Bool[Tensor, "class"] | None = None
) -> Int[Tensor, "point"]:
    """Return a fold for each example, -1 if its class has one distinct example and no name.

    The distinct rows of a class are assigned to the folds in the order of their distance from the mean of all examples.
    Folds therefore depend neither on the order of the examples nor on numbers of classes, origin or orientation. The
    hash of a row decides between equal distances.
    """
    away = (points - points.mean(0)).square_().sum(1).double()
    classes, inverse, shots = distinct(points, codes)
    distances = torch.zeros_like(classes, dtype=away.dtype).scatter_reduce_(0, inverse, away, "amax")
    order = distances.argsort(stable=True)
    order = order[classes[order].argsort(stable=True)]
    counts = torch.bincount(classes)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order), device=order.device) - (counts.cumsum(0) - counts)[classes[order]]
    sums = torch.zeros_like(counts, dtype=away.dtype).index_add_(0, classes, distances * shots)
    first = (sums / torch.bincount(codes)).argsort().argsort()  # not the same fold in all classes
    folds = (rank + first[classes]) % FOLDS
    left = counts[classes] > 1 if named is None else (counts[classes] > 1) | named[classes]
    return folds.where(left, -1)[inverse]


def copies(points: Float[Tensor, "point dim"], codes: Int[Tensor, "point"]) -> Float[Tensor, "point"]:
    """Return how many examples of its class have the same row, itself included."""
    _, inverse, shots = distinct(points, codes)
    return shots[inverse].to(points)


def first_copies(
    points: Float[Tensor, "point dim"], codes: Int[Tensor, "point"]
) -> tuple[Int[Tensor, "row"], Int[Tensor, "point"]]:
    """Return the first example of each distinct row of a class, and which of these each example is a copy of."""
    _, inverse, shots = distinct(points, codes)
    places = torch.arange(len(codes), device=codes.device)
    first = torch.full_like(shots, len(codes)).scatter_reduce_(0, inverse, places, "amin")
    order = first.argsort()
    return first[order], order.argsort()[inverse]


def distinct(
    points: Float[Tensor, "point dim"], codes: Int[Tensor, "point"]
) -> tuple[Int[Tensor, "row"], Int[Tensor, "point"], Int[Tensor, "row"]]:
    """Return the class of each distinct row, by class and hash; the row of each example; and its number of examples."""
    keys = torch.stack([codes.long(), row_hashes(points)], 1)
    rows, inverse, shots = torch.unique(keys, dim=0, return_inverse=True, return_counts=True)
    return rows[:, 0], inverse, shots


def row_hashes(points: Float[Tensor, "point dim"]) -> Int[Tensor, "point"]:
    """Return a number for each row, equal for equal rows."""
    generator = torch.Generator().manual_seed(0)
    # Two numbers of single precision are one integer.
    pairs = points.shape[1] % 2 == 0 or points.dtype == torch.float64
    bits = (points + 0.0).contiguous().view(torch.int64 if pairs else torch.int32).long()
    odd = torch.randint(-(2**62), 2**62, (bits.shape[1],), generator=generator, dtype=torch.int64) * 2 + 1
    # Integer products and sums are exact modulo 2^64, in any order.
    return (bits * odd.to(bits.device)).sum(1)
