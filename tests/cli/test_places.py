import pytest

pytest.importorskip("typer")
from handful import workers
from handful.cli.options import is_here, number_here, workers_at
from handful.errors import OptionError


def test_the_place_is_here_a_new_cluster_or_one_with_an_address(monkeypatch):
    monkeypatch.setattr(workers, "here", lambda number: f"{number} here")
    monkeypatch.setattr(workers, "on_ray", lambda address: f"over {address}")
    assert workers_at("here") == "1 here"
    assert workers_at("here:2") == "2 here"
    assert workers_at("ray") == "over None"
    assert workers_at("ray:10.0.0.1:6379") == "over 10.0.0.1:6379"
    assert [number_here(on, 3) for on in ("here", "here:2")] == [3, 2]
    assert [is_here(on) for on in ("here", "here:2", "ray")] == [True, True, False]


@pytest.mark.parametrize("on", ["", "there", "ray:", "rayx", "here:", "here:0", "here:-1", "here:two", "processes:2"])
def test_other_places_are_refused(on):
    with pytest.raises(OptionError, match="--on must be here, here:NUMBER, ray or ray:ADDRESS"):
        workers_at(on)
