import pytest

pytest.importorskip("typer")
from handful.cli.options import executor_at
from handful.errors import OptionError
from handful.runs import executors


def chosen(on, only_here=None):
    return executor_at(on, 3, only_here or {})


def test_the_place_is_here_a_new_cluster_or_one_with_an_address(monkeypatch):
    monkeypatch.setattr(executors, "in_process", lambda workers, join: f"in process, {workers} threads")
    monkeypatch.setattr(executors, "on_ray", lambda address: f"over {address}")
    assert chosen("here", {"--workers": True}) == "in process, 3 threads"
    assert chosen("ray", {"--workers": False}) == "over None"
    assert chosen("ray:10.0.0.1:6379") == "over 10.0.0.1:6379"


@pytest.mark.parametrize("on", ["", "there", "ray:", "rayx", "here:8"])
def test_other_places_are_refused(on):
    with pytest.raises(OptionError, match="--on must be here, ray or ray:ADDRESS"):
        chosen(on)


def test_options_that_mean_nothing_over_ray_are_named():
    with pytest.raises(OptionError, match=r"--device is for running here; .* leave it out"):
        chosen("ray", {"--workers": False, "--device": True})
