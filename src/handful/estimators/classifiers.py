"""TransductiveClassifier makes any method a scikit-learn estimator; PaddleClassifier has nothing to tune.

One long file: it is one class with the contract of scikit-learn, and half of it documents arguments.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self, overload

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from handful.arguments import whole
from handful.catalogue import Catalogue
from handful.catalogue.labels import distinct, places_of, with_label
from handful.engine.prior import Prior
from handful.engine.questions import Question, questions_about
from handful.errors import FileFormatError, HandfulError, LabelError, OptionError, TaskError
from handful.estimators import saving
from handful.estimators.answer_tables import as_array
from handful.estimators.batches import CatalogueItems
from handful.estimators.containers import beside, container_of, labels_of
from handful.estimators.diagnostics import warnings_of
from handful.estimators.given import with_given
from handful.estimators.grouped import GroupedInference, Known, inferred_by_group, labels_by_group
from handful.estimators.inference import Inference, inferred, of_solution
from handful.estimators.labelled_rows import LabelledRows, is_unlabelled
from handful.estimators.names import rows_of_names
from handful.estimators.prior_weights import prior_of, weights_of
from handful.estimators.why import Explanation, explained
from handful.fewshot.methods import METHODS
from handful.fewshot.task import TaskBatch
from handful.fewshot.transforms import TRANSFORMS, parameters_of, transform
from handful.rows import ROW_TRANSFORMS
from handful.shapes import Float, Int

# Used instead of a transform that subtracts the mean of base classes.
WITHOUT_BASE_CLASSES = "l2"


@dataclass(frozen=True, eq=False)
class Transduction:
    """What `fit` found for the unlabelled rows it was given."""

    codes: Int[np.ndarray, "row"]
    unlabelled: npt.NDArray[np.bool_]
    probabilities: Float[np.ndarray, "unlabelled class"]


class TransductiveClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Every `predict` is one joint batch: the label of an item depends on the other items in the call.

    X may be an array, a tensor, or a frame of pandas, polars or Arrow, whose columns are the features or whose single
    column holds the vectors; answers come in the same container, see `Inference`. Labels may be text, numbers,
    booleans, dates or tuples, and are returned as given. For tensors, the computation runs on their device.

    Parameters
    ----------
    method : str
        A key of `handful.fewshot.METHODS`.
    feature_transform : str or None
        A key of `handful.fewshot.TRANSFORMS` without parameters; None means the method's own, or `l2` if that one needs
        the mean of base classes, which is not available here.
    options : dict or None
        Options of the method.

    Attributes
    ----------
    classes_ : ndarray [class]
        Distinct labels, in increasing order.
    transduction_, label_distributions_ : ndarray [row], ndarray [row, class]
        For the rows given to `fit`: their labels (predicted ones for unlabelled rows) and their probabilities.
    n_features_in_, feature_names_in_ : int, ndarray
        As in all scikit-learn estimators.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]]), ["up", "up", "right", "right"]
    >>> classifier = TransductiveClassifier("nearest_prototype", feature_transform="l2").fit(X, y)
    >>> classifier.predict(np.array([[0.0, 2.0], [3.0, 0.1]])).tolist()
    ['up', 'right']
    """

    n_features_in_: int
    _announced: frozenset[Any] = frozenset()  # labels that `partial_fit` may add

    def __init__(
        self,
        method: str = "roll_call",
        *,
        feature_transform: str | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.method = method
        self.feature_transform = feature_transform
        self.options = options

    def fit(self, X: Any, y: Any, *, unlabelled: Any = None, names: Any = None, **others: Any) -> Self:
        """Fit the catalogue, with at least one row or a name of every class.

        Parameters
        ----------
        X, y : [row, feature], [row]
            Examples and their labels.
        unlabelled : label or None
            The value in y that marks rows without a label; `unlabelled=-1` is the convention of
            `sklearn.semi_supervised`. These rows are labelled jointly right away, see `transduction_` and
            `label_distributions_`, and are not part of the catalogue. None, the default, means that every label is a
            class, including -1: labels such as -1, 0, 1 are too common to guess.
        names : mapping or None
            From labels to vectors of the names of classes, see `add_names`.
        **others : object
            Refused; there are no sample weights.

        Returns
        -------
        object
            The classifier itself.

        Examples
        --------
        >>> from handful.estimators import PaddleClassifier
        >>> X, y = [[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]], ["up", "up", "right", "right"]
        >>> PaddleClassifier().fit(X, y).classes_.tolist()
        ['right', 'up']
        """
        self._refuse(others)
        self._check_parameters()
        features, labels = self._checked(X, y, reset=True)
        marked = is_unlabelled(labels, unlabelled)
        if marked.all():
            raise LabelError(
                f"every row is unlabelled (y is {unlabelled!r}); give at least one labelled row of every class"
            )
        kept = torch.from_numpy(~marked).to(features.device)
        self._catalogue = self._fitted_to(features[kept], labels[~marked], names)
        codes, probabilities = np.empty(len(labels), np.int64), np.empty((0, len(self.classes_)))
        codes[~marked] = places_of(labels[~marked], self.classes_)
        if marked.any():
            inference = self._infer(self._catalogue, features[~kept], Known())
            _warn(inference)
            probabilities = inference.probabilities.cpu().numpy()
            codes[marked] = probabilities.argmax(-1)
        self._transduction: Transduction | None = Transduction(codes, marked, probabilities)
        self._announced = frozenset()
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, **others: Any) -> Self:
        """Add examples; the result is the same as `fit` on all rows together.

        The first call is a `fit`. A label must be known or listed in `classes`, of this call or an earlier one, so that
        a mistyped one does not become a class; only a first call without `classes` takes any label. New classes are
        also added with `add_classes`.

        Parameters
        ----------
        X, y : [row, feature], [row]
            Examples and their labels.
        classes : list of labels or None
            Labels that may be new, in this call and in later ones; a saved classifier does not keep the list.
        **others : object
            Refused; there are no sample weights.

        Returns
        -------
        object
            The classifier itself.

        Examples
        --------
        >>> from handful.estimators import PaddleClassifier
        >>> X, y = [[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]], ["up", "up", "right", "right"]
        >>> classifier = PaddleClassifier().fit(X, y).partial_fit([[0.2, 1.0]], ["up"])
        >>> classifier.catalogue_.shots.tolist()  # of right and up
        [2.0, 3.0]
        """
        self._refuse(others)
        first = not self.__sklearn_is_fitted__()
        announced = self._announced.union(() if classes is None else np.asarray(labels_of(classes)).tolist())
        known = announced if first else announced.union(self.classes_.tolist())
        if not (first and classes is None):
            unknown = set(distinct(self._checked_labels(y))[0].tolist()) - known
            if unknown:
                raise LabelError(
                    f"label {min(unknown, key=repr)!r} is not among the {len(known)} classes; "
                    "fix it, list it in classes, or add the class with add_classes"
                )
        if first:
            self.fit(X, y)
        else:
            catalogue = self._current()
            features, labels = self._checked(X, y, reset=False)
            self._became(catalogue.with_examples(features, labels))
        self._announced = announced
        return self

    def add_classes(self, X: Any, y: Any) -> Self:
        """Add examples of classes that are not in the catalogue yet.

        Parameters
        ----------
        X, y : [row, feature], [row]
            Examples and their labels, none of which is known.

        Returns
        -------
        object
            The classifier itself.

        Examples
        --------
        >>> from handful.estimators import PaddleClassifier
        >>> X, y = [[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]], ["up", "up", "right", "right"]
        >>> PaddleClassifier().fit(X, y).add_classes([[-1.0, 0.0]], ["left"]).classes_.tolist()
        ['left', 'right', 'up']
        """
        catalogue = self._current()
        features, labels = self._checked(X, y, reset=False)
        unknown = set(catalogue.unknown(labels))
        known = [label for label in np.unique(labels).tolist() if label not in unknown]
        if known:
            raise LabelError(
                f"class {known[0]!r} is already in the catalogue; add examples of known classes with partial_fit"
            )
        return self._became(catalogue.with_examples(features, labels))

    def add_names(self, names: Any) -> Self:
        """Add vectors of the names of classes, known or new; a class with a name needs no examples.

        The vectors must be comparable with those of the items: names or descriptions as a sentence encoder embeds them
        for sentences, as the text side of CLIP does for photographs. A name counts as that many examples as it helps
        to label left-out ones, so names that say nothing change nothing. A classifier that is not fitted yet has no
        examples then, see `from_names`.

        Parameters
        ----------
        names : mapping
            From a label to a vector, or to several as rows (prompts); their mean is used, each at unit length. A name
            that the class has already is replaced.

        Returns
        -------
        object
            The classifier itself.

        Examples
        --------
        >>> from handful.estimators import PaddleClassifier
        >>> X, y = [[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]], ["up", "up", "right", "right"]
        >>> PaddleClassifier().fit(X, y).add_names({"up": [0.0, 2.0], "left": [-2.0, 0.1]}).classes_.tolist()
        ['left', 'right', 'up']
        """
        self._check_parameters()
        if not self._keeps_catalogue:
            raise OptionError(f"names need the method roll_call with a transform of single rows, got {self.method!r}")
        if not self.__sklearn_is_fitted__():
            vectors, labels = rows_of_names(names, None)
            self.n_features_in_ = vectors.shape[1]
            return self._became(Catalogue.of_names(vectors, labels, self._transform))
        catalogue = self._current()
        vectors, labels = rows_of_names(names, self.n_features_in_)
        return self._became(catalogue.with_names(vectors, labels))  # type: ignore[union-attr]

    def remove_classes(self, labels: Any) -> Self:
        """Forget these classes and all their examples.

        Parameters
        ----------
        labels : list of labels
            The classes.

        Returns
        -------
        object
            The classifier itself.

        Examples
        --------
        >>> from handful.estimators import PaddleClassifier
        >>> X, y = [[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]], ["up", "up", "right", "right"]
        >>> PaddleClassifier().fit(X, y).remove_classes(["up"]).classes_.tolist()
        ['right']
        """
        catalogue = self._current()
        leaving = np.asarray(labels_of(labels))
        unknown = catalogue.unknown(leaving)
        if unknown:
            raise LabelError(f"class {unknown[0]!r} is not in the catalogue; see classes_ for those that are")
        return self._became(catalogue.without(leaving))

    @overload
    def infer(
        self,
        X: Any,
        groups: None = None,
        *,
        prior: Any = None,
        candidates: Any = None,
        given: Mapping[int, Any] | None = None,
    ) -> Inference: ...

    @overload
    def infer(
        self,
        X: Any,
        groups: Any,
        *,
        prior: Any = None,
        candidates: Any = None,
        pool: Any = None,
        order: Any = None,
        given: Mapping[int, Any] | None = None,
    ) -> GroupedInference: ...

    def infer(
        self,
        X: Any,
        groups: Any = None,
        *,
        prior: Any = None,
        candidates: Any = None,
        pool: Any = None,
        order: Any = None,
        given: Mapping[int, Any] | None = None,
    ) -> Inference | GroupedInference:
        """Label all rows of X jointly and say which classes are present; nothing is stored, so it is thread-safe.

        Warnings about groups stay with the groups: `found[group].diagnostics`.

        Parameters
        ----------
        X : [row, feature]
            The items.
        groups : [row], [row, column] or None
            One value per row, or one row of values: every group is a joint batch of its own.
        prior : array [class], mapping, table or None
            Weights of the classes before the batch is seen: an array in the order of `classes_`; a mapping from classes
            to weights, or from groups to such mappings; or a frame with the columns `class`, `weight` and, if groups
            differ, `group`. Only their ratios count, and what is not mentioned has the weight one. Evidence in the
            batch overcomes them, except a weight of zero: such a class cannot occur.
        candidates : list of classes, mapping from groups to lists, or None
            The only classes that can occur, the same as a weight of zero for all others.
        pool : True, [row], [row, column] or None
            Groups with the same value are siblings, and each is labelled with the help of the others if that helps, see
            `GroupedInference.pooling`. True means that all are siblings.
        order : [row] or None
            When each group was, as dates or numbers. Then only earlier siblings help a group, and
            older ones help less if the data say so.
        given : mapping from rows to labels, or None
            What a person said some items are: positions of rows, counted from 0, to labels. These items have that
            label, and count as examples of their class in this call; an item with None belongs to no class. A label
            that the catalogue does not have is a new class; `probabilities` then have a column for it, in the order of
            all labels. The catalogue stays as it is: to keep the examples, call `partial_fit`.

        Returns
        -------
        Inference or GroupedInference
            The answer: labels, probabilities, which classes are present, items of no class, and warnings.

        Examples
        --------
        >>> from handful.estimators import PaddleClassifier
        >>> rng = np.random.default_rng(0)
        >>> centres = rng.normal(size=(20, 16))
        >>> X, y = centres.repeat(5, axis=0) + 0.7 * rng.normal(size=(100, 16)), np.arange(20).repeat(5)
        >>> batch = centres[[3] * 6 + [7] * 4] + 0.7 * rng.normal(size=(10, 16))
        >>> classifier = PaddleClassifier().fit(X, y)
        >>> classifier.infer(batch).present_classes.tolist()
        [3, 7]
        >>> found = classifier.infer(batch, groups=["marsh"] * 6 + ["wood"] * 4)
        >>> found["wood"].present_classes.tolist()
        [7]
        """
        known = Known(prior, candidates, pool, order)
        if groups is None:
            inference = self._infer_like(X, known, given=given)
            _warn(inference)
            return inference
        catalogue, features = self._with_catalogue(X, "groups")
        catalogue, codes = with_given(catalogue, features, given or {})
        found = inferred_by_group(CatalogueItems(catalogue, features, codes), groups, known)
        return beside(X, found, catalogue.classes)

    def predict(
        self,
        X: Any,
        groups: Any = None,
        *,
        prior: Any = None,
        candidates: Any = None,
        pool: Any = None,
        order: Any = None,
        unknown: Any = None,
    ) -> Any:
        """Label all rows of X jointly.

        Parameters
        ----------
        X, groups, prior, candidates, pool, order : object
            As in `infer`.
        unknown : label or None
            The label of items that look like none of the classes, see `Inference.rejected`; for instance "other" or
            -1. None, the default, means a class for every item.

        Returns
        -------
        [row]
            Labels, in the container of X.

        Examples
        --------
        >>> from handful.estimators import PaddleClassifier
        >>> rng = np.random.default_rng(0)
        >>> centres = rng.normal(size=(31, 24))
        >>> X, y = centres[:30].repeat(5, axis=0) + 0.4 * rng.normal(size=(150, 24)), np.arange(30).repeat(5)
        >>> truth = [3] * 3 + [8] * 3 + [12] * 3 + [30] * 3  # 30 is not in the catalogue
        >>> batch = centres[truth] + 0.4 * rng.normal(size=(12, 24))
        >>> PaddleClassifier().fit(X, y).predict(batch, unknown=-1).tolist()
        [3, 3, 3, 8, 8, 8, 12, 12, 12, -1, -1, -1]
        """
        known = Known(prior, candidates, pool, order)
        if groups is None:
            inference = self._infer_like(X, known, unknown)
            _warn(inference)
            return inference.labels
        catalogue, features = self._with_catalogue(X, "groups")
        labels, rejected = labels_by_group(CatalogueItems(catalogue, features), groups, known)
        return container_of(X).labels(X, labels if unknown is None else with_label(labels, rejected, unknown))

    @overload
    def explain(
        self,
        X: Any,
        item: int,
        *,
        prior: Any = None,
        candidates: Any = None,
        given: Mapping[int, Any] | None = None,
    ) -> Explanation: ...

    @overload
    def explain(
        self,
        X: Any,
        item: Sequence[int],
        *,
        prior: Any = None,
        candidates: Any = None,
        given: Mapping[int, Any] | None = None,
    ) -> tuple[Explanation, ...]: ...

    def explain(
        self,
        X: Any,
        item: int | Sequence[int],
        *,
        prior: Any = None,
        candidates: Any = None,
        given: Mapping[int, Any] | None = None,
    ) -> Explanation | tuple[Explanation, ...]:
        """Say why an item has its label: what it would be alone, what the batch adds, the nearest examples.

        Parameters
        ----------
        X : [row, feature]
            The whole batch. It is labelled again, so ask for several items at once.
        item : int or list of int
            Position of the item in the batch, or several.
        prior, candidates, given : object
            As in `infer`.

        Returns
        -------
        Explanation or tuple of Explanation
            One per item; printed, it is a few plain sentences.

        Examples
        --------
        >>> from handful.estimators import PaddleClassifier
        >>> X, y = [[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]], ["up", "up", "right", "right"]
        >>> why = PaddleClassifier().fit(X, y).explain([[0.0, 2.0], [3.0, 0.1]], 1)
        >>> why.label, why.alone, why.nearest[0].position
        ('right', 'right', 2)
        """
        catalogue, features, found, known = self._labelled(X, prior, candidates, given, "explanations")
        items = [item] if isinstance(item, int | np.integer) else list(item)
        outside = [place for place in items if not 0 <= place < len(features)]
        if outside:
            raise TaskError(f"the batch has the items 0 to {len(features) - 1}, got {outside[0]}")
        said = explained(catalogue, found, features, items, prior=known)
        return said[0] if isinstance(item, int | np.integer) else said

    def questions(
        self,
        X: Any,
        n: int = 10,
        *,
        prior: Any = None,
        candidates: Any = None,
        given: Mapping[int, Any] | None = None,
    ) -> tuple[Question, ...]:
        """Return the items that a person should look at first, chosen by what their answers say about other items.

        Give the answers to `infer` as `given`.

        Parameters
        ----------
        X : [row, feature]
            The whole batch. It is labelled first.
        n : int
            Number of questions.
        prior, candidates, given : object
            As in `infer`. Items whose labels are given are not asked about again.

        Returns
        -------
        tuple of Question
            Those of most worth first.

        Examples
        --------
        >>> import numpy as np
        >>> from handful.estimators import PaddleClassifier
        >>> rng = np.random.default_rng(1)
        >>> centres = rng.normal(size=(20, 16))
        >>> truth = np.array([3] * 12 + [7] * 12 + [9] * 12)
        >>> batch = centres[truth] + 0.9 * rng.normal(size=(36, 16))
        >>> classifier = PaddleClassifier().fit(centres + 0.9 * rng.normal(size=(20, 16)), np.arange(20))
        >>> before = (classifier.predict(batch) == truth).mean()
        >>> answers = {question.item: truth[question.item] for question in classifier.questions(batch, 3)}
        >>> after = (classifier.infer(batch, given=answers).labels == truth).mean()
        >>> print(f"{before:.0%} of the labels are right, and {after:.0%} after three answers")
        89% of the labels are right, and 100% after three answers
        """
        catalogue, features, found, _ = self._labelled(X, prior, candidates, given, "questions")
        n = whole("n", n, least=1, error=OptionError)
        return asked(catalogue, found, features, n, list(given or ()))

    def _labelled(
        self, X: Any, prior: Any, candidates: Any, given: Mapping[int, Any] | None, what: str
    ) -> tuple[Catalogue, Float[Tensor, "item dim"], Inference, Prior | None]:
        """Label a batch whose items are then looked at again."""
        catalogue, features = self._with_catalogue(X, what)
        catalogue, codes = with_given(catalogue, features, given or {})
        weights = weights_of(prior, candidates, catalogue.classes, None)
        known = None if weights is None else prior_of(weights, 1)
        return catalogue, features, inferred(catalogue, features, prior=known, given=codes), known

    def _with_catalogue(self, X: Any, what: str) -> tuple[Catalogue, Float[Tensor, "item dim"]]:
        catalogue = self._current()
        if not isinstance(catalogue, Catalogue):
            raise OptionError(f"{what} need the method roll_call, got {self.method!r}")
        features = self._checked_features(X, reset=False)
        return catalogue, features.cpu()

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes for all rows of X, jointly; columns in the order of `classes_`.

        Parameters
        ----------
        X : [row, feature]
            The items, one batch.

        Returns
        -------
        [row, class]
            Probabilities, in the container of X.

        Examples
        --------
        >>> from handful.estimators import PaddleClassifier
        >>> X, y = [[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]], ["up", "up", "right", "right"]
        >>> PaddleClassifier().fit(X, y).predict_proba([[0.0, 2.0], [3.0, 0.1]]).argmax(1).tolist()
        [1, 0]
        """
        inference = self._infer_like(X, Known())
        _warn(inference)
        return inference.probabilities

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the classifier as one file: safetensors, with everything but tensors as JSON in its header.

        Parameters
        ----------
        path : path-like
            The file. It appears complete or not at all; an older one of that name is replaced.

        Examples
        --------
        >>> import tempfile
        >>> from handful.estimators import PaddleClassifier
        >>> X, y = [[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]], ["up", "up", "right", "right"]
        >>> place = tempfile.mkdtemp() + "/directions.safetensors"
        >>> PaddleClassifier().fit(X, y).save(place)
        >>> PaddleClassifier.load(place).predict([[0.0, 2.0]]).tolist()
        ['up']
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        saving.save(
            path,
            saving.SavedClassifier(
                type(self).__name__, self.get_params(), None if names is None else names.tolist(), self._catalogue
            ),
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a classifier that `save` wrote; nothing in the file is executed.

        Parameters
        ----------
        path : path-like
            The file.

        Returns
        -------
        object
            The classifier.

        Examples
        --------
        >>> import tempfile
        >>> from handful.estimators import PaddleClassifier
        >>> place = tempfile.mkdtemp() + "/two.safetensors"
        >>> PaddleClassifier().fit([[0.0, 1.0], [1.0, 0.0]], ["up", "right"]).save(place)
        >>> PaddleClassifier.load(place).classes_.tolist()
        ['right', 'up']
        """
        saved = saving.load(path)
        if saved.kind != cls.__name__:
            raise FileFormatError(f"{path} holds a {saved.kind}; load it with {saved.kind}.load")
        try:
            classifier = cls(**saved.parameters)
        except TypeError as error:
            raise FileFormatError(f"{path} has parameters that {cls.__name__} does not know ({error})") from error
        classifier._check_parameters()
        classifier.n_features_in_ = saved.catalogue.dim
        if saved.feature_names is not None:
            classifier.feature_names_in_ = np.array(saved.feature_names, dtype=object)
        return classifier._became(saved.catalogue)

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """Distinct labels, in increasing order."""
        return self._fitted("_catalogue", "classes_").classes  # type: ignore[no-any-return]

    @property
    def transduction_(self) -> npt.NDArray[Any]:
        """Labels of all rows given to `fit`; predicted where a row had none."""
        labels: npt.NDArray[Any] = self.classes_[self._fitted("_transduction", "transduction_").codes]
        return labels

    @property
    def label_distributions_(self) -> Float[np.ndarray, "row class"]:
        """Probabilities of all rows given to `fit`; one and zeros where a label was given."""
        found: Transduction = self._fitted("_transduction", "label_distributions_")
        distributions = np.zeros((len(found.codes), len(self.classes_)))
        distributions[np.arange(len(found.codes)), found.codes] = 1
        distributions[found.unlabelled] = found.probabilities
        return distributions

    def __sklearn_is_fitted__(self) -> bool:
        return "_catalogue" in vars(self)

    def _fitted(self, field: str, name: str) -> Any:
        value = vars(self).get(field)
        if value is None:
            raise AttributeError(
                f"{type(self).__name__} has {name} after fit, but not after its catalogue was changed or loaded"
                if "_catalogue" in vars(self)
                else f"{type(self).__name__} has {name} only after fit"
            )
        return value

    def _current(self) -> Catalogue | LabelledRows:
        """Return what was fitted, unless the parameters were changed since, so that it cannot be used."""
        if not self.__sklearn_is_fitted__():  # first, because the check takes a fifth of the time of a small batch
            check_is_fitted(self)
        if self.method not in METHODS:
            self._check_parameters()
        found = self._catalogue
        if (found.transform if isinstance(found, Catalogue) else None) != (
            self._transform if self._keeps_catalogue else None
        ):
            raise OptionError(
                f"{type(self).__name__} was fitted with another method or feature_transform than {self.method!r} and "
                f"{self.feature_transform!r}; call fit again"
            )
        return found

    def _refuse(self, others: Mapping[str, Any]) -> None:
        """Refuse arguments that do not exist."""
        if others:
            raise OptionError(
                f"{type(self).__name__} does not take {next(iter(others))!r}: every example counts alike, and sample "
                "weights are not supported; leave it out"
            )

    def _became(self, catalogue: Catalogue | LabelledRows) -> Self:
        """Replace the catalogue in one step; what `fit` found for its rows is no longer valid."""
        self._catalogue, self._transduction = catalogue, None
        return self

    def _check_parameters(self) -> None:
        if self.method not in METHODS:
            raise OptionError(f"method must be one of {', '.join(METHODS)}, got {self.method!r}")
        usable = [name for name in TRANSFORMS if not parameters_of(name)]
        if self.feature_transform not in (None, *usable):
            raise OptionError(
                f"feature_transform must be None or one of {', '.join(usable)}, got {self.feature_transform!r}"
            )
        METHODS[self.method].make_options(**(self.options or {}))

    @property
    def _transform(self) -> str:
        named = METHODS[self.method].transform if self.feature_transform is None else self.feature_transform
        return WITHOUT_BASE_CLASSES if parameters_of(named) else named

    def _checked(self, X: Any, y: Any, *, reset: bool) -> tuple[Float[Tensor, "row dim"], npt.NDArray[Any]]:
        """Return a copy of the features and as many labels."""
        labels = self._checked_labels(y)
        features = self._checked_features(X, reset=reset, copy=True)
        with _sentences(LabelError):
            check_consistent_length(features, labels)
        return features, labels

    def _checked_labels(self, y: Any) -> npt.NDArray[Any]:
        if y is None:
            raise LabelError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        with _sentences(LabelError):
            labels: npt.NDArray[Any] = column_or_1d(labels_of(y), warn=True)
            assert_all_finite(labels, input_name="y")
            if labels.dtype.kind == "f":
                check_classification_targets(labels)
        return labels

    def _checked_features(self, X: Any, *, reset: bool, copy: bool = False) -> Float[Tensor, "row dim"]:
        vectors = container_of(X).vectors(X)
        if not isinstance(vectors, Tensor):
            if getattr(vectors, "dtype", None) == np.float16:
                vectors = vectors.astype(np.float32)
            with _sentences(TaskError):
                return torch.from_numpy(
                    validate_data(self, vectors, reset=reset, dtype=[np.float64, np.float32], copy=copy, order="C")
                )
        expected = vectors.shape[-1] if reset else self.n_features_in_
        if vectors.ndim != 2 or vectors.shape[1] != expected or 0 in vectors.shape:
            raise TaskError(
                f"X must have the axes (row, feature) with {expected} features, got shape {tuple(vectors.shape)}"
            )
        if not bool(vectors.isfinite().all()):
            raise TaskError("X has NaN or infinity; drop or impute these rows")
        if reset:
            self.n_features_in_ = expected
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        dtype = (
            torch.float64 if vectors.dtype == torch.float64 or not vectors.dtype.is_floating_point else torch.float32
        )
        return vectors.detach().to(dtype, copy=copy)

    def _infer_like(
        self, X: Any, known: Known, unknown: Any = None, given: Mapping[int, Any] | None = None
    ) -> Inference:
        """Infer, and return the answer in the container of X; rejected items have the label `unknown`, if given."""
        catalogue, features, codes = self._current(), self._checked_features(X, reset=False), None
        if given:
            if not isinstance(catalogue, Catalogue):
                raise OptionError(f"given labels need the method roll_call, got {self.method!r}")
            catalogue, codes = with_given(catalogue, features.cpu(), given)
        inference = self._infer(catalogue, features, known, codes)
        if unknown is not None:
            inference = replace(inference, labels=with_label(inference.labels, inference.rejected, unknown))
        return beside(X, inference, catalogue.classes)

    @property
    def _keeps_catalogue(self) -> bool:
        """Whether a catalogue is all that the method needs."""
        return self.method == "roll_call" and self._transform in ROW_TRANSFORMS

    def _fitted_to(
        self, features: Float[Tensor, "row dim"], labels: npt.NDArray[Any], names: Any
    ) -> Catalogue | LabelledRows:
        """Fit a catalogue if that is all the method needs; else keep the rows."""
        if names is not None and not self._keeps_catalogue:
            raise OptionError(f"names need the method roll_call with a transform of single rows, got {self.method!r}")
        if self._keeps_catalogue:
            catalogue = Catalogue.of(features.cpu(), labels, self._transform)
            if names is not None:
                catalogue = catalogue.with_names(*rows_of_names(names, features.shape[1]))
            _ = catalogue.reference.noise  # fitted here with the head, not with the first batch
            return catalogue
        return LabelledRows.of(features, labels)

    def _infer(
        self,
        catalogue: Catalogue | LabelledRows,
        query: Float[Tensor, "item dim"],
        known: Known,
        given: Int[np.ndarray, "item"] | None = None,
    ) -> Inference:
        """Label one batch; labels as an array, probabilities as a tensor. `given` are positions of classes, or -1."""
        options = self.options or {}
        if known.pool is not None or known.order is not None:
            raise OptionError("pool and order are about groups, and there are none; give the argument groups")
        if isinstance(catalogue, Catalogue):
            weights = weights_of(known.prior, known.candidates, catalogue.classes, None)
            prior = None if weights is None else prior_of(weights, 1)
            return inferred(catalogue, query.cpu(), prior=prior, given=given)
        if known.prior is not None or known.candidates is not None:
            raise OptionError(f"prior and candidates need the method roll_call, got {self.method!r}")
        support = catalogue.features.to(query.device)
        task = TaskBatch.single(support, catalogue.codes.to(query.device), query.to(support), len(catalogue.classes))
        return of_solution(transform(self._transform, task), self.method, options, catalogue.classes)


class PaddleClassifier(TransductiveClassifier):
    """Every `predict` is one joint batch, labelled by roll call: nothing to tune, features of any scale.

    It has no parameters. X may be an array, a tensor, or a frame of pandas, polars or Arrow, and answers come in the
    same container, see `TransductiveClassifier`.

    Attributes
    ----------
    classes_ : ndarray [class]
        Distinct labels, in increasing order.
    catalogue_ : Catalogue
        The fitted catalogue; `catalogue_.report()` says what looks wrong with it.
    transduction_, label_distributions_ : ndarray [row], ndarray [row, class]
        For the rows given to `fit`: their labels (predicted ones for unlabelled rows) and their probabilities.
    n_features_in_, feature_names_in_ : int, ndarray
        As in all scikit-learn estimators.

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

    @classmethod
    def from_names(cls, names: Any) -> Self:
        """Make a classifier from vectors of the names of its classes alone, without any example.

        Parameters
        ----------
        names : mapping
            As in `add_names`.

        Returns
        -------
        PaddleClassifier
            A classifier without examples.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> places = rng.normal(size=(20, 16))
        >>> names = {f"class {k}": places[k] + 0.5 * rng.normal(size=16) for k in range(20)}
        >>> batch = places[[3] * 12 + [7] * 8] + 0.4 * rng.normal(size=(20, 16))
        >>> PaddleClassifier.from_names(names).infer(batch).present_classes.tolist()
        ['class 3', 'class 7']
        """
        return cls().add_names(names)

    @property
    def catalogue_(self) -> Catalogue:
        """The fitted catalogue; `catalogue_.report()` says what looks wrong with it."""
        return self._fitted("_catalogue", "catalogue_")  # type: ignore[no-any-return]


def asked(
    catalogue: Catalogue, found: Inference, features: Float[Tensor, "item dim"], n: int, answered: Sequence[int]
) -> tuple[Question, ...]:
    """Return the first n questions about a batch that was labelled; `answered` items are not asked about."""
    points = catalogue.points(features) - catalogue.reference.centre
    return tuple(questions_about(points, as_array(found.probabilities), as_array(found.unknown), n, answered))


@contextmanager
def _sentences(kind: type[HandfulError]) -> Iterator[None]:
    """Raise what scikit-learn says about its input as an error of handful."""
    try:
        yield
    except HandfulError:
        raise
    except ValueError as error:
        raise kind(str(error)) from error


def _warn(inference: Inference) -> None:
    for warning in warnings_of(inference.diagnostics):
        warnings.warn(warning, stacklevel=3)  # the line that called a method of the classifier
