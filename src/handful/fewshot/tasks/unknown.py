"""UnknownClasses: items of the query whose class has no example in the support."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from handful.arguments import whole
from handful.errors import TaskError
from handful.fewshot.tasks.query import Picks, pick_pooled
from handful.fewshot.tasks.randomness import Stream
from handful.shapes import Int

# Label of a query whose class is not in the support.
UNKNOWN = -1


@dataclass(frozen=True)
class UnknownClasses:
    """`round(share · |Q|)` queries of `count` classes that the task takes out of its support; their label is -1.

    The classes are drawn for each task, before those of the support. Their queries are drawn without replacement from
    their pooled rows. The same tasks at another share have the same classes and the same support.

    Attributes
    ----------
    count : int
        Number of classes without a support.
    share : float
        Share of the query that they have, 0 … 1. With 0 the classes are taken out and the query has none of them.

    Examples
    --------
    >>> from handful import fewshot
    >>> labels = [0] * 10 + [1] * 10 + [2] * 10 + [3] * 10
    >>> unknown = UnknownClasses(count=1, share=0.25)
    >>> spec = fewshot.TaskSpec(fewshot.ShotsPerClass(2), fewshot.Balanced(k_eff=2), n_query=8, unknown=unknown)
    >>> task = fewshot.draw(labels, spec, seed=0, indices=[0])
    >>> task.n_classes, sorted(task.query_labels[0].tolist())
    (3, [-1, -1, 1, 1, 1, 2, 2, 2])
    """

    count: int
    share: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", whole("count of unknown classes", self.count, least=1, error=TaskError))
        if not 0 <= self.share <= 1:
            raise TaskError(f"the share of unknown items must lie in 0 … 1, got {self.share}")

    def n_items(self, n_query: int) -> int:
        """Return the number of unknown items among `n_query`; a half is rounded up."""
        return int(np.floor(self.share * n_query + 0.5))

    def pick(
        self, sizes: Int[np.ndarray, "task unknown"], n_query: int, seed: int, indices: Int[np.ndarray, "task"]
    ) -> Picks:
        """Pick the unknown items of a query of `n_query` rows; `sizes` are the rows of each unknown class."""
        n_items = self.n_items(n_query)
        who = f"the pool of its {self.count} unknown classes"
        return pick_pooled(sizes, n_items, seed, indices, Stream.UNKNOWN_QUERY, who)
