"""Tasks by address: row numbers of support and query as a function of labels, spec, seed and task number."""

from handful.fewshot.tasks.draw import Draw, TaskSpec, draw
from handful.fewshot.tasks.query import Balanced, Dirichlet, UniformOverPool, UnknownClasses
from handful.fewshot.tasks.support import FixedSupport, ShotsPerClass

__all__ = [
    "Balanced",
    "Dirichlet",
    "Draw",
    "FixedSupport",
    "ShotsPerClass",
    "TaskSpec",
    "UniformOverPool",
    "UnknownClasses",
    "draw",
]
