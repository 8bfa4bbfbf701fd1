"""How certain a label is: `p (1 - unknown) (n + 1)/(n + 2)`, the chance that it is right.

p is the probability of the label if the item has one of the classes, and `unknown` the chance that it has none; NaN,
where the catalogue cannot tell, counts as zero. The last factor is Laplace's rule of succession: if n examples were all
labelled right, the next item is right with this chance, and they support no larger one, however far apart the classes
are. Names count as the examples that they are worth. Scores of another model have no examples, and no such factor. A
label that a person gave has the certainty 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from handful.shapes import Bool, Float

# A label is sure if its certainty is at least this. Nearly all that are sure are right, whether or not some items are
# unknown: a certainty has to allow for unknown items, and is too low in a batch without any. [chance; convention]
SURE = 0.9


def most_certain(examples: npt.NDArray[Any]) -> float:
    """Return `(n + 1)/(n + 2)`, the largest certainty that n examples support, from their number in each class.

    Examples
    --------
    >>> [round(most_certain(np.full(6, shots)), 3) for shots in (1, 4, 100)]
    [0.875, 0.962, 0.998]
    """
    n_examples = float(examples.sum(dtype=np.float64))
    return (n_examples + 1) / (n_examples + 2)


def certainty_of(
    probabilities: npt.NDArray[np.floating[Any]],
    unknown: Float[np.ndarray, "item"],
    most: Float[np.ndarray, "item"] | float,
) -> npt.NDArray[np.float64]:
    """Return the certainty of labels, [item] or [item, some], from their probabilities.

    Parameters
    ----------
    probabilities
        Among the classes, as if every item had one.
    unknown
        The chance that it has none; NaN counts as zero.
    most
        What the examples support, `most_certain`; 1 for labels that a person gave.

    Examples
    --------
    >>> certainty_of(np.array([0.9, 0.9, 1.0]), np.array([0.5, np.nan, 0.0]), np.array([0.8, 0.8, 1.0])).tolist()
    [0.36000000000000004, 0.7200000000000001, 1.0]
    """
    known = (1 - np.nan_to_num(unknown)) * most
    return np.asarray(probabilities * (known if probabilities.ndim == 1 else known[:, None]), np.float64)


def in_doubt(
    certainties: Float[np.ndarray, "item two"], rejected: Bool[np.ndarray, "item"]
) -> Bool[np.ndarray, "item"]:
    """Return the items for which something else is nearly as likely as their label, see `Answer.doubtful`."""
    return np.asarray((certainties[:, 0] < 0.5 + 0.5 * certainties[:, 1]) & ~rejected)
