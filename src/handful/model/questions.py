"""Questions: which items of a batch a person should look at first, by what their answers say about other items.

A wrong label is seldom alone: if a class is mistaken for its neighbour, all its items are. So one answer speaks for
all items of the same class, and ten answers about one class say little more than one.

- `e_j`: the chance that the label of item j is wrong: the item is unknown, or has another class.
- `r_nj = σ(A + B cos(x_n, x_j))`: the chance that items n and j have the same class, `r_nn = 1`. A and B are fitted by
  logistic regression to how far the labels of two items agree, `Σ_k q_nk q_jk`. No examples are needed for it.
- The questions Q are chosen one after another, each with the largest gain in

      worth(Q) = Σ_j e_j max_{n in Q or answered} r_nj,

  the expected number of wrong labels that the answers speak for. What is answered already speaks for its class: labels
  that are still doubtful there are doubtful one by one. The worth is submodular: chosen in this way, it is at least
  1 - 1/e of the largest possible.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from handful.model.limits import LEAST_LENGTH, MOST_LOG_ODDS
from handful.model.linear import logistic_line
from handful.model.settings import DEFAULT, Settings

Floats = npt.NDArray[np.floating]


class Question(NamedTuple):
    """An item that a person should look at.

    Attributes
    ----------
    item : int
        Position in the batch.
    worth : float
        Expected number of wrong labels that its answer speaks for, beyond those of the questions before.
    speaks_for : int
        Number of other items that probably have the same class.

    Examples
    --------
    >>> import numpy as np
    >>> from handful.estimators import BatchClassifier
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(size=(20, 16))
    >>> X, y = centres + 0.7 * rng.normal(size=(20, 16)), np.arange(20)
    >>> batch = centres[[3] * 12 + [7] * 8] + 0.7 * rng.normal(size=(20, 16))
    >>> first, second = BatchClassifier().fit(X, y).questions(batch, 2)
    >>> first.speaks_for, second.speaks_for
    (7, 11)
    """

    item: int
    worth: float
    speaks_for: int


def questions_about(
    points: Floats,
    probabilities: Floats,
    certainty: Floats,
    n: int,
    answered: Collection[int] = (),
    settings: Settings = DEFAULT,
) -> list[Question]:
    """Return the first n questions about a batch, in order of their worth.

    Parameters
    ----------
    points
        The items [item, dim], about the centre of the class means.
    probabilities, certainty
        q [item, class], as if every item had a class, and the chance [item] that each label is right.
    n
        Number of questions; as many as items that are not answered, if these are fewer.
    answered
        Items that are not asked about again.
    """
    q = probabilities.astype(np.float64)
    wrong = 1 - certainty
    wrong[list(answered)] = 0
    known = np.array(sorted(answered), np.intp)
    kept = np.union1d(np.argsort(-wrong, kind="stable")[: settings.most_compared], known)
    same = _same_class(_directions(points), q, kept, settings).of_items(np.arange(len(kept)))
    errors = wrong[kept]
    askable = ~np.isin(kept, known)
    covered = same[~askable].max(0, initial=0.0)
    # A gain only falls as more is asked, so an old one is a bound: most items need not be looked at again.
    bounds = np.where(askable, same @ errors, -1.0)
    questions: list[Question] = []
    while len(questions) < min(n, int(askable.sum())):
        best = int(bounds.argmax())
        gain = float(np.maximum(same[best] - covered, 0) @ errors)
        bounds[best] = gain
        if gain < bounds.max():
            continue
        others = int((same[best] >= 0.5).sum()) - 1
        questions.append(Question(int(kept[best]), gain, others))
        covered = np.maximum(covered, same[best])
        bounds[best] = -1
    return questions


@dataclass(frozen=True, eq=False)
class SameClass:
    """`r_nm`: the chance that two items have the same class.

    Attributes
    ----------
    cosines
        cos(x_n, x_j) [item, item].
    log_odds, per_cosine
        A and B.
    """

    cosines: Floats
    log_odds: float
    per_cosine: float

    @classmethod
    def of(cls, points: Floats, probabilities: Floats, settings: Settings = DEFAULT) -> SameClass:
        """Compare all items: `points` [item, dim] and `probabilities` [item, class] as in `questions_about`."""
        return _same_class(_directions(points), probabilities, np.arange(len(points)), settings)

    def of_items(self, some: npt.NDArray[np.intp]) -> Floats:
        """Return r of some items with all, [some, item]."""
        # In place and in the precision of the points: there are millions of pairs, and a person waits.
        chances = self.cosines[some]
        chances *= -max(self.per_cosine, 0.0)
        chances -= self.log_odds
        np.minimum(chances, MOST_LOG_ODDS, out=chances)
        np.exp(chances, out=chances)
        chances += 1
        np.reciprocal(chances, out=chances)
        chances[np.arange(len(some)), some] = 1
        return np.asarray(chances)


def _directions(points: Floats) -> Floats:
    return np.asarray(points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), LEAST_LENGTH))


@lru_cache(maxsize=1)
def _pairs(n: int) -> npt.NDArray[np.intp]:
    """Return the places of all pairs of n items in a table of them, each pair once."""
    return np.flatnonzero(np.triu(np.ones((n, n), bool), 1))


def _same_class(directions: Floats, q: Floats, kept: npt.NDArray[np.intp], settings: Settings) -> SameClass:
    """Compare the items that are kept; pairs among all tell A and B."""
    some = np.unique(np.linspace(0, len(q) - 1, min(len(q), settings.most_paired)).round().astype(int))
    pairs = _pairs(len(some))
    agree = (q[some] @ q[some].T).take(pairs).astype(np.float64).clip(0, 1)
    cosines = (directions[some] @ directions[some].T).take(pairs).astype(np.float64)
    a = 0.0
    b = 0.0
    if len(agree):
        a, b = logistic_line(cosines, agree, np.ones_like(agree), settings)
    nearest = directions[kept]
    return SameClass(nearest @ nearest.T, a, b)
