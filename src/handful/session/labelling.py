"""Label a batch in memory with everything that was said about it; items unfit to be labelled are left out."""

from __future__ import annotations

import os
from typing import Any, Protocol

import numpy as np

from handful.errors import OptionError
from handful.estimators import Answer, BatchClassifier, Known
from handful.estimators.batches import Batches
from handful.estimators.checks import checked_features
from handful.estimators.containers import frame_of
from handful.estimators.context import checked
from handful.estimators.given import new_class_names
from handful.fitted.files import is_catalogue
from handful.reading.class_names import plain_label
from handful.session.steps import Said


class Labeller(Protocol):
    """What labels the batch: the whole of it, in the order of its rows."""

    def __call__(self, said: Said) -> Answer:
        """Label the batch with `said.given`; `said.named` are its new classes, `said.discarded` is left out."""


def classifier_of(catalogue: Any) -> BatchClassifier:
    """Return a fitted classifier from one, from the path of a catalogue, or from (examples, labels)."""
    if isinstance(catalogue, BatchClassifier):
        return catalogue
    if isinstance(catalogue, tuple) and len(catalogue) == 2:
        return BatchClassifier().fit(*catalogue)
    if is_catalogue(catalogue):
        return BatchClassifier.load(catalogue)
    if isinstance(catalogue, (str, os.PathLike)):
        raise OptionError(
            f"a session needs a catalogue file (.handful or .safetensors), got {os.fspath(catalogue)!r}; make one with "
            "handful catalogue build, or give (examples, labels)"
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
        given = {row: plain_label(label) for row, label in (self.known.pop("given", None) or {}).items()}
        self.said = Said(given, new_classes=self._new_classes())

    def _new_classes(self) -> tuple[Any, ...]:
        return tuple(new_class_names(self.known.pop("new_classes", None)))

    def __call__(self, said: Said) -> Answer:
        """Label the batch; discarded items have no label, and no part in the labels of others."""
        known = Known(**{**self.known, "given": said.given})
        if said.named:
            known["new_classes"] = said.named
        excluded = np.zeros(len(self.features), dtype=bool)
        excluded[sorted(said.discarded)] = True
        if excluded.all():
            raise OptionError("every item was discarded; at least one must be left to label")
        batches = Batches.of_catalogue(self.catalogue, self.features, self.groups, known, excluded=excluded)
        return batches.answer(self.frame_of)
