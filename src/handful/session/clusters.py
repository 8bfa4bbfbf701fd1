"""Groups of items that look alike: average linkage of cosines, and what was named.

The log-odds that two items have the same class are those of a batch with a catalogue (`handful.model.links`),

    A + B cos + b_0,      B = β/2,      A = -B c,

with the cosine about the mean of the batch. No examples tell A and B: an item and a class mean differ by β nats per
unit of the cosine (`from_nothing`), and two items, each as far from their mean, by half of that. b_0 follows from all
pairs of the batch. Two groups are joined as long as this is positive on the mean of their pairs, the closest first. A
group in which two names were said falls apart into the largest parts without two names.
"""

from __future__ import annotations

import numpy as np
from scipy.cluster.hierarchy import linkage, to_tree

from handful.model.links import pair_log_odds
from handful.model.questions import SameClass
from handful.model.settings import DEFAULT
from handful.shapes import Float, Int

# β: nats per unit of the cosine with a class mean, that of a head of class means with one example per class, of which
# none can be left out: a mean of one item lies at distance one from the centre. With the true labels of 18 batches of
# three banks, left-out items were most likely at 24 to 43, and once at 87; the median is 34. [nats; measured]
NATS_PER_COSINE = DEFAULT.nats_of_means / DEFAULT.usual_temperature
# B: by logistic regression with these labels, it is 11 to 29, the median 16. [nats; measured]
NATS_PER_PAIR = NATS_PER_COSINE / 2
# c: a pair with this cosine is as likely of one class as of two, if half of all pairs are of one class. By the
# same regression, it is 0.04 to 0.17, the median 0.08. A little more is safer, because a group of two classes costs a
# person more than a class in two groups: at 0.08 and 0.1, more than 5% were wrong when more reviews said stop.
# [cosine; tuned]
EVEN_COSINE = 0.12
# A vector whose length is below this share of the largest number, by rounding, has no direction; and that number is at
# least the second. [ratio; convention]
ROUNDING = 1e-6
LEAST_LARGEST = 1e-30


def directions_of(points: Float[np.ndarray, "item dim"]) -> Float[np.ndarray, "item dim"]:
    """Return unit vectors of items from the mean of all of them; zero for an item at the mean."""
    away = points.astype(np.float64) - points.mean(0, dtype=np.float64)
    lengths = np.sqrt((away**2).sum(1, keepdims=True))
    tiny = ROUNDING * max(float(np.abs(points).max(initial=0.0)), LEAST_LARGEST)
    return np.asarray(np.where(lengths > tiny, away / np.maximum(lengths, tiny), 0.0))


def same_by_cosine(directions: Float[np.ndarray, "item dim"], even: float) -> SameClass:
    """Return the chance that two items have the same class; `even` is the cosine at which it is one half."""
    return SameClass(directions @ directions.T, -NATS_PER_PAIR * even, NATS_PER_PAIR)


class Tree:
    """Items joined by average linkage, for groups with and without names.

    Parameters
    ----------
    directions : [item, dim]
        Unit vectors of items.

    Attributes
    ----------
    even : float
        The cosine at which a pair is as likely of one class as of two.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> points = np.repeat(np.eye(3), [4, 6, 5], axis=0) + 0.05 * rng.normal(size=(15, 3))
    >>> tree = Tree(directions_of(points))
    >>> names = np.full(15, -1)
    >>> [part.tolist() for part in tree.parts(names)]
    [[4, 5, 6, 7, 8, 9], [10, 11, 12, 13, 14], [0, 1, 2, 3]]
    >>> names[[0, 2]] = 0, 1
    >>> [part.tolist() for part in tree.parts(names)][2:]
    [[0, 1, 3], [2]]
    """

    def __init__(self, directions: Float[np.ndarray, "item dim"]) -> None:
        n_items = len(directions)
        n_nodes = 2 * n_items - 1
        # The items below a node are a range of this order; items are the first nodes, then come joins.
        self.order = np.arange(n_items)
        self.ends = np.column_stack([np.arange(n_nodes), np.arange(1, n_nodes + 1)])
        self.children = np.full((n_nodes, 2), -1)
        self.cosines = np.ones(n_nodes)
        if n_items > 1:
            joins = linkage(_distances(directions), "average")
            self.order = np.array(to_tree(joins).pre_order(), np.int64)
            place = np.argsort(self.order)
            self.ends[:n_items] = np.column_stack([place, place + 1])
            self.children[n_items:] = joins[:, :2].astype(np.int64)
            self.cosines[n_items:] = 1 - joins[:, 2]
            for node in range(n_items, n_nodes):
                below = self.ends[self.children[node]]
                self.ends[node] = below[:, 0].min(), below[:, 1].max()
        odds = NATS_PER_PAIR * (directions @ directions.T - EVEN_COSINE)
        self.even = EVEN_COSINE - float(pair_log_odds(odds, DEFAULT)) / NATS_PER_PAIR

    def parts(self, names: Int[np.ndarray, "item"]) -> list[Int[np.ndarray, "some"]]:
        """Return the largest groups of items that look alike and have one name at most, the largest first.

        Parameters
        ----------
        names
            A number for each name, -1 for items without one.
        """
        in_order = names[self.order]
        found = []
        left = [len(self.ends) - 1]
        while left:
            node = left.pop()
            start, end = self.ends[node].tolist()
            said = in_order[start:end]
            said = said[said >= 0]
            has_two_names = len(said) > 0 and bool((said != said[0]).any())
            if self.children[node, 0] >= 0 and (has_two_names or self.cosines[node] < self.even):
                left += self.children[node].tolist()
            else:
                found.append(np.sort(self.order[start:end]))
        return sorted(found, key=lambda part: (-len(part), int(part[0])))


def _distances(directions: Float[np.ndarray, "item dim"]) -> Float[np.ndarray, "pair"]:
    """Return one minus the cosine of all pairs; 0 for two items at the mean, which are equal."""
    cosines = directions @ directions.T
    at_mean = ~directions.any(1)
    cosines[np.ix_(at_mean, at_mean)] = 1
    return np.asarray((1 - cosines[np.triu_indices(len(directions), 1)]).clip(0))
