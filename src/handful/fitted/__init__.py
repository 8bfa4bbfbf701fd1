"""Catalogue: what is known about the classes, fitted once, kept in a file and used many times."""

from handful.fitted.comparison import ComparedEncoder, Comparison, Interval
from handful.fitted.files import load_catalogue, save_catalogue
from handful.fitted.fitted import Catalogue
from handful.fitted.record import Record, Source
from handful.fitted.report import CatalogueReport

__all__ = [
    "Catalogue",
    "CatalogueReport",
    "ComparedEncoder",
    "Comparison",
    "Interval",
    "Record",
    "Source",
    "load_catalogue",
    "save_catalogue",
]
