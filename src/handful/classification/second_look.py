"""A second look at labelled batches: which items a person should look at first, and why each has its label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from handful.catalogue import Catalogue
from handful.engine.prior import Prior
from handful.engine.questions import Question
from handful.estimators.classifiers import asked
from handful.estimators.inference import Inference, inferred
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
    prior : Prior or None
        What was known about the classes of each batch.
    found : Inference or None
        The answer about all items. Without it, the items that are looked at are labelled again as one batch.

    Examples
    --------
    >>> catalogue = Catalogue.of(torch.eye(3), np.arange(3))
    >>> look = SecondLook(catalogue, np.eye(3, dtype="f4")[[1, 1, 0]], None)
    >>> questions, explanations = look.at(np.arange(3), range(3), 1)
    >>> questions[0].item, [why.alone for why in explanations]
    (2, [1, 1, 0])
    """

    catalogue: Catalogue
    points: Any
    given: Int[np.ndarray, "item"] | None
    prior: Prior | None = None
    found: Inference | None = None

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
        features = torch.from_numpy(np.array(self.points[batch], np.float32))
        given = None if self.given is None else self.given[batch]
        found = self.found or inferred(self.catalogue, features, prior=self.prior, given=given)
        answered = [] if given is None else np.flatnonzero(given != -1).tolist()
        questions = asked(self.catalogue, found, features, n, answered)
        return list(questions), explained(self.catalogue, found, features, explain, prior=self.prior)
