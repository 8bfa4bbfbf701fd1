"""handful: say which few of many classes occur in a batch, and label the whole batch jointly."""

from handful.dispatch import solve
from handful.features import FeatureBank, Provenance, read_bank
from handful.gather import gather
from handful.methods import METHODS, Method
from handful.solution import DescriptionLength, Solution
from handful.task import TaskBatch
from handful.tasks import Balanced, Dirichlet, Draw, FixedSupport, ShotsPerClass, TaskSpec, UniformOverPool, draw
from handful.transforms import TRANSFORMS, transform

__all__ = [
    "METHODS",
    "TRANSFORMS",
    "Balanced",
    "DescriptionLength",
    "Dirichlet",
    "Draw",
    "FeatureBank",
    "FixedSupport",
    "Method",
    "Provenance",
    "ShotsPerClass",
    "Solution",
    "TaskBatch",
    "TaskSpec",
    "UniformOverPool",
    "draw",
    "gather",
    "read_bank",
    "solve",
    "transform",
]
__version__ = "0.1.0"
