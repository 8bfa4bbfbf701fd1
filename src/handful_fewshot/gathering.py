"""gather: features of a bank at the rows of a draw, as tasks; the only link between banks and draws."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from handful import FeatureBank
from handful.errors import TaskError
from handful.shapes import Float, Int
from handful_fewshot.task import Array, TaskBatch
from handful_fewshot.tasks import Draw


def gather(
    bank: FeatureBank, draw: Draw, *, support_bank: FeatureBank | None = None, names: Array | None = None
) -> tuple[TaskBatch, Int[Tensor, "task query"]]:
    """`z[task, n] = features[rows[task, n]]`, in single precision, and the labels of the query separately.

    Parameters
    ----------
    bank : FeatureBank
        The bank whose labels were drawn from.
    draw : Draw
        Rows of each task.
    support_bank : FeatureBank, optional
        The other bank that a `FixedSupport` with labels refers to.
    names : Float[Array, "class dim"], optional
        Vectors of the names of all classes of the bank, in the order of `bank.class_names`; a task gets those of its
        own classes.

    Returns
    -------
    task : TaskBatch
        Without query labels. A support that all tasks share has a task axis of length one.
    query_labels : Int[Tensor, "task query"]
        Classes of the queries, 0 … K-1, or -1 for a class that is not in the support; for scoring only.

    Examples
    --------
    >>> from handful_fewshot import ShotsPerClass, TaskSpec, UniformOverPool, draw
    >>> bank = FeatureBank.from_arrays([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]], [0, 0, 0, 1, 1, 1], ["low", "high"])
    >>> spec = TaskSpec(ShotsPerClass(2), UniformOverPool(k_eff=1), n_query=1)
    >>> task, truth = gather(bank, draw(bank.labels, spec, seed=0, indices=range(10)))
    >>> task.support.shape, task.query.shape, truth.shape
    (torch.Size([10, 4, 1]), torch.Size([10, 1, 1]), torch.Size([10, 1]))
    """
    source = _support_source(bank, draw, support_bank)
    mask = draw.support_mask
    support = _points(source, draw.support)
    labels = torch.from_numpy(draw.support_labels.astype(np.int64)).expand(len(support), -1)
    task = TaskBatch(
        support,
        labels,
        _points(bank, draw.query),
        draw.n_classes,
        None if mask is None else torch.from_numpy(mask),
        names=None if names is None else _names(bank, draw, names),
    )
    return task, torch.from_numpy(draw.query_labels.astype(np.int64))


def _support_source(bank: FeatureBank, draw: Draw, support_bank: FeatureBank | None) -> FeatureBank:
    if not draw.support_elsewhere:
        if support_bank is not None:
            raise TaskError("the draw takes its support from the query's own bank; leave support_bank out")
        return bank
    if support_bank is None:
        raise TaskError("the draw takes its support from another bank; give that bank as support_bank=...")
    if support_bank.class_names != bank.class_names or support_bank.dim != bank.dim:
        raise TaskError(
            f"the two banks must have the same classes in the same order and the same dimension, got "
            f"{support_bank.n_classes} classes of dimension {support_bank.dim} and {bank.n_classes} of {bank.dim}; "
            "restrict both with bank.classes(...)"
        )
    return support_bank


def _names(bank: FeatureBank, draw: Draw, names: Array) -> Float[Tensor, "#task class dim"]:
    """Vectors of the names of each task's classes, in its own order."""
    vectors = torch.as_tensor(names)
    if vectors.shape != (bank.n_classes, bank.dim):
        raise TaskError(
            f"names must have one vector per class of the bank, shape ({bank.n_classes}, {bank.dim}), got shape "
            f"{tuple(vectors.shape)}; embed bank.class_names in their order, with the network of the features"
        )
    return vectors.float()[torch.from_numpy(draw.classes.astype(np.int64)).to(vectors.device)]


def _points(bank: FeatureBank, rows: Int[np.ndarray, "task row"]) -> Float[Tensor, "task row dim"]:
    if rows.size and int(rows.max()) >= bank.n_rows:
        raise TaskError(
            f"the draw contains row {int(rows.max())} but the bank has {bank.n_rows} rows; "
            "give the bank whose labels were used for the draw"
        )
    return torch.from_numpy(bank.take(rows)).float()
