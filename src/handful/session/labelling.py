"""Label a batch in memory with everything that was said about it; items unfit to be labelled are left out.

Rows are checked by scikit-learn, which a batch of a catalogue does without.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from handful.catalogue.file import is_catalogue_file
from handful.errors import OptionError
from handful.estimators import Answer, BatchClassifier, Known
from handful.estimators.batches import Batches
from handful.estimators.checks import checked_features
from handful.estimators.containers import frame_of
from handful.estimators.context import checked
from handful.estimators.given import new_class_names
from handful.fitted.files import is_model_path
from handful.reading.class_names import plain_label
from handful.session.from_nothing import FromNothing
from handful.session.said import BatchSaid


def from_nothing(X: Any) -> FromNothing:
    """Return what labels rows in memory by the answers alone; `X` is as in `BatchClassifier.infer`."""
    return FromNothing(checked_features(BatchClassifier(), X, reset=True), frame_of(X))


def classifier_of(catalogue: Any) -> BatchClassifier:
    """Return a fitted classifier from one, from the path of a catalogue, or from (examples, labels)."""
    if isinstance(catalogue, BatchClassifier):
        return catalogue
    if isinstance(catalogue, tuple) and len(catalogue) == 2:
        return BatchClassifier().fit(*catalogue)
    if isinstance(catalogue, (str, os.PathLike)) and (is_catalogue_file(catalogue) or is_model_path(catalogue)):
        return BatchClassifier.load(catalogue)
    if isinstance(catalogue, (str, os.PathLike)):
        raise OptionError(
            f"a session needs a catalogue (.handful) or a model (.model, .safetensors), got {os.fspath(catalogue)!r}; "
            "make one with handful catalogue build, or give (examples, labels)"
        )
    raise OptionError(
        "a session needs a fitted BatchClassifier, the path of a catalogue file, or a pair (examples, labels), got "
        f"{type(catalogue).__name__}"
    )


class MemoryLabeller:
    """Labels rows in memory.

    Parameters
    ----------
    classifier : BatchClassifier
        The fitted classifier.
    X : [row, feature]
        The items.
    groups : [row], [row, column] or None
        As in `BatchClassifier.infer`.
    known : Known
        What is known about the batch, as in `infer`. Labels that are given there are what was said first.
    """

    def __init__(self, classifier: BatchClassifier, X: Any, groups: Any, known: Known) -> None:
        self.classifier = classifier
        self.X = X
        self.catalogue = classifier._current()
        self.features = checked_features(classifier, X, reset=False)
        self.groups = groups
        self.frame_of = frame_of(X)
        self.known = checked(known)
        self.given = {row: plain_label(label) for row, label in (self.known.pop("given", None) or {}).items()}
        self._new_classes = new_class_names(self.known.pop("new_classes", None))

    def __call__(self, said: BatchSaid) -> Answer:
        """Label the batch; discarded items have no label, and no part in the labels of others."""
        known = Known(**{**self.known, "given": said.given})
        there = set(self.catalogue.classes.tolist())
        used = set(said.given.values())
        first = [label for label in self._new_classes if label in used]
        new = tuple(dict.fromkeys(label for label in (*first, *said.named) if label not in there))
        if new:
            known["new_classes"] = new
        excluded = np.zeros(len(self.features), dtype=bool)
        excluded[sorted(said.discarded)] = True
        if excluded.all():
            raise OptionError("every item was discarded; at least one must be left to label")
        batches = Batches.of_catalogue(self.catalogue, self.features, self.groups, known, excluded=excluded)
        return batches.answer(self.frame_of)
