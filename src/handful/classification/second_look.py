"""A second look at labelled batches: which items a person should look at first, and why each has its label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from handful.catalogue import Catalogue
from handful.engine.questions import Question
from handful.estimators.answer import Answer
from handful.estimators.batches import CatalogueItems, answered
from handful.estimators.classifiers import asked
from handful.estimators.context import Known
from handful.estimators.why import Explanation, explained
from handful.shapes import Int


@dataclass(frozen=True, eq=False)
class SecondLook:
    """What is needed to look at a batch again.

    Attributes
    ----------
    catalogue : Catalogue
        What the items were compared with, given ones included.
    points : [item, dim]
        Vectors of all items.
    given : Int[ndarray, "item"] or None
        Position of the class that a person gave to an item, `NO_CLASS` if they said none of these, or -1.
    known : Known
        What was known about the classes of each batch.
    found : Answer or None
        The answer about all items. Without it, the items that are looked at are labelled again as one batch.

    Examples
    --------
    >>> catalogue = Catalogue.of(np.eye(3), np.arange(3))
    >>> look = SecondLook(catalogue, np.eye(3, dtype="f4")[[1, 1, 0]], None)
    >>> questions, explanations = look.at(np.arange(3), range(3), 1)
    >>> questions[0].item, [why.alone for why in explanations]
    (2, [1, 1, 0])
    """

    catalogue: Catalogue
    points: Any
    given: Int[np.ndarray, "item"] | None
    known: Known = field(default_factory=Known)
    found: Answer | None = None

    def at(
        self, batch: Int[np.ndarray, "item"], explain: Sequence[int], n: int
    ) -> tuple[list[Question], Sequence[Explanation]]:
        """Return the first n questions about one batch, and explanations of some of its items.

        Parameters
        ----------
        batch
            Positions of the items of the batch.
        explain
            Which of them to explain, as positions in the batch; questions have such positions too.
        n
            Number of questions.
        """
        items = CatalogueItems(
            self.catalogue,
            np.array(self.points[batch], np.float32),
            None if self.given is None else self.given[batch],
        )
        found = self.found or answered(items, None, self.known)
        return list(asked(items, found, n)), explained(items, found, explain, self.known)
