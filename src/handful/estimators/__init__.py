"""scikit-learn estimators: `fit` on the labelled catalogue; each `predict` labels its batch as one joint problem."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from handful.estimators.answer import Answer, LabelledItem, Top
from handful.estimators.context import Known
from handful.estimators.diagnostics import Diagnostic
from handful.estimators.pooling import Pooling
from handful.estimators.proposals import Proposal
from handful.estimators.scores import TopScores, infer_scores
from handful.estimators.why import Explanation, NearExample
from handful.model.questions import Question

if TYPE_CHECKING:
    from handful.estimators.classifiers import BatchClassifier
    from handful.estimators.splitting import FewClassSplit

__all__ = [
    "Answer",
    "BatchClassifier",
    "Diagnostic",
    "Explanation",
    "FewClassSplit",
    "Known",
    "LabelledItem",
    "NearExample",
    "Pooling",
    "Proposal",
    "Question",
    "Top",
    "TopScores",
    "infer_scores",
]

# Where the names are that need scikit-learn, which takes seconds to import: answers and reviews do without it.
_HOME = {"BatchClassifier": "handful.estimators.classifiers", "FewClassSplit": "handful.estimators.splitting"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'handful.estimators' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
