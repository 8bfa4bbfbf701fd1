"""MethodClassifier: any method of the paper as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from handful.errors import OptionError
from handful.estimators import Answer, Diagnostic
from handful.estimators.checks import checked_examples, checked_features
from handful.estimators.other_methods import answer_from_probabilities
from handful.shapes import Int
from handful_fewshot.dispatch import solve
from handful_fewshot.errors import CollapseWarning, NotConvergedWarning
from handful_fewshot.frame import Frame
from handful_fewshot.methods import METHODS, no_method
from handful_fewshot.methods.method import FOUND, PUBLISHED
from handful_fewshot.numerics.vectors import half_squared_distances
from handful_fewshot.task import TaskBatch
from handful_fewshot.transforms import TRANSFORMS, method_at, parameters_of, scale_name, transform

# Used instead of a transform that subtracts the mean of base classes.
WITHOUT_BASE_CLASSES = "l2"
# An answer has collapsed when one class takes this share of the labels, although it is the nearest class of fewer than
# a third of the items, and of less than 1.5 times as many as some other class. This finds 108 of the 115 cases in which
# published PADDLE gave a single class to unit vectors of five classes, and would flag 4 of the 89 answers of a single
# class that `batch_classifier` gives to batches that have one.
COLLAPSED_SHARE = 0.95
FEWEST_ITEMS = 10  # with fewer items nothing is checked
LEAST_AGREEMENT = 1 / 3
LEAST_LEAD = 1.5


class MethodClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Every `predict` is one joint batch, labelled by any method; `handful.BatchClassifier` is the default for users.

    Parameters
    ----------
    method : str
        A key of `METHODS`.
    scale : str or None
        `published`, `found`, or a key of `TRANSFORMS` without parameters; None means the method's default, see
        `Method.transform_at`, as in the benchmark. `l2` is used instead of `cl2n`, because the mean of base classes is
        not available here; the benchmark does so if a bank has none.
    options : dict or None
        Options of the method.

    Attributes
    ----------
    classes_ : ndarray [class]
        Distinct labels, in increasing order.
    n_features_in_, feature_names_in_ : int, ndarray
        As in all scikit-learn estimators.

    Examples
    --------
    >>> X, y = np.array([[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]]), ["up", "up", "right", "right"]
    >>> classifier = MethodClassifier("nearest_prototype", scale="l2").fit(X, y)
    >>> classifier.predict(np.array([[0.0, 2.0], [3.0, 0.1]])).tolist()
    ['up', 'right']
    """

    n_features_in_: int

    def __init__(
        self, method: str = "paddle", *, scale: str | None = None, options: dict[str, Any] | None = None
    ) -> None:
        self.method = method
        self.scale = scale
        self.options = options

    def check(self) -> None:
        """Refuse a method, a transform or options that do not exist."""
        self._transform()

    def fit(self, X: Any, y: Any) -> Self:
        """Keep the examples, at least one of every class."""
        self.check()
        self._features, self.classes_, self._codes = checked_examples(self, X, y)
        return self

    def infer(self, X: Any) -> Answer:
        """Label all rows of X jointly.

        Unknown items are not judged, and `presence` is NaN: the methods do not tell it.
        """
        return self._answered(X)

    def _answered(self, X: Any) -> Answer:
        """Label a batch; a warning names the line that called the method that called this one."""
        check_is_fitted(self)
        name = self._transform()
        query = checked_features(self, X, reset=False)
        support = torch.tensor(self._features)  # copies: arrays of a bank may be read-only, which torch warns about
        codes = torch.tensor(self._codes)
        task = TaskBatch.single(support, codes, torch.tensor(query).to(support), len(self.classes_))
        task = transform(name, task)
        solution = solve(self.method, task, **(self.options or {}))
        frame = Frame(task)
        weights = solution.log_assignments[0].exp().double()
        weights /= weights.sum(-1, keepdim=True)
        nearest = half_squared_distances(frame.query, frame.support.mean())[0].argmin(-1)
        wrong = [
            not_converged(int(solution.n_iter[0]), bool(solution.converged[0])),
            collapsed(weights.argmax(-1), nearest, self.classes_),
        ]
        diagnostics = tuple(diagnostic for diagnostic in wrong if diagnostic is not None)
        for diagnostic in diagnostics:
            warnings.warn(diagnostic.warning(diagnostic.message), stacklevel=3)
        return answer_from_probabilities(
            self.classes_,
            weights.numpy(),
            n_examples=len(self._codes),
            unknown_reason=f"Unknown items are not judged by {method_at(self.method, scale_name(name))}, only by the "
            "default.",
            diagnostics=diagnostics,
            like=X,
        )

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Label all rows of X jointly."""
        return self._answered(X).labels

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the probabilities of the classes for all rows of X, jointly; columns in the order of `classes_`."""
        return self._answered(X).probabilities

    def __sklearn_is_fitted__(self) -> bool:
        return "_features" in vars(self)

    def _transform(self) -> str:
        """Return the name of the transform; refuse parameters that do not fit."""
        if self.method not in METHODS:
            raise OptionError(str(no_method(self.method)))
        usable = [name for name in TRANSFORMS if not parameters_of(name)]
        if self.scale not in (None, PUBLISHED, FOUND, *usable):
            names = ", ".join((PUBLISHED, FOUND, *usable))
            raise OptionError(f"scale must be None or one of {names}, got {self.scale!r}")
        METHODS[self.method].make_options(**(self.options or {}))
        named = METHODS[self.method].transform_at(self.scale or "")
        return WITHOUT_BASE_CLASSES if parameters_of(named) else named


class MethodClassifiers(Mapping[str, Callable[[], MethodClassifier]]):
    """For each name of `METHODS`, what makes its estimator: `handful.classify(method=…)` finds it by an entry point."""

    def __getitem__(self, name: str) -> Callable[[], MethodClassifier]:
        return partial(MethodClassifier, METHODS[name].name)

    def __iter__(self) -> Iterator[str]:
        return iter(METHODS)

    def __len__(self) -> int:
        return len(METHODS)


CLASSIFIERS = MethodClassifiers()


def not_converged(n_iter: int, converged: bool) -> Diagnostic | None:
    """Whether the iterations ran out before the answer settled."""
    if converged:
        return None
    return Diagnostic(
        "not_converged",
        f"The answer was still changing after {n_iter} iterations. Items between two classes may change label; "
        "allow more iterations, options={'max_iter': ...} of MethodClassifier, or label a larger batch.",
        n_iter,
        n_iter,
        NotConvergedWarning,
    )


def collapsed(
    labels: Int[Tensor, "item"], nearest: Int[Tensor, "item"], classes: Sequence[Any] | npt.NDArray[Any]
) -> Diagnostic | None:
    """Whether nearly all labels are one class, and few items are nearest to that class."""
    counts = torch.bincount(labels, minlength=len(classes))
    winner = int(counts.argmax())
    if len(classes) == 1 or len(labels) < FEWEST_ITEMS or counts[winner] < COLLAPSED_SHARE * len(labels):
        return None
    shares = torch.bincount(nearest, minlength=len(classes)) / len(labels)
    agreement = float(shares[winner])
    rival = float(shares[torch.arange(len(classes), device=shares.device) != winner].max())
    if agreement >= LEAST_AGREEMENT or agreement >= LEAST_LEAD * rival:
        return None
    return Diagnostic(
        "collapsed",
        f"{int(counts[winner])} of {len(labels)} items were labelled {str(classes[winner])!r}, but only "
        f"{agreement:.0%} of them are nearest to it: the batch probably collapsed into one class. Use "
        "BatchClassifier, which cannot collapse.",
        agreement,
        LEAST_AGREEMENT,
        CollapseWarning,
    )
