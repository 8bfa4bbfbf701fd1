import os
import sys
import time
from pathlib import Path

import pytest

from handful.errors import ClusterError, MissingExtraError, TaskError
from handful.large import solve
from handful.large.on_ray import on_ray
from tests.kills_at_hand import differences
from tests.large_at_hand import large_problem


@pytest.fixture(scope="module")
def ray():
    with pytest.MonkeyPatch.context() as patch:
        # Ray warns that a default of its own will change.
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        yield pytest.importorskip("ray")


@pytest.fixture
def banks(tmp_path):
    """A problem on disk: every process maps it."""
    problem = large_problem(n_classes=400, n_query=600, n_present=10, apart=1.2, even=True)
    return problem.catalogue, problem.queries.save(tmp_path / "queries")


def test_without_ray_the_extra_is_named(monkeypatch, tmp_path, banks):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"handful\[ray\]"):
        solve(*banks, tmp_path / "run", executor=on_ray())


def test_the_answer_is_that_of_a_run_in_process(ray, tmp_path, banks):
    here = solve(*banks, tmp_path / "here", shard_rows=100)
    there = solve(*banks, tmp_path / "there", shard_rows=100, executor=on_ray())
    assert not ray.is_initialized()
    assert differences(here, there) == []


@pytest.fixture(scope="class")
def one_node(ray):
    """A cluster of one node with two cores."""
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.mark.usefixtures("one_node")
class TestOnOneNode:
    def test_a_worker_that_dies_is_replaced(self, tmp_path):
        """As the system kills a process when memory runs out."""
        assert sorted(on_ray()(Mortal(tmp_path, 2), None)) == list(range(6))
        assert len(list(tmp_path.iterdir())) == 2

    def test_a_shard_that_is_lost_every_time_is_given_up(self, tmp_path, monkeypatch):
        monkeypatch.setattr("handful.machine.ray_cluster.RETRIES", 1)
        with pytest.raises(ClusterError, match=r"call again to continue the run. The last loss: .*died"):
            list(on_ray()(Mortal(tmp_path, 100), None))

    def test_an_error_of_a_node_is_the_sentence_it_was(self):
        with pytest.raises(TaskError, match=r"\Aa sentence for the user\Z"):
            list(on_ray()(Complaining(), None))


class Mortal:
    """Shard 3 kills its process that many times."""

    n_shards = 6

    def __init__(self, marks, times):
        self.marks, self.times = Path(marks), times

    def label(self, shard, decided):
        if shard == 3 and len(list(self.marks.iterdir())) < self.times:
            (self.marks / f"{time.monotonic_ns()}").touch()
            os._exit(1)
        return shard


class Complaining:
    n_shards = 2

    def label(self, shard, decided):
        raise TaskError("a sentence for the user")
