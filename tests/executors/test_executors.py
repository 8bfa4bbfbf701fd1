"""Tasks on threads; over Ray they are tested in tests/end_to_end/test_on_ray.py."""

import threading
from contextlib import closing

import pytest

from handful.errors import OptionError
from handful.executors.executor import Shared, in_process
from tests.work_at_hand import double


@pytest.mark.parametrize("workers", [1, 2])
def test_every_task_has_its_result_and_is_taken_only_when_there_is_room(workers):
    taken = []

    def tasks():
        for number in range(20, 40):
            taken.append(number)
            yield (number,)

    with closing(in_process(workers)(double, tasks())) as results:
        first = next(results)
        assert len(taken) <= workers
        assert sorted([first, *results]) == [2 * number for number in range(20, 40)]
    with pytest.raises(ValueError, match="not one of our sentences"):
        list(in_process(workers)(double, [(14,)]))
    with pytest.raises(OptionError, match="workers must be at least 1, got 0"):
        in_process(0)


def test_threads_share_an_argument_or_have_a_copy_each():
    both = threading.Barrier(2, timeout=60)

    def seen(common, own):
        both.wait()
        return id(common), id(own), own

    common, own = Shared([1]), Shared([2], own=True)
    found = list(in_process(2)(seen, [(common, own)] * 4))
    assert {one[0] for one in found} == {id(common.value)}
    assert len({one[1] for one in found} - {id(own.value)}) == 2
    assert [one[2] for one in found] == [[2]] * 4


@pytest.mark.parametrize("join", [True, False])
def test_an_interruption_waits_for_what_is_at_work_if_asked(join):
    begun, leave, ended = threading.Event(), threading.Event(), []

    def slow(number):
        if number:
            begun.set()
            leave.wait(60)
            ended.append(number)
        else:
            begun.wait(60)

    results = in_process(2, join=join)(slow, ((number,) for number in range(4)))
    next(results)
    if join:
        threading.Timer(0.1, leave.set).start()
    results.close()
    assert bool(ended) == join
    leave.set()
