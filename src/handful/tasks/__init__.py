"""Tasks by address: row numbers of support and query as a function of labels, spec, seed and task number."""

from handful.tasks.draw import Draw, draw
from handful.tasks.query import Arrivals, Balanced, Dirichlet, RangeOverPool, UniformOverPool
from handful.tasks.spec import TaskSpec
from handful.tasks.support import FixedSupport, ShotsPerClass
from handful.tasks.unknown import UnknownClasses

__all__ = [
    "Arrivals",
    "Balanced",
    "Dirichlet",
    "Draw",
    "FixedSupport",
    "RangeOverPool",
    "ShotsPerClass",
    "TaskSpec",
    "UniformOverPool",
    "UnknownClasses",
    "draw",
]
