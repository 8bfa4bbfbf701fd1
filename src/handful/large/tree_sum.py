"""Results of shards are added in a binary tree that is fixed by the numbers of the shards.

The piece (level l, place i) is the sum over the shards `i 2ˡ … (i + 1) 2ˡ - 1`, as far as they exist, and is made of
the pieces (l - 1, 2i) and (l - 1, 2i + 1). Floating-point sums depend on their order. Here the order is given by the
shards alone. The sum of all shards has the same bits for any order of arrival and any number of threads or machines. A
worker adds what it can, and sends the rest on as pieces.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

from torch import Tensor


@runtime_checkable
class Adds(Protocol):
    """A result that knows how to add another."""

    def with_part(self, other: Any) -> Any:
        """Return the sum."""
        ...


class Piece(NamedTuple):
    """The sum over the shards from `place · 2^level` on, `2^level` of them."""

    level: int
    place: int
    value: Any


class TreeSum:
    """Pieces that were put in and not yet added to others.

    Examples
    --------
    >>> import torch
    >>> total = TreeSum(3)
    >>> for shard in (2, 0, 1):
    ...     total.put(Piece(0, shard, torch.tensor([shard, 10.0])))
    >>> total.whole()
    tensor([ 3., 30.])
    """

    def __init__(self, n_shards: int) -> None:
        self._n_shards = n_shards
        self._height = (n_shards - 1).bit_length()
        self._waiting: dict[tuple[int, int], Any] = {}

    def put(self, piece: Piece) -> None:
        """Add a piece to its sibling, and the sum to its sibling, and so on, as far as siblings are there."""
        level, place, value = piece
        while level < self._height:
            sibling = place ^ 1
            if sibling << level < self._n_shards:  # else there are no shards: the parent is the same sum
                if (level, sibling) not in self._waiting:
                    break
                other = self._waiting.pop((level, sibling))
                value = added(value, other) if place < sibling else added(other, value)
            level, place = level + 1, place >> 1
        self._waiting[level, place] = value

    def pieces(self) -> list[Piece]:
        """Return what is left, in the order of the shards."""
        by_shard = sorted(self._waiting.items(), key=lambda entry: entry[0][1] << entry[0][0])
        return [Piece(level, place, value) for (level, place), value in by_shard]

    def whole(self) -> Any:
        """Return the sum of all shards."""
        ((level, _, value),) = self.pieces()
        assert level == self._height
        return value


def added(one: Any, other: Any) -> Any:
    """Add two results: tensors, tuples of results, or what has a way of its own."""
    if isinstance(one, Tensor):
        return one + other
    if isinstance(one, Adds):
        return one.with_part(other)
    return tuple(added(a, b) for a, b in zip(one, other, strict=True))
