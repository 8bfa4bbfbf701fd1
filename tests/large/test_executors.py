import numpy as np
import pytest

from handful.large import solve
from handful.large.executors import in_process
from tests.kills_at_hand import differences
from tests.large_at_hand import large_problem


def test_answers_and_sums_are_the_same_on_any_number_of_threads(tmp_path):
    problem, done = large_problem(), []
    settings = {"shard_rows": 30, "on_progress": lambda progress: done.append(progress.done)}
    found = [
        solve(problem.catalogue, problem.queries, tmp_path / str(workers), executor=in_process(workers), **settings)
        for workers in (1, 3)
    ]
    assert done == [1, *range(1, 15)] * 2
    assert differences(*found) == []


class Failing:
    n_shards = 100

    def __init__(self):
        self.labelled = []

    def label(self, shard, decided):
        self.labelled.append(shard)
        if shard == 2:
            raise ValueError("shard 2")
        return shard


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_ends_the_pass(workers):
    work = Failing()
    with pytest.raises(ValueError, match="shard 2"):
        np.fromiter(in_process(workers)(work, None), int)
    assert len(work.labelled) < 100
