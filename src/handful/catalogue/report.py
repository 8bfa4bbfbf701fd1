"""What looks wrong with a catalogue: classes that cannot be told apart, examples of another class, lone examples.

Every kept example is left out of its own class and compared with all others. With s examples in the class its half
squared distance to the mean of the others, corrected as in `handful.inference.calibration`, is `½ (s + 1)/(s - 1) ‖z -
w‖²`, and c² times the difference to another class is the margin, in nats, by which that class is nearer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from handful.catalogue.labels import places_of
from handful.catalogue.parts import ClassMeans, Examples
from handful.shapes import Float, Int

# An example looks mislabelled when another class is nearer by this many nats: odds of twenty to one.
MISLABELLED_NATS = 3.0
# Two classes cannot be told apart if this share of their examples is nearer to the other class than to its own.
CONFUSED_SHARE = 0.5
# Numbers in one block of margins.
COMPARED_NUMBERS = 2**23
# Entries of each kind that are printed.
MOST_PRINTED = 10
# Above this many nats, odds are not printed as a number.
MOST_NATS_IN_WORDS = math.log(1e6)


class Suspect(NamedTuple):
    """An example that looks mislabelled."""

    position: int  # among the examples, in the order in which they were given
    label: Any
    looks_like: Any
    nats: float


class Confusion(NamedTuple):
    """Two classes, and the share of their examples that is nearer to the other class than to its own."""

    first: Any
    second: Any
    share: float


@dataclass(frozen=True)
class CatalogueReport:
    """What looks wrong with a catalogue.

    Attributes
    ----------
    n_classes, n_examples : int
        Size of the catalogue.
    single : list
        Classes with one example: the spread of their items is unknown.
    confusions : list of Confusion
        Classes that cannot be told apart, the worst first.
    suspects : list of Suspect
        Examples that look mislabelled, the clearest first.
    n_checked : int
        Examples that were checked.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from handful.catalogue import Catalogue
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(size=(20, 16))
    >>> X, y = centres.repeat(5, axis=0) + 0.5 * rng.normal(size=(100, 16)), np.arange(20).repeat(5)
    >>> y[7] = 12  # it is a 1
    >>> [(suspect.position, suspect.looks_like) for suspect in Catalogue.of(torch.tensor(X), y).report().suspects]
    [(7, 1)]
    """

    n_classes: int
    n_examples: int
    single: list[Any]
    confusions: list[Confusion]
    suspects: list[Suspect]
    n_checked: int

    def __str__(self) -> str:
        lines = [f"{self.n_classes:,} classes, {self.n_examples:,} examples."]
        if self.n_checked < self.n_examples - len(self.single):
            lines[0] += f" {self.n_checked:,} examples were checked."
        if self.single:
            lines.append(f"{len(self.single)} classes have one example: {_listed(self.single)}.")
        lines += [
            f"{pair.first} and {pair.second} cannot be told apart: {pair.share:.0%} of their examples are nearer to "
            "the other class."
            for pair in self.confusions[:MOST_PRINTED]
        ]
        lines += [
            f"Example {suspect.position}, labelled {suspect.label}, looks like {suspect.looks_like} "
            f"({_odds(suspect.nats)})."
            for suspect in self.suspects[:MOST_PRINTED]
        ]
        hidden = max(0, len(self.confusions) - MOST_PRINTED) + max(0, len(self.suspects) - MOST_PRINTED)
        if hidden:
            lines.append(f"And {hidden} more, in `confusions` and `suspects`.")
        return "\n".join(lines if len(lines) > 1 else [*lines, "Nothing looks wrong."])


def report_on(
    known: ClassMeans, examples: Examples, origin: Float[Tensor, "dim"], squared_scale: float
) -> CatalogueReport:
    """Look at the examples; c² turns half squared distances into nats."""
    names, shots = known.classes.tolist(), known.shots.cpu().numpy()
    own = places_of(examples.labels, known.classes)
    checked = np.flatnonzero(shots[own] > 1)
    points = examples.points[torch.from_numpy(checked).to(origin.device)] - origin
    rival, nearer_by = _nearest_rivals(known, points, torch.from_numpy(own[checked]).to(origin.device))
    nats = squared_scale * nearer_by
    suspects = [
        Suspect(int(examples.positions[checked[row]]), names[own[checked[row]]], names[rival[row]], float(nats[row]))
        for row in np.argsort(-nats, kind="stable")
        if nats[row] >= MISLABELLED_NATS
    ]
    pairs = np.sort(np.stack([own[checked], rival], -1)[nats > 0], -1)
    n_checked = np.bincount(own[checked], minlength=len(names))
    shares = [
        (n / (n_checked[j] + n_checked[k]), j, k)
        for (j, k), n in zip(*(found.tolist() for found in np.unique(pairs, axis=0, return_counts=True)), strict=True)
    ]
    confusions = [
        Confusion(names[j], names[k], float(share))
        for share, j, k in sorted(shares, reverse=True)
        if share >= CONFUSED_SHARE
    ]
    single = known.classes[shots == 1].tolist()
    return CatalogueReport(len(names), int(shots.sum()), single, confusions, suspects, len(checked))


def _nearest_rivals(
    known: ClassMeans, points: Float[Tensor, "row dim"], own: Int[Tensor, "row"]
) -> tuple[Int[np.ndarray, "row"], Float[np.ndarray, "row"]]:
    """Return the nearest other class of each example, and by how much nearer than its own it is, in half squares."""
    means, shots = known.means, known.shots
    offsets = torch.linalg.vector_norm(means, dim=-1).square_().mul_(-0.5)
    rivals, margins = [], []
    size = max(1, COMPARED_NUMBERS // len(means))
    for start in range(0, len(points), size):
        part, classes = points[start : start + size], own[start : start + size]
        count = shots[classes]
        away = 0.5 * (part - means[classes]).square().sum(-1) * (count + 1) / (count - 1)
        scores = torch.addmm(offsets, part, means.mT).scatter_(1, classes.unsqueeze(-1), -torch.inf)
        best = scores.max(-1)
        rivals.append(best.indices)
        margins.append(away - (0.5 * part.square().sum(-1) - best.values))
    if not rivals:
        return np.empty(0, np.int64), np.empty(0)
    return torch.cat(rivals).cpu().numpy(), torch.cat(margins).double().cpu().numpy()


def _odds(nats: float) -> str:
    """Return nats as odds, in words."""
    return f"{math.exp(nats):,.0f} to 1" if nats < MOST_NATS_IN_WORDS else "more than a million to 1"


def _listed(labels: list[Any]) -> str:
    """Return the first labels, and how many more there are."""
    more = len(labels) - MOST_PRINTED
    return ", ".join(map(str, labels[:MOST_PRINTED])) + (f" and {more} more" if more > 0 else "")
