"""scikit-learn estimators: `fit` on the labelled catalogue; each `predict` labels its batch as one joint problem."""

from handful.engine.questions import Question
from handful.estimators.answer_tables import Top
from handful.estimators.classifiers import PaddleClassifier, TransductiveClassifier
from handful.estimators.diagnostics import Diagnostic
from handful.estimators.grouped import GroupedInference
from handful.estimators.inference import Inference
from handful.estimators.pooling import Pooling
from handful.estimators.proposals import Proposal
from handful.estimators.scores import TopScores, infer_scores
from handful.estimators.splitting import FewClassSplit
from handful.estimators.why import Explanation, NearExample

__all__ = [
    "Diagnostic",
    "Explanation",
    "FewClassSplit",
    "GroupedInference",
    "Inference",
    "NearExample",
    "PaddleClassifier",
    "Pooling",
    "Proposal",
    "Question",
    "Top",
    "TopScores",
    "TransductiveClassifier",
    "infer_scores",
]
