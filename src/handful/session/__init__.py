"""session: a review without a server; it asks, takes answers, labels again, and says when a person may stop."""

from handful.session.from_nothing import FromNothing
from handful.session.requests import Request
from handful.session.session import Session
from handful.session.similar import similar_names
from handful.session.steps import Said, Step
from handful.session.stopping import Calibration, Estimate

__all__ = [
    "Calibration",
    "Estimate",
    "FromNothing",
    "Request",
    "Said",
    "Session",
    "Step",
    "similar_names",
]
