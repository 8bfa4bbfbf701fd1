"""scikit-learn estimators: `fit` on the labelled catalogue; each `predict` labels its batch as one joint problem."""

from handful.estimators.classifiers import PaddleClassifier, TransductiveClassifier
from handful.estimators.diagnostics import Diagnostic
from handful.estimators.grouped import GroupedInference
from handful.estimators.inference import Inference, Proposal
from handful.estimators.pooling import Pooling

__all__ = [
    "Diagnostic",
    "GroupedInference",
    "Inference",
    "PaddleClassifier",
    "Pooling",
    "Proposal",
    "TransductiveClassifier",
]
