"""Workers of this machine: every result, shared arguments sent once, and workers or drivers that are killed."""

import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from handful.errors import ClusterError, OptionError
from handful.workers import Shared, here
from tests.work_at_hand import double, killed_by, pid_after, process_alive

BY_NAME = {
    "this process": lambda: here(),
    "processes": lambda: here(2),
}


@pytest.mark.parametrize("name", list(BY_NAME))
def test_every_task_has_its_result_and_is_taken_only_when_there_is_room(name):
    taken = []

    def tasks():
        for number in range(20, 40):
            taken.append(number)
            yield (number,)

    with closing(BY_NAME[name]()(double, tasks())) as results:
        first = next(results)
        assert len(taken) <= 2 + (name == "processes")
        assert sorted([first, *results]) == [2 * number for number in range(20, 40)]
    with pytest.raises(ValueError, match="not one of our sentences"):
        list(BY_NAME[name]()(double, [(14,)]))


def test_there_is_at_least_one_worker():
    with pytest.raises(OptionError, match="there must be at least 1 worker, got 0"):
        here(0)


def test_a_shared_argument_is_sent_once_and_packed():
    packed = []

    def pack(value):
        packed.append(value)
        return value + 1

    shared = Shared(20, pack)
    assert sorted(here(2)(max, [(shared, number) for number in range(19, 25)])) == [21, 21, 21, 22, 23, 24]
    assert packed == [20]
    assert list(here()(max, [(shared, 3)])) == [20]


def test_a_task_that_kills_its_worker_is_lost_and_no_other_is(tmp_path):
    tasks = [(number, 5, str(tmp_path / "always")) for number in range(12)]
    found = sorted(here(2)(killed_by, tasks, lambda task, error: -task[0]))
    assert found == sorted([*(number for number in range(12) if number != 5), -5])
    assert len((tmp_path / "always").read_text().splitlines()) == 3
    with pytest.raises(ClusterError, match="a worker died on every attempt at one task"):
        list(here(2)(killed_by, tasks))


def test_a_worker_that_is_killed_once_costs_nothing(tmp_path):
    place = tmp_path / "once"
    tasks = [(number, 5, str(place), 1) for number in range(12)]
    assert sorted(here(2)(killed_by, tasks)) == list(range(12))
    assert len(place.read_text().splitlines()) == 1


def test_workers_end_with_the_work_and_when_it_is_left():
    with closing(here(2)(pid_after, ((0.0,) for _ in range(100)))) as results:
        workers = {next(results) for _ in range(10)}
        assert os.getpid() not in workers
    deadline = time.monotonic() + 10
    while any(map(process_alive, workers)):
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.skipif(sys.platform == "win32", reason="a process is not told there that its parent has ended")
def test_workers_end_with_the_process_that_started_them(tmp_path):
    """The driver is killed, so it can end nothing: its workers see it within ten seconds."""
    program = (
        "from tests.work_at_hand import pid_after\n"
        "from handful.workers import here\n"
        "for pid in here(2)(pid_after, ((0.2,) for _ in range(1000))):\n"
        "    print(pid, flush=True)\n"
    )
    root = Path(__file__).resolve().parents[2]
    driver = subprocess.Popen([sys.executable, "-c", program], cwd=root, stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    workers = {int(driver.stdout.readline()) for _ in range(6)}
    driver.kill()
    driver.wait()
    driver.stdout.close()
    deadline = time.monotonic() + 10
    while any(map(process_alive, workers)):
        assert time.monotonic() < deadline, "a worker outlived its driver by ten seconds"
        time.sleep(0.1)


def test_an_interruption_ends_what_is_at_work():
    results = here(2)(pid_after, ((number * 60.0,) for number in range(3)))
    next(results)
    begun = time.monotonic()
    results.close()
    assert time.monotonic() - begun < 30
