"""What tests of training ask for."""

from importlib import import_module
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def on_lightning() -> ModuleType:
    """The part that knows Lightning, imported when a test needs it: Lightning takes as long as all other imports."""
    return import_module("handful_fewshot.training.on_lightning")
