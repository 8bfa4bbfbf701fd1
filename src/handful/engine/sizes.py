"""Large batches: which items decide, and class sizes from more of them.

**Items** are one from each of equal parts of the batch, at places that depend on the numbers of items and classes
alone: a batch is often sorted, and may have copies. So a batch in memory, a group and a stream are decided by the same
items.

**Sizes** are `π_k = Σ_n r_nk / n`, `r_nk ∝ E_nk π_k`, in two steps. A decision comes from about a thousand items. In a
batch with as many classes, or with very uneven ones, these do not show all classes, and a class that they do not show
is nearly ruled out for the rest. So further items are counted: with equal shares, and again with the shares that this
gives. The second step raises their log-likelihood by at least `n KL(π, π')`, with π' the shares before. The shares
replace the decision where they describe the items better than the decision and than equal shares, by more than one nat
for each class that has a size of its own. Gains are tempered as in `presence`: items of one class are wrong together,
and then sizes that are not there would be learned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.special import entr

from handful.engine.presence import STRAYS, Roll, shared_error

if TYPE_CHECKING:
    from handful.engine.model import BatchItems, Decision

Ints = npt.NDArray[np.integer]

# Items that decide, and numbers in their scores.
MOST_DECIDING, DECIDING_NUMBERS = 2**10, 2**25
# Items that are counted, and numbers in their scores.
MOST_COUNTED, COUNTED_NUMBERS = 2**13, 2**29
# Items that are labelled at a time, and numbers in their scores: several arrays of 8 MB, which caches hold in part.
MOST_AT_A_TIME, NUMBERS_AT_A_TIME = 2**12, 2**21
# Fewest items of all three, whatever the number of classes.
FEWEST = 16
# How often items are counted.
STEPS = 2
# A class with a smaller expected count among these is absent but for strays.
LEAST_SIZE = 0.1


def spread_rows(n_rows: int, most: int) -> Ints:
    """Return numbers of rows: one from each of `most` equal parts, at places that look random, or all of them.

    Examples
    --------
    >>> spread_rows(3, 1024).tolist(), (spread_rows(1000, 4) // 250).tolist()
    ([0, 1, 2], [0, 1, 2, 3])
    """
    if n_rows <= most:
        return np.arange(n_rows)
    places = np.random.default_rng(0).random(most)
    return np.minimum(((np.arange(most) + places) * (n_rows / most)).astype(np.int64), n_rows - 1)


def deciding_rows(n_rows: int, n_classes: int) -> Ints:
    """Return the numbers of the items that decide."""
    return spread_rows(n_rows, max(FEWEST, min(MOST_DECIDING, DECIDING_NUMBERS // n_classes)))


def counted_rows(n_rows: int, n_classes: int) -> Ints:
    """Return the numbers of the items that are counted."""
    return spread_rows(n_rows, max(FEWEST, min(MOST_COUNTED, COUNTED_NUMBERS // n_classes)))


def rows_at_a_time(n_classes: int) -> int:
    """Return how many items are labelled at a time."""
    return max(FEWEST, min(MOST_AT_A_TIME, NUMBERS_AT_A_TIME // n_classes))


def with_sizes(decision: Decision, blocks: Callable[[], Iterable[BatchItems]]) -> Decision:
    """Return the decision, or one with the class sizes that these items have.

    Examples
    --------
    >>> from handful.engine.head import fit_head
    >>> from handful.engine.model import BatchItems, Reference, decide
    >>> rng = np.random.default_rng(0)
    >>> centres, codes = rng.normal(size=(50, 16)), np.repeat(np.arange(50), 5)
    >>> reference = Reference(fit_head(centres[codes] + rng.normal(size=(250, 16)), codes, 50))
    >>> truth = np.minimum(rng.geometric(0.1, size=2000), 50) - 1
    >>> items = BatchItems(centres[truth] + rng.normal(size=(2000, 16)), reference)
    >>> some, _ = decide(BatchItems(items.points[:40], reference))
    >>> found = with_sizes(some, lambda: [items])
    >>> bool(np.abs(found.roll.states[0][:5] - 0.1 * 0.9 ** np.arange(5)).max() < 0.03)
    True
    """
    roll, n_classes, bare = decision.roll, decision.n_classes, replace(decision, moved=None, gate=0.0)
    few = np.full(len(decision.tilts), STRAYS / n_classes)
    few[roll.columns] += (1 - STRAYS) * roll.states.mean(0)
    shares = np.full(len(few), 1 / n_classes)
    for _ in range(STEPS):
        before, counts, said, n_items = shares, np.zeros(len(few)), np.zeros(2), 0
        both = np.stack([before, few]).T.astype(np.float32)
        for items in blocks():
            near = bare.near(items, None)
            likely = near.table @ both * near.scale[:, None]
            said += np.log(likely.astype(np.float64)).sum(0)
            counts += near.sums(1 / likely[:, 0]) * before
            n_items += len(likely)
        shares = counts / n_items
    own = np.flatnonzero(counts >= LEAST_SIZE)
    gained = said[0] + float((counts[own] * np.log(shares[own] / before[own])).sum())
    gained -= max(said[1], -n_items * np.log(n_classes))
    n_own = float(np.exp(entr(shares).sum()))
    shared = float((shares * shared_error(decision.reference.head.mass)).sum())
    temper = 1 / (1 + max(n_items / n_own - 1, 0) * shared)
    if temper * gained <= n_own:
        return decision
    states = (shares[own] / shares[own].sum())[None].astype(np.float32)
    return replace(bare, roll=Roll.of_classes(own, states, -np.expm1(-counts[own]), 0.0))
