"""A batch without a catalogue: what a person named is the catalogue, and groups that nobody named are classes too.

Items with an answer are examples of their class, and so are all items of a group that looks alike (`clusters`) and has
an answer. A group without one shares a class with the answered items of a name with log-odds l, the mean of their
pairs. If these exceed -1.5, as for items that are none of the classes (`few_classes`), it belongs to the likeliest
name, and a chance of `σ(l + 1.5)` is a factor of its certainties; each such group may be a mix as a whole. Otherwise it
is a class without a name, if it has three items or more. All items are labelled over all these classes by the head that
very large catalogues have, which is made of class means (`handful.model.linear.head_of_means`),

    S_nk = β (<x_n, μ_k> - |μ_k|²/2 + 0.7 V / 2 s_k),      q_nk = softmax_k S_nk,

with x the direction of an item from the mean of the batch, V the spread of the items about the means of their classes,
and each item left out of its own class. An item with an answer keeps it. Every class is present: a person named it, or
its items are there. Items of a class without a name have no label yet, and count as wrong; they are never forced into
a class because there is no other.

What comes next is what corrects most wrong labels per decision: `Σ_S p / (1 + x)` for a sheet S with x expected
exceptions, where p = 1 for items without a name; or a question. Two names that are one class become one name. Items
of a class that are something else get another name, and what looks like them follows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from handful.errors import OptionError
from handful.estimators import Answer
from handful.estimators.answer import best_two
from handful.estimators.certainty import certainty_of
from handful.estimators.containers import FrameOf, labels_of, new_frame
from handful.estimators.items import ModelItems
from handful.estimators.proposals import Proposal
from handful.estimators.unnamed_groups import UnnamedGroups
from handful.fitted import FittedModel
from handful.fitted.labels import distinct
from handful.model.arrays import spread_rows
from handful.model.linear import class_sums, head_of_means
from handful.model.settings import DEFAULT
from handful.session.clusters import NATS_PER_COSINE, NATS_PER_PAIR, Tree, directions_of
from handful.session.said import BatchSaid
from handful.shapes import Bool, Float, Int

# Items that the groups are made of, spread over the batch; others follow the classes. [items; work]
MOST_GROUPED = 3_000


class FromNothing:
    """Labels items by the answers alone.

    Parameters
    ----------
    features : [row, feature]
        Their vectors: finite numbers, one row or more.
    frame_of : FrameOf
        Makes tables of the kind of the batch.
    """

    def __init__(self, features: Float[np.ndarray, "item dim"], frame_of: FrameOf = new_frame) -> None:
        self.features = features
        self.frame_of = frame_of
        everything = FittedModel.of(features, np.zeros(len(features), np.int64))
        self.items = ModelItems(everything, self.features)
        self.directions = directions_of(self.items.points)
        self.grouped = spread_rows(len(self.features), MOST_GROUPED)
        self.tree = Tree(self.directions[self.grouped])

    def __call__(self, said: BatchSaid) -> Answer:
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
        classes, unasked, belongs = self._classes(codes, n_answered, excluded)
        chances = self._chances(classes)
        fixed = codes >= 0
        chances[fixed] = np.eye(chances.shape[1])[codes[fixed]]
        return self._answer(chances, codes, names, n_answered, excluded, unasked, belongs)

    def _classes(
        self, codes: Int[np.ndarray, "item"], n_answered: int, excluded: Bool[np.ndarray, "item"]
    ) -> tuple[Int[np.ndarray, "item"], Int[np.ndarray, "item"], Float[np.ndarray, "item"]]:
        """Return the class of each item by answers, as `codes` say, and by groups; -1 if it follows those of others.

        Return also `unasked`, and the chance of each item that its group is of a class that was named.
        """
        classes = np.where(excluded, -1, codes)
        unasked = np.full(len(codes), -1)
        belongs = np.ones(len(codes))
        answered = np.flatnonzero(codes >= 0)
        means = _class_means(self.directions[answered], codes[answered])
        n_classes = n_answered
        for number, part in enumerate(self.tree.parts(codes[self.grouped])):
            items = self.grouped[part]
            own = int(codes[items].max())
            items = items[(codes[items] == -1) & ~excluded[items]]
            if not len(items):
                continue
            if own >= 0:
                classes[items] = own
                continue
            unasked[items] = number
            if n_answered:
                cosines = means @ self.directions[items].mean(0)
                log_odds = NATS_PER_PAIR * (cosines.max() - self.tree.even) + DEFAULT.few_classes
                belongs[items] = expit(log_odds)
                if log_odds >= 0:
                    classes[items] = cosines.argmax()
                    continue
            # Once there are others, fewer items are no class by themselves: they follow the one that is nearest.
            if len(items) >= DEFAULT.smallest_group or n_answered == 0:
                classes[items] = n_classes
                n_classes += 1
        return classes, unasked, belongs

    def _chances(self, classes: Int[np.ndarray, "item"]) -> Float[np.ndarray, "item class"]:
        """Return q: how well each class, with the item left out, describes it."""
        placed = np.flatnonzero(classes >= 0)
        own = classes[placed]
        x = self.directions[placed]
        means = _class_means(x, own)
        shots = np.bincount(own).astype(np.float64)
        spread = float(((x - means[own]) ** 2).sum()) / max(len(own) - len(shots), 1)
        weights, offsets = head_of_means(means, shots, spread, NATS_PER_COSINE)
        scores = self.directions @ weights.T + offsets
        # Without its only item, a class lies at the mean of the batch for all that is known.
        rest = shots[own] - 1
        without = (shots[own, None] * means[own] - x) / np.maximum(rest, 1)[:, None]
        weights, offsets = head_of_means(without, np.where(rest > 0, rest, np.inf), spread, NATS_PER_COSINE)
        scores[placed, own] = (x * weights).sum(1) + offsets
        return np.asarray(softmax(scores, 1))

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


def _class_means(x: Float[np.ndarray, "item dim"], classes: Int[np.ndarray, "item"]) -> Float[np.ndarray, "class dim"]:
    """Return the mean of the items of each class."""
    sizes = np.bincount(classes)
    return class_sums(x, classes, len(sizes), 1 / sizes[classes])


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
