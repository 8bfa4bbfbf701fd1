"""Packages that `make core` goes without: a test that touches one that is missing is skipped, with a sentence.

`pd = optional("pandas")` in place of `import pandas as pd`. `given` and `st` are those of hypothesis, or skip the test.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import pytest


class Missing:
    """In place of a module that is not installed."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith(("_", "pytest")):  # pytest looks for these in everything that a module has
            raise AttributeError(attribute)
        # Outside a test, where a file is read, this skips all its tests.
        pytest.skip(f"{self._name} is not installed", allow_module_level=True)


def optional(name: str, needs: str | None = None) -> Any:
    """Return a module, or what skips every test that uses it; `needs` is the package without which it is of no use."""
    package = needs or name
    if importlib.util.find_spec(package) is None:
        return Missing(package)
    return importlib.import_module(name)


class AnyStrategy:
    """In place of the strategies of hypothesis, which are made while a file is read."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


if importlib.util.find_spec("hypothesis") is None:

    def given(*args: Any, **kwargs: Any) -> Any:
        """Skip a test that draws its examples."""
        return pytest.mark.skip(reason="hypothesis is not installed")

    st: Any = AnyStrategy()
else:
    from hypothesis import given
    from hypothesis import strategies as st

__all__ = ["given", "optional", "st"]
