"""Random numbers of a task: each task has its own streams, so it is the same drawn alone or among others."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from handful.shapes import Float, Int


class Stream(IntEnum):
    """What a stream is for. Streams are separate, so that the support does not depend on the query rule."""

    CLASSES = 0
    SUPPORT = 1
    QUERY_CLASSES = 2
    QUERY = 3
    QUERY_COUNTS = 4
    UNKNOWN_CLASSES = 5
    UNKNOWN_QUERY = 6


def generator(seed: int, index: int, stream: int) -> np.random.Generator:
    """Start a stream of task `index`: Philox with key (seed, index) and the stream as the top word of its counter."""
    # The dtype is given because NumPy converts a list of a seed of 2⁶³ or more and a small number to floats.
    key = np.array([seed, index], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=[0, 0, 0, stream]))


def uniforms(seed: int, indices: Int[np.ndarray, "task"], stream: int, size: int) -> Float[np.ndarray, "task size"]:
    """`size` numbers in [0, 1) for each task."""
    out = np.empty((len(indices), size))
    for row, index in zip(out, indices.tolist(), strict=True):
        generator(seed, index, stream).random(out=row)
    return out


def distinct(
    uniform: Float[np.ndarray, "*set step"], population: Int[np.ndarray, "*#set"], count: Int[np.ndarray, "*#set"] | int
) -> Int[np.ndarray, "*set step"]:
    """Draw `count` distinct numbers of 0 … population-1 for each set; all such subsets are equally likely.

    Floyd's algorithm: with j = population - count + i, step i takes t = ⌊u (j+1)⌋, or j itself if t is already taken.
    It needs one random number per draw, regardless of the population. If `count` is less than the number of steps, the
    rest is -1.
    """
    steps = uniform.shape[-1]
    chosen = np.full(uniform.shape, -1, dtype=np.int64)
    first = np.asarray(population) - count
    for i in range(steps):
        last = first + i
        candidate = (uniform[..., i] * (last + 1)).astype(np.int64)
        taken = (chosen[..., :i] == candidate[..., None]).any(-1)
        chosen[..., i] = np.where(i < np.asarray(count), np.where(taken, last, candidate), -1)
    return chosen
