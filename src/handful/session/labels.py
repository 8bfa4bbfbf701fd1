"""Labels and their names: events have names, and a catalogue in memory may have classes that are numbers or dates."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from handful.errors import LabelError
from handful.estimators.containers import labels_of
from handful.fitted.labels import distinct, same_kind


class LabelNames:
    """The names of labels, and the labels of names.

    Parameters
    ----------
    classes : [class]
        Labels of the classes that have examples.

    Examples
    --------
    >>> names = LabelNames(np.array([3, 7]))
    >>> names.label("7"), names.label("12")
    (7, 12)
    """

    def __init__(self, classes: npt.NDArray[Any]) -> None:
        self.classes = classes
        self._labels = {str(label): label for label in classes.tolist()}
        self.are_distinct = len(self._labels) == len(classes)

    def name(self, label: Any) -> str:
        """Return the name of a label, and remember what it stands for."""
        name = str(label)
        self._labels.setdefault(name, label)
        return name

    def label(self, name: str) -> Any:
        """Return the label of a name; of a new one, what `fit` would take beside the other classes."""
        if name not in self._labels:
            self._labels[name] = self._new(name)
        return self._labels[name]

    def _new(self, name: str) -> Any:
        kind = self.classes.dtype.kind
        if not len(self.classes):
            return name
        if kind == "b":
            raise LabelError("the classes are True and False, so there can be no third one; say none of these")
        if kind not in "iufmM":
            distinct(np.concatenate([self.classes, same_kind(labels_of([name]), self.classes)]))
            return name
        called = "dates" if kind in "mM" else "numbers"
        try:
            label = self.classes.dtype.type(name)
        except (ValueError, OverflowError):
            raise LabelError(f"the classes are {called}, and {name!r} is none; give the new class one") from None
        if str(label) in self._labels:
            raise LabelError(f"{name!r} is the class {str(label)!r}; choose that one")
        if kind == "f" and not float(label).is_integer():
            raise LabelError(f"the classes are whole numbers, and {name!r} is none; give the new class one")
        if str(label) != name:
            raise LabelError(f"the classes are {called}; write {str(label)!r} instead of {name!r}, or another one")
        return label.item() if kind in "iuf" else label
