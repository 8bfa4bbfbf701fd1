"""handful: say which few of many classes occur in a batch, and label the whole batch at once."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from handful.banks import FeatureBank, Provenance
    from handful.classification import classify
    from handful.dispatch import solve
    from handful.estimators import BatchClassifier, TopScores, infer_scores
    from handful.gathering import gather
    from handful.methods import METHODS, Method
    from handful.reading import read, read_bank
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

__all__ = [
    "METHODS",
    "TRANSFORMS",
    "Arrivals",
    "Balanced",
    "BatchClassifier",
    "DescriptionLength",
    "Dirichlet",
    "Draw",
    "FeatureBank",
    "FixedSupport",
    "Method",
    "Provenance",
    "RangeOverPool",
    "ShotsPerClass",
    "Solution",
    "TaskBatch",
    "TaskSpec",
    "TopScores",
    "UniformOverPool",
    "UnknownClasses",
    "classify",
    "draw",
    "gather",
    "infer_scores",
    "read",
    "read_bank",
    "solve",
    "transform",
]
__version__ = "0.2.0"

# Where each name is. A module is imported when a name of it is first used: `handful --help` and `import handful` need
# neither torch nor scikit-learn.
_HOMES = {
    "banks": ("FeatureBank", "Provenance"),
    "classification": ("classify",),
    "dispatch": ("solve",),
    "estimators": ("BatchClassifier", "TopScores", "infer_scores"),
    "gathering": ("gather",),
    "methods": ("METHODS", "Method"),
    "reading": ("read", "read_bank"),
    "solution": ("DescriptionLength", "Solution"),
    "task": ("TaskBatch",),
    "tasks": (
        *("Arrivals", "Balanced", "Dirichlet", "Draw", "FixedSupport", "RangeOverPool", "ShotsPerClass", "TaskSpec"),
        *("UniformOverPool", "UnknownClasses", "draw"),
    ),
    "transforms": ("TRANSFORMS", "transform"),
}
_HOME = {name: f"handful.{home}" for home, names in _HOMES.items() for name in names}
# Modules that are there after `import handful` alone.
_PARTS = frozenset(
    {*_HOMES, "benchmark", "catalogue", "datasets", "errors", "exchange", "extraction", "features", "large", "many"}
    | {"networks", "numerics", "reports", "training"}
)


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return import_module(f"handful.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'handful' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PARTS})
