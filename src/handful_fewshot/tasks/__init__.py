"""Tasks by address: row numbers of support and query as a function of labels, spec, seed and task number."""

from handful_fewshot.tasks.draw import Draw, TaskSpec, draw
from handful_fewshot.tasks.rules import (
    Balanced,
    CorrelatedStream,
    Dirichlet,
    FixedSupport,
    ShotsPerClass,
    UniformOverPool,
    UnknownClasses,
)

__all__ = [
    "Balanced",
    "CorrelatedStream",
    "Dirichlet",
    "Draw",
    "FixedSupport",
    "ShotsPerClass",
    "TaskSpec",
    "UniformOverPool",
    "UnknownClasses",
    "draw",
]
