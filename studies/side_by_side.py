"""One batch labelled by several rules, and what a cell of batches says about them: code shared by the studies of harm.

The rules, by the names that results use:

- `prototype`: the nearest class mean, each item alone.
- `head`: the highest score of the catalogue's head, each item alone, with all classes equally likely.
- `logistic`: the same with classes as probable as their share of the examples, as plain logistic regression has it;
  the same labels as `head` where all classes have equally many examples.
- `head_emq`, `prototype_emq`: EM for the class proportions (EMQ) on the scores of the head, or on half squared
  distances to class means, at a fixed sharpness.
- `roll_call`: the default, through `BatchClassifier`.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from handful.estimators import BatchClassifier
from handful.fewshot.reports.summary import Estimate

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Row = dict[str, Any]

ALONE = ("prototype", "head", "logistic")
OURS = "roll_call"
HARM = 5.0  # points below a rule that labels items alone
ENOUGH_CATALOGUES = 5  # for an interval over catalogues
BINS, PRESENCE_BINS = 15, 10
LEAST_PROBABILITY = 1e-12  # in log losses
STACK = 2e7  # entries [batch, item, class] that are solved at once
EMQ_ITERATIONS, EMQ_TOLERANCE = 150, 1e-5


class Batch(NamedTuple):
    """Unit vectors, their true labels (one that no example has: an item of no class), and which items they are."""

    points: Floats
    truth: Ints
    items: Ints


class Sharpness(NamedTuple):
    """What EMQ divides the head's logits by, and what it multiplies unit vectors by before distances are taken."""

    temperature: float
    factor: float


@dataclass(frozen=True)
class Outcome:
    """What every rule made of one batch; entries are the items of known classes, except in `doubt` and `distance`."""

    catalogue: int
    items: Ints
    right: dict[str, Bools]
    said: dict[str, npt.NDArray[np.float64]] = field(default_factory=dict)  # probability of the label given
    loss: dict[str, npt.NDArray[np.float64]] = field(default_factory=dict)  # -ln probability of the true label
    presence: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    there: Bools = field(default_factory=lambda: np.zeros(0, dtype=bool))
    called: Bools = field(default_factory=lambda: np.zeros(0, dtype=bool))
    diagnostics: tuple[str, ...] = ()
    doubt: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    distance: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def accuracy(self, rule: str) -> float:
        """Percent of the items that a rule labels rightly."""
        return 100 * float(self.right[rule].mean())

    def only(self, chosen: Bools) -> Outcome:
        """Keep some of the items for accuracy."""
        return replace(self, items=self.items[chosen], right={k: v[chosen] for k, v in self.right.items()})

    def harmed(self, rules: Sequence[str]) -> bool:
        """Whether the answer is more than 5 points below the best of some rules."""
        return self.accuracy(OURS) < max(self.accuracy(rule) for rule in rules) - HARM


class Catalogue:
    """All rules, fitted to the same examples; `number` tells catalogues of one cell apart."""

    def __init__(self, examples: Floats, labels: Ints, number: int = 0) -> None:
        self.number = number
        self.classes, codes = np.unique(labels, return_inverse=True)
        self.examples, self.codes = torch.from_numpy(examples), torch.from_numpy(codes.astype(np.int64))
        sums = torch.zeros(len(self.classes), examples.shape[1]).index_add_(0, self.codes, self.examples)
        self.means = sums / torch.bincount(self.codes).unsqueeze(-1)
        began = time.process_time()
        with warnings.catch_warnings(action="ignore"):
            self.jointly = BatchClassifier().fit(examples, labels)
            fitted: Any = self.jointly.catalogue_
            self.head, self.origin = fitted.head, torch.from_numpy(fitted.origin)
        self.seconds = time.process_time() - began

    def outcomes(self, batches: Sequence[Batch], emq: Sharpness | None = None) -> list[Outcome]:
        """Label batches by all rules, by EMQ too where its sharpness is given."""
        found: dict[int, Outcome] = {}
        by_size: dict[int, list[int]] = {}
        for place, batch in enumerate(batches):
            by_size.setdefault(len(batch.points), []).append(place)
        for size, places in by_size.items():
            step = max(1, int(STACK / (size * len(self.classes))))
            for start in range(0, len(places), step):
                part = places[start : start + step]
                found |= dict(zip(part, self._stack([batches[place] for place in part], emq), strict=True))
        return [found[place] for place in range(len(batches))]

    def half_distances(self, points: Tensor) -> Tensor:
        """`½‖z - w_k‖²` to the class means."""
        squares = points.square().sum(-1, keepdim=True) + self.means.square().sum(-1)
        return (0.5 * squares - points @ self.means.T).clamp_(min=0)

    def scores(self, points: Tensor) -> Tensor:
        """`S_k(z)` of the head."""
        weights, offsets = torch.from_numpy(self.head.weights), torch.from_numpy(self.head.offsets)
        found: Tensor = (points - self.origin) @ weights.T + offsets
        return found

    def codes_of(self, labels: Ints) -> Ints:
        """Place of each label among the classes, -1 for a label that no example has."""
        place = np.searchsorted(self.classes, labels).clip(max=len(self.classes) - 1)
        return np.where(self.classes[place] == labels, place, -1)

    def _stack(self, batches: Sequence[Batch], emq: Sharpness | None) -> Iterable[Outcome]:
        points = torch.from_numpy(np.stack([batch.points for batch in batches]))
        halves, scores = self.half_distances(points), self.scores(points)
        with_shares = scores * self.head.temperature + torch.from_numpy(np.log(self.head.mass))
        labels = {
            "prototype": halves.argmin(-1),
            "head": scores.argmax(-1),
            "logistic": with_shares.argmax(-1),
        }
        likely: dict[str, Tensor] = {}
        if emq is not None:
            likely["head_emq"] = proportions_by_em(scores * (self.head.temperature / emq.temperature))
            likely["prototype_emq"] = proportions_by_em(-(emq.factor**2) * halves)
            labels |= {rule: likely[rule].argmax(-1) for rule in ("head_emq", "prototype_emq")}
        for place, batch in enumerate(batches):
            with warnings.catch_warnings(action="ignore"):
                answer = self.jointly.infer(batch.points)
            truth = self.codes_of(batch.truth)
            known = truth >= 0
            given = {rule: values[place].numpy() for rule, values in labels.items()}
            given[OURS] = self.codes_of(answer.labels)
            chances = {rule: values[place].double().numpy() for rule, values in likely.items()}
            chances[OURS] = np.asarray(answer.probabilities, dtype=np.float64)
            rows = np.flatnonzero(known)
            yield Outcome(
                self.number,
                batch.items[known],
                {rule: (values == truth)[known] for rule, values in given.items()},
                {rule: p[rows, given[rule][rows]] for rule, p in chances.items()},
                {rule: -np.log(p[rows, truth[rows]].clip(min=LEAST_PROBABILITY)) for rule, p in chances.items()},
                np.asarray(answer.presence),
                np.bincount(truth[known], minlength=len(self.classes)) > 0,
                np.isin(self.classes, answer.present_classes),
                tuple(diagnostic.name for diagnostic in answer.diagnostics),
                1 - chances[OURS].max(-1),
                halves[place].amin(-1).double().numpy(),
            )


def proportions_by_em(scores: Tensor) -> Tensor:
    """`u_nk ∝ π_k exp(S_nk)`, `π_k = mean_n u_nk`, alternated from a uniform π; returns u of each batch of a stack."""
    found = torch.exp(scores - scores.amax(-1, keepdim=True))
    for likelihood in found:  # one batch after the other stays in the cache, and stops when it is done
        shares = torch.full_like(likelihood[0], 1 / scores.shape[-1])
        for _ in range(EMQ_ITERATIONS):
            before, shares = shares, shares * ((1 / (likelihood @ shares)) @ likelihood) / len(likelihood)
            if float((shares - before).abs().max()) <= EMQ_TOLERANCE:
                break
        likelihood *= shares
    return found / found.sum(-1, keepdim=True)


# ---------------------------------------------------------------------------------------------------------------------


def estimated(outcomes: Sequence[Outcome], rule: str, over_items: bool) -> Estimate:
    """Points by which `roll_call` is ahead of a rule on the same batches, with a 95 % interval.

    Batches of one catalogue are not independent, so the interval is Student's t over the means of catalogues where
    there are five or more; over batches where there are fewer. `over_items`: the same items come again in several
    batches, so it is over items, each averaged over its batches.
    """
    if over_items:
        items = np.concatenate([one.items for one in outcomes])
        gains = 100 * np.concatenate([one.right[OURS].astype(float) - one.right[rule] for one in outcomes])
        _, place = np.unique(items, return_inverse=True)
        return Estimate.of(np.bincount(place, gains) / np.bincount(place))
    gains = np.array([one.accuracy(OURS) - one.accuracy(rule) for one in outcomes])
    numbers = np.array([one.catalogue for one in outcomes])
    which = np.unique(numbers)
    if len(which) >= ENOUGH_CATALOGUES:
        gains = np.array([gains[numbers == number].mean() for number in which])
    return Estimate.of(gains)


def cell(outcomes: Sequence[Outcome], *, over_items: bool = False) -> Row:
    """Accuracies, paired differences, harm and warnings of a cell, from batches with an item of a known class.

    `ahead` has `[points, half width]` for every rule, and `alone` names the rule with the highest accuracy in this cell
    among those that label each item alone.
    """
    found = [one for one in outcomes if len(one.items)]
    rules = [rule for rule in found[0].right if rule != OURS]
    sizes = np.array([len(one.items) for one in found], dtype=float)
    weights = sizes if over_items else np.ones(len(found))
    accuracy = {
        rule: float(np.average([one.accuracy(rule) for one in found], weights=weights)) for rule in (*rules, OURS)
    }
    ahead = {rule: estimated(found, rule, over_items) for rule in rules}
    return {
        "catalogues": len({one.catalogue for one in found}),
        "batches": len(found),
        "items": round(float(sizes.mean()), 1),
        "accuracy": {rule: round(value, 2) for rule, value in accuracy.items()},
        "ahead": {rule: [round(e.mean, 2), round(e.half_width, 2)] for rule, e in ahead.items()},
        "alone": max(ALONE, key=accuracy.__getitem__),
        "warnings": warnings_of(found),
    }


def warnings_of(outcomes: Sequence[Outcome]) -> Row:
    """Batches harmed and not harmed, `[batches, of which warned]`, and how often each diagnostic came, likewise.

    `cell`: harmed against the rule that is the best of this cell among those that label each item alone. `batch`:
    against the one that happens to be the best on this batch.
    """
    best = max(ALONE, key=lambda rule: float(np.mean([one.accuracy(rule) for one in outcomes])))
    found: Row = {}
    for against, rules in (("cell", (best,)), ("batch", ALONE)):
        harmed = [one for one in outcomes if one.harmed(rules)]
        others = [one for one in outcomes if not one.harmed(rules)]
        found[against] = {
            "harmed": [len(harmed), sum(bool(one.diagnostics) for one in harmed)],
            "others": [len(others), sum(bool(one.diagnostics) for one in others)],
        }
    names = Counter(name for one in outcomes for name in set(one.diagnostics))
    harmful = Counter(name for one in outcomes if one.harmed((best,)) for name in set(one.diagnostics))
    return {**found, "diagnostics": {name: [harmful[name], names[name] - harmful[name]] for name in sorted(names)}}


def certainty(outcomes: Sequence[Outcome]) -> Row:
    """Calibration error in points and log loss of every rule with probabilities, and bins of `presence`."""
    rules = list(outcomes[0].said)
    said = {rule: np.concatenate([one.said[rule] for one in outcomes]) for rule in rules}
    right = {rule: np.concatenate([one.right[rule] for one in outcomes]) for rule in rules}
    return {
        "calibration_error": {rule: round(100 * calibration_error(said[rule], right[rule]), 2) for rule in rules},
        "confidence": {rule: round(100 * float(said[rule].mean()), 2) for rule in rules},
        "log_loss": {
            rule: round(float(np.concatenate([one.loss[rule] for one in outcomes]).mean()), 3) for rule in rules
        },
        "presence": presence_bins(
            np.concatenate([one.presence for one in outcomes]), np.concatenate([one.there for one in outcomes])
        ),
    }


def presence_bins(said: npt.NDArray[np.float64], there: Bools) -> list[Row]:
    """Mean `presence` and percent of classes really there, in ten bins of equal width, one case per class and batch."""
    place = np.minimum((said * PRESENCE_BINS).astype(int), PRESENCE_BINS - 1)
    return [
        {
            "bin": number,
            "cases": int(inside.sum()),
            "said": round(100 * float(said[inside].mean()), 1),
            "there": round(100 * float(there[inside].mean()), 1),
        }
        for number, inside in ((b, place == b) for b in range(PRESENCE_BINS))
        if inside.any()
    ]


def calibration_error(said: npt.NDArray[np.float64], right: Bools, bins: int = BINS) -> float:
    """`Σ_b n_b/n |accuracy_b - confidence_b|` over bins of equal width."""
    place = np.minimum((said * bins).astype(int), bins - 1)
    return sum(abs(float(right[place == b].sum() - said[place == b].sum())) for b in range(bins)) / len(said)


# ---------------------------------------------------------------------------------------------------------------------


def unit(path: Path) -> Floats:
    """Rows of an array file at length 1."""
    rows = np.load(path).astype(np.float32)
    found: Floats = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return found


def whole_numbers(path: Path) -> Ints:
    """Read an array file as 64-bit integers."""
    found: Ints = np.load(path).astype(np.int64)
    return found


def shuffled(rng: np.random.Generator, labels: Ints) -> list[Ints]:
    """Rows of each class in random order."""
    return [rng.permutation(np.flatnonzero(labels == k)) for k in range(int(labels.max()) + 1)]


def chosen(rng: np.random.Generator, rows: Sequence[Ints], classes: Iterable[int], size: int) -> Ints:
    """Draw items of these classes without replacement; all of them if there are fewer."""
    pool = np.concatenate([rows[k] for k in classes])
    found: Ints = rng.choice(pool, min(size, len(pool)), replace=False)
    return found
