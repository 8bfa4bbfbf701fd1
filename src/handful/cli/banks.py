"""Banks named on the command line: a path, or one that comes with the package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from handful.banks import FeatureBank
from handful.datasets import load_clinc150
from handful.reading import read_bank

# Shipped banks, by name.
SHIPPED: Mapping[str, Callable[[], FeatureBank]] = MappingProxyType({"clinc150": load_clinc150})


def open_bank(place: str) -> FeatureBank:
    """Open the bank at a path; if there is none, the shipped one of that name."""
    shipped = SHIPPED.get(Path(place).name)
    return shipped() if shipped is not None and not Path(place).exists() else read_bank(place)


def find_bank(places: Mapping[str, str], name: str) -> FeatureBank | None:
    """Open the bank of that name if it is still in place."""
    place = places.get(name)
    if place is None or not (Path(place).exists() or Path(place).name in SHIPPED):
        return None
    return open_bank(place)
