"""A batch whose probabilities of all classes would not fit in memory: the best two classes of each item are kept.

Some of its items decide, and all are labelled by that decision, block by block: the labels are those of `Batches`.
"""

from __future__ import annotations

import numpy as np

from handful.estimators.answer import Answer, best_two
from handful.estimators.certainty import certainty_of, most_certain
from handful.estimators.context import BatchContexts
from handful.estimators.diagnostics import diagnose
from handful.estimators.items import ModelItems
from handful.machine.threads import one_thread
from handful.model.labelling import label_in_blocks
from handful.model.labels import fold_unnamed
from handful.model.summary import BatchTotals, summarize
from handful.model.unknown_in_batch import UnknownCounts
from handful.progress import Listener, Reporter


@one_thread()  # so that sums have a fixed order
def label_large(items: ModelItems, contexts: BatchContexts, on_progress: Listener | None = None) -> Answer:
    """Label a single batch of items that all count, without sequences, coarse classes and proposals."""
    catalogue = items.catalogue
    reference = catalogue.reference
    n_items = len(items)
    knowledge = contexts.of_group(0, np.arange(n_items)).with_unnamed(catalogue.n_unnamed)
    decision, blocks = label_in_blocks(
        items.features, lambda rows: catalogue.points(items.features[rows]), reference, knowledge
    )
    codes = np.empty((n_items, 2), np.int64)
    certainties = np.empty((n_items, 2))
    unknown = np.full(n_items, np.nan)
    none_of_these = np.empty(n_items, dtype=bool)
    most = np.full(n_items, most_certain(catalogue.head.mass))
    if contexts.given is not None:
        most[contexts.given != -1] = 1
    totals = list[BatchTotals]()
    counts = list[UnknownCounts]()
    report = Reporter(on_progress).stage("label", n_items, unit="items")
    start = 0
    for block in blocks:
        named = fold_unnamed(block, reference.n_named, catalogue.settings)
        rows = slice(start, start + block.confidence.shape[1])
        codes[rows], best = best_two(named.probabilities[0])
        if named.unknown is not None:
            unknown[rows] = named.unknown[0]
            counts.append(UnknownCounts.of(named.unknown))
        certainties[rows] = certainty_of(best, unknown[rows], most[rows])
        none_of_these[rows] = named.unnamed[0] >= 0
        totals.append(BatchTotals.of(block))
        start = rows.stop
        report(block.confidence.shape[1])
    n_unknown = UnknownCounts.added(counts) if counts else None
    added = BatchTotals.added(totals)
    summary = summarize(decision, added, reference.n_named, n_unknown, knowledge.share, catalogue.settings)
    low, high = summary.interval[0].tolist()
    counted = summary.expected_counts[0]
    return Answer(
        classes=items.classes,
        codes=codes,
        _certainties=certainties,
        _table=None,
        expected_counts=counted,
        presence=summary.presence[0],
        joint_weight=float(summary.joint_weight[0]),
        prior_weight=None if contexts.prior is None else float(decision.tilts.prior_weight[0]),
        unknown=unknown,
        rejected=np.asarray(unknown > summary.limit[0]),
        _none_of_these=none_of_these,
        unknown_interval=(low, high),
        unknown_reason=items.unknown_reason,
        proposals=(),
        diagnostics=diagnose(
            catalogue.head,
            n_items,
            float(summary.confidence[0]),
            n_zero=int(items.zero.sum()),
            unknown_share=None if contexts.unknown_share is None else contexts.unknown_share[0],
            unknown_reason=items.unknown_reason,
            equal=items.equal_classes(counted),
        ),
    )
