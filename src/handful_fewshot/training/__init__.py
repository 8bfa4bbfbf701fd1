"""Base training: from images of base classes to a network whose features work for other classes, as in the paper."""

from handful_fewshot.training.recipe import Recipe
from handful_fewshot.training.run import train
from handful_fewshot.training.splits import BaseSplit, hold_out, read_benchmark

__all__ = ["BaseSplit", "Recipe", "hold_out", "read_benchmark", "train"]
