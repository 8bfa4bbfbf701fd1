"""The blind audit: how many labels that nobody has looked at are still wrong, with an interval.

Now and then an item is asked whose label is hidden. It is the next one, in an order drawn at random when the review
began, that nobody has decided. Audited items are held out: what a person says about them does not teach the model, so
they judge every later labelling as well. Of n audited items, w have a wrong label now. Under Jeffreys' prior the share
of wrong labels is Beta(w + ½, n - w + ½), and of the N items that nobody has looked at,

    wrong ~ BetaBinomial(N, w + ½, n - w + ½).

Its 5 % and 95 % quantiles are the interval. Items that were asked since an audit are not among the N any more. They
were more doubtful than others, so the interval is a little too high rather than too low.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
from scipy.stats import betabinom

from handful.shapes import Int

# One question in this many is an audit.
AUDIT_EVERY = 4
LEVEL = 0.9
# A person may stop when at most this share of all labels is wrong, by the upper end of the interval.
MOST_WRONG = 0.05


class Audit(NamedTuple):
    """What the audits say about a batch; shares are of all its items, and those a person looked at are right.

    Attributes
    ----------
    n_audited, n_wrong : int
        Items that were audited, and those of them whose label is wrong now.
    low, high : float
        90 % interval for the share of wrong labels.
    may_stop : bool
        Whether the upper end is small enough.
    """

    n_audited: int
    n_wrong: int
    low: float
    high: float
    may_stop: bool

    @classmethod
    def of(cls, n_audited: int, n_wrong: int, n_left: int, n_items: int, most_wrong: float = MOST_WRONG) -> Audit:
        """Judge `n_left` items that nobody looked at, of a batch of `n_items`.

        Examples
        --------
        >>> Audit.of(40, 0, 200, 260)
        Audit(n_audited=40, n_wrong=0, low=0.0, high=0.038461538461538464, may_stop=True)
        """
        if n_left == 0:
            return cls(n_audited, n_wrong, 0.0, 0.0, True)
        if n_audited == 0:
            return cls(0, 0, 0.0, n_left / n_items, n_left / n_items <= most_wrong)
        tail = (1 - LEVEL) / 2
        wrong = betabinom(n_left, n_wrong + 0.5, n_audited - n_wrong + 0.5)
        low, high = (float(wrong.ppf(p)) / n_items for p in (tail, 1 - tail))
        return cls(n_audited, n_wrong, low, high, high <= most_wrong)


def audit_order(batch: str, n_items: int) -> Int[np.ndarray, "item"]:
    """Return the order in which items of a batch are audited: at random, and always the same for this batch."""
    seed = int.from_bytes(hashlib.sha256(f"audit {batch}".encode()).digest()[:8], "big")
    return np.random.default_rng(seed).permutation(n_items)


def audit_is_due(n_audits: int, n_others: int) -> bool:
    """Return whether the next question is an audit: one of `AUDIT_EVERY` is.

    Examples
    --------
    >>> [audit_is_due(0, 2), audit_is_due(0, 3), audit_is_due(1, 3), audit_is_due(1, 6)]
    [False, True, False, True]
    """
    return n_audits < n_others // (AUDIT_EVERY - 1)
