"""What looks wrong with a catalogue: classes that cannot be told apart, examples of another class, lone examples.

The examples are scored by heads that did not see them (`handful.model.head`). A label is suspect if it is more
likely wrong than right, given the share of wrong labels in the whole catalogue.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from handful.fitted.labels import places_of
from handful.fitted.parts import ClassMeans, Examples
from handful.model.left_out import LeftOutExamples
from handful.reading.class_names import SimilarNames, similar_summary

# Two classes cannot be told apart if this share of their held-out examples is more probable in the other class.
# [ratio; convention]
CONFUSED_SHARE = 0.5
# Entries of each kind that are printed. [entries; convention]
MOST_PRINTED = 10
# Chances above this are not printed as a number. [chance; convention]
NEARLY_CERTAIN = 0.99


class Suspect(NamedTuple):
    """An example that looks mislabelled."""

    position: int  # among the examples, in the order in which they were given
    label: Any
    looks_like: Any
    chance_wrong: float  # chance that the label is wrong

    def __str__(self) -> str:
        sure = self.chance_wrong > NEARLY_CERTAIN
        chance = f"more than {NEARLY_CERTAIN:.0%}" if sure else f"{self.chance_wrong:.0%}"
        looks = f"looks like {self.looks_like} (wrong with a probability of {chance})."
        return f"Example {self.position}, labelled {self.label}, {looks}"


class Confusion(NamedTuple):
    """Two classes, and the share of their examples that, when left out, fit the other class better than their own."""

    first: Any
    second: Any
    share: float

    def __str__(self) -> str:
        share = f"{self.share:.0%} of their examples look more like the other class."
        return f"{self.first} and {self.second} cannot be told apart: {share}"


@dataclass(frozen=True)
class ModelReport:
    """What looks wrong with a catalogue.

    Attributes
    ----------
    n_classes, n_examples : int
        Size of the catalogue.
    single : list
        Classes with one example: the spread of their items is unknown.
    only_named : list
        Classes with a name and no example.
    confusions : list of Confusion
        Classes that cannot be told apart, the worst first.
    suspects : list of Suspect
        Examples that look mislabelled, the clearest first.
    similar : list of SimilarNames
        Classes with names that differ only by case, inner blanks, dashes, underscores or the form of characters.
    n_checked : int
        Examples that were left out of training once and scored. A class with one distinct example cannot be checked.
        If all others are fewer than 20, none are.

    Examples
    --------
    >>> import numpy as np
    >>> from handful.fitted import FittedModel
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(size=(20, 16))
    >>> X, y = centres.repeat(5, axis=0) + 0.5 * rng.normal(size=(100, 16)), np.arange(20).repeat(5)
    >>> y[7] = 12  # it is a 1
    >>> [(suspect.position, suspect.looks_like) for suspect in FittedModel.of(X, y).report().suspects]
    [(7, 1)]
    """

    n_classes: int
    n_examples: int
    single: list[Any]
    only_named: list[Any]
    confusions: list[Confusion]
    suspects: list[Suspect]
    similar: list[SimilarNames]
    n_checked: int

    def __str__(self) -> str:
        lines = [f"{self.n_classes:,} classes, {self.n_examples:,} examples."]
        if self.n_checked < self.n_examples - len(self.single):
            lines[0] += f" {self.n_checked:,} examples were checked."
        if self.single:
            lines.append(f"{len(self.single)} classes have one example: {_listed(self.single)}.")
        if self.only_named:
            lines.append(f"{len(self.only_named)} classes have a name and no example: {_listed(self.only_named)}.")
        lines += [similar_summary(self.similar)] if self.similar else []
        lines += [str(one) for one in (*self.confusions[:MOST_PRINTED], *self.suspects[:MOST_PRINTED])]
        hidden = max(0, len(self.confusions) - MOST_PRINTED) + max(0, len(self.suspects) - MOST_PRINTED)
        if hidden:
            lines.append(f"And {hidden} more, in `confusions` and `suspects`.")
        return "\n".join(lines if len(lines) > 1 else [*lines, "Nothing looks wrong."])


def report_on(
    known: ClassMeans, examples: Examples, left_out: LeftOutExamples, similar: list[SimilarNames]
) -> ModelReport:
    """Say what was found about the examples that were left out."""
    names = known.classes.tolist()
    shots = known.shots
    rows = left_out.rows
    right = left_out.right
    rival = left_out.rival
    own = places_of(examples.labels[rows], known.classes)
    suspects = [
        Suspect(int(examples.positions[rows[i]]), names[own[i]], names[rival[i]], float(1 - right[i]))
        for i in np.argsort(right, kind="stable")
        if right[i] < 0.5
    ]
    pairs = sorted(((n / of, j, k) for j, k, n, of in confused_pairs(left_out, own)), reverse=True)
    confusions = [Confusion(names[j], names[k], share) for share, j, k in pairs if share >= CONFUSED_SHARE]
    single = known.classes[shots == 1].tolist()
    only_named = known.classes[shots == 0].tolist()
    return ModelReport(len(names), int(shots.sum()), single, only_named, confusions, suspects, similar, len(rows))


def confused_pairs(left_out: LeftOutExamples, own: npt.NDArray[np.int64]) -> list[tuple[int, int, int, int]]:
    """Return pairs of classes, how many of their held-out examples fit the other one better, and of how many."""
    checked = np.bincount(own, minlength=int(max(own.max(initial=0), left_out.rival.max(initial=0))) + 1)
    pairs = np.sort(np.stack([own, left_out.rival], -1)[left_out.lead > 0], -1)
    found, counts = np.unique(pairs, axis=0, return_counts=True)
    rows = [
        (int(j), int(k), int(n), int(checked[j] + checked[k]))
        for (j, k), n in zip(found.tolist(), counts.tolist(), strict=True)
    ]
    return sorted(rows, key=lambda row: (-row[-2] / row[-1], -row[-2]))


def _listed(labels: list[Any]) -> str:
    """Return the first labels, and how many more there are."""
    more = len(labels) - MOST_PRINTED
    return ", ".join(map(str, labels[:MOST_PRINTED])) + (f" and {more} more" if more > 0 else "")
