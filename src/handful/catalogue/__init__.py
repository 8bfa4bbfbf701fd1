"""Catalogue: what is known about the classes, fitted once and asked often."""

from handful.catalogue.fitted import Catalogue
from handful.catalogue.report import CatalogueReport

__all__ = ["Catalogue", "CatalogueReport"]
