"""Pooling: which groups are siblings, in which order, and what labelling them with each other's help gains."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from handful.errors import OptionError, TaskError
from handful.estimators.containers import column_of, column_values, gaps_in, places_in
from handful.fitted.labels import distinct, objects
from handful.model.knowledge import Prior
from handful.model.pooling import pooled
from handful.model.settings import DEFAULT, Settings
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
        λ: the weight of counts from one step of `order` ago. One means that nothing is forgotten; None without `order`.

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

    @classmethod
    def ranked(
        cls, names: npt.NDArray[Any], pool_of: Int[np.ndarray, "group"], moment: Int[np.ndarray, "group"] | None
    ) -> Siblings:
        """Count the steps of every pool from zero, by the moments of its groups."""
        if moment is None:
            return cls(names, pool_of, None)
        step_of = np.empty(len(pool_of), np.int64)
        for place in range(len(names)):
            mine = pool_of == place
            step_of[mine] = distinct(moment[mine])[1]
        return cls(names, pool_of, step_of)

    def of(self, groups: Int[np.ndarray, "some"]) -> Siblings:
        """Return those of some of the groups."""
        left, pool_of = np.unique(self.pool_of[groups], return_inverse=True)
        return Siblings.ranked(self.names[left], pool_of, None if self.step_of is None else self.step_of[groups])

    def prior(
        self,
        counts: Float[np.ndarray, "group class"],
        labels: Float[np.ndarray, "group class"],
        known: Prior | None,
        settings: Settings = DEFAULT,
    ) -> tuple[Prior, Pooling]:
        """Return what siblings hold as a prior, on top of what was known before.

        `counts` and `labels` are those of groups that were labelled without their siblings.
        """
        base = np.full_like(counts, 1 / counts.shape[1]) if known is None else known.shares
        found = pooled(counts, labels, base, self.pool_of, self.step_of, settings)
        used = found.used[self.pool_of]
        concentration = np.where(used, settings.follow * found.concentration, settings.prior_concentration)
        pooling = Pooling(
            self.names,
            found.gain,
            found.used,
            found.concentration if bool(used.any()) else 0.0,
            None if self.step_of is None else found.forgetting,
        )
        return Prior.of(found.shares, concentration), pooling


def siblings_of(pool: Any, order: Any, n_items: int, group_of: Int[np.ndarray, "item"]) -> Siblings | None:
    """Read the columns `pool` and `order`; None if nothing is to be pooled."""
    if pool is None or pool is False:
        if order is not None:
            raise OptionError("order says which groups come first, and needs pool: True, or a column that names pools")
        return None
    n_groups = int(group_of.max()) + 1
    if pool is True:
        names = np.array([ALL])
        pool_of = np.zeros(n_groups, np.int64)
    else:
        names, codes = column_of(pool, n_items, "pool")
        pool_of = _of_groups(codes, group_of, n_groups, "pool")
    moment = None if order is None else _of_groups(_moments(order, n_items), group_of, n_groups, "order")
    return Siblings.ranked(names, pool_of, moment)


def _moments(order: Any, n_items: int) -> Int[np.ndarray, "item"]:
    """Return the place of each item's time among all; text must be numbers or dates, which other text would hide."""
    values = column_values(order, n_items, "order")
    if gaps_in(values).any():
        raise TaskError("some rows have no value in order; fill in the column or drop these rows")
    listed = values.tolist()
    if all(isinstance(value, str) for value in listed):
        values = objects(_numbers(listed) or _dates(listed))
    elif any(isinstance(value, tuple) for value in listed):
        raise TaskError("order must be one column of numbers or dates, got several")
    return places_in(values, "order")[1]


def _numbers(listed: list[str]) -> list[float] | None:
    try:
        found = [float(value) for value in listed]
    except ValueError:
        return None
    return found if np.isfinite(found).all() else None


def _dates(listed: list[str]) -> list[datetime]:
    found = list[datetime]()
    for value in listed:
        try:
            found.append(datetime.fromisoformat(value.strip()))
        except ValueError as error:
            raise TaskError(f"order must have numbers, or dates such as 2026-05-31, got {value!r}") from error
    return found


def _of_groups(
    codes: Int[np.ndarray, "item"], group_of: Int[np.ndarray, "item"], n_groups: int, argument: str
) -> Int[np.ndarray, "group"]:
    """Return the value of each group, which all its rows must have."""
    of_group = np.empty(n_groups, np.int64)
    of_group[group_of] = codes
    if (of_group[group_of] != codes).any():
        raise TaskError(f"{argument} must have the same value in all rows of a group; some groups have several")
    return of_group
