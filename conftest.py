"""Code of pages and docstrings that is run leaves nothing behind for what is tested after it."""

import importlib.util

import pytest


@pytest.fixture(autouse=True)
def _methods_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a method that a page registers for that page alone."""
    if importlib.util.find_spec("torch") is None:
        return
    import handful_fewshot as fewshot

    monkeypatch.setattr(fewshot.METHODS, "_values", dict(fewshot.METHODS))
