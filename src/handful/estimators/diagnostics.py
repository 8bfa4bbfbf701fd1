"""Diagnostics: what looks wrong with an answer, what it means and what to do about it.

Every check compares one number with one threshold. Thresholds were chosen on three banks (clinc150, cub200 and
omniglot659), between the values of ordinary batches and those of broken ones; the numbers in the comments are of 2 and
5 examples per class, 75 items per batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from handful.errors import (
    EqualClassesWarning,
    HandfulWarning,
    OverturnedScoresWarning,
    UnlikeCatalogueWarning,
    UnusedShareWarning,
    WeakFeaturesWarning,
)
from handful.fitted.fitted import equal_sentence
from handful.model.head import LinearHead
from handful.shapes import Float, Int

# With fewer items nothing is checked. [items; convention]
FEWEST_ITEMS = 10
# Items, each alone, are less certain than this share of what held-out examples are. Ordinary batches of five and more
# classes: from 0.80. Batches of one or two classes depend on these alone: from 0.68 with five examples per class, from
# 0.43 with two (on clinc150 and cub200, 23 of 240 are below the threshold, most of them single classes of cub200).
# Classes that are each other's nearest: from 0.64 (6 of 480 below, all of cub200). Sentences full of typing errors:
# 0.54 to 1.02 (73 of 240 below); with words left out, from 0.76. Vectors with their dimensions in another order: 0.06
# to 0.40, and up to 0.83 on omniglot659. In small catalogues such vectors are often missed, because an offset common to
# all items makes one class likely: on clinc150 and cub200, 208 of 240 are below with 60 classes, 110 of 240 with 20,
# and 14 of 120 with 5. [ratio; measured]
LEAST_CONFIDENCE = 0.7
# Held-out examples are certain of a class, beyond a guess among K, by less than this. Labels shuffled between rows:
# 0.003 at most; all others: from 0.18. [chance; measured]
LEAST_SIGNAL = 0.1
# Two classes with the same examples are mentioned if they have at least this many items, expected. [items; convention]
LEAST_EQUAL = 0.5
# What a model scores this high is a label that people take over without a look. [chance; convention]
HIGH_SCORE = 0.9


@dataclass(frozen=True)
class Diagnostic:
    """One thing that looks wrong.

    Attributes
    ----------
    name : str
        `unlike_catalogue`, `weak_features`, `zero_vectors`, `unused_share`, `equal_classes` or `overturned_scores`;
        methods of other packages have names of their own.
    message : str
        What was seen, what it means and what to do.
    value, threshold : float
        The number checked, and the threshold it passed.
    warning : type
        The corresponding warning class.
    items : tuple of int
        Positions within the batch of the items to look at, the first one first; empty if it is about all of them.

    Examples
    --------
    Vectors whose dimensions come in another order than the catalogue's:

    >>> import warnings
    >>> import numpy as np
    >>> from handful.datasets import load_clinc150
    >>> from handful.estimators import BatchClassifier
    >>> bank = load_clinc150()
    >>> rows = np.concatenate([np.flatnonzero(bank.labels == k)[:5] for k in range(150)])
    >>> classifier = BatchClassifier().fit(bank.take(rows), bank.labels[rows])
    >>> with warnings.catch_warnings(action="ignore"):
    ...     found = classifier.infer(bank.take(np.arange(40))[:, ::-1].copy())
    >>> for diagnostic in found.diagnostics:
    ...     print(f"{diagnostic.name}: {diagnostic.value:.1f} passes {diagnostic.threshold}")
    unlike_catalogue: 0.2 passes 0.7
    """

    name: str
    message: str
    value: float
    threshold: float
    warning: type[HandfulWarning]
    items: tuple[int, ...] = ()


def diagnose(
    head: LinearHead | None,
    n_items: int,
    confidence: float,
    *,
    n_zero: int = 0,
    unknown_share: Float[np.ndarray, "two"] | None = None,
    unknown_reason: str | None = None,
    equal: Sequence[tuple[Any, Any, float]] = (),
) -> tuple[Diagnostic, ...]:
    """Check the answer for one batch; `confidence` is the mean over items of the largest probability under the head.

    Without a head there is nothing to compare the batch with. `n_zero` are items without a direction. `unknown_share`
    is what is known about it, a and b of a Beta distribution, and `unknown_reason` why unknown items cannot be judged.
    `equal` are pairs of classes with the same examples, and the expected number of items that they have together.
    """
    if head is None:
        return ()
    found = [
        unlike_catalogue(n_items, confidence, head),
        weak_features(head, confidence),
        zero_vectors(n_zero),
        unused_share(unknown_share, unknown_reason),
        *(equal_classes(*pair) for pair in equal),
    ]
    return tuple(diagnostic for diagnostic in found if diagnostic is not None)


def warnings_of(diagnostics: tuple[Diagnostic, ...]) -> Iterator[HandfulWarning]:
    """Return the diagnostics as warnings."""
    return (diagnostic.warning(diagnostic.message) for diagnostic in diagnostics)


def diagnosed_groups(
    head: LinearHead,
    n_items: Int[np.ndarray, "group"],
    confidence: Float[np.ndarray, "group"],
    n_zero: Int[np.ndarray, "group"],
    *,
    unknown_share: Float[np.ndarray, "two"] | None = None,
    unknown_reason: str | None = None,
) -> npt.NDArray[np.object_]:
    """Return the names of the diagnostics of many groups, as `diagnose` has them, None where nothing looks wrong.

    Classes with the same examples are a matter of the catalogue, and are left out.
    """
    unlike = is_unlike_catalogue(n_items, confidence, head)
    # Most groups have nothing of their own: what they have in common is found once.
    own = np.flatnonzero(unlike | (n_zero > 0) | (head.confidence is None))
    found = np.full(len(n_items), None, object)
    checked = partial(diagnose, head, unknown_share=unknown_share, unknown_reason=unknown_reason)
    found[:] = _names(checked(0, head.confidence or 1.0))
    for group in own.tolist():
        of_group = checked(int(n_items[group]), float(confidence[group]), n_zero=int(n_zero[group]))
        found[group] = _names(of_group)
    return found


def _names(diagnostics: tuple[Diagnostic, ...]) -> str | None:
    return ", ".join(one.name for one in diagnostics) or None


def is_unlike_catalogue(n_items: Any, confidence: Any, head: LinearHead) -> Any:
    """Whether items are much less certain of their class, each alone, than held-out examples are; also of arrays."""
    if head.confidence is None:
        return np.zeros(np.shape(n_items), bool)
    return (n_items >= FEWEST_ITEMS) & (confidence / head.confidence < LEAST_CONFIDENCE)


def unlike_catalogue(n_items: int, confidence: float, head: LinearHead) -> Diagnostic | None:
    """Whether items are much less certain of their class, each alone, than held-out examples are."""
    if head.confidence is None or not is_unlike_catalogue(n_items, confidence, head):
        return None
    ratio = confidence / head.confidence
    return Diagnostic(
        "unlike_catalogue",
        f"The mean probability of an item's class is {confidence:.2f}, against {head.confidence:.2f} for held-out "
        "examples: the batch looks unlike the catalogue, so more of its labels are wrong. Check that both use the same "
        "model and preprocessing, and that the catalogue has the classes of this batch.",
        ratio,
        LEAST_CONFIDENCE,
        UnlikeCatalogueWarning,
    )


def zero_vectors(n_zero: int) -> Diagnostic | None:
    """Whether some items are vectors of zeros, which have no direction that could be compared."""
    if n_zero == 0:
        return None
    return Diagnostic(
        "zero_vectors",
        f"The vectors of {n_zero:,} of the items are all zeros, so their labels mean nothing. Drop these items, and "
        "find out why the model gave no features.",
        n_zero,
        0,
        UnlikeCatalogueWarning,
    )


def unused_share(unknown_share: Float[np.ndarray, "two"] | None, reason: str | None) -> Diagnostic | None:
    """Whether unknown items are expected, and cannot be judged."""
    if unknown_share is None or reason is None or not unknown_share[0] > 0:
        return None
    expected = float(unknown_share[0] / unknown_share.sum())
    return Diagnostic(
        "unused_share",
        f"Unknown items are expected, but none could be named: every item was labelled as if it had a class. {reason}",
        expected,
        0,
        UnusedShareWarning,
    )


def equal_classes(first: Any, second: Any, n_items: float) -> Diagnostic | None:
    """Whether items were given one of two classes with the same examples."""
    if n_items < LEAST_EQUAL:
        return None
    return Diagnostic("equal_classes", equal_sentence(first, second), n_items, LEAST_EQUAL, EqualClassesWarning)


def overturned_scores(items: tuple[int, ...], n_high: int) -> Diagnostic | None:
    """Whether some items have another label than the class of their high score; `n_high` have a high score."""
    if not items:
        return None
    return Diagnostic(
        "overturned_scores",
        f"{len(items):,} of {n_high:,} items with a score of {HIGH_SCORE} or more for one class were given another: "
        "the rest of the batch speaks against the model there. Look at these items first; where the model is right, "
        "give their labels, or make smaller batches, for example one for each site.",
        len(items),
        0,
        OverturnedScoresWarning,
        items,
    )


def weak_features(head: LinearHead, confidence: float) -> Diagnostic | None:
    """Whether held-out examples can hardly tell their class; if nothing could be left out, whether the items can."""
    n_classes = len(head.weights)
    if n_classes == 1:
        return None
    signal = ((confidence if head.confidence is None else head.confidence) - 1 / n_classes) / (1 - 1 / n_classes)
    if signal >= LEAST_SIGNAL:
        return None
    return Diagnostic(
        "weak_features",
        "These features barely separate the classes, and labels are little better than guesses. Check that the labels "
        "of the catalogue belong to these rows, and try features of another model.",
        signal,
        LEAST_SIGNAL,
        WeakFeaturesWarning,
    )
