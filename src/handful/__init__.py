"""handful: say which few of many classes occur in a batch, and label the whole batch jointly."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from handful.banks import FeatureBank, Provenance, read_bank
from handful.dispatch import solve
from handful.gather import gather
from handful.methods import METHODS, Method
from handful.solution import DescriptionLength, Solution
from handful.task import TaskBatch
from handful.tasks import (
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
from handful.transforms import TRANSFORMS, transform

if TYPE_CHECKING:
    from handful.classification import classify
    from handful.estimators import PaddleClassifier

__all__ = [
    "METHODS",
    "TRANSFORMS",
    "Arrivals",
    "Balanced",
    "DescriptionLength",
    "Dirichlet",
    "Draw",
    "FeatureBank",
    "FixedSupport",
    "Method",
    "PaddleClassifier",
    "Provenance",
    "RangeOverPool",
    "ShotsPerClass",
    "Solution",
    "TaskBatch",
    "TaskSpec",
    "UniformOverPool",
    "UnknownClasses",
    "classify",
    "draw",
    "gather",
    "read_bank",
    "solve",
    "transform",
]
__version__ = "0.1.0"


# Loaded on first use, so that `import handful` needs neither scikit-learn nor the packages that read images.
_LATER = {"PaddleClassifier": "handful.estimators", "classify": "handful.classification"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'handful' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_LATER[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
