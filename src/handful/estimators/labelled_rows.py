"""Labelled rows: the examples of a classifier whose method needs them all, as one immutable value.

Classes are kept in increasing order and rows in the order they came, so the same rows always make the same value. A
thread that holds one never sees it change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from handful.catalogue.labels import distinct, places_of, same_kind
from handful.errors import LabelError
from handful.shapes import Float, Int


@dataclass(frozen=True, eq=False)
class LabelledRows:
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
    def of(cls, features: Float[Tensor, "row dim"], labels: npt.NDArray[Any]) -> LabelledRows:
        """Make one from features and as many labels."""
        classes, codes = distinct(labels)
        return cls(classes, torch.from_numpy(codes).to(features.device), features)

    def with_examples(self, features: Float[Tensor, "row dim"], labels: npt.NDArray[Any]) -> LabelledRows:
        """Return these rows and the others after them."""
        joined = np.concatenate([self.labels, same_kind(labels, self.classes)])
        return LabelledRows.of(torch.cat([self.features, features.to(self.features)]), joined)

    def without(self, labels: npt.NDArray[Any]) -> LabelledRows:
        """Return the rows without the classes of these labels."""
        leaving = np.isin(self.classes, same_kind(labels, self.classes))
        if leaving.all():
            raise LabelError("no class would be left; keep at least one, or fit again")
        kept = ~torch.from_numpy(leaving).to(self.codes.device)[self.codes]
        return LabelledRows.of(self.features[kept], self.labels[kept.cpu().numpy()])

    @property
    def dim(self) -> int:
        """Number of features."""
        return self.features.shape[1]

    @property
    def labels(self) -> npt.NDArray[Any]:
        """Label of each row."""
        labels: npt.NDArray[Any] = self.classes[self.codes.cpu().numpy()]
        return labels

    def unknown(self, labels: npt.NDArray[Any]) -> list[Any]:
        """Return the labels that no row has."""
        given, _ = distinct(same_kind(labels, self.classes))
        return list(given[places_of(given, self.classes) < 0].tolist())


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
