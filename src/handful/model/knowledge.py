"""What is known about batches before they are seen: shares, labels, candidates, how many items are unknown.

Each of the four is a small value of arrays and masks, or None if it is known about no batch of the stack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from handful.model.arrays import Bools, Floats, Ints


class Prior(NamedTuple):
    """Shares of the classes in each batch, and how closely it is expected to follow them."""

    shares: Floats  # [batch, class], π; zero for a class that cannot occur
    concentration: Floats  # [batch], c, a number of items

    @classmethod
    def of(cls, weights: Floats, concentration: Floats) -> Prior:
        """Make one from weights [batch, class], of which at least one per batch is positive."""
        doubles = weights.astype(np.float64)
        # By the largest first: the sum of weights as large as numbers can be is no number.
        scaled = doubles / doubles.max(-1, keepdims=True)
        return cls(scaled / scaled.sum(-1, keepdims=True), concentration)

    @property
    def possible(self) -> Bools:
        """Classes that can occur, [batch, class]."""
        return self.shares > 0

    def of_batches(self, batches: Ints | slice) -> Prior:
        """Return that of some of the batches."""
        return Prior(self.shares[batches], self.concentration[batches])

    def with_unnamed(self, n_unnamed: int) -> Prior:
        """Return the same with classes without a name at the end, of the mean share."""
        usual = 1 / self.possible.sum(-1, keepdims=True)
        return Prior.of(np.concatenate([self.shares, np.repeat(usual, n_unnamed, -1)], -1), self.concentration)


class FixedLabels(NamedTuple):
    """Classes that a person gave to some items."""

    code: Ints  # [batch, item], where one was given
    given: Bools  # [batch, item]

    @classmethod
    def of(cls, codes: Ints) -> FixedLabels:
        """Make those of one batch from the class of each item, below zero where none was given."""
        return cls(np.maximum(codes, 0)[None], (codes >= 0)[None])


class ToldShare(NamedTuple):
    """Beta distribution of the share of items of no class; a = 0 if there are none."""

    a: Floats  # [batch]
    b: Floats  # [batch]
    told: Bools  # [batch]; false for a batch about which this is not known

    @classmethod
    def of(cls, share: Floats) -> ToldShare:
        """Make that of one batch from a and b; NaN if they are not known."""
        told = not bool(np.isnan(share).any())
        a, b = share.tolist() if told else (1.0, 1.0)
        return cls(np.array([a]), np.array([b]), np.array([told]))


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What is known in advance about each batch of a stack.

    Attributes
    ----------
    prior
        Shares of the classes.
    allowed
        Classes that each item may have, [batch, item, class].
    labels
        Classes that a person gave.
    share
        The share of items of no class.
    """

    prior: Prior | None = None
    allowed: Bools | None = None
    labels: FixedLabels | None = None
    share: ToldShare | None = None

    @classmethod
    def stacked(cls, parts: Sequence[Knowledge]) -> Knowledge:
        """Put those of several batches together, about all of which the same things are known."""
        if len(parts) == 1:
            return parts[0]

        def joined(values: Sequence[tuple[Any, ...]]) -> list[np.ndarray]:
            return [np.concatenate(each) for each in zip(*values, strict=True)]

        prior = [one.prior for one in parts if one.prior is not None]
        allowed = [one.allowed for one in parts if one.allowed is not None]
        labels = [one.labels for one in parts if one.labels is not None]
        share = [one.share for one in parts if one.share is not None]
        return cls(
            prior=Prior(*joined(prior)) if prior else None,
            allowed=np.concatenate(allowed) if allowed else None,
            labels=FixedLabels(*joined(labels)) if labels else None,
            share=ToldShare(*joined(share)) if share else None,
        )

    @property
    def restricts(self) -> bool:
        """Whether something is known about the classes of items."""
        return self.prior is not None or self.allowed is not None or self.labels is not None

    @property
    def labelled(self) -> Ints:
        """Numbers of the items of a single batch that a person labelled."""
        return np.empty(0, np.int64) if self.labels is None else np.flatnonzero(self.labels.given[0])

    def with_unnamed(self, n_unnamed: int) -> Knowledge:
        """Return the same with classes without a name at the end: all items may have them, at the mean weight."""
        if n_unnamed == 0:
            return self
        allowed = self.allowed
        if allowed is not None:
            allowed = np.concatenate([allowed, np.ones((*allowed.shape[:-1], n_unnamed), bool)], -1)
        prior = None if self.prior is None else self.prior.with_unnamed(n_unnamed)
        return replace(self, allowed=allowed, prior=prior)

    def rows(self, rows: Ints | slice) -> Knowledge:
        """Return what is known about some of the items of a single batch."""
        allowed = None if self.allowed is None else self.allowed[:, rows]
        labels = None if self.labels is None else FixedLabels(self.labels.code[:, rows], self.labels.given[:, rows])
        return replace(self, allowed=allowed, labels=labels)
