"""Two levels of classes: where the classes of one genus cannot be told apart, the answer is the genus.

The probability of a coarse class is the sum over its classes, `P_nc = Σ_{k in c} p_nk`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from handful.errors import OptionError
from handful.estimators.certainty import certainty_of
from handful.estimators.prior_weights import class_places
from handful.fitted.labels import distinct
from handful.model.linear import class_sums
from handful.reading.class_names import is_missing, plain_label
from handful.shapes import Float, Int


def coarse_names(coarse: Any, classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the coarse class of each class; one that is not mentioned is its own.

    A coarse class that has the name of another class is refused: an answer would not say which of the two is meant.
    """
    if not isinstance(coarse, Mapping):
        raise OptionError(f"coarse must be a mapping from classes to coarse classes, got {type(coarse).__name__}")
    names = classes.astype(object)
    known = set(classes.tolist())
    for place, given in zip(class_places(list(coarse), classes), coarse.values(), strict=True):
        own = names[place]
        name = plain_label(given)
        if not np.isscalar(given) or is_missing(name):
            raise OptionError(f"the coarse class of {own!r} is {name!r:.80}; give it a name, or leave the class out")
        if name != own and name in known:
            raise OptionError(
                f"the coarse class of {own!r} is {name!r}, which is another class, so answers could mean either; "
                f"give it another name, such as {f'any {name}'!r}"
            )
        names[place] = name
    return names


@dataclass(frozen=True, eq=False)
class Coarse:
    """The most probable coarse class of each item.

    Attributes
    ----------
    classes : ndarray [coarse]
        Coarse classes, in increasing order.
    of_class : ndarray [class]
        The coarse class of each class, as a position in `classes`.
    codes, certainty : ndarray [item]
        The most probable coarse class of each item, as a position in `classes`, and the chance that it is right.
    """

    classes: npt.NDArray[Any]
    of_class: Int[np.ndarray, "class"]
    codes: Int[np.ndarray, "item"]
    certainty: Float[np.ndarray, "item"]

    @classmethod
    def of(cls, names: npt.NDArray[Any], n_items: int) -> Coarse:
        """Make one for items that are not labelled yet, from the coarse class of each class."""
        every, of_class = distinct(names)
        return cls(every, of_class, np.zeros(n_items, np.int64), np.zeros(n_items))

    @property
    def labels(self) -> npt.NDArray[Any]:
        """The most probable coarse class of each item."""
        return np.asarray(self.classes[self.codes])

    def put(
        self,
        rows: Int[np.ndarray, "some"] | slice,
        q: Float[np.ndarray, "some class"],
        unknown: Float[np.ndarray, "some"],
        most: Float[np.ndarray, "some"],
    ) -> None:
        """Fill in the items of one batch; `unknown` and `most` as in `certainty_of`."""
        sums = class_sums(q.T, self.of_class, len(self.classes), np.ones(q.shape[1]))
        self.codes[rows] = sums.argmax(0)
        self.certainty[rows] = certainty_of(sums.max(0), unknown, most)

    def rows(self, rows: Int[np.ndarray, "some"] | slice) -> Coarse:
        """Return that of some items."""
        return replace(self, codes=self.codes[rows], certainty=self.certainty[rows])
