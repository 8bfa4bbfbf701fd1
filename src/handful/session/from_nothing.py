"""A batch without a catalogue: what a person named is the catalogue, and groups that nobody named are classes too.

Items that look alike are one group (`clusters`). A group of which an item was named has a name; every other one is a
class without a name, whose examples are its most typical items. The batch is labelled jointly over all of them: an item
has a name, or it belongs to a group that is not named yet. It is never pressed into a class because there is no other.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from handful.catalogue import Catalogue
from handful.catalogue.labels import places_of
from handful.errors import OptionError
from handful.estimators import Answer, BatchClassifier
from handful.estimators.answer import best_two
from handful.estimators.batches import Batches
from handful.estimators.certainty import certainty_of
from handful.estimators.checks import checked_features
from handful.estimators.classifiers import TRANSFORM
from handful.estimators.containers import FrameOf, frame_of, labels_of
from handful.estimators.context import BatchContexts, Known
from handful.estimators.items import CatalogueItems
from handful.estimators.proposals import Proposal
from handful.session.clusters import clusters_of, directions_of
from handful.session.steps import Said
from handful.shapes import Bool, Float, Int

# Most typical items of a group that stand for it.
TYPICAL_ITEMS = 5


@dataclass(frozen=True, eq=False)
class PartlyNamed(Answer):
    """An answer whose classes are the names said so far; items of other groups are rejected.

    Attributes
    ----------
    chances : ndarray [item, class]
        The chance of each item to have each class: those with a name, and then the groups without one.
    not_named : ndarray [item]
        Items of groups without a name.
    group : ndarray [item]
        The group without a name of each item, counted from 0; -1 if it has a name, or if a person said that it gets
        none, or if it looks like such an item.
    """

    chances: Float[np.ndarray, "item all"] = field(kw_only=True)
    group: Int[np.ndarray, "item"] = field(kw_only=True)

    @property
    def not_named(self) -> Bool[np.ndarray, "item"]:
        """Items that are like nothing named so far."""
        return np.asarray(self.group >= 0)

    @property
    def chance_of_group(self) -> Float[np.ndarray, "item"]:
        """The chance of each item that is not named to belong to its group."""
        n_groups = int(self.group.max(initial=-1)) + 1
        own = self.chances.shape[1] - max(self.n_groups, n_groups) + self.group
        return np.asarray(self.chances[np.arange(len(own)), np.maximum(own, 0)])

    @property
    def n_groups(self) -> int:
        """Groups without a name, also those that no item is likeliest to have."""
        return len(self.proposals)


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
        self.points = Catalogue.of(self.features, np.arange(len(self.features)), TRANSFORM).points(self.features)
        self.directions = directions_of(self.points)
        self.clusters = clusters_of(self.directions)

    def __call__(self, said: Said) -> PartlyNamed:
        """Label the batch; discarded items have no label, and no part in the labels of others."""
        if len(said.discarded) == len(self.features):
            raise OptionError("every item was discarded; at least one must be left to label")
        named = [item for item, label in said.given.items() if label is not None]
        labels = labels_of([said.given[item] for item in named]) if named else np.zeros(0, object)
        names = np.unique(labels) if named else labels
        none = [item for item, label in said.given.items() if label is None]
        codes = np.full(len(self.features), -1)
        codes[named] = places_of(labels, names) if named else 0
        codes[none] = len(names)
        n_answered = len(names) + bool(none)
        groups = self._groups(said, codes)
        return self._labelled(said, codes, names, n_answered, groups)

    def _groups(self, said: Said, codes: Int[np.ndarray, "item"]) -> list[Int[np.ndarray, "some"]]:
        """Return the items of every group that nobody has answered about, the most typical first."""
        discarded = np.zeros(len(codes), dtype=bool)
        discarded[sorted(said.discarded)] = True
        split = [np.array(items) for items in said.split]
        clusters = self.clusters.copy()
        for number, items in enumerate(split):
            clusters[items] = self.clusters.max() + 1 + number
        found = []
        for cluster in range(int(clusters.max()) + 1):
            items = np.flatnonzero((clusters == cluster) & ~discarded)
            if len(items) and (codes[items] == -1).all():
                away = self.directions[items]
                found.append(items[np.argsort(-(away @ away.mean(0)), kind="stable")])
        return found

    def _labelled(
        self,
        said: Said,
        codes: Int[np.ndarray, "item"],
        names: npt.NDArray[Any],
        n_answered: int,
        groups: list[Int[np.ndarray, "some"]],
    ) -> PartlyNamed:
        """Label all items over names, "gets no name", and groups without a name."""
        n_items = len(codes)
        rows = [np.flatnonzero(codes >= 0), *(group[:TYPICAL_ITEMS] for group in groups)]
        of = [codes[rows[0]], *(np.full(len(some), n_answered + k) for k, some in enumerate(rows[1:]))]
        examples = np.concatenate(rows)
        catalogue = Catalogue.of(self.features[examples], np.concatenate(of), TRANSFORM)
        catalogue = catalogue.with_fitted(catalogue.head, None)
        excluded = np.zeros(n_items, dtype=bool)
        excluded[sorted(said.discarded)] = True
        items = CatalogueItems(catalogue, self.features, codes if (codes >= 0).any() else None)
        contexts = BatchContexts(Known(), items.classes, n_items, None, items.given, excluded=excluded)
        answer = Batches(items, contexts).answer(self.frame_of)
        return _folded(answer, names, n_answered, groups, codes, excluded)


def _folded(
    answer: Answer,
    names: npt.NDArray[Any],
    n_answered: int,
    groups: list[Int[np.ndarray, "some"]],
    codes: Int[np.ndarray, "item"],
    excluded: Bool[np.ndarray, "item"],
) -> PartlyNamed:
    """Return the answer among the names alone: all other classes are unknown items."""
    chances = answer.probabilities
    n_names = len(names)
    best = chances.argmax(1)
    rejected = (best >= n_names) | excluded
    group = np.where((best >= n_answered) & ~excluded, best - n_answered, -1)
    unknown = np.where(excluded, 1.0, chances[:, n_names:].sum(1).clip(0, 1))
    n_items = len(chances)
    if n_names:
        among = np.maximum(chances[:, :n_names], np.finfo(np.float64).tiny)
        table = among / among.sum(1, keepdims=True)
        code, best_chances = best_two(table)
        most = np.where(codes >= 0, 1.0, (len(codes[codes >= 0]) + 1) / (len(codes[codes >= 0]) + 2))
        certainties = certainty_of(best_chances, unknown, most)
    else:
        table = np.zeros((n_items, 0))
        code = np.full((n_items, 2), -1)
        certainties = np.zeros((n_items, 2))
    proposals = tuple(
        Proposal(
            np.flatnonzero(group == k)[np.argsort(-chances[group == k, n_answered + k], kind="stable")],
            float(chances[group == k, n_answered + k].mean()) if (group == k).any() else 0.0,
            names[code[group == k, 0][0]] if n_names and (group == k).any() else None,
            float(chances[:, n_answered + k].sum()),
        )
        for k in range(len(groups))
    )
    items = answer.items
    assert isinstance(items, CatalogueItems)
    n_unnamed = chances.shape[1] - n_names
    changed = replace(items, catalogue=items.catalogue.with_unnamed(n_unnamed), names=names)
    vars(changed)["points"] = items.points
    return PartlyNamed(
        classes=names,
        codes=code,
        certainties=certainties,
        table=table,
        expected_counts=answer.expected_counts[:n_names],
        presence=answer.presence[:n_names],
        joint_weight=answer.joint_weight,
        prior_weight=None,
        unknown=unknown,
        rejected=rejected,
        none_of_these=rejected,
        unknown_interval=(float(rejected.mean()), float(rejected.mean())),
        unknown_reason=None,
        proposals=proposals,
        diagnostics=(),
        items=changed,
        frame_of=answer.frame_of,
        chances=chances,
        group=group,
    )
