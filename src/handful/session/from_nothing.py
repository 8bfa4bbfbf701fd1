"""A batch without a catalogue: what a person named is the catalogue, and groups that nobody named are classes too.

Items that look alike are one group (`clusters`). All items are labelled jointly over the names and over the groups
without one. With z the direction of an item from the mean of the batch, and R_mk the weight of item m in class k,

    S_nk = Σ_{m≠n} R_mk <z_n, z_m> / Σ_{m≠n} R_mk,       q_nk ∝ exp(β S_nk),

a few times with R = q; items with an answer keep it. So an item has a name, or it belongs to a group that is not named
yet, has no label and counts as wrong. It is never pressed into a class because there is no other. An item of a group
that joined a class unasked has a certainty that is multiplied by `σ(B (cos - LEAST_COSINE))`, with the mean cosine of
its group, and each such group may be a mix as a whole.

What comes next is what corrects most wrong labels per decision: `Σ_S p / (1 + x)` for a sheet S with x expected
exceptions, where p = 1 for items without a name; or a question. Two names that are one class become one name. A class
that is two is put into the two groups that average linkage joins last; the one with fewer answers loses its name, and
is asked about.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from handful.catalogue import Catalogue
from handful.catalogue.labels import distinct
from handful.engine.arrays import spread_rows
from handful.errors import OptionError
from handful.estimators import Answer, BatchClassifier
from handful.estimators.answer import best_two
from handful.estimators.certainty import certainty_of
from handful.estimators.checks import checked_features
from handful.estimators.classifiers import TRANSFORM
from handful.estimators.containers import FrameOf, frame_of, labels_of
from handful.estimators.items import CatalogueItems
from handful.estimators.proposals import Proposal
from handful.estimators.unnamed_groups import UnnamedGroups
from handful.session.clusters import NATS_PER_COSINE, Tree, directions_of
from handful.session.steps import Said
from handful.shapes import Bool, Float, Int

# β: nats per unit of the mean cosine with the items of a class.
NATS_PER_MEAN = 32.0
# A group without an answer belongs to the class whose answered items have the largest mean cosine with it, if that is
# at least this. That is less than what joins two groups: most groups that come late are parts of named classes.
LEAST_COSINE = 0.2
# Weight of an item that belongs to a class by its group, before the items are labelled, where one with an answer has 1.
WEIGHT_BY_GROUP = 0.5
# Fewer items are no group by themselves once something was named: they have the class, or group, that is nearest.
LEAST_GROUP = 3
# How often all items are labelled, each time with the class means that follow from the time before.
ROUNDS = 3
# Items that the groups are made of, spread over the batch; others follow the classes.
MOST_GROUPED = 3_000
# A class that has less than this weight beside an item says nothing about it.
LEAST_WEIGHT = 1e-6


class FromNothing:
    """Labels rows in memory by the answers alone.

    Parameters
    ----------
    X : [row, feature]
        The items: vectors, as in `BatchClassifier.infer`.
    """

    def __init__(self, X: Any) -> None:
        self.features = checked_features(BatchClassifier(), X, reset=True)
        self.frame_of: FrameOf = frame_of(X)
        everything = Catalogue.of(self.features, np.zeros(len(self.features), np.int64), TRANSFORM)
        self.items = CatalogueItems(everything, self.features)
        self.directions = directions_of(self.items.points)
        self.grouped = spread_rows(len(self.features), MOST_GROUPED)
        self.tree = Tree(self.directions[self.grouped])

    def __call__(self, said: Said) -> Answer:
        """Label the batch; discarded items have no label, and no part in the labels of others."""
        n_items = len(self.features)
        if len(said.discarded) == n_items:
            raise OptionError("every item was discarded; at least one must be left to label")
        named = [item for item, label in said.given.items() if label is not None]
        none = [item for item, label in said.given.items() if label is None]
        names, codes_named = distinct(labels_of([said.given[item] for item in named])) if named else (np.zeros(0), [])
        codes = np.full(n_items, -1)
        codes[named] = codes_named
        codes[none] = len(names)
        excluded = np.zeros(n_items, dtype=bool)
        excluded[sorted(said.discarded)] = True
        n_answered = len(names) + bool(none)
        # A group that was split off is a class by itself, whatever it looks like.
        apart = [items for items in (np.setdiff1d(group, sorted(said.discarded)) for group in said.split) if len(items)]
        columns = codes.copy()
        for number, items in enumerate(apart):
            columns[items] = n_answered + number
        weights, unasked, belongs = self._first_weights(columns, n_answered, len(apart), excluded)
        chances = self._chances(weights, columns, excluded)
        return self._answer(chances, codes, names, n_answered, excluded, unasked, belongs)

    def _first_weights(
        self, columns: Int[np.ndarray, "item"], n_answered: int, n_apart: int, excluded: Bool[np.ndarray, "item"]
    ) -> tuple[Float[np.ndarray, "item class"], Int[np.ndarray, "item"], Float[np.ndarray, "item"]]:
        """Return R by answers and groups: a column for everything that is fixed, and one for every other group.

        Return also `unasked`, and the chance of each item that its group is of a class that was named.
        """
        unasked = np.full(len(columns), -1)
        belongs = np.ones(len(columns))
        fixed = np.zeros((len(columns), n_answered + n_apart))
        fixed[columns >= 0, columns[columns >= 0]] = 1
        answered = fixed[:, :n_answered]
        means = answered.T @ self.directions / np.maximum(answered.sum(0), 1)[:, None]
        others = []
        for number, part in enumerate(self.tree.parts(columns[self.grouped])):
            items = self.grouped[part]
            own = int(columns[items].max())
            items = items[(columns[items] == -1) & ~excluded[items]]
            if not len(items):
                continue
            if own >= 0:
                fixed[items, own] = WEIGHT_BY_GROUP
                continue
            unasked[items] = number
            cosines = means @ self.directions[items].mean(0)
            if n_answered:
                belongs[items] = expit(NATS_PER_COSINE * (cosines.max() - LEAST_COSINE))
            if n_answered and cosines.max() >= LEAST_COSINE:
                fixed[items, cosines.argmax()] = WEIGHT_BY_GROUP
            elif len(items) >= LEAST_GROUP or fixed.shape[1] == 0:
                others.append(items)
        weights = np.zeros((len(columns), len(others)))
        for number, items in enumerate(others):
            weights[items, number] = 1
        return np.hstack([fixed, weights]), unasked, belongs

    def _chances(
        self,
        weights: Float[np.ndarray, "item class"],
        columns: Int[np.ndarray, "item"],
        excluded: Bool[np.ndarray, "item"],
    ) -> Float[np.ndarray, "item class"]:
        """Return q after some rounds; `columns` are the classes of items that have one for certain, else -1."""
        fixed = columns >= 0
        chances = weights
        squares = (self.directions**2).sum(1, keepdims=True)
        for _ in range(ROUNDS):
            sums = self.directions @ (self.directions.T @ weights) - squares * weights
            rest = weights.sum(0) - weights
            cosines = np.where(rest > LEAST_WEIGHT, sums / np.maximum(rest, LEAST_WEIGHT), -1.0)
            chances = softmax(NATS_PER_MEAN * cosines, 1)
            chances[fixed] = 0
            chances[fixed, columns[fixed]] = 1
            weights = np.where(excluded[:, None], 0.0, chances)
        return np.asarray(chances)

    def _answer(
        self,
        chances: Float[np.ndarray, "item class"],
        codes: Int[np.ndarray, "item"],
        names: npt.NDArray[Any],
        n_answered: int,
        excluded: Bool[np.ndarray, "item"],
        unasked: Int[np.ndarray, "item"],
        belongs: Float[np.ndarray, "item"],
    ) -> Answer:
        """Return the answer among the names; items of all other classes are rejected."""
        n_items = len(chances)
        n_names = len(names)
        best = chances.argmax(1)
        rejected = (best >= n_names) | excluded
        group = np.where((best >= n_answered) & ~excluded, best - n_answered, -1)
        of_names = chances[:, :n_names].sum(1).clip(0, 1) * belongs
        unknown = np.where(excluded, 1.0, 1 - of_names)
        table = np.zeros((n_items, n_names))
        code = np.full((n_items, 2), -1)
        certainties = np.zeros((n_items, 2))
        if n_names:
            among = np.maximum(chances[:, :n_names], np.finfo(np.float64).tiny)
            table = among / among.sum(1, keepdims=True)
            code, best_chances = best_two(table)
            n_examples = int((codes >= 0).sum())
            most = np.where(codes >= 0, 1.0, (n_examples + 1) / (n_examples + 2))
            certainties = certainty_of(best_chances, unknown, most)
        known = (1 - unknown)[:, None] * table
        n_groups = chances.shape[1] - n_answered
        return Answer(
            classes=names,
            codes=code,
            _certainties=certainties,
            _table=table,
            expected_counts=known.sum(0),
            presence=known.max(0, initial=0.0),
            joint_weight=1.0,
            prior_weight=None,
            unknown=unknown,
            rejected=rejected,
            _none_of_these=rejected,
            unknown_interval=(float(unknown.mean()), float(unknown.mean())),
            unknown_reason=None,
            proposals=tuple(
                _proposal(np.flatnonzero(group == number), chances[:, n_answered + number], code, names)
                for number in range(n_groups)
                if (group == number).any()
            ),
            diagnostics=(),
            _items=self.items,
            _frame_of=self.frame_of,
            _unnamed=UnnamedGroups(chances, group, n_groups, unasked, self.directions, self.tree.even),
        )


def _proposal(
    items: Int[np.ndarray, "some"],
    chances: Float[np.ndarray, "item"],
    codes: Int[np.ndarray, "item two"],
    names: npt.NDArray[Any],
) -> Proposal:
    """Return a group without a name, the items that belong to it most likely first."""
    order = items[np.argsort(-chances[items], kind="stable")]
    nearest = names[np.bincount(codes[items, 0]).argmax()] if len(names) else None
    return Proposal(order, float(chances[items].mean()), nearest, float(chances[items].sum()))
