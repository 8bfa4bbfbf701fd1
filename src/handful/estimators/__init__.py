"""scikit-learn estimators: `fit` on the labelled catalogue; each `predict` labels its batch as one joint problem."""

from handful.estimators.answer import Answer, LabelledItem, Top
from handful.estimators.classifiers import BatchClassifier
from handful.estimators.context import Known
from handful.estimators.diagnostics import Diagnostic
from handful.estimators.pooling import Pooling
from handful.estimators.proposals import Proposal
from handful.estimators.scores import TopScores, infer_scores
from handful.estimators.splitting import FewClassSplit
from handful.estimators.why import Explanation, NearExample
from handful.model.questions import Question

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
