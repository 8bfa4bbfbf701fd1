"""A large batch: a sample of its items decides what it is like, and all are labelled block by block by that decision.

The steps are those of `handful.model.batch`. Who is in the sample, and which of the sample decide while all of it is
counted, follows from the content of items alone; and an item that decided is known by its content when it is labelled.
So a batch in memory, a group and a map over the blocks of a batch that nobody holds have the same answer, whatever the
order of the items and however they are cut. Totals of blocks add.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from handful.model.arrays import Bools, Floats, Ints, spread_rows
from handful.model.batch import BatchItems, decide
from handful.model.content import Keys, content_keys, spread_by_content
from handful.model.evidence import Linked, find_places, linked_values
from handful.model.labels import Decision, ItemLabels, label_alone, label_alone_after_move, label_items
from handful.model.limits import BLOCK_ROWS, FEWEST_AT_A_TIME, IN_BLOCK, IN_MEMORY
from handful.model.links import Anchors
from handful.model.presence import AloneLabels, joint_labels
from handful.model.settings import Settings
from handful.model.sizes import class_sizes


class Numbered(NamedTuple):
    """Items by their content: keys in increasing order, and the number of each."""

    keys: Keys
    numbers: Ints

    @classmethod
    def of(cls, keys: Keys) -> Numbered:
        """Make one of items whose numbers are their places among these keys."""
        order = np.argsort(keys, kind="stable")
        return cls(keys[order], order)

    def find(self, keys: Keys) -> tuple[Ints, Ints]:
        """Return which of these keys are known, and the numbers of their items; copies have that of the first one."""
        at = np.minimum(np.searchsorted(self.keys, keys), max(len(self.keys) - 1, 0))
        found = np.flatnonzero(self.keys[at] == keys) if len(self.keys) else np.empty(0, np.int64)
        return found, self.numbers[at[found]]


@dataclass(frozen=True, eq=False)
class StreamAnchors:
    """Items that all items of a large batch are linked with: these items, their values and labels."""

    known: Numbered
    anchors: Anchors
    values: Floats  # [1, anchor, number], as in `linked_values`
    shares: Floats  # [1, anchor, column], as in `Places`

    def of_block(self, keys: Keys) -> Linked:
        """Return what the items with these keys are linked with."""
        return Linked(self.anchors, self.values, self.shares, *self.known.find(keys))


@dataclass(frozen=True, eq=False)
class Moved:
    """How far each of the items that decided moved the class means; it is left out of them when it is labelled."""

    known: Numbered
    responsibilities: Floats  # [1, item, column]

    def of_block(self, keys: Keys, labelled: Bools) -> Floats | None:
        """Return how far the items with these keys did; None if none of them did. Labelled items move nothing."""
        rows, numbers = self.known.find(keys)
        free = ~labelled[rows]
        if not free.any():
            return None
        found = np.zeros((1, len(keys), self.responsibilities.shape[-1]), self.responsibilities.dtype)
        found[:, rows[free]] = self.responsibilities[:, numbers[free]]
        return found


@dataclass(frozen=True, eq=False)
class DecidedBatch:
    """What a large batch is like, by a sample of its items; labels any of them.

    Attributes
    ----------
    decision
        Labels any items.
    moved
        How far items moved the class means; None if nothing moved.
    anchors
        What items are linked with; None if nothing is said about unknown items.
    settings
        Numbers of the model.
    """

    decision: Decision
    moved: Moved | None
    anchors: StreamAnchors | None
    settings: Settings

    @classmethod
    def of(
        cls,
        contents: Floats,
        n_classes: int,
        items_at: Callable[[Ints], BatchItems],
        labelled: Ints,
        most_counted: int,
        settings: Settings,
    ) -> DecidedBatch:
        """Decide by some of the items and those that a person labelled, and count more of them.

        Parameters
        ----------
        contents
            What an item is, [item, number].
        n_classes
            K.
        items_at
            Returns the items of these numbers.
        labelled
            Numbers of the items that a person labelled.
        most_counted
            Items that are counted at most; zero if none are.
        settings
            Numbers of the model.
        """
        n_items = len(contents)
        counted = counted_items(n_classes, most_counted, settings)
        deciding = deciding_items(n_classes, settings)
        sample = spread_by_content(contents, max(counted, deciding))
        rows = sample[spread_by_content(contents[sample], deciding)]
        rows = np.union1d(rows, labelled[spread_rows(len(labelled), len(rows))])
        items = items_at(rows)
        decision, _, responsibilities = decide(items, settings)
        if len(rows) < n_items and counted > len(rows):
            decision = with_sizes(decision, items.scores.shots, lambda: _blocks(items_at, sample, n_classes), settings)
        keys = content_keys(contents[rows])
        moved = None
        if decision.move is not None and responsibilities is not None:
            free = np.flatnonzero(~items.scores.labelled[0])
            moved = Moved(Numbered.of(keys[free]), responsibilities[:, free])
        anchors = None
        if decision.unknown is not None:
            anchors = _anchors(decision, keys, items, responsibilities, settings)
        return cls(decision, moved, anchors, settings)

    def label(self, items: BatchItems) -> ItemLabels:
        """Label items of the batch."""
        linked = None
        responsibilities = None
        if items.vectors is not None and not (self.moved is None and self.anchors is None):
            keys = content_keys(items.vectors.own)
            linked = None if self.anchors is None else self.anchors.of_block(keys)
            if self.moved is not None:
                responsibilities = self.moved.of_block(keys, items.scores.labelled[0])
        alone = _alone(self.decision, items, responsibilities)
        labels = items.knowledge.labels
        return label_items(self.decision, items.scores, items.vectors, alone, labels, self.settings, linked)


def _blocks(items_at: Callable[[Ints], BatchItems], rows: Ints, n_classes: int) -> Iterator[BatchItems]:
    """Yield items block by block."""
    size = rows_at_a_time(n_classes)
    return (items_at(rows[at : at + size]) for at in range(0, len(rows), size))


def with_sizes(
    decision: Decision, shots: Floats, blocks: Callable[[], Iterable[BatchItems]], settings: Settings
) -> Decision:
    """Return the decision, or one with the class sizes that the items of these blocks have, see `class_sizes`.

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
    >>> decision = decide(items.rows(slice(40)), DEFAULT).decision
    >>> counted = with_sizes(decision, items.scores.shots, lambda: [items], DEFAULT)
    >>> bool(np.abs(counted.present.states[0, 0][:5] - 0.1 * 0.9 ** np.arange(5)).max() < 0.03)
    True
    """
    kept = list[AloneLabels]()  # few numbers are kept for the second look

    def labels() -> Iterator[AloneLabels]:
        if kept:
            yield from kept
            return
        numbers = 0
        for items in blocks():
            alone = label_alone(items.scores, decision.tilts)
            yield alone
            numbers += alone.likelihood.size
            if numbers <= IN_MEMORY:
                kept.append(alone)
        if numbers > IN_MEMORY:
            kept.clear()

    sizes = class_sizes(labels, decision.present, shots, int(decision.n_classes[0]), settings)
    return decision if sizes is None else decision._replace(present=sizes, move=None)


def _anchors(
    decision: Decision, keys: Keys, items: BatchItems, responsibilities: Floats | None, settings: Settings
) -> StreamAnchors:
    """Return what all items are linked with: some of those that decided, which have these keys."""
    assert items.vectors is not None
    of_batch = decision.tilts.of_batch
    joint = joint_labels(_alone(decision, items, responsibilities), decision.present, decision.n_classes, settings)
    places = find_places(items.vectors, of_batch, decision.present, joint)
    values = linked_values(items.scores, items.vectors, of_batch, decision.present, places)
    chosen = items.vectors.anchor_rows
    known = Numbered.of(keys[chosen])
    return StreamAnchors(known, items.vectors.anchors, values[:, chosen], places.shares[:, chosen])


def _alone(decision: Decision, items: BatchItems, responsibilities: Floats | None) -> AloneLabels:
    """Label items alone, by class means that moved if any did."""
    alone = label_alone(items.scores, decision.tilts)
    if decision.move is None or items.vectors is None:
        return alone
    return label_alone_after_move(alone, items.scores, items.vectors, decision.tilts, decision.move, responsibilities)


def deciding_items(n_classes: int, settings: Settings) -> int:
    """Return how many items of a large batch decide; of a batch of no more, all do."""
    return max(settings.fewest_rows, min(settings.most_deciding, settings.deciding_scores // n_classes))


def counted_items(n_classes: int, most: int, settings: Settings) -> int:
    """Return how many items of a large batch are counted, at most `most`; zero if none are."""
    return max(settings.fewest_rows, min(most, settings.counted_scores // n_classes)) if most else 0


def rows_at_a_time(n_classes: int) -> int:
    """Return how many items are labelled at a time: several arrays of 8 MB, which caches hold in part."""
    return max(FEWEST_AT_A_TIME, min(BLOCK_ROWS, IN_BLOCK // n_classes))
