"""Tasks on processes: the results of threads, shared arguments sent once, and a process that ends too early."""

import os
import signal
from contextlib import closing

import numpy as np
import pytest

from handful.errors import ClusterError, OptionError
from handful.executors import in_process, in_processes
from handful.executors.executor import Shared
from tests.work_at_hand import double


def plus(shared, number):
    """Add to a shared argument, and say which process did it."""
    return shared + number, os.getpid()


def end(number):
    """End the process of one of the tasks."""
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_every_task_has_its_result_and_errors_come_back():
    shared = Shared(np.arange(3.0))
    with closing(in_processes(2)(plus, ((shared, number) for number in range(6)))) as results:
        found = list(results)
    assert sorted(values.tolist() for values, _ in found) == [[k, k + 1, k + 2] for k in range(6)]
    assert os.getpid() not in {process for _, process in found}
    assert sorted(in_processes(1)(double, [(1,), (2,)])) == sorted(in_process(1)(double, [(1,), (2,)]))
    with pytest.raises(ValueError, match="not one of our sentences"):
        list(in_processes(1)(double, [(14,)]))
    with pytest.raises(OptionError, match="workers must be at least 1, got 0"):
        in_processes(0)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no process can be killed here")
def test_a_process_that_is_killed_is_a_sentence_or_a_lost_task():
    with pytest.raises(ClusterError, match="call again to continue the run"):
        list(in_processes(1)(end, [(1,), (2,), (3,)]))
    found = list(in_processes(1)(end, [(1,), (2,), (3,)], lambda task, error: f"lost {task[0]}"))
    assert found == [1, "lost 2", 3]
