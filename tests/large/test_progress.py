import itertools
import time

import pytest

from handful.large.progress import Reporter


@pytest.fixture
def clock(monkeypatch):
    ticks = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))


def test_time_left_of_a_pass_is_what_its_shards_took(clock):
    reports = []
    reporter = Reporter(reports.append)  # at 0
    reporter.part("label", 1, 4, began=0.0)  # at 1
    assert reports[0].seconds_left == 3.0
    assert (reports[0].done, reports[0].total, reports[0].stage) == (1, 4, "label")


def test_nobody_needs_to_listen():
    Reporter(None).part("label", 1, 1, began=0.0)
