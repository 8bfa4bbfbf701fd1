"""Catalogue: what is known about the classes, fitted once and used many times."""

from handful.catalogue.files import load_catalogue, save_catalogue
from handful.catalogue.fitted import Catalogue
from handful.catalogue.report import CatalogueReport

__all__ = ["Catalogue", "CatalogueReport", "load_catalogue", "save_catalogue"]
