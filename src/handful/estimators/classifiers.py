"""BatchClassifier: a scikit-learn estimator that labels every batch jointly, with nothing to tune.

One long file: it is one class with the contract of scikit-learn, and half of it documents arguments.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, Unpack, overload

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from handful.arguments import takes, whole
from handful.catalogue.file import is_catalogue_file
from handful.errors import EqualClassesWarning, LabelError, OptionError, SimilarNamesWarning, TaskError
from handful.estimators.answer import Answer, without_label
from handful.estimators.batches import Batches, predict_codes
from handful.estimators.checks import checked_features, checked_labels, checked_rows, rows_of_names
from handful.estimators.containers import frame_of, labels_of
from handful.estimators.context import Known, checked
from handful.estimators.diagnostics import warnings_of
from handful.estimators.items import ModelItems
from handful.estimators.why import Explanation, explained, questions_of
from handful.fitted import FittedModel, load_model, save_model
from handful.fitted.labels import distinct, places_of, with_label
from handful.model.questions import Question
from handful.reading.class_names import plain_label, similar_summary
from handful.shapes import Float, Int

# Rows of catalogue and batch are compared at unit length.
TRANSFORM = "l2"
# Questions that are asked, by default. [questions; convention]
N_QUESTIONS = 10


@dataclass(frozen=True, eq=False)
class Transduction:
    """What `fit` found for the unlabelled rows it was given."""

    codes: Int[np.ndarray, "row"]
    unlabelled: npt.NDArray[np.bool_]
    probabilities: Float[np.ndarray, "unlabelled class"]


class BatchClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Every `predict` is one joint batch: the label of an item depends on the other items in the call.

    There is nothing to tune, and features may have any scale. X may be an array, a tensor, or a frame of pandas, polars
    or Arrow, either with one column per feature or with a single column of vectors. Labels may be text, numbers,
    booleans, dates or tuples, and are returned as a NumPy array. Blanks at either end of text do not count, and equal
    characters are equal however Unicode writes them (NFC): `"fox "` and `"fox"` are one class, `"fox"` in `classes_`.
    Names that still look alike, such as `"Fox"` and `"fox"`, stay two classes and raise a `SimilarNamesWarning`.

    Attributes
    ----------
    classes_ : ndarray [class]
        Distinct labels, in increasing order.
    model_ : FittedModel
        The fitted catalogue; `model_.report()` says what looks wrong with it.
    transduction_, label_distributions_ : ndarray [row], ndarray [row, class]
        Labels of the rows given to `fit` (predicted for unlabelled rows), and their probabilities.
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
    >>> classifier = BatchClassifier().fit(bank.take(catalogue), names[bank.labels[catalogue]])
    >>> classifier.infer(bank.take(batch)).present_classes.tolist()
    ['application_status', 'credit_score']

    Examples and classes come and go, and the result is a file:

    >>> import tempfile
    >>> X, y = [[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]], ["up", "up", "right", "right"]
    >>> classifier = BatchClassifier().fit(X, y).partial_fit([[0.2, 1.0]], ["up"])
    >>> others = ["left", "down"]
    >>> classifier = classifier.partial_fit([[-1.0, 0.0], [0.0, -1.0]], others, classes=others).remove_classes(["down"])
    >>> dict(zip(classifier.classes_.tolist(), classifier.model_.shots.tolist()))
    {'left': 1.0, 'right': 2.0, 'up': 3.0}
    >>> file = tempfile.mkdtemp() + "/directions.safetensors"
    >>> classifier.save(file)
    >>> BatchClassifier.load(file).predict([[0.0, 2.0], [3.0, 0.1]]).tolist()
    ['up', 'right']
    """

    n_features_in_: int
    _announced: frozenset[Any] = frozenset()  # labels that `partial_fit` may add

    def fit(self, X: Any, y: Any, *, unlabelled: Any = None, names: Any = None, **others: Any) -> Self:
        """Fit the catalogue; every class needs at least one row or a name.

        Parameters
        ----------
        X, y : [row, feature], [row]
            Examples and their labels.
        unlabelled : label or None
            The value in y that marks rows without a label; `unlabelled=-1` is the convention of
            `sklearn.semi_supervised`. These rows are labelled jointly right away, see `transduction_` and
            `label_distributions_`, and are not part of the catalogue. None, the default, means that every label is a
            class, even -1, because labels such as -1, 0 and 1 are common.
        names : mapping or None
            From labels to vectors of the names of classes, see `add_names`.
        **others : object
            Refused; there are no sample weights.

        Returns
        -------
        object
            The classifier itself.
        """
        self._refuse(others)
        features, labels = checked_rows(self, X, checked_labels(self, y, unlabelled), reset=True)
        marked = is_unlabelled(labels, plain_label(unlabelled))
        if marked.all():
            raise LabelError(
                f"every row is unlabelled (y is {unlabelled!r}); give at least one labelled row of every class"
            )
        catalogue = FittedModel.of(features[~marked], labels[~marked], TRANSFORM)
        if names is not None:
            catalogue = catalogue.with_names(*rows_of_names(names, features.shape[1]))
        _ = catalogue.reference.unknown_model  # fitted here with the head, not with the first batch
        _warn_of_classes(catalogue, stacklevel=3)
        self._catalogue = catalogue
        codes = np.empty(len(labels), np.int64)
        probabilities = np.empty((0, len(self.classes_)))
        codes[~marked] = places_of(labels[~marked], self.classes_)
        if marked.any():
            answer = Batches.of(ModelItems(catalogue, features[marked])).answer()
            _warn(answer, stacklevel=3)
            probabilities = answer.probabilities
            codes[marked] = answer.codes[:, 0]
        self._transduction: Transduction | None = Transduction(codes, marked, probabilities)
        self._announced = frozenset()
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, **others: Any) -> Self:
        """Add examples; the result is the same as `fit` on all rows together.

        The first call is a `fit`. Labels must be known, or listed in `classes` in this call or an earlier one, so that
        a typing mistake does not become a class; only a first call without `classes` takes any label.

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
        """
        self._refuse(others)
        first = not self.__sklearn_is_fitted__()
        announced = self._announced.union(() if classes is None else labels_of(classes).tolist())
        known = announced if first else announced.union(self.classes_.tolist())
        if not (first and classes is None):
            unknown = set(distinct(checked_labels(self, y))[0].tolist()) - known
            if unknown:
                raise LabelError(
                    f"label {min(unknown, key=repr)!r} is not among the {len(known)} classes; "
                    "fix it, or list it in classes"
                )
        if first:
            self.fit(X, y)
        else:
            catalogue = self._current()
            features, labels = checked_rows(self, X, checked_labels(self, y), reset=False)
            self._grew(catalogue, catalogue.with_examples(features, labels))
        self._announced = announced
        return self

    def add_names(self, names: Any) -> Self:
        """Add vectors of the names of classes, known or new; a class with a name needs no examples.

        The vectors must be comparable with those of the items: names or descriptions embedded by the sentence encoder
        for sentences, or by the text side of CLIP for photographs. How many examples a name is worth is estimated from
        held-out examples, so names without information do not change the answer. A classifier that is not fitted yet
        then has no examples.

        Parameters
        ----------
        names : mapping
            From a label to a vector, or to several as rows (prompts); their mean is used, each at unit length. If the
            class already has a name, it is replaced.

        Returns
        -------
        object
            The classifier itself.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> places = rng.normal(size=(20, 16))
        >>> names = {f"class {k}": places[k] + 0.5 * rng.normal(size=16) for k in range(20)}
        >>> batch = places[[3] * 12 + [7] * 8] + 0.4 * rng.normal(size=(20, 16))
        >>> BatchClassifier().add_names(names).infer(batch).present_classes.tolist()
        ['class 3', 'class 7']
        """
        if not self.__sklearn_is_fitted__():
            vectors, labels = rows_of_names(names, None)
            self.n_features_in_ = vectors.shape[1]
            return self._grew(None, FittedModel.of_names(vectors, labels, TRANSFORM))
        catalogue = self._current()
        vectors, labels = rows_of_names(names, self.n_features_in_)
        return self._grew(catalogue, catalogue.with_names(vectors, labels))

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
        """
        catalogue = self._current()
        leaving = labels_of(labels)
        unknown = catalogue.unknown(leaving)
        if unknown:
            raise LabelError(f"class {unknown[0]!r} is not in the catalogue; see classes_ for those that are")
        return self._became(catalogue.without(leaving))

    @takes(Known)
    def infer(self, X: Any, groups: Any = None, **known: Unpack[Known]) -> Answer:
        """Label all rows of X jointly and say which classes are present; nothing is stored, so it is thread-safe.

        Warnings about groups stay with the groups: `found[group].diagnostics`.

        Parameters
        ----------
        X : [row, feature]
            The items.
        groups : [row], [row, column] or None
            One value per row, or one row of values; every group is labelled as a separate batch.
        prior, candidates, given, new_classes, sequence, pool, order, coarse, expect_unknown : object
            What is known about the batch in advance, see `Known`.

        Returns
        -------
        Answer
            Labels, probabilities, the classes present, unknown items, and warnings.
        """
        return self._answered(X, groups, known)

    @takes(Known)
    def predict(self, X: Any, groups: Any = None, *, unknown: Any = None, **known: Unpack[Known]) -> npt.NDArray[Any]:
        """Label all rows of X jointly.

        Parameters
        ----------
        X, groups : object
            As in `infer`.
        unknown : label or None
            The label of items that look like none of the classes, see `Answer.rejected`; for instance "other" or
            -1. None, the default, means a class for every item.
        prior, candidates, given, new_classes, sequence, pool, order, coarse, expect_unknown : object
            As in `infer`.

        Returns
        -------
        [row]
            Labels.

        Examples
        --------
        >>> from handful.estimators import BatchClassifier
        >>> rng = np.random.default_rng(0)
        >>> centres = rng.normal(size=(31, 24))
        >>> X, y = centres[:30].repeat(5, axis=0) + 0.4 * rng.normal(size=(150, 24)), np.arange(30).repeat(5)
        >>> truth = [3] * 3 + [8] * 3 + [12] * 3 + [30] * 3  # 30 is not in the catalogue
        >>> batch = centres[truth] + 0.4 * rng.normal(size=(12, 24))
        >>> BatchClassifier().fit(X, y).predict(batch, unknown=-1).tolist()
        [3, 3, 3, 8, 8, 8, 12, 12, 12, -1, -1, -1]
        """
        if groups is None:
            answer = self._answered(X, None, known, keep=False)
            labels = answer.labels
            rejected = answer.rejected
        else:
            batches = self._batches(X, groups, known)
            codes, rejected, none_of_these = predict_codes(batches)
            labels = without_label(batches.items.classes[codes], none_of_these)
        return labels if unknown is None else with_label(labels, rejected, unknown)

    @overload
    def explain(self, X: Any, item: int, **known: Unpack[Known]) -> Explanation: ...

    @overload
    def explain(self, X: Any, item: Sequence[int], **known: Unpack[Known]) -> tuple[Explanation, ...]: ...

    @takes(Known)
    def explain(
        self, X: Any, item: int | Sequence[int], **known: Unpack[Known]
    ) -> Explanation | tuple[Explanation, ...]:
        """Say why an item has its label: what it would be alone, what the batch adds, the nearest examples.

        Parameters
        ----------
        X : [row, feature]
            The whole batch. It is labelled again, so ask for several items at once.
        item : int or list of int
            Position of the item in the batch, or several.
        prior, candidates, given, new_classes, sequence, pool, order, coarse, expect_unknown : object
            As in `infer`.

        Returns
        -------
        Explanation or tuple of Explanation
            One per item; printed, it is a few plain sentences.
        """
        batches = self._batches(X, None, known)
        asked_for = [item] if isinstance(item, int | np.integer) else list(item)
        chosen = [whole("an item", one, least=0, error=TaskError) for one in asked_for]
        outside = [place for place in chosen if place >= len(batches.items)]
        if outside:
            raise TaskError(f"the batch has the items 0 to {len(batches.items) - 1}, got {outside[0]}")
        explanations = explained(batches, 0, batches.answer(), chosen)
        return explanations[0] if isinstance(item, int | np.integer) else explanations

    @takes(Known)
    def questions(self, X: Any, n: int = N_QUESTIONS, **known: Unpack[Known]) -> tuple[Question, ...]:
        """Return the items that a person should look at first: those that tell most about other items.

        Give the answers to `infer` as `given`.

        Parameters
        ----------
        X : [row, feature]
            The whole batch. It is labelled first.
        n : int
            Number of questions.
        prior, candidates, given, new_classes, sequence, pool, order, coarse, expect_unknown : object
            As in `infer`. Items whose labels are given are not asked about again.

        Returns
        -------
        tuple of Question
            The most useful first.

        Examples
        --------
        >>> import numpy as np
        >>> from handful.estimators import BatchClassifier
        >>> rng = np.random.default_rng(1)
        >>> centres = rng.normal(size=(20, 16))
        >>> truth = np.array([3] * 12 + [7] * 12 + [9] * 12)
        >>> batch = centres[truth] + 0.9 * rng.normal(size=(36, 16))
        >>> classifier = BatchClassifier().fit(centres + 0.9 * rng.normal(size=(20, 16)), np.arange(20))
        >>> before = (classifier.predict(batch) == truth).mean()
        >>> answers = {question.item: truth[question.item] for question in classifier.questions(batch, 3)}
        >>> after = (classifier.infer(batch, given=answers).labels == truth).mean()
        >>> print(f"{before:.0%} of the labels are right, and {after:.0%} after three answers")
        86% of the labels are right, and 100% after three answers
        """
        n = whole("n", n, least=1, error=OptionError)
        batches = self._batches(X, None, known)
        return questions_of(batches, 0, batches.answer(), n)

    @takes(Known)
    def predict_proba(self, X: Any, groups: Any = None, **known: Unpack[Known]) -> npt.NDArray[np.float64]:
        """Return the probabilities of the classes for all rows of X, jointly; columns in the order of `classes_`.

        They are those of items that have one of the classes; `infer(X).certainty` counts the others too.

        Parameters
        ----------
        X, groups : object
            As in `infer`.
        prior, candidates, given, new_classes, sequence, pool, order, coarse, expect_unknown : object
            As in `infer`.

        Returns
        -------
        [row, class]
            Probabilities.
        """
        return self._answered(X, groups, known).probabilities

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the catalogue as one file: safetensors, with everything but tensors as JSON in its header.

        `classify` and `handful catalogue` take it, too.

        Parameters
        ----------
        path : path-like
            The file. It appears complete or not at all; an older one of that name is replaced.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        record = replace(self._catalogue.record, feature_names=None if names is None else tuple(names.tolist()))
        save_model(self._catalogue.with_record(record), path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote, or fit the examples of a catalogue; nothing in the file is executed.

        Parameters
        ----------
        path : path-like
            The file.

        Returns
        -------
        object
            The classifier.
        """
        if not is_catalogue_file(path):
            return cls.of(load_model(path))
        from handful.items.fitting import model_at  # with what reads items, which a model does not need

        return cls.of(model_at(path))

    @classmethod
    def of(cls, catalogue: FittedModel) -> Self:
        """Make a classifier of a catalogue that was fitted elsewhere.

        Parameters
        ----------
        catalogue : FittedModel
            The classes and their examples.

        Returns
        -------
        object
            The classifier.

        Examples
        --------
        >>> from handful.fitted import FittedModel
        >>> catalogue = FittedModel.of(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array(["up", "right"]))
        >>> BatchClassifier.of(catalogue).predict([[0.1, 2.0]]).tolist()
        ['up']
        """
        classifier = cls()
        classifier.n_features_in_ = catalogue.dim
        if catalogue.record.feature_names is not None:
            classifier.feature_names_in_ = np.array(catalogue.record.feature_names, dtype=object)
        return classifier._became(catalogue)

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
        fitted: Transduction = self._fitted("_transduction", "label_distributions_")
        distributions = np.zeros((len(fitted.codes), len(self.classes_)))
        distributions[np.arange(len(fitted.codes)), fitted.codes] = 1
        distributions[fitted.unlabelled] = fitted.probabilities
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

    def _current(self) -> FittedModel:
        """Return what was fitted."""
        if not self.__sklearn_is_fitted__():  # first, because the check takes a fifth of the time of a small batch
            check_is_fitted(self)
        return self._catalogue

    def _batches(self, X: Any, groups: Any, known: Known) -> Batches:
        """Return what is to be labelled, beside the catalogue with the examples that are given."""
        return Batches.of_catalogue(self._current(), checked_features(self, X, reset=False), groups, checked(known))

    def _answered(self, X: Any, groups: Any, known: Known, *, keep: bool = True) -> Answer:
        """Label a batch, or every group; warnings about groups stay with the groups. `keep` as in `Batches.answer`."""
        answer = self._batches(X, groups, known).answer(frame_of(X), keep=keep)
        if groups is None:
            _warn(answer, stacklevel=4)
        return answer

    def _refuse(self, others: Mapping[str, Any]) -> None:
        """Refuse arguments that do not exist."""
        if others:
            raise OptionError(
                f"{type(self).__name__} does not take {next(iter(others))!r}: every example counts alike, and sample "
                "weights are not supported; leave it out"
            )

    def _grew(self, before: FittedModel | None, catalogue: FittedModel) -> Self:
        """Replace the catalogue by a larger one, and warn if it has new classes and names that look alike."""
        if before is None or catalogue.n_classes > before.n_classes:
            _warn_of_classes(catalogue, stacklevel=4)
        return self._became(catalogue)

    def _became(self, catalogue: FittedModel) -> Self:
        """Replace the catalogue in one step; what `fit` found for its rows is no longer valid."""
        self._catalogue = catalogue
        self._transduction = None
        return self

    @property
    def model_(self) -> FittedModel:
        """The fitted catalogue; `model_.report()` says what looks wrong with it."""
        return self._fitted("_catalogue", "model_")  # type: ignore[no-any-return]


def is_unlabelled(labels: npt.NDArray[Any], mark: Any) -> npt.NDArray[np.bool_]:
    """Return where a label is `mark`; nowhere if that is None.

    A mark that no label could equal is refused: a number among text (a list of names and -1 becomes text in NumPy), or
    text among numbers.
    """
    if mark is None:
        return np.zeros(len(labels), dtype=bool)
    if labels.dtype.kind != "O" and isinstance(mark, str) != (labels.dtype.kind == "U"):
        raise LabelError(
            f"unlabelled must be of the kind of the labels, {labels.dtype}, got {mark!r}; "
            "give the mark as it is in y, or y as an array of objects"
        )
    # Objects one by one: a comparison of whole arrays would look inside tuples.
    return np.array([isinstance(label, str) == isinstance(mark, str) and label == mark for label in labels.tolist()])


def _warn_of_classes(catalogue: FittedModel, stacklevel: int) -> None:
    if summary := similar_summary(catalogue.similar):
        warnings.warn(SimilarNamesWarning(summary), stacklevel=stacklevel)
    if summary := catalogue.equal_summary:
        warnings.warn(EqualClassesWarning(summary), stacklevel=stacklevel)


def _warn(answer: Answer, stacklevel: int) -> None:
    """Warn of what looks wrong, at the line that called a method of the classifier."""
    for warning in warnings_of(answer.diagnostics):
        warnings.warn(warning, stacklevel=stacklevel)
