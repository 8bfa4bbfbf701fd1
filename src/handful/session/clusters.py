"""Groups of items that look alike, before anyone has named one: average linkage of cosines about the mean of the batch.

Two groups are joined while the mean cosine between their items is the largest of all, and at least `LEAST_COSINE`.
"""

from __future__ import annotations

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from handful.shapes import Bool, Float, Int

# Items of two groups that are joined have at least this cosine on the mean, about the mean of the batch.
LEAST_COSINE = 0.2


def directions_of(points: Float[np.ndarray, "item dim"]) -> Float[np.ndarray, "item dim"]:
    """Return unit vectors of items from the mean of all of them; zero for an item at the mean."""
    away = points.astype(np.float64) - points.mean(0, dtype=np.float64)
    lengths = np.sqrt((away**2).sum(1, keepdims=True))
    tiny = 1e-6 * max(float(lengths.max(initial=0.0)), 1e-30)
    return np.asarray(np.where(lengths > tiny, away / np.maximum(lengths, tiny), 0.0))


def clusters_of(directions: Float[np.ndarray, "item dim"]) -> Int[np.ndarray, "item"]:
    """Return the group of each item, numbered from 0, the largest first.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> points = np.repeat(np.eye(3), [4, 6, 5], axis=0) + 0.05 * rng.normal(size=(15, 3))
    >>> clusters_of(directions_of(points)).tolist()
    [2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
    """
    if len(directions) == 1:
        return np.zeros(1, np.int64)
    cosines = directions @ directions.T
    distances = (1 - cosines[np.triu_indices(len(directions), 1)]).clip(0)
    found = fcluster(linkage(distances, "average"), 1 - LEAST_COSINE, "distance") - 1
    return by_size(found)


def two_parts(directions: Float[np.ndarray, "item dim"]) -> Bool[np.ndarray, "item"]:
    """Return which of two or more items belong to the second of the two groups that are joined last."""
    cosines = directions @ directions.T
    distances = (1 - cosines[np.triu_indices(len(directions), 1)]).clip(0)
    return np.asarray(fcluster(linkage(distances, "ward"), 2, "maxclust") == 2)


def by_size(groups: Int[np.ndarray, "item"]) -> Int[np.ndarray, "item"]:
    """Return new numbers of groups, the largest first, and of equal ones that with the first item."""
    values, first, of, sizes = np.unique(groups, return_index=True, return_inverse=True, return_counts=True)
    rank = np.empty(len(values), np.int64)
    rank[np.lexsort((first, -sizes))] = np.arange(len(values))
    return np.asarray(rank[of])
