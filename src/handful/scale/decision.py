"""A batch that nobody holds: a sample decides, all rows are mapped by what it decided, and sums say the rest.

    decision = decide(sample, "birds.model")           # once, from some thousand rows
    items, totals = decision.label(part)               # for every part, anywhere
    group = decision.summary(merge(all_totals))        # once

A decision is small: it names its model, and every process opens that once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, Unpack

import numpy as np

from handful.arguments import takes
from handful.errors import TaskError
from handful.machine.threads import one_thread
from handful.model.stream import DecidedBatch
from handful.scale.found import FoundItems, OfGroups, PartTotals, decide_points, label_points, summary_of
from handful.scale.labeller import LabelOptions, TableLabeller
from handful.scale.models import Model
from handful.shapes import Float

NO_KEYS: Mapping[str, Any] = MappingProxyType({})


class Totals(NamedTuple):
    """What rows of a batch add up to; those of all parts are merged for `BatchDecision.summary`."""

    found: PartTotals | None  # None if no row could be labelled
    n_bad: int


class LabelledPart(NamedTuple):
    """What `BatchDecision.label` returns."""

    items: Any
    totals: Totals


@dataclass(frozen=True, eq=False)
class BatchDecision:
    """What a batch is like, by a sample of its rows; labels any of them. Made by `decide`."""

    labeller: TableLabeller
    batch: DecidedBatch | None  # None if no row of the batch can be labelled

    @classmethod
    def of(cls, labeller: TableLabeller, sample: Float[np.ndarray, "item dim"]) -> BatchDecision:
        """Decide by the vectors of a sample, which may be empty."""
        fitted = labeller.model.fitted
        if not len(sample):
            return cls(labeller, None)
        return cls(labeller, decide_points(fitted, fitted.points(sample), sample, labeller.known))

    @one_thread()
    def label(self, table: Any) -> LabelledPart:
        """Label some rows of the batch.

        Parameters
        ----------
        table : pyarrow.Table
            Any rows of the batch; those of the sample are known by their content.

        Returns
        -------
        items : pyarrow.Table
            As `label_table` has them.
        totals : Totals
            What the rows add up to.
        """
        labeller = self.labeller
        fitted = labeller.model.fitted
        vectors, reasons = labeller.vectors(table)
        good = np.setdiff1d(np.arange(len(table)), list(reasons))
        items = FoundItems.empty(len(table))
        found = FoundItems.empty(len(good))
        totals = None
        if len(good) and self.batch is not None:
            contents = vectors[good]
            totals = label_points(self.batch, fitted, fitted.points(contents), contents, labeller.known, found)
        for values, some in zip(items, found, strict=True):
            values[good] = some
        return LabelledPart(labeller.items_table(table, items, reasons), Totals(totals, len(reasons)))

    def summary(self, totals: Totals, keys: Mapping[str, Any] = NO_KEYS) -> Any:
        """Say what the batch is like as a whole.

        Parameters
        ----------
        totals : Totals
            Those of all its rows, see `merge`.
        keys : mapping of str to pyarrow.Array
            Columns that say which group it is, of one value each.

        Returns
        -------
        pyarrow.Table
            The rows of one group, as `label_table` has them.
        """
        fitted = self.labeller.model.fitted
        groups = OfGroups.empty(1)
        if totals.found is not None and self.batch is not None:
            summary = summary_of(self.batch.decision, totals.found, fitted, self.labeller.known)
            groups.put(np.array([0]), summary, None, totals.found.sums.n_items)
            groups.n_zero[:] = totals.found.n_zero
        return self.labeller.groups_table(keys, groups, np.array([totals.n_bad]))


@takes(LabelOptions)
@one_thread()
def decide(
    sample: Any,
    model: Model,
    **options: Unpack[LabelOptions],
) -> BatchDecision:
    """Find out from a sample of its rows what a batch is like.

    Parameters
    ----------
    sample : pyarrow.Table
        Rows of the batch, drawn at random: some thousand are enough, and at most 8,192 are used. A batch of which all
        rows are in the sample is labelled as in memory.
    model, features, prior, candidates, expect_unknown, keep_features, lineage, prefix : object
        As in `label_table`.

    Returns
    -------
    BatchDecision
        What labels all rows of the batch; it can be pickled.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from handful import BatchClassifier
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(size=(20, 16))
    >>> X, y = centres.repeat(5, axis=0) + 0.7 * rng.normal(size=(100, 16)), np.arange(20).repeat(5)
    >>> batch = centres[rng.choice([3, 7, 11], 3000)] + 0.7 * rng.normal(size=(3000, 16))
    >>> table = pa.table({"vector": batch.tolist()})
    >>> decision = decide(table.take(rng.permutation(3000)[:1000]), BatchClassifier().fit(X, y))
    >>> parts = [decision.label(table.slice(at, 500)) for at in range(0, 3000, 500)]
    >>> group = decision.summary(merge(part.totals for part in parts))
    >>> group["items"][0].as_py(), sorted(group.filter(pa.compute.greater(group["presence"], 0.5))["class"].to_pylist())
    (3000, [3, 7, 11])
    """
    labeller = TableLabeller.of(model, **options)
    fitted = labeller.model.fitted
    if fitted.only_names:
        raise TaskError(
            "the scale of a model of names alone comes from the whole batch, so no sample can decide for it; use "
            "label_table, or add examples to the model"
        )
    vectors, reasons = labeller.vectors(sample)
    contents = np.delete(vectors, list(reasons), axis=0)
    if not len(contents):
        why = next(iter(reasons.values()), "it is empty")
        raise TaskError(f"no row of the sample can be labelled (the first: {why}); draw another one")
    return BatchDecision.of(labeller, contents)


def merge(totals: Iterable[Totals]) -> Totals:
    """Add what parts of a batch add up to, in any order.

    Parameters
    ----------
    totals : iterable of Totals
        Those of `BatchDecision.label`, or merged ones.

    Returns
    -------
    Totals
        Their sum.

    Examples
    --------
    >>> merge([Totals(None, 2), Totals(None, 1)])
    Totals(found=None, n_bad=3)
    """
    found: PartTotals | None = None
    n_bad = 0
    for one in totals:
        n_bad += one.n_bad
        if one.found is not None:
            found = one.found if found is None else PartTotals.added([found, one.found])
    return Totals(found, n_bad)
