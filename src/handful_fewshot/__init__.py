"""The paper's package: few-shot tasks, the methods from the literature, and a benchmark that compares them.

The rest of handful is the product and does not need it.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from handful.errors import MissingExtraError
from handful.machine.extras import install_command

if find_spec("torch") is None:
    raise MissingExtraError(f"handful_fewshot needs PyTorch, which is not installed; run: {install_command('fewshot')}")

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

if TYPE_CHECKING:
    from handful_fewshot.classifier import MethodClassifier

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


def __getattr__(name: str) -> Any:
    if name == "MethodClassifier":  # scikit-learn takes as long to import as torch
        return import_module("handful_fewshot.classifier").MethodClassifier
    raise AttributeError(f"module 'handful_fewshot' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
