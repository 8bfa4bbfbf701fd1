"""Catalogue: what is known about the classes, fitted once, kept in a file and used many times."""

from handful.catalogue.changes import Added, add_examples, merge, remove, rename
from handful.catalogue.comparison import ComparedEncoder, Comparison, Interval
from handful.catalogue.files import load_catalogue, save_catalogue
from handful.catalogue.fitted import Catalogue
from handful.catalogue.record import Record, Source
from handful.catalogue.report import CatalogueReport

__all__ = [
    "Added",
    "Catalogue",
    "CatalogueReport",
    "ComparedEncoder",
    "Comparison",
    "Interval",
    "Record",
    "Source",
    "add_examples",
    "load_catalogue",
    "merge",
    "remove",
    "rename",
    "save_catalogue",
]
