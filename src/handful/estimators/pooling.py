"""Pooling: which groups are siblings, in which order, and what labelling them with each other's help gains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from handful.catalogue.labels import distinct
from handful.engine.pooling import FOLLOW, pooled
from handful.engine.prior import CONCENTRATION, Prior
from handful.errors import OptionError, TaskError
from handful.estimators.columns import column_of
from handful.shapes import Float, Int

ALL = "all"


@dataclass(frozen=True, eq=False)
class Pooling:
    """Whether groups are labelled with the help of their siblings, and what that gains.

    Attributes
    ----------
    pools : ndarray [pool]
        Distinct values of the column `pool`, in increasing order; a single one, "all", for `pool=True`.
    gain : ndarray [pool]
        How much better siblings predict the labels of a group, in nats per item. Groups are labelled alone for this,
        and no group predicts itself.
    used : ndarray [pool]
        Whether that is enough, three nats in all. If not, the groups of this pool are labelled separately.
    concentration : float
        c: how closely groups follow their siblings, as a number of items; zero if no pool is used.
    forgetting : float or None
        ρ: the weight of counts from one step of `order` ago. One means that nothing is forgotten; None without `order`.

    Examples
    --------
    >>> from handful.estimators import BatchClassifier
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(size=(20, 16))
    >>> X, y = centres.repeat(5, axis=0) + 1.5 * rng.normal(size=(100, 16)), np.arange(20).repeat(5)
    >>> visit, site = np.arange(20).repeat(3), np.array(["marsh", "wood"]).repeat(30)
    >>> truth = np.where(site == "marsh", rng.choice([3, 7], 60), rng.choice([11, 12], 60))
    >>> batch = centres[truth] + 1.5 * rng.normal(size=(60, 16))
    >>> classifier = BatchClassifier().fit(X, y)
    >>> found = classifier.infer(batch, groups=visit, pool=site)
    >>> dict(zip(found.pooling.pools.tolist(), found.pooling.used.tolist()))
    {'marsh': True, 'wood': True}
    >>> bool((found.labels == truth).mean() > (classifier.predict(batch, groups=visit) == truth).mean())
    True
    """

    pools: npt.NDArray[Any]
    gain: Float[np.ndarray, "pool"]
    used: npt.NDArray[np.bool_]
    concentration: float
    forgetting: float | None


@dataclass(frozen=True, eq=False)
class Siblings:
    """The pool of every group, and its step in the order of that pool, if there is one."""

    names: npt.NDArray[Any]
    pool_of: Int[np.ndarray, "group"]
    step_of: Int[np.ndarray, "group"] | None

    def prior(
        self, counts: Float[np.ndarray, "group class"], labels: Float[np.ndarray, "group class"], known: Prior | None
    ) -> tuple[Prior, Pooling]:
        """Return what siblings hold as a prior, on top of what was known before.

        `counts` and `labels` are those of groups that were labelled without their siblings.
        """
        base = np.full_like(counts, 1 / counts.shape[1]) if known is None else np.exp(known.log_shares)
        found = pooled(counts, labels, base, self.pool_of, self.step_of)
        used = found.used[self.pool_of]
        return Prior.of(found.shares, np.where(used, FOLLOW * found.concentration, CONCENTRATION)), Pooling(
            self.names,
            found.gain,
            found.used,
            found.concentration if bool(used.any()) else 0.0,
            None if self.step_of is None else found.forgetting,
        )


def siblings_of(pool: Any, order: Any, n_items: int, group_of: Int[np.ndarray, "item"]) -> Siblings | None:
    """Read the columns `pool` and `order`; None if nothing is to be pooled."""
    if pool is None or pool is False:
        if order is not None:
            raise OptionError("order says which groups come first, and needs pool: True, or a column of siblings")
        return None
    n_groups = int(group_of.max()) + 1
    if pool is True:
        names, pool_of = np.array([ALL]), np.zeros(n_groups, np.int64)
    else:
        names, codes = column_of(pool, n_items, "pool")
        pool_of = _of_groups(codes, group_of, n_groups, "pool")
    if order is None:
        return Siblings(names, pool_of, None)
    moment = _of_groups(column_of(order, n_items, "order")[1], group_of, n_groups, "order")
    step_of = np.empty(n_groups, np.int64)
    for place in range(len(names)):
        mine = pool_of == place
        step_of[mine] = distinct(moment[mine])[1]
    return Siblings(names, pool_of, step_of)


def _of_groups(
    codes: Int[np.ndarray, "item"], group_of: Int[np.ndarray, "item"], n_groups: int, argument: str
) -> Int[np.ndarray, "group"]:
    """Return the value of each group, which all its rows must have."""
    of_group = np.empty(n_groups, np.int64)
    of_group[group_of] = codes
    if (of_group[group_of] != codes).any():
        raise TaskError(f"{argument} must have the same value in all rows of a group; some groups have several")
    return of_group
