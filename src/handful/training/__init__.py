"""Base training: from images of base classes to a network whose features work for other classes, as in the paper."""

from handful.training.recipe import Recipe
from handful.training.run import train
from handful.training.splits import BaseSplit, hold_out, read_benchmark

__all__ = ["BaseSplit", "Recipe", "hold_out", "read_benchmark", "train"]
