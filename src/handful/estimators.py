"""scikit-learn dress: `fit` on the labelled catalogue, then every `predict` labels its batch as one joint problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from handful.dispatch import solve
from handful.errors import OptionError
from handful.methods import METHODS
from handful.task import TaskBatch
from handful.transforms import TRANSFORMS, transform

# A class is called present when the batch is expected to hold at least this much of an item of it.
PRESENT_COUNT = 0.5


@dataclass(frozen=True)
class Inference:
    """What one batch says, jointly.

    Attributes
    ----------
    labels : array [item]
        The most probable class of each item, as the labels given to `fit`.
    probabilities : array [item, class]
        Columns in the order of `classes_`.
    class_proportions, expected_counts : array [class]
        Share of the batch, and number of its items, that each class is expected to hold.
    present_classes : array
        Classes with an expected count of at least one half, the largest first.
    n_iter, converged : int, bool
        Iterations taken, and whether the tolerance was met.
    """

    labels: npt.NDArray[Any]
    probabilities: npt.NDArray[np.float64]
    class_proportions: npt.NDArray[np.float64]
    expected_counts: npt.NDArray[np.float64]
    present_classes: npt.NDArray[Any]
    n_iter: int
    converged: bool


class TransductiveClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Every `predict` is one joint batch: the label of an item depends on the other items in the call.

    Parameters
    ----------
    method : str
        A key of `handful.METHODS`.
    feature_transform : str or None
        A key of `handful.TRANSFORMS` without parameters; None means the one the method names.
    options : dict or None
        Options of the method.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]]), ["up", "up", "right", "right"]
    >>> classifier = TransductiveClassifier("nearest_prototype", feature_transform="l2").fit(X, y)
    >>> classifier.predict(np.array([[0.0, 2.0], [3.0, 0.1]])).tolist()
    ['up', 'right']
    """

    def __init__(
        self,
        method: str = "calibrated_paddle",
        *,
        feature_transform: str | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.method = method
        self.feature_transform = feature_transform
        self.options = options

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Keep the catalogue: at least one row of every class."""
        if self.method not in METHODS:
            raise OptionError(f"method must be one of {', '.join(METHODS)}, got {self.method!r}")
        chosen = self.feature_transform if self.feature_transform is not None else METHODS[self.method].transform
        if chosen not in TRANSFORMS:
            raise OptionError(f"feature_transform must be None or one of {', '.join(TRANSFORMS)}, got {chosen!r}")
        METHODS[self.method].make_options(**(self.options or {}))
        features, labels = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(labels)
        self.classes_, self._labels = np.unique(labels, return_inverse=True)
        self._features = features
        return self

    def infer(self, X: npt.ArrayLike) -> Inference:
        """Label all rows of X jointly and say which classes are there; nothing is stored."""
        check_is_fitted(self)
        features = validate_data(self, X, reset=False, dtype=self._features.dtype)
        task = TaskBatch.single(self._features, self._labels, features, len(self.classes_))
        chosen = self.feature_transform if self.feature_transform is not None else METHODS[self.method].transform
        solution = solve(self.method, transform(chosen, task), **(self.options or {}))
        probabilities = solution.log_assignments[0].exp().double().numpy()
        probabilities /= probabilities.sum(-1, keepdims=True)
        counts = probabilities.sum(0)
        order = np.argsort(-counts, kind="stable")
        return Inference(
            labels=self.classes_[probabilities.argmax(-1)],
            probabilities=probabilities,
            class_proportions=counts / len(probabilities),
            expected_counts=counts,
            present_classes=self.classes_[order[counts[order] >= PRESENT_COUNT]],
            n_iter=int(solution.n_iter[0]),
            converged=bool(solution.converged[0]),
        )

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Label all rows of X jointly."""
        return self.infer(X).labels

    def predict_proba(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the probabilities of the classes for all rows of X, jointly; columns in the order of `classes_`."""
        return self.infer(X).probabilities


class PaddleClassifier(TransductiveClassifier):
    """Every `predict` is one joint batch, labelled by calibrated PADDLE: nothing to tune, features of any scale.

    Examples
    --------
    >>> import numpy as np
    >>> from handful.datasets import load_clinc150
    >>> bank, rng = load_clinc150(), np.random.default_rng(0)
    >>> rows = [rng.permutation(np.flatnonzero(bank.labels == k)) for k in range(150)]
    >>> catalogue = np.concatenate([of_class[:5] for of_class in rows])
    >>> batch = np.concatenate([rows[k][5:35] for k in (3, 30)])
    >>> names = np.array(bank.class_names)
    >>> classifier = PaddleClassifier().fit(bank.take(catalogue), names[bank.labels[catalogue]])
    >>> classifier.infer(bank.take(batch)).present_classes.tolist()
    ['application_status', 'credit_score']
    """

    def __init__(self) -> None:
        super().__init__()
