import pytest

pytest.importorskip("typer")
from handful.cli.options import executor_at, is_here
from handful.errors import OptionError
from handful.executors import executor, processes


def test_the_place_is_here_a_new_cluster_or_one_with_an_address(monkeypatch):
    monkeypatch.setattr(executor, "in_process", lambda workers, join: f"in process, {workers} threads")
    monkeypatch.setattr(processes, "in_processes", lambda workers, join: f"{workers} processes")
    assert executor_at("processes:2") == "2 processes"
    monkeypatch.setattr(executor, "on_ray", lambda address: f"over {address}")
    assert executor_at("here") == "in process, 1 threads"
    assert executor_at("here", threads=3) == "in process, 3 threads"
    assert executor_at("here:2", threads=3) == "in process, 2 threads"
    assert executor_at("ray") == "over None"
    assert executor_at("ray:10.0.0.1:6379") == "over 10.0.0.1:6379"
    assert [is_here(on) for on in ("here", "here:2", "ray")] == [True, True, False]


@pytest.mark.parametrize(
    "on", ["", "there", "ray:", "rayx", "here:", "here:0", "here:-1", "here:two", "processes", "processes:0"]
)
def test_other_places_are_refused(on):
    with pytest.raises(OptionError, match="--on must be here, here:THREADS, processes:NUMBER, ray or ray:ADDRESS"):
        executor_at(on)
