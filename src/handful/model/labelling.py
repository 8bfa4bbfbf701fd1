"""Label batches, by vectors, by scores or by names: small ones of one size as stacks, large ones block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from handful.model.answer import JointAnswer
from handful.model.arrays import Floats, Ints
from handful.model.batch import BatchItems, decide
from handful.model.knowledge import Knowledge
from handful.model.labels import Decision, ItemLabels, NamedLabels, fold_unnamed, label_items
from handful.model.limits import IN_MEMORY, IN_STACK
from handful.model.reference import Reference
from handful.model.rejected import gather_rejected
from handful.model.scores import Scores, scores_of_names
from handful.model.settings import DEFAULT, Settings
from handful.model.stream import DecidedBatch, deciding_items, rows_at_a_time
from handful.model.summary import BatchSummary, BatchTotals, summarize
from handful.model.unknown_in_batch import UnknownCounts


class KnownBatch(NamedTuple):
    """Items [item, dim] of a batch, what is known about it, and the items as they came, see `Vectors`."""

    points: Floats
    knowledge: Knowledge
    contents: Floats | None = None


def label_batch(points: Floats, reference: Reference, knowledge: Knowledge | None = None) -> JointAnswer:
    """Label the items [item, dim] of one batch jointly; they have the origin of the head.

    Examples
    --------
    >>> from handful.model.head import fit_head
    >>> rng = np.random.default_rng(0)
    >>> centres, codes = rng.normal(size=(30, 16)), np.repeat(np.arange(30), 5)
    >>> head = fit_head(centres[codes] + rng.normal(size=(150, 16)), codes, 30)
    >>> truth = np.repeat([2, 11, 17], 8)
    >>> answer = label_batch(centres[truth] + rng.normal(size=(24, 16)), Reference(head))
    >>> bool((answer.probabilities.argmax(1) == truth).mean() > 0.9), np.flatnonzero(answer.presence > 0.9).tolist()
    (True, [2, 11, 17])
    """
    return next(label_batches([KnownBatch(points, knowledge or Knowledge())], reference))


def label_batches(
    batches: Iterable[KnownBatch], reference: Reference, numbers: int = IN_MEMORY
) -> Iterator[JointAnswer]:
    """Label batches, about all of which the same things are known; those of one size are labelled as stacks.

    They are read until their scores have more than `numbers` numbers, then labelled, and so on.
    """
    read = list[KnownBatch]()
    n_items = 0
    for batch in batches:
        read.append(batch)
        n_items += len(batch.points)
        if n_items * reference.n_classes > numbers:
            yield from _in_stacks(read, reference)
            read = []
            n_items = 0
    yield from _in_stacks(read, reference)


def label_scores(
    nats: Floats, knowledge: Knowledge | None = None, *, several: bool = False, settings: Settings = DEFAULT
) -> JointAnswer:
    """Label one batch jointly by `S_nk` [item, class] of another model; -inf is no label of the item.

    There are no examples, and another model is wrong about a class once, for all its items: a class counts as if it had
    one example, so errors of two of its items are correlated by 0.17. With `several` classes per item, the chances of
    an item are shares, and say nothing about the presence of a class. Each class is then scored against the rest, so
    its errors are shared less: it counts as five examples, and with one, classes that share their items are not found.

    Examples
    --------
    A model that is right about half of the items, and a batch of two of a hundred classes:

    >>> from handful.model.scores import in_nats, unit_of
    >>> rng = np.random.default_rng(0)
    >>> truth, logits = np.repeat([3, 58], 20), rng.normal(size=(40, 100))
    >>> logits[np.arange(40), truth] += 2.5
    >>> answer = label_scores(in_nats(logits, unit_of(logits)))
    >>> np.flatnonzero(answer.presence > 0.9).tolist(), bool((answer.probabilities.argmax(1) == truth).mean() > 0.9)
    ([3, 58], True)
    """
    knowledge = knowledge or Knowledge()
    n_examples = settings.examples_of_several if several else settings.examples_of_scores
    items = BatchItems(Scores.of_nats(nats, n_examples, knowledge), None, knowledge)
    decision, labels, totals = _labelled(items, settings)
    if several:
        totals = totals._replace(largest=np.zeros_like(totals.largest))
    n_classes = nats.shape[1]
    summary = summarize(decision, totals, n_classes, settings=settings)
    return JointAnswer.of(labels, fold_unnamed(labels, n_classes, settings), summary)


def label_by_names(
    points: Floats, names: Floats, knowledge: Knowledge | None = None, settings: Settings = DEFAULT
) -> JointAnswer:
    """Label one batch [item, dim] by names [class, dim], both in their own space.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> centres, truth = rng.normal(size=(60, 24)), np.repeat([3, 40], 20)
    >>> names, points = centres + 0.9 * rng.normal(size=(60, 24)), centres[truth] + 0.9 * rng.normal(size=(40, 24))
    >>> answer = label_by_names(points, names)
    >>> np.flatnonzero(answer.presence > 0.5).tolist()
    [3, 40]
    """
    knowledge = knowledge or Knowledge()
    return label_scores(scores_of_names(points, names, knowledge, settings), knowledge, settings=settings)


class Stack(NamedTuple):
    """What is said about batches of one size; `labels` and `named` have the near classes alone if these are wanted."""

    points: Floats  # [batch, item, dim]
    labels: ItemLabels
    named: NamedLabels
    summary: BatchSummary

    def answer(self, batch: int, reference: Reference) -> JointAnswer:
        """Return the answer about one batch, with the groups that its rejected items make."""
        answer = JointAnswer.of(self.labels, self.named, self.summary, batch)
        if not answer.rejected.any():
            return answer
        groups = gather_rejected(self.points[batch], answer.unknown, answer.rejected, answer.unnamed, reference)
        return JointAnswer.of(self.labels, self.named, self.summary, batch, groups)


def _in_stacks(batches: Sequence[KnownBatch], reference: Reference) -> list[JointAnswer]:
    """Label batches of any sizes, in stacks whose scores fit a cache."""
    sizes = np.array([len(batch.points) for batch in batches], int)
    answers = dict[int, JointAnswer]()
    for some in stacks_of(sizes, reference):
        first = batches[some[0]]
        points = first.points[None] if len(some) == 1 else np.stack([batches[number].points for number in some])
        knowledge = Knowledge.stacked([batches[number].knowledge for number in some])
        stack = label_stack(points, reference, knowledge, first.contents)
        answers |= {number: stack.answer(place, reference) for place, number in enumerate(some)}
    return [answers[number] for number in range(len(sizes))]


def stacks_of(sizes: Ints, reference: Reference) -> Iterator[list[int]]:
    """Yield the numbers of batches that are labelled as one stack; one that is too large to be compared whole is alone.

    Examples
    --------
    >>> from handful.model.head import fit_head
    >>> reference = Reference(fit_head(np.eye(3), np.arange(3), 3))
    >>> list(stacks_of(np.array([2, 900, 2, 1]), reference))
    [[3], [0, 2], [1]]
    """
    order = np.argsort(sizes, kind="stable")
    for same in np.split(order, np.flatnonzero(np.diff(sizes[order])) + 1):
        size = int(sizes[same[0]]) if len(same) else 0
        settings = reference.settings
        is_large = size > min(settings.most_anchors, deciding_items(reference.n_classes, settings))
        most = 1 if is_large else max(1, IN_STACK // (max(size, 1) * reference.n_classes))
        yield from (same[at : at + most].tolist() for at in range(0, len(same), most))


def label_stack(
    points: Floats,
    reference: Reference,
    knowledge: Knowledge,
    contents: Floats | None = None,
    *,
    near: bool = False,
) -> Stack:
    """Label batches of one size.

    Parameters
    ----------
    points
        Their items [batch, item, dim].
    reference, knowledge
        What they are compared with, and what is known about them.
    contents
        The items of a single batch as they came; see `Vectors`.
    near
        Whether classes that are near none of the items of a batch are wanted as a sum only.
    """
    settings = reference.settings
    if points.shape[1] <= deciding_items(reference.n_classes, settings):
        near = near and reference.n_unnamed == 0
        items = BatchItems.of(points, reference, knowledge, contents if len(points) == 1 else None, near=near)
        decision, labels, totals = _labelled(items, settings)
    else:
        decision, labels, totals = _in_blocks(points, reference, knowledge, contents)
    named = fold_unnamed(labels, reference.n_named, settings)
    unknown = None if named.unknown is None else UnknownCounts.of(named.unknown)
    summary = summarize(decision, totals, reference.n_named, unknown, knowledge.share, settings, labels.near)
    return Stack(points, labels, named, summary)


def _labelled(items: BatchItems, settings: Settings) -> tuple[Decision, ItemLabels, BatchTotals]:
    """Decide by all items, or by some of a large batch of scores, and label them all."""
    n_classes = items.scores.nats.shape[-1]
    if items.scores.n_items > deciding_items(n_classes, settings):
        labelled = items.knowledge.labelled
        counted = settings.most_counted_scores
        batch = DecidedBatch.of(items.scores.nats[0], n_classes, items.rows, labelled, counted, settings)
        labels = batch.label(items)
        return batch.decision, labels, BatchTotals.of(labels)
    decision, alone, _ = decide(items, settings)
    labels = label_items(decision, items.scores, items.vectors, alone, items.knowledge.labels, settings)
    return decision, labels, BatchTotals.of(labels)


def _in_blocks(
    points: Floats, reference: Reference, knowledge: Knowledge, contents: Floats | None
) -> tuple[Decision, ItemLabels, BatchTotals]:
    """Label a large batch block by block: the scores of all items are never in memory at once."""
    own = points[0]
    decision, labels = label_in_blocks(own if contents is None else contents, own.__getitem__, reference, knowledge)
    blocks = list(labels)
    return decision, ItemLabels.joined(blocks), BatchTotals.added([BatchTotals.of(block) for block in blocks])


def label_in_blocks(
    contents: Floats, points_at: Callable[[Ints | slice], Floats], reference: Reference, knowledge: Knowledge
) -> tuple[Decision, Iterator[ItemLabels]]:
    """Decide about a large batch, and label its items block by block.

    Parameters
    ----------
    contents
        The items as they came [item, number], see `Vectors`.
    points_at
        Returns the points of some of them.
    reference, knowledge
        What they are compared with, and what is known about the batch.
    """
    n_items = len(contents)
    n_classes = reference.n_classes
    settings = reference.settings
    size = rows_at_a_time(n_classes)
    everything = slice(None)

    def compared(rows: Ints | slice) -> BatchItems:
        return BatchItems.of(points_at(rows)[None], reference, knowledge.rows(rows), contents[rows])

    # A batch of one block is counted and labelled by the same scores.
    whole = compared(everything) if n_items <= size else None

    def items_at(rows: Ints | slice) -> BatchItems:
        is_whole = whole is not None and (isinstance(rows, slice) or len(rows) == n_items)
        return whole if whole is not None and is_whole else compared(rows)

    batch = DecidedBatch.of(contents, n_classes, items_at, knowledge.labelled, settings.most_counted, settings)
    return batch.decision, (batch.label(items_at(slice(at, at + size))) for at in range(0, n_items, size))
