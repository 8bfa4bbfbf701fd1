"""Label batches, by vectors, by scores or by names: small ones of one size as stacks, large ones block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from handful.model.answer import JointAnswer
from handful.model.arrays import Floats, Ints
from handful.model.batch import BatchItems, decide
from handful.model.knowledge import Knowledge
from handful.model.labels import Decision, ItemLabels, fold_unnamed, label_items
from handful.model.limits import IN_MEMORY, IN_STACK
from handful.model.reference import Reference
from handful.model.rejected import gather_rejected
from handful.model.scores import Scores, scores_of_names
from handful.model.settings import DEFAULT, Settings
from handful.model.stream import DecidedBatch, deciding_rows, rows_at_a_time
from handful.model.summary import BatchTotals, summarize

# Items [item, dim] of a batch, and what is known about it.
KnownBatch = tuple[Floats, Knowledge]


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
    return next(label_batches([(points, knowledge or Knowledge())], reference))


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
        n_items += len(batch[0])
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
    summary = summarize(decision, totals, len(nats), n_classes, settings=settings)
    named = fold_unnamed(labels, n_classes, settings)
    return JointAnswer.of(labels, named, summary, decision.tilts.prior_weight)


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


def _in_stacks(batches: Sequence[KnownBatch], reference: Reference) -> list[JointAnswer]:
    """Label batches of any sizes, in stacks whose scores fit a cache; a large batch is a stack of its own."""
    sizes = np.array([len(points) for points, _ in batches], int)
    answers = dict[int, JointAnswer]()
    for size in np.unique(sizes).tolist():
        numbers = np.flatnonzero(sizes == size).tolist()
        is_large = len(deciding_rows(size, reference.n_classes, reference.settings)) < size
        most = 1 if is_large else max(1, IN_STACK // (size * reference.n_classes))
        for some in (numbers[at : at + most] for at in range(0, len(numbers), most)):
            answers |= zip(some, _of_stack([batches[number] for number in some], reference), strict=True)
    return [answers[number] for number in range(len(sizes))]


def _of_stack(batches: Sequence[KnownBatch], reference: Reference) -> list[JointAnswer]:
    """Label batches of one size."""
    settings = reference.settings
    points = batches[0][0][None] if len(batches) == 1 else np.stack([one for one, _ in batches])
    knowledge = Knowledge.stacked([one for _, one in batches])
    n_items = points.shape[1]
    if len(deciding_rows(n_items, reference.n_classes, settings)) == n_items:
        items = BatchItems.of(points, reference, knowledge)
        decision, labels, totals = _labelled(items, settings)
    else:
        decision, labels, totals = _in_blocks(points, reference, knowledge)
    named = fold_unnamed(labels, reference.n_named, settings)
    share = knowledge.share
    summary = summarize(decision, totals, n_items, reference.n_named, named.unknown, share, settings)
    answers = []
    for batch in range(len(points)):
        answer = JointAnswer.of(labels, named, summary, decision.tilts.prior_weight, batch)
        if answer.rejected.any():
            groups = gather_rejected(points[batch], answer.unknown, answer.rejected, answer.unnamed, reference)
            answer = JointAnswer.of(labels, named, summary, decision.tilts.prior_weight, batch, groups)
        answers.append(answer)
    return answers


def _labelled(items: BatchItems, settings: Settings) -> tuple[Decision, ItemLabels, BatchTotals]:
    """Decide by all items, or by some of a large batch of scores, and label them all."""
    n_items = items.scores.n_items
    n_classes = items.scores.nats.shape[-1]
    if len(deciding_rows(n_items, n_classes, settings)) < n_items:
        batch = DecidedBatch.of(n_items, n_classes, items.rows, items.knowledge.labelled, settings)
        labels = batch.label(items, range(n_items))
        return batch.decision, labels, BatchTotals.of(labels)
    decision, alone, _ = decide(items, settings)
    labels = label_items(decision, items.scores, items.vectors, alone, items.knowledge.labels, settings)
    return decision, labels, BatchTotals.of(labels)


def _in_blocks(points: Floats, reference: Reference, knowledge: Knowledge) -> tuple[Decision, ItemLabels, BatchTotals]:
    """Label a large batch block by block: the scores of all items are never in memory at once."""
    n_items = points.shape[1]
    size = rows_at_a_time(reference.n_classes)
    # A batch of one block is counted and labelled by the same scores.
    whole = BatchItems.of(points, reference, knowledge) if n_items <= size else None

    def items_at(rows: Ints | slice) -> BatchItems:
        if whole is not None and (isinstance(rows, slice) or len(rows) == n_items):
            return whole
        return BatchItems.of(points[:, rows], reference, knowledge.rows(rows))

    batch = DecidedBatch.of(n_items, reference.n_classes, items_at, knowledge.labelled, reference.settings)
    starts = range(0, n_items, size)
    blocks = [batch.label(items_at(slice(at, at + size)), range(at, min(at + size, n_items))) for at in starts]
    return batch.decision, ItemLabels.joined(blocks), BatchTotals.added([BatchTotals.of(block) for block in blocks])
