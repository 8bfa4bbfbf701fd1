"""The paper's package: few-shot tasks, the methods from the literature, and a benchmark that compares them.

It stands on what handful lists as public. handful does not need it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from handful.machine.extras import import_extra

if TYPE_CHECKING:
    from handful_fewshot.classifier import MethodClassifier
    from handful_fewshot.dispatch import solve
    from handful_fewshot.gathering import gather
    from handful_fewshot.methods import METHODS, Method, register
    from handful_fewshot.solution import DescriptionLength, Solution
    from handful_fewshot.task import TaskBatch
    from handful_fewshot.tasks import (
        Balanced,
        CorrelatedStream,
        Dirichlet,
        Draw,
        FixedSupport,
        ShotsPerClass,
        TaskSpec,
        UniformOverPool,
        UnknownClasses,
        draw,
    )
    from handful_fewshot.transforms import TRANSFORMS, transform

__all__ = [
    "METHODS",
    "TRANSFORMS",
    "Balanced",
    "CorrelatedStream",
    "DescriptionLength",
    "Dirichlet",
    "Draw",
    "FixedSupport",
    "Method",
    "MethodClassifier",
    "ShotsPerClass",
    "Solution",
    "TaskBatch",
    "TaskSpec",
    "UniformOverPool",
    "UnknownClasses",
    "draw",
    "gather",
    "register",
    "solve",
    "transform",
]

# Where each name is. A module is imported when a name of it is first used: the help of a command needs no torch.
_HOMES = {
    "classifier": ("MethodClassifier",),
    "dispatch": ("solve",),
    "gathering": ("gather",),
    "methods": ("METHODS", "Method", "register"),
    "solution": ("DescriptionLength", "Solution"),
    "task": ("TaskBatch",),
    "tasks": (
        *(
            "Balanced",
            "CorrelatedStream",
            "Dirichlet",
            "Draw",
            "FixedSupport",
            "ShotsPerClass",
            "TaskSpec",
            "UniformOverPool",
        ),
        *("UnknownClasses", "draw"),
    ),
    "transforms": ("TRANSFORMS", "transform"),
}
_HOME = {name: f"handful_fewshot.{home}" for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'handful_fewshot' has no attribute {name!r}")
    import_extra("torch", "fewshot")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
