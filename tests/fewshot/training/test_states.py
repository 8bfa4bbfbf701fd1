import pytest
import torch

from handful.errors import CheckpointError
from handful.fewshot.training.states import read_state, write_state


def test_a_state_comes_back_as_it_was(tmp_path):
    state = {
        "epoch": 3,
        "rate": 0.1,
        "name": "ä",
        "nothing": None,
        "yes": True,
        "weights": {"a.b": torch.arange(6.0).reshape(2, 3), "count": torch.tensor(7)},
        "optimizer": [{"state": {0: {"momentum": torch.ones(2, dtype=torch.float64)}, 1: {}}, "params": [0, 1]}],
        "pair": (1, [2.5, "x"]),
    }
    write_state(tmp_path / "state", state)
    found = read_state(tmp_path / "state")
    assert torch.equal(found["weights"]["a.b"], state["weights"]["a.b"])
    assert found["weights"]["count"] == 7
    assert found["optimizer"][0]["state"][0]["momentum"].dtype == torch.float64
    assert list(found["optimizer"][0]["state"]) == [0, 1]
    for name in ("epoch", "rate", "name", "nothing", "yes", "pair"):
        assert found[name] == state[name]
        assert type(found[name]) is type(state[name])


def test_what_only_pickle_could_keep_is_refused_by_its_place(tmp_path):
    with pytest.raises(CheckpointError, match=r"state\['a'\]\[1\] is a set"):
        write_state(tmp_path / "state", {"a": [1, {2}]})
    with pytest.raises(CheckpointError, match="key of type float"):
        write_state(tmp_path / "state", {"a": {0.5: 1}})
    assert not (tmp_path / "state").exists()


def test_another_file_is_refused(tmp_path):
    (tmp_path / "state").write_bytes(b"not one")
    with pytest.raises(CheckpointError, match="remove it to start the training again"):
        read_state(tmp_path / "state")
