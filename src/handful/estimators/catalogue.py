"""Catalogue: the labelled rows behind a classifier, as one value that grows and shrinks by making a new one.

Classes are kept in increasing order and rows in the order they came, so whatever the way there, the same rows make
the same catalogue. A thread that holds one never sees it change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from handful.errors import LabelError
from handful.shapes import Float, Int


@dataclass(frozen=True, eq=False)
class Catalogue:
    """Features and labels of the examples.

    Attributes
    ----------
    classes : ndarray [class]
        Distinct labels in increasing order, as they were given.
    codes : Int[Tensor, "row"]
        Position of each row's label in `classes`.
    features : Float[Tensor, "row dim"]
        The examples.
    """

    classes: npt.NDArray[Any]
    codes: Int[Tensor, "row"]
    features: Float[Tensor, "row dim"]

    @classmethod
    def of(cls, features: Float[Tensor, "row dim"], labels: npt.NDArray[Any]) -> Catalogue:
        """Make one of features and as many labels."""
        classes, codes = distinct(labels)
        return cls(classes, torch.from_numpy(codes).to(features.device), features)

    def with_rows(self, features: Float[Tensor, "row dim"], labels: npt.NDArray[Any]) -> Catalogue:
        """Return the catalogue with these rows after its own."""
        joined = np.concatenate([self.labels, same_kind(labels, self.classes)])
        return Catalogue.of(torch.cat([self.features, features.to(self.features)]), joined)

    def without(self, labels: npt.NDArray[Any]) -> Catalogue:
        """Return the catalogue without the classes of these labels."""
        leaving = np.isin(self.classes, same_kind(labels, self.classes))
        if leaving.all():
            raise LabelError("no class would be left; keep at least one, or fit anew")
        kept = ~torch.from_numpy(leaving).to(self.codes.device)[self.codes]
        return Catalogue.of(self.features[kept], self.labels[kept.cpu().numpy()])

    @property
    def labels(self) -> npt.NDArray[Any]:
        """Label of each row."""
        labels: npt.NDArray[Any] = self.classes[self.codes.cpu().numpy()]
        return labels

    def unknown(self, labels: npt.NDArray[Any]) -> list[Any]:
        """Those of the labels that no row has."""
        given, _ = distinct(same_kind(labels, self.classes))
        known = set(self.classes.tolist())
        return [label for label in given.tolist() if label not in known]


def distinct(labels: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return the distinct labels in increasing order, and where in them each label is."""
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise LabelError(
            f"labels must be of one kind, so that they can be put in order ({error}); "
            "turn them into strings, and drop rows whose label is missing"
        ) from error
    return classes, codes.astype(np.int64, copy=False)


def same_kind(labels: npt.NDArray[Any], classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Refuse numbers where the classes are names, and the like: NumPy would turn both into text without a word."""
    kinds = labels.dtype.kind, classes.dtype.kind
    if kinds[0] != kinds[1] and not set(kinds) <= set("iu") and "O" not in kinds:
        raise LabelError(
            f"labels must be of the catalogue's kind, {classes.dtype}, got {labels.dtype}; convert them first"
        )
    return labels


def is_unlabelled(labels: npt.NDArray[Any], mark: Any) -> npt.NDArray[np.bool_]:
    """Where a label is `mark`; nowhere if that is None.

    A mark that no label could equal is refused: a number among text (a list of names and -1 becomes text in NumPy), or
    text among numbers.
    """
    if mark is None:
        return np.zeros(len(labels), dtype=bool)
    if labels.dtype.kind != "O" and isinstance(mark, str) != (labels.dtype.kind == "U"):
        raise LabelError(
            f"unlabelled must be of the kind of the labels, {labels.dtype}, got {mark!r}; "
            "give the mark as it stands in y, or y as an array of objects"
        )
    # Objects one by one: a comparison of whole arrays would look inside tuples.
    return np.array([isinstance(label, str) == isinstance(mark, str) and label == mark for label in labels.tolist()])
