"""answer_from_probabilities: the answer of a method that tells nothing but probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from handful.estimators.answer import Answer, best_two
from handful.estimators.certainty import certainty_of, most_certain
from handful.estimators.containers import frame_of, new_frame
from handful.shapes import Float


def answer_from_probabilities(
    classes: npt.NDArray[Any],
    probabilities: Float[np.ndarray, "item class"],
    *,
    n_examples: int,
    unknown_reason: str,
    diagnostics: tuple[Any, ...] = (),
    like: Any = None,
) -> Answer:
    """Make the answer of a method that tells neither which classes are present nor which items are unknown.

    Parameters
    ----------
    classes : ndarray [class]
        All classes, in the order of the columns.
    probabilities : ndarray [item, class]
        Of each item; a row sums to one.
    n_examples : int
        Number of labelled examples, which bounds every certainty.
    unknown_reason : str
        Why unknown items were not judged, as a sentence.
    diagnostics : tuple of Diagnostic
        What looks wrong.
    like : object
        The batch that was given; `to_frame` returns a table of its kind.

    Returns
    -------
    Answer
        The answer about one batch.

    Examples
    --------
    >>> classes = np.array(["left", "right"])
    >>> reason = "Unknown items are not judged."
    >>> found = answer_from_probabilities(classes, np.array([[0.9, 0.1]]), n_examples=10, unknown_reason=reason)
    >>> found.labels.tolist()
    ['left']
    """
    n_items = len(probabilities)
    codes, likely = best_two(probabilities)
    unknown = np.full(n_items, np.nan)
    return Answer(
        classes=classes,
        codes=codes,
        _certainties=certainty_of(likely, unknown, most_certain(np.array([n_examples]))),
        _table=probabilities,
        expected_counts=probabilities.sum(0),
        presence=np.full(len(classes), np.nan),
        joint_weight=None,
        prior_weight=None,
        unknown=unknown,
        _none_of_these=np.zeros(n_items, bool),
        rejected=np.zeros(n_items, bool),
        unknown_interval=(0.0, 1.0),
        unknown_reason=unknown_reason,
        proposals=(),
        diagnostics=diagnostics,
        _frame_of=new_frame if like is None else frame_of(like),
    )
