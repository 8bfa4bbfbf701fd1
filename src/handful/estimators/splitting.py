"""FewClassSplit: cross-validation for batches with few of the classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from handful.arguments import whole
from handful.errors import LabelError, OptionError
from handful.estimators.containers import labels_of
from handful.fitted.labels import distinct
from handful.shapes import Int

# Splits, by default. [splits; convention]
N_SPLITS = 10
# Classes that a batch is drawn from, by default. [classes; convention]
N_PRESENT = 5
# Items of a batch, by default. [items; convention]
N_ITEMS = 75
# Training rows of each class, by default. [examples; convention]
SHOTS = 5


class FewClassSplit:
    """Splits whose training rows have every class, and whose test rows are one batch of a few classes.

    The folds of `KFold` and its relatives contain all classes, the opposite of what happens in use. Here a split has
    `shots` rows of every class to fit, and `n_items` other rows of `n_present` classes, drawn at random, to label as
    one batch. Splits overlap. Use it where scikit-learn takes a `cv`.

    Parameters
    ----------
    n_splits : int
        Number of splits.
    n_present : int
        Classes that the batch is drawn from; by chance it may have fewer.
    n_items : int
        Items of a batch.
    shots : int
        Training rows of each class.
    random_state : int, RandomState instance or None
        As in scikit-learn. With an int, every call of `split` returns the same splits.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from handful.datasets import load_clinc150
    >>> from handful.estimators import BatchClassifier
    >>> bank, splits = load_clinc150(), FewClassSplit(4, shots=1, random_state=0)
    >>> cross_val_score(BatchClassifier(), bank.features, bank.labels, cv=splits).round(2).tolist()
    [0.91, 0.45, 0.96, 1.0]
    """

    def __init__(
        self,
        n_splits: int = N_SPLITS,
        *,
        n_present: int = N_PRESENT,
        n_items: int = N_ITEMS,
        shots: int = SHOTS,
        random_state: Any = None,
    ) -> None:
        sizes = {"n_splits": n_splits, "n_present": n_present, "n_items": n_items, "shots": shots}
        for name, value in sizes.items():
            setattr(self, name, whole(name, value, least=1, error=OptionError))
        self.random_state = random_state

    n_splits: int
    n_present: int
    n_items: int
    shots: int

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({given})"

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X, y, groups : object
            Not used.

        Returns
        -------
        int
            `n_splits`.
        """
        return self.n_splits

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[Int[np.ndarray, "example"], Int[np.ndarray, "item"]]]:
        """Draw the splits.

        Parameters
        ----------
        X : object
            Not used.
        y : [row]
            Labels of the rows.
        groups : object
            Not used.

        Yields
        ------
        train, test : ndarray [example], ndarray [item]
            Rows to fit and rows to label.
        """
        if y is None:
            raise LabelError("splits are drawn by class, and y is None; give the labels of the rows")
        classes, codes = distinct(labels_of(y))
        sizes = np.bincount(codes)
        scarce = np.flatnonzero(sizes <= self.shots)
        if len(scarce):
            raise LabelError(
                f"class {classes.tolist()[scarce[0]]!r} has {sizes[scarce[0]]} rows, and a split needs more than "
                f"shots={self.shots} of every class ({len(scarce)} classes have fewer); lower shots or leave them out"
            )
        if self.n_present > len(classes):
            raise LabelError(f"n_present={self.n_present} is more than the {len(classes)} classes of y; lower it")
        rng = check_random_state(self.random_state)
        firsts = np.cumsum(sizes) - sizes
        for _ in range(self.n_splits):
            mixed = rng.permutation(len(codes))
            by_class = mixed[np.argsort(codes[mixed], kind="stable")]
            fitted = np.zeros(len(codes), bool)
            fitted[by_class[(firsts[:, None] + np.arange(self.shots)).ravel()]] = True
            present = rng.choice(len(classes), self.n_present, replace=False)
            pool = np.flatnonzero(np.isin(codes, present) & ~fitted)
            if len(pool) < self.n_items:
                raise LabelError(
                    f"{self.n_present} classes left {len(pool)} rows for a batch of n_items={self.n_items}; lower "
                    "n_items, or raise n_present"
                )
            yield np.flatnonzero(fitted), rng.choice(pool, self.n_items, replace=False)
