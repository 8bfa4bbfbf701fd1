"""Fitted models: what examples tell about the classes, fitted once, kept in a file and used many times."""

from handful.fitted.files import load_model, save_model
from handful.fitted.fitted import FittedModel
from handful.fitted.record import Record
from handful.fitted.report import ModelReport

__all__ = [
    "FittedModel",
    "ModelReport",
    "Record",
    "load_model",
    "save_model",
]
