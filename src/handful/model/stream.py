"""A large batch: some of its items decide, more are counted, and all are labelled block by block by that decision.

The steps are those of `handful.model.batch`. Which items decide depends on nothing but their number and that of the
classes, so a batch in memory and a stream have the same answer. A stream adds the totals of its blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from handful.model.arrays import Floats, Ints, spread_rows
from handful.model.batch import BatchItems, decide
from handful.model.evidence import Linked, find_places, linked_values
from handful.model.labels import Decision, ItemLabels, label_alone, label_alone_after_move, label_items
from handful.model.limits import BLOCK_ROWS, FEWEST_AT_A_TIME, IN_BLOCK, IN_MEMORY
from handful.model.links import Anchors
from handful.model.presence import AloneLabels, joint_labels
from handful.model.settings import Settings
from handful.model.sizes import class_sizes


@dataclass(frozen=True, eq=False)
class StreamAnchors:
    """Items that all items of a large batch are linked with: their numbers, these items, their values and labels."""

    rows: Ints
    anchors: Anchors
    values: Floats  # [1, anchor, number], as in `linked_values`
    shares: Floats  # [1, anchor, column], as in `Places`

    def of_block(self, rows: range) -> Linked:
        """Return what the items of these numbers are linked with."""
        first, last = np.searchsorted(self.rows, (rows.start, rows.stop)).tolist()
        here = self.rows[first:last] - rows.start
        return Linked(self.anchors, self.values, self.shares, here, np.arange(first, last))


@dataclass(frozen=True, eq=False)
class DecidedBatch:
    """What a large batch is like, by some of its items; labels all of them, in memory or streamed.

    Attributes
    ----------
    decision
        Labels any items.
    rows, responsibilities
        Numbers of the items that decided, in increasing order, and how far each of them moved the class means; it is
        left out of them again when it is labelled itself. None if nothing moved.
    anchors
        What items are linked with; None if nothing is said about unknown items.
    settings
        Numbers of the model.
    """

    decision: Decision
    rows: Ints
    responsibilities: Floats | None
    anchors: StreamAnchors | None
    settings: Settings

    @classmethod
    def of(
        cls,
        n_items: int,
        n_classes: int,
        items_at: Callable[[Ints], BatchItems],
        labelled: Ints,
        settings: Settings,
    ) -> DecidedBatch:
        """Decide by some of the items and those that a person labelled, and count more of them.

        `items_at` returns items of these numbers; `labelled` are numbers of those that a person labelled.
        """
        rows = deciding_rows(n_items, n_classes, settings)
        rows = np.union1d(rows, labelled[spread_rows(len(labelled), len(rows))])
        items = items_at(rows)
        decision, _, responsibilities = decide(items, settings)
        counted = settings.most_counted_scores if items.vectors is None else settings.most_counted
        if len(rows) < n_items and counted:
            # Read once: at a URL each row is a request.
            decision = with_sizes(decision, items_at(counted_rows(n_items, n_classes, counted, settings)), settings)
        anchors = None
        if decision.unknown is not None:
            anchors = _anchors(decision, rows, items, responsibilities, settings)
        return cls(decision, rows, responsibilities, anchors, settings)

    def label(self, items: BatchItems, rows: range) -> ItemLabels:
        """Label the items of these numbers."""
        alone = _alone(self.decision, items, self._responsibilities(rows))
        linked = None if self.anchors is None else self.anchors.of_block(rows)
        labels = items.knowledge.labels
        return label_items(self.decision, items.scores, items.vectors, alone, labels, self.settings, linked)

    def _responsibilities(self, rows: range) -> Floats | None:
        """Return how far the items of these numbers moved the class means; None if none of them did."""
        if self.responsibilities is None:
            return None
        mine = slice(*np.searchsorted(self.rows, (rows.start, rows.stop)).tolist())
        if mine.start == mine.stop:
            return None
        found = np.zeros((1, len(rows), self.responsibilities.shape[-1]), self.responsibilities.dtype)
        found[:, self.rows[mine] - rows.start] = self.responsibilities[:, mine]
        return found


def with_sizes(decision: Decision, items: BatchItems, settings: Settings) -> Decision:
    """Return the decision, or one with the class sizes that these items have, see `class_sizes`.

    A decision comes from about a thousand items. In a batch with as many classes, or with very uneven ones, these do
    not show all classes, and a class that they do not show is nearly ruled out for the rest.

    Examples
    --------
    >>> from handful.model.head import fit_head
    >>> from handful.model.knowledge import Knowledge
    >>> from handful.model.reference import Reference
    >>> from handful.model.settings import DEFAULT
    >>> rng = np.random.default_rng(0)
    >>> centres, codes = rng.normal(size=(50, 16)), np.repeat(np.arange(50), 5)
    >>> reference = Reference(fit_head(centres[codes] + rng.normal(size=(250, 16)), codes, 50))
    >>> truth = np.minimum(rng.geometric(0.1, size=2000), 50) - 1
    >>> items = BatchItems.of((centres[truth] + rng.normal(size=(2000, 16)))[None], reference, Knowledge())
    >>> counted = with_sizes(decide(items.rows(slice(40)), DEFAULT).decision, items, DEFAULT)
    >>> bool(np.abs(counted.present.states[0, 0][:5] - 0.1 * 0.9 ** np.arange(5)).max() < 0.03)
    True
    """
    n_items = items.scores.n_items
    n_classes = items.scores.nats.shape[-1]
    size = rows_at_a_time(n_classes)

    def labels() -> Iterator[AloneLabels]:
        for at in range(0, n_items, size):
            yield label_alone(items.scores.rows(slice(at, at + size)), decision.tilts)

    kept = list(labels()) if n_items * n_classes <= IN_MEMORY else None
    sizes = class_sizes(
        lambda: kept or labels(), decision.present, items.scores.shots, int(decision.n_classes[0]), settings
    )
    return decision if sizes is None else decision._replace(present=sizes, move=None)


def _anchors(
    decision: Decision, rows: Ints, items: BatchItems, responsibilities: Floats | None, settings: Settings
) -> StreamAnchors:
    """Return what all items are linked with: some of those that decided."""
    assert items.vectors is not None
    of_batch = decision.tilts.of_batch
    joint = joint_labels(_alone(decision, items, responsibilities), decision.present, decision.n_classes, settings)
    places = find_places(items.vectors, of_batch, decision.present, joint)
    values = linked_values(items.scores, items.vectors, of_batch, decision.present, places)
    chosen = items.vectors.anchor_rows
    return StreamAnchors(rows[chosen], items.vectors.anchors, values[:, chosen], places.shares[:, chosen])


def _alone(decision: Decision, items: BatchItems, responsibilities: Floats | None) -> AloneLabels:
    """Label items alone, by class means that moved if any did."""
    if decision.move is None or items.vectors is None:
        return label_alone(items.scores, decision.tilts)
    return label_alone_after_move(items.scores, items.vectors, decision.tilts, decision.move, responsibilities)


def deciding_rows(n_rows: int, n_classes: int, settings: Settings) -> Ints:
    """Return the numbers of the items that decide."""
    most = min(settings.most_deciding, settings.deciding_scores // n_classes)
    return spread_rows(n_rows, max(settings.fewest_rows, most))


def counted_rows(n_rows: int, n_classes: int, most: int, settings: Settings) -> Ints:
    """Return the numbers of the items that are counted, at most `most` of them."""
    return spread_rows(n_rows, max(settings.fewest_rows, min(most, settings.counted_scores // n_classes)))


def rows_at_a_time(n_classes: int) -> int:
    """Return how many items are labelled at a time: several arrays of 8 MB, which caches hold in part."""
    return max(FEWEST_AT_A_TIME, min(BLOCK_ROWS, IN_BLOCK // n_classes))
