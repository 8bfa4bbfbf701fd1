"""Progress is never due in these tests, however slow the machine is; those about progress set their own times."""

import pytest

from handful.cli import terminal


@pytest.fixture(autouse=True)
def _no_progress_is_due(monkeypatch):
    monkeypatch.setattr(terminal, "FIRST_LINE", 1e6)
