"""session: a review without a server; it asks, takes answers, labels again, and says when a person may stop."""

from handful.session.from_nothing import FromNothing
from handful.session.kinds import Kind
from handful.session.requests import Request
from handful.session.said import BatchSaid
from handful.session.session import Session
from handful.session.similar import similar_names
from handful.session.stopping import Calibration, Estimate

__all__ = [
    "BatchSaid",
    "Calibration",
    "Estimate",
    "FromNothing",
    "Kind",
    "Request",
    "Session",
    "similar_names",
]
