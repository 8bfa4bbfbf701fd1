import threading

import pytest

from handful.fewshot.benchmark import local
from handful.fewshot.benchmark.local import in_process
from handful.fewshot.benchmark.run import Job, Material
from tests.fewshot.benchmark.test_run import without_timings
from tests.plans_at_hand import small_banks, small_plan


@pytest.fixture
def jobs():
    banks = small_banks()
    return [Job(cell, Material.of(cell, banks), range(k, k + 4)) for cell in small_plan(banks) for k in range(0, 20, 4)]


def test_several_threads_give_the_rows_of_one(jobs):
    one = [row for rows in in_process()(jobs) for row in without_timings(rows)]
    two = [row for rows in in_process(2)(jobs) for row in without_timings(rows)]
    assert sorted(map(str, one)) == sorted(map(str, two))
    assert len(one) == 60


@pytest.mark.parametrize("workers", [1, 2])
def test_jobs_are_taken_only_when_there_is_room(jobs, workers):
    taken = []

    def watched():
        for job in jobs:
            taken.append(job)
            yield job

    results = in_process(workers)(watched())
    next(results)
    assert len(taken) <= workers
    results.close()


def test_an_interruption_does_not_wait_for_what_is_at_work(jobs, monkeypatch):
    leave, waited = threading.Event(), []

    def slow(*job):
        if job != tuple(jobs[0]):
            waited.append(leave.wait(60))
        return [{"task": 0}]

    monkeypatch.setattr(local, "run_range", slow)
    results = in_process(2)(jobs)
    next(results)
    results.close()
    assert not waited, "closing waited for a job"
    leave.set()
