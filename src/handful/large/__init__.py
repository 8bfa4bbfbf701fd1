"""Batches that do not fit in memory: the default, streamed over blocks of queries, here or over a Ray cluster."""

from handful.large.solution import LargeSolution
from handful.large.solve import solve

__all__ = ["LargeSolution", "solve"]
