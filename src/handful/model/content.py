"""Keys of rows by their content: copies have equal keys, and no key depends on where its row stands.

The bits of a row in single precision are numbers b_j, and its key is `Σ_j b_j f_j` modulo 2⁶⁴, with odd factors f_j
that look random. So items can be chosen by what they are: a batch whose rows come in another order, in other blocks or
in double precision is decided by the same items.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from handful.model.arrays import Floats, Ints, spread_rows
from handful.model.limits import IN_CACHE

Keys = npt.NDArray[np.uint64]
# Factors are odd numbers of 64 bits: twice a random number of this many, and one. [bits; convention]
FACTOR_BITS = 63


@cache
def odd_factors(n_numbers: int) -> Keys:
    """Return odd factors that look random, always the same: sums of products with them tell rows of numbers apart."""
    drawn = np.random.default_rng(0).integers(0, 2**FACTOR_BITS, n_numbers, np.uint64)
    return np.asarray(drawn * np.uint64(2) + np.uint64(1))


def content_keys(rows: Floats) -> Keys:
    """Return the key of each row [item, number].

    Examples
    --------
    >>> keys = content_keys(np.array([[0.0, 1.0], [1.0, 0.0], [-0.0, 1.0]]))
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    n_rows, n_numbers = rows.shape
    keys = np.empty(n_rows, np.uint64)
    size = max(1, IN_CACHE // max(n_numbers, 1))
    with np.errstate(over="ignore", under="ignore"):
        for at in range(0, n_rows, size):
            block = np.ascontiguousarray(rows[at : at + size], np.float32) + np.float32(0)  # minus zero is zero
            keys[at : at + size] = block.view(np.uint32).astype(np.uint64) @ odd_factors(n_numbers)
    return keys


def spread_by_content(rows: Floats, most: int) -> Ints:
    """Return numbers of rows in increasing order: one from each of `most` equal parts by content, or all of them.

    Copies are neighbours by content, so as many of them are chosen as there are in proportion.

    Examples
    --------
    >>> rows = np.arange(1000.0)[:, None] % 7
    >>> chosen = spread_by_content(rows, 70)
    >>> counts = np.bincount(rows[chosen, 0].astype(int))
    >>> len(chosen), bool(counts.min() >= 9), bool(counts.max() <= 11)
    (70, True, True)
    >>> other = spread_by_content(rows[::-1], 70)
    >>> bool((np.sort(rows[::-1][other], 0) == np.sort(rows[chosen], 0)).all())
    True
    """
    if len(rows) <= most:
        return np.arange(len(rows))
    order = np.argsort(content_keys(rows), kind="stable")
    return np.sort(order[spread_rows(len(rows), most)])
