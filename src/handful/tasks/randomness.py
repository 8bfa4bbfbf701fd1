"""Random numbers that belong to a task: each task has its own streams, so it can be drawn alone or among others."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from handful.shapes import Float, Int


class Stream(IntEnum):
    """What a stream is for. Apart from one another, so that a change of query rule leaves the support as it was."""

    CLASSES = 0
    SUPPORT = 1
    QUERY_CLASSES = 2
    QUERY = 3
    QUERY_COUNTS = 4


def generator(seed: int, index: int, stream: Stream) -> np.random.Generator:
    """Start a stream of task `index`: Philox with the key (seed, index), its counter's top word set to the stream."""
    # Typed, since NumPy makes floats of a list that mixes a seed of 2⁶³ or more with a small number.
    key = np.array([seed, index], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=[0, 0, 0, int(stream)]))


def uniforms(seed: int, indices: Int[np.ndarray, "task"], stream: Stream, size: int) -> Float[np.ndarray, "task size"]:
    """`size` numbers in [0, 1) for each task."""
    out = np.empty((len(indices), size))
    for row, index in zip(out, indices.tolist(), strict=True):
        generator(seed, index, stream).random(out=row)
    return out


def distinct(
    uniform: Float[np.ndarray, "*set step"],
    population: Int[np.ndarray, "*#set"],
    count: Int[np.ndarray, "*#set"] | int,
) -> Int[np.ndarray, "*set step"]:
    """Draw `count` distinct numbers of 0 … population-1 for each set, all such subsets being equally likely.

    Floyd's scheme: step i looks at j = population - count + i, takes t = ⌊u (j+1)⌋, or j itself if t is taken. It
    needs one random number a draw whatever the population is. Where a set has `count` < step, the rest is -1.
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
