"""The paper's house: few-shot tasks, the methods from the literature, and a benchmark that compares them.

The rest of handful is the product and does not need it. Names come from their modules when they are first used.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from handful.errors import MissingExtraError
from handful.machine.extras import install_command

if TYPE_CHECKING:
    from handful.fewshot.classifier import MethodClassifier
    from handful.fewshot.dispatch import solve
    from handful.fewshot.gathering import gather
    from handful.fewshot.methods import METHODS, Method, register
    from handful.fewshot.solution import DescriptionLength, Solution
    from handful.fewshot.task import TaskBatch
    from handful.fewshot.tasks import (
        Arrivals,
        Balanced,
        Dirichlet,
        Draw,
        FixedSupport,
        RangeOverPool,
        ShotsPerClass,
        TaskSpec,
        UniformOverPool,
        UnknownClasses,
        draw,
    )
    from handful.fewshot.transforms import TRANSFORMS, transform

if find_spec("torch") is None:
    raise MissingExtraError(f"handful.fewshot needs PyTorch, which is not installed; run: {install_command('fewshot')}")

__all__ = [
    "METHODS",
    "TRANSFORMS",
    "Arrivals",
    "Balanced",
    "DescriptionLength",
    "Dirichlet",
    "Draw",
    "FixedSupport",
    "Method",
    "MethodClassifier",
    "RangeOverPool",
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

_HOMES = {
    "classifier": ("MethodClassifier",),
    "dispatch": ("solve",),
    "gathering": ("gather",),
    "methods": ("METHODS", "Method", "register"),
    "solution": ("DescriptionLength", "Solution"),
    "task": ("TaskBatch",),
    "tasks": (
        *("Arrivals", "Balanced", "Dirichlet", "Draw", "FixedSupport", "RangeOverPool", "ShotsPerClass", "TaskSpec"),
        *("UniformOverPool", "UnknownClasses", "draw"),
    ),
    "transforms": ("TRANSFORMS", "transform"),
}
_HOME = {name: f"handful.fewshot.{home}" for home, names in _HOMES.items() for name in names}
# Modules that are there after `import handful` alone.
_PARTS = frozenset({*_HOMES, "benchmark", "networks", "numerics", "reports", "training"})


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return import_module(f"handful.fewshot.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'handful.fewshot' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PARTS})
