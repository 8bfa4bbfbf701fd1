"""Many batches at once: every group of rows is one joint batch, all against one catalogue.

Groups are stacked, those of similar size together, and labelled by `handful.inference.open_roll_call`. What a group
is labelled does not depend on the other groups, unless they are pooled (`handful.inference.pooling`): then all are
labelled once alone, and again with what their siblings hold as a prior.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from handful.catalogue import Catalogue
from handful.errors import LabelError
from handful.estimators.columns import column_of
from handful.estimators.diagnostics import diagnose
from handful.estimators.inference import Doubts, Inference, Proposal, answer
from handful.estimators.pooling import Pooling, siblings_of
from handful.estimators.prior_weights import prior_of, weights_of
from handful.inference.open_roll_call import Opened, label_open
from handful.inference.prior import Prior
from handful.methods.roll_call import RollCallOptions
from handful.shapes import Bool, Float, Int

# Scores in one stack, padding included.
STACK_SCORES = 2**22
# In one stack the largest group has at most this many times the items of the smallest, so that padding stays small.
MOST_UNEQUAL = 2


@dataclass(frozen=True, eq=False)
class GroupedInference:
    """The joint answers about many batches.

    Attributes
    ----------
    labels, probabilities : [item], [item, class]
        As in `Inference`, in the order of the rows given.
    groups : ndarray [group]
        Distinct values of the column of groups, in increasing order.
    group_of : ndarray [item]
        Position in `groups` of each item's group.
    expected_counts, presence : ndarray [group, class]
        As in `Inference`, one row per group.
    joint_weight, n_iter, converged : ndarray [group]
        As in `Inference`.
    confidence : ndarray [group]
        Mean over the items of a group of the largest probability under the head.
    unknown, rejected : [item], ndarray [item]
        As in `Inference`, in the order of the rows given.
    unknown_interval : ndarray [group, 2]
        As in `Inference`, one row per group.
    proposals : tuple of tuple of Proposal
        As in `Inference`, one entry per group. Items are positions within the group.
    catalogue : Catalogue
        What the groups were compared with.
    prior_weight : ndarray [group] or None
        As in `Inference`; what siblings hold is a prior too.
    pooling : Pooling or None
        Whether groups were labelled with the help of their siblings, and what it gained.

    `found[group]` is the `Inference` about one group, with its diagnostics.

    Examples
    --------
    >>> from handful.estimators import PaddleClassifier
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(size=(20, 16))
    >>> X, y = centres.repeat(5, axis=0) + 0.7 * rng.normal(size=(100, 16)), np.arange(20).repeat(5)
    >>> truth = np.array([3] * 6 + [7] * 4 + [11] * 5)
    >>> site = np.array(["marsh"] * 10 + ["wood"] * 5)
    >>> order = rng.permutation(15)
    >>> batch = centres[truth[order]] + 0.7 * rng.normal(size=(15, 16))
    >>> found = PaddleClassifier().fit(X, y).infer(batch, groups=site[order])
    >>> {str(name): found[name].present_classes.tolist() for name in found.groups}
    {'marsh': [3, 7], 'wood': [11]}
    >>> bool((found.labels == truth[order]).all())
    True
    """

    labels: Any
    probabilities: Any
    groups: npt.NDArray[Any]
    group_of: Int[np.ndarray, "item"]
    expected_counts: Float[np.ndarray, "group class"]
    presence: Float[np.ndarray, "group class"]
    joint_weight: Float[np.ndarray, "group"]
    n_iter: Int[np.ndarray, "group"]
    converged: npt.NDArray[np.bool_]
    confidence: Float[np.ndarray, "group"]
    unknown: Any
    rejected: npt.NDArray[np.bool_]
    unknown_interval: Float[np.ndarray, "group 2"]
    proposals: tuple[tuple[Proposal, ...], ...]
    catalogue: Catalogue
    prior_weight: Float[np.ndarray, "group"] | None
    pooling: Pooling | None

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.groups)

    def __getitem__(self, group: Any) -> Inference:
        """Return the answer about one group, in arrays; its items come in the order of the rows given."""
        place = next((place for place, name in enumerate(self.groups.tolist()) if name == group), -1)
        if place < 0:
            raise LabelError(f"there is no group {group!r}; see groups for those that there are")
        rows = np.flatnonzero(self.group_of == place)
        table = self.probabilities
        if not isinstance(table, Tensor):
            table = torch.from_numpy(np.ascontiguousarray(table, dtype=np.float64))
        n_iter, converged = int(self.n_iter[place]), bool(self.converged[place])
        low, high = self.unknown_interval[place].tolist()
        unknown = np.asarray(self.unknown.cpu() if isinstance(self.unknown, Tensor) else self.unknown)
        doubts = Doubts(
            unknown[rows], (low, high), self.rejected[rows], self.proposals[place], self.expected_counts[place]
        )
        return answer(
            self.catalogue.classes,
            table[rows],
            self.presence[place],
            float(self.joint_weight[place]),
            None if self.prior_weight is None else float(self.prior_weight[place]),
            diagnose(
                self.catalogue.head,
                len(rows),
                float(self.confidence[place]),
                n_iter=n_iter,
                converged=converged,
            ),
            doubts,
            n_iter=n_iter,
            converged=converged,
        )


class Stack(NamedTuple):
    """Some groups, labelled together."""

    places: Int[np.ndarray, "task"]  # of the groups
    rows: Int[np.ndarray, "item"]  # of their items, group by group
    there: Bool[Tensor, "task slot"]  # which slots of `found` hold these items
    found: Opened


def stacked(
    catalogue: Catalogue,
    features: Float[Tensor, "item dim"],
    group_of: Int[np.ndarray, "item"],
    options: RollCallOptions,
    prior: Prior | None = None,
) -> Iterator[Stack]:
    """Label every group as one joint batch, a stack of groups at a time; `group_of` counts the groups from zero."""
    order = np.argsort(group_of, kind="stable")
    sizes = np.bincount(group_of)
    starts = np.cumsum(sizes) - sizes
    for places in _stacks(sizes, np.argsort(sizes, kind="stable"), catalogue.n_classes):
        slots = np.arange(sizes[places].max())
        there = slots < sizes[places][:, None]
        rows = order[np.where(there, starts[places][:, None] + slots, 0)]
        inside = torch.from_numpy(there).to(features.device)
        batches = features[torch.from_numpy(rows).to(features.device)]
        mask = None if there.all() else inside
        known = None if prior is None else prior.rows(torch.from_numpy(places)).to(features.device)
        against = catalogue.against(batches, mask, known)
        found = label_open(against, catalogue.strangers, max_iter=options.max_iter, tol=options.tol)
        yield Stack(places, rows[there], inside, found)


def _stacks(
    sizes: Int[np.ndarray, "group"], by_size: Int[np.ndarray, "group"], n_classes: int
) -> Iterator[Int[np.ndarray, "task"]]:
    """Cut the groups, the smallest first, into stacks of bounded size with little padding."""
    start = 0
    while start < len(by_size):
        most = MOST_UNEQUAL * sizes[by_size[start]]
        stop = start + int(np.searchsorted(sizes[by_size[start:]], most, side="right"))
        while True:
            slots = int(sizes[by_size[stop - 1]])
            fits = max(1, STACK_SCORES // (slots * n_classes))
            if stop - start <= fits:
                break
            stop = start + fits
        yield by_size[start:stop]
        start = stop


class Known(NamedTuple):
    """What the caller knows about groups: weights of classes, which groups are siblings, and their order."""

    prior: Any = None
    candidates: Any = None
    pool: Any = None
    order: Any = None


def priors_of(
    catalogue: Catalogue,
    features: Float[Tensor, "item dim"],
    names: npt.NDArray[Any],
    group_of: Int[np.ndarray, "item"],
    options: RollCallOptions,
    known: Known,
) -> tuple[Prior | None, Pooling | None]:
    """Return the prior of every group: what the caller knows, and what siblings hold when labelled without it."""
    weights = weights_of(known.prior, known.candidates, catalogue.classes, names)
    prior = None if weights is None else prior_of(weights, len(names))
    siblings = siblings_of(known.pool, known.order, len(features), group_of)
    if siblings is None:
        return prior, None
    counts = torch.zeros(len(names), catalogue.n_classes, dtype=torch.float64)
    labels = torch.zeros_like(counts)
    for places, rows, there, found in stacked(catalogue, features, group_of, options, prior):
        counts[torch.from_numpy(places)] = found.called.expected_counts.cpu()
        sure = ~found.rejected[there].cpu()
        codes = found.called.log_probabilities.argmax(-1)[there].cpu()
        entries = torch.from_numpy(group_of[rows])[sure], codes[sure]
        labels.index_put_(entries, torch.ones((), dtype=torch.float64), accumulate=True)
    return siblings.prior(counts, labels, prior)


def inferred_by_group(
    catalogue: Catalogue,
    features: Float[Tensor, "item dim"],
    groups: Any,
    options: RollCallOptions,
    known: Known,
) -> GroupedInference:
    """Label every group jointly; labels as an array, probabilities as a tensor."""
    names, group_of = column_of(groups, len(features), "groups")
    prior, pooling = priors_of(catalogue, features, names, group_of, options, known)
    probabilities = torch.empty(len(features), catalogue.n_classes, dtype=torch.float64, device=features.device)
    of_groups = {
        name: np.empty(len(names)) for name in ("joint_weight", "n_iter", "converged", "confidence", "prior_weight")
    }
    tables = {name: np.empty((len(names), catalogue.n_classes)) for name in ("expected_counts", "presence")}
    unknown, rejected = np.empty(len(features)), np.empty(len(features), dtype=bool)
    interval: Float[np.ndarray, "group 2"] = np.empty((len(names), 2))
    proposals: list[tuple[Proposal, ...]] = [()] * len(names)
    for places, rows, there, found in stacked(catalogue, features, group_of, options, prior):
        called = found.called
        probabilities[torch.from_numpy(rows).to(features.device)] = called.log_probabilities[there].double().exp_()
        for name, table in tables.items():
            table[places] = getattr(called, name).cpu().numpy()
        for name in ("joint_weight", "n_iter", "converged", "prior_weight"):
            of_groups[name][places] = getattr(called, name).cpu().numpy()
        of_groups["confidence"][places] = ((called.confidence * there).sum(-1) / there.sum(-1)).cpu().numpy()
        unknown[rows], rejected[rows] = found.unknown[there].cpu().numpy(), found.rejected[there].cpu().numpy()
        interval[places] = found.interval.cpu().numpy()
        for place, new in zip(places.tolist(), found.groups, strict=True):
            proposals[place] = tuple(Proposal.of(group, catalogue.classes) for group in new)
    return GroupedInference(
        labels=catalogue.classes[probabilities.argmax(-1).cpu().numpy()],
        probabilities=probabilities,
        groups=names,
        group_of=group_of,
        expected_counts=tables["expected_counts"],
        presence=tables["presence"],
        joint_weight=of_groups["joint_weight"],
        n_iter=of_groups["n_iter"].astype(np.int64),
        converged=of_groups["converged"].astype(bool),
        confidence=of_groups["confidence"],
        unknown=unknown,
        rejected=rejected,
        unknown_interval=interval,
        proposals=tuple(proposals),
        catalogue=catalogue,
        prior_weight=None if prior is None else of_groups["prior_weight"],
        pooling=pooling,
    )


def labels_by_group(
    catalogue: Catalogue,
    features: Float[Tensor, "item dim"],
    groups: Any,
    options: RollCallOptions,
    known: Known,
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Return the labels and the rejected items alone: probabilities are never held for all rows at once."""
    codes, rejected = np.empty(len(features), np.int64), np.empty(len(features), dtype=bool)
    names, group_of = column_of(groups, len(features), "groups")
    prior, _ = priors_of(catalogue, features, names, group_of, options, known)
    for _, rows, there, found in stacked(catalogue, features, group_of, options, prior):
        codes[rows] = found.called.log_probabilities.argmax(-1)[there].cpu().numpy()
        rejected[rows] = found.rejected[there].cpu().numpy()
    return catalogue.classes[codes], rejected
