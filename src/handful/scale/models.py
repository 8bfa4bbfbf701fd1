"""A model where it is: named by its address, opened once in every process, known by its hash."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from handful.errors import OptionError, TaskError
from handful.estimators import BatchClassifier
from handful.fitted import FittedModel, load_model
from handful.machine.folders import fetched
from handful.machine.outputs import is_remote, local_path

# Models that a process keeps open: the one in use, and the one before it was replaced. [models; work]
KEPT_OPEN = 2

Model: TypeAlias = str | os.PathLike[str] | FittedModel | BatchClassifier


@dataclass(frozen=True, eq=False)
class ModelAt:
    """A model by its address, or the model itself, and the hash of its content.

    A pickle of an address is small, whatever the model. Whoever opens it elsewhere gets the model with this hash, or an
    error.
    """

    address: str | FittedModel
    content: str

    @classmethod
    def of(cls, model: Model) -> ModelAt:
        """Open a model, and keep what tells it apart."""
        if isinstance(model, BatchClassifier):
            model = model.model_
        if isinstance(model, FittedModel):
            return cls(model, model.content_hash)
        if not isinstance(model, (str, os.PathLike)):
            raise OptionError(
                f"model must be the path or URL of a file that BatchClassifier.save wrote, or the fitted model itself, "
                f"got {type(model).__name__}"
            )
        address = str(model) if is_remote(model) else os.path.abspath(local_path(model))
        return cls(address, opened(address).content_hash)

    @property
    def fitted(self) -> FittedModel:
        """The model, opened if it is not."""
        if isinstance(self.address, FittedModel):
            return self.address
        fitted = opened(self.address)
        if fitted.content_hash != self.content:
            raise TaskError(
                f"the model at {self.address} was replaced since this work began, so its labels would not go together; "
                "begin again with the new model, or put the old one back"
            )
        return fitted


def opened(address: str) -> FittedModel:
    """Open a model once in this process; a file on a disk again when it was replaced, and one at a URL never again."""
    if is_remote(address):
        return _opened(address, None)
    try:
        about = os.stat(address)
    except OSError as error:
        raise TaskError(
            f"there is no model at {address} ({error.strerror}); save one with BatchClassifier.save"
        ) from error
    return _opened(address, (about.st_mtime_ns, about.st_size, about.st_ino))


@lru_cache(maxsize=KEPT_OPEN)
def _opened(address: str, version: Any) -> FittedModel:
    del version
    if not is_remote(address):
        return load_model(address)
    with tempfile.TemporaryDirectory(prefix="handful-") as scratch:
        return load_model(fetched(address, Path(scratch)))
