"""One batch labelled twice, each item alone and jointly: code shared by the studies of harm."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from handful.estimators import PaddleClassifier, TransductiveClassifier
from handful.estimators.inference import Inference
from handful.reports.summary import Estimate

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Row = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """One batch: which items each classifier labelled rightly, and all that the joint one said."""

    alone: Bools
    jointly: Bools
    said: Inference

    @property
    def warned(self) -> bool:
        """Whether the joint answer came with a diagnostic."""
        return bool(self.said.diagnostics)

    @property
    def gain(self) -> float:
        """Points of accuracy that labelling jointly adds."""
        return 100 * float(self.jointly.mean() - self.alone.mean())


class Catalogue:
    """Both classifiers, fitted to the same examples."""

    def __init__(self, examples: Floats, labels: Ints) -> None:
        self.examples, self.labels = examples, labels
        self.alone = TransductiveClassifier("nearest_prototype", feature_transform="l2").fit(examples, labels)
        self.jointly = PaddleClassifier().fit(examples, labels)

    def outcome(self, batch: Floats, truth: Ints) -> Outcome:
        """Label a batch both ways; items of no class have a truth that no example has."""
        with warnings.catch_warnings(action="ignore"):
            said = self.jointly.infer(batch)
            return Outcome(self.alone.predict(batch) == truth, said.labels == truth, said)

    def nearest(self, batch: Floats) -> Floats:
        """Squared distance of each item to its nearest class mean."""
        means = np.stack([self.examples[self.labels == label].mean(0) for label in np.unique(self.labels)])
        squares = (batch**2).sum(-1, keepdims=True) - 2 * batch @ means.T + (means**2).sum(-1)
        found: Floats = squares.min(-1)
        return found


def unit(path: Path) -> Floats:
    """Rows of an array file at length 1."""
    rows = np.load(path).astype(np.float32)
    found: Floats = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return found


def whole_numbers(path: Path) -> Ints:
    """Read an array file as 64-bit integers."""
    found: Ints = np.load(path).astype(np.int64)
    return found


def bank(folder: Path) -> tuple[Floats, Ints]:
    """Read unit vectors and labels of a bank."""
    return unit(folder / "features.npy"), whole_numbers(folder / "labels.npy")


def percent(values: Bools | list[bool]) -> float:
    """Share of what is true, in percent."""
    return round(100 * float(np.mean(values)), 1)


def compared(outcomes: list[Outcome]) -> Row:
    """Mean accuracies over batches of equal size, and their paired difference."""
    gain = Estimate.of(np.array([one.gain for one in outcomes]))
    return {
        "batches": len(outcomes),
        "alone": percent(np.concatenate([one.alone for one in outcomes])),
        "jointly": percent(np.concatenate([one.jointly for one in outcomes])),
        "gain": round(gain.mean, 1),
        "half_width": round(gain.half_width, 1),
        "harmed": sum(one.gain < -5 for one in outcomes),
        "harmed_warned": sum(one.gain < -5 and one.warned for one in outcomes),
    }


def shuffled(rng: np.random.Generator, labels: Ints) -> list[Ints]:
    """Rows of each class in random order."""
    return [rng.permutation(np.flatnonzero(labels == k)) for k in range(int(labels.max()) + 1)]


def chosen(rng: np.random.Generator, rows: list[Ints], present: int, size: int) -> Ints:
    """Draw items of a few classes, without replacement."""
    pool = np.concatenate([rows[k] for k in rng.choice(len(rows), present, replace=False)])
    found: Ints = rng.choice(pool, size, replace=False)
    return found


def calibration_error(said: npt.NDArray[np.float64], right: Bools, bins: int = 15) -> float:
    """`Σ_b n_b/n |accuracy_b - confidence_b|` over bins of equal width."""
    place = np.minimum((said * bins).astype(int), bins - 1)
    return sum(abs(float(right[place == b].sum() - said[place == b].sum())) for b in range(bins)) / len(said)


def mean(values: list[float]) -> float:
    """Mean to three places."""
    return round(float(np.mean(values)), 3)
