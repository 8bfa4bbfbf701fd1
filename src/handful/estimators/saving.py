"""A classifier as one file: its catalogue as tensors in the safetensors format, everything else as JSON in its header.

Nothing is pickled and nothing in the file is executed: an untrusted file can be wrong, but can do no harm. One that was
damaged does not fit its checksum and is refused.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from handful.catalogue import Catalogue
from handful.catalogue.files import catalogue_of, parts_of
from handful.errors import FileFormatError
from handful.machine.safetensors_format import read_tensors, write_tensors
from handful.machine.untrusted import parse_json

FORMAT, FORMAT_VERSION = "handful classifier", 6


@dataclass(frozen=True)
class SavedClassifier:
    """Content of a file: names of the features if any, and what was fitted."""

    feature_names: list[str] | None
    catalogue: Catalogue


def save(path: str | os.PathLike[str], saved: SavedClassifier) -> None:
    """Write the file, complete or not at all; an older one of that name is replaced."""
    tensors, about = parts_of(saved.catalogue)
    about |= {"format": FORMAT, "format_version": FORMAT_VERSION, "feature_names": saved.feature_names}
    write_tensors(os.fspath(path), tensors, {"handful": json.dumps(about)})


def load(path: str | os.PathLike[str]) -> SavedClassifier:
    """Read a file that `save` wrote, refusing inconsistent content."""
    tensors, metadata = read_tensors(os.fspath(path))
    try:
        about = parse_json(metadata["handful"])
        if (about["format"], about["format_version"]) != (FORMAT, FORMAT_VERSION):
            raise ValueError(f"it says {about['format']!r}, version {about['format_version']!r}")
        catalogue = catalogue_of(tensors, about)
        names = about["feature_names"]
        if names is not None and (len(names) != catalogue.dim or not all(isinstance(name, str) for name in names)):
            raise ValueError(f"it has no name for each of the {catalogue.dim} features")
        return SavedClassifier(names, catalogue)
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError) as error:
        raise FileFormatError(
            f"{path} is not a classifier that this handful can read ({error}); fit and save it again with this version"
        ) from error
