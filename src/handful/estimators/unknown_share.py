"""What users know about the share of items that belong to no class, in the forms they have it in, as Beta(a, b)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from handful.errors import OptionError
from handful.estimators.answer import Answer
from handful.estimators.prior_weights import known_groups, n_groups
from handful.shapes import Float

# A share is known as well as from this many items. Those of earlier batches count as this many at most: batches differ.
# [items; convention]
ITEMS_OF_SHARE = 10.0
MOST_EARLIER = 20.0
# Between the ends of a central interval of 90%, in standard deviations of a normal distribution.
# [deviations; convention: twice the 95% quantile]
DEVIATIONS = 3.29


class UnknownShare(NamedTuple):
    """`Beta(a, b)`, the distribution of the share of items that belong to no class; a = 0 if there are none.

    Examples
    --------
    >>> UnknownShare.of(True), UnknownShare.of(0.3), UnknownShare.of(0)
    (UnknownShare(a=1.0, b=1.0), UnknownShare(a=3.0, b=7.0), UnknownShare(a=0.0, b=10.0))
    >>> [round(number, 1) for number in UnknownShare.of((0.1, 0.5))]
    [4.0, 9.2]
    """

    a: float
    b: float

    @classmethod
    def of(cls, expected: Any) -> UnknownShare:
        """Turn `expect_unknown` into a distribution; see `Known`."""
        if isinstance(expected, UnknownShare):
            return expected
        if isinstance(expected, (bool, np.bool_)):
            return cls(1.0, 1.0) if expected else cls.of(0)
        several = list(expected) if isinstance(expected, (tuple, list)) else [expected]
        if several and all(isinstance(one, Answer) for one in several):
            return cls.after(np.concatenate([one.unknown for one in several]))
        if _is_share(expected) and expected < 1:
            return cls(ITEMS_OF_SHARE * float(expected), ITEMS_OF_SHARE * (1 - float(expected)))
        if several == [0, 1]:
            return cls.of(True)
        if len(several) == 2 and all(map(_is_share, several)) and several[0] < several[1]:
            mean = (several[0] + several[1]) / 2
            deviation = (several[1] - several[0]) / DEVIATIONS
            items = mean * (1 - mean) / deviation**2 - 1  # of which a Beta distribution has this deviation
            return cls(float(items * mean), float(items * (1 - mean)))
        raise OptionError(
            "expect_unknown must be True, a share of the items between 0 and 1 such as 0.3, a range such as "
            f"(0.1, 0.5), answers about earlier batches, or 0 if nothing is unknown, got {expected!r:.60}"
        )

    @classmethod
    def after(cls, unknown: Float[np.ndarray, "item"]) -> UnknownShare:
        """Count items of earlier batches, by the chance of each to be unknown: zero or one if a person labelled it."""
        if np.isnan(unknown).any() or len(unknown) == 0:
            raise OptionError(
                "expect_unknown was given earlier answers in which unknown items were not judged; give a share, such "
                "as 0.3"
            )
        weight = min(1.0, MOST_EARLIER / len(unknown))
        return cls(1 + weight * float(unknown.sum()), 1 + weight * float((1 - unknown).sum()))


def shares_of(expected: Any, groups: npt.NDArray[Any] | None) -> Float[np.ndarray, "group two"] | None:
    """Return a and b of every group, NaN for one about which nothing is known; None if nothing is known at all.

    Parameters
    ----------
    expected : object
        What `UnknownShare.of` takes, or a mapping from groups to that.
    groups
        The distinct groups; None for a single batch.
    """
    if expected is None:
        return None
    if not isinstance(expected, Mapping):
        return np.tile(UnknownShare.of(expected), (1 if groups is None else len(groups), 1))
    shares = np.full((n_groups("expect_unknown", groups), 2), np.nan)
    for place, name in known_groups("expect_unknown", expected, groups):
        shares[place] = np.nan if expected[name] is None else UnknownShare.of(expected[name])
    return shares


def _is_share(expected: Any) -> bool:
    return isinstance(expected, (int, float, np.number)) and not isinstance(expected, bool) and bool(0 <= expected <= 1)
