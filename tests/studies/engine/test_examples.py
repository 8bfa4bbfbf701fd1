"""The examples in the docstrings of the engine say what is so."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["model", "place", "positions", "presence", "unknown"])
def test_examples(name):
    found = doctest.testmod(importlib.import_module(f"engine.{name}"))
    assert found.attempted > 0
    assert found.failed == 0
