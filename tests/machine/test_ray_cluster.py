import os
import sys

import pytest

from handful.errors import MissingExtraError, PlanError
from handful.machine import ray_cluster
from handful.machine.ray_cluster import TASKS_PER_CORE, as_completed, connected, remote


def double(number):
    if number == 13:
        raise PlanError("13 cannot be doubled; take another")
    if number == 15:
        os._exit(1)
    if number == 14:
        raise ValueError("not one of our sentences")
    return 2 * number


def test_results_come_back_and_errors_as_the_sentences_they_were(ray, monkeypatch):
    # A cluster of its own: another test may be running one beside this.
    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    taken = []

    def numbers(n):
        for number in range(n):
            taken.append(number)
            yield number

    try:
        with connected() as same:
            submit = remote(same, double)
            results = as_completed(same, map(submit, numbers(10)))
            first = next(results)
            # No more is submitted than the cores can soon use.
            assert len(taken) == TASKS_PER_CORE
            assert sorted([first, *results]) == [2 * number for number in range(10)]
            assert list(as_completed(same, [])) == []
            with pytest.raises(PlanError, match=r"\A13 cannot be doubled; take another\Z"):
                list(as_completed(same, [submit(13)]))
            with pytest.raises(ValueError, match="not one of our sentences"):
                list(as_completed(same, [submit(14)]))
            monkeypatch.setattr(ray_cluster, "RETRIES", 0)
            submit = remote(same, double)
            dies = submit(15)
            assert list(as_completed(same, [dies], lambda reference, _: [reference])) == [[dies]]
            with pytest.raises(ray.exceptions.WorkerCrashedError):
                list(as_completed(same, [submit(15)]))
        assert ray.is_initialized()  # it was there before, and is there after
    finally:
        ray.shutdown()


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"handful\[ray\]"), connected():
        pass
