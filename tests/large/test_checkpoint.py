import pytest
import torch

from handful.errors import OptionError
from handful.large.checkpoint import claim, load_state, save_state


def test_a_state_comes_back_as_it_was(tmp_path):
    assert load_state(tmp_path) is None
    counts = torch.arange(3, dtype=torch.float64)
    save_state(tmp_path, {"counts": counts}, {"phase": "first", "factor": 0.1 + 0.2})
    save_state(tmp_path, {"counts": counts + 1}, {"phase": "second", "factor": 0.1 + 0.2})
    tensors, notes = load_state(tmp_path)
    assert torch.equal(tensors["counts"], counts + 1)
    assert notes == {"phase": "second", "factor": 0.1 + 0.2}
    assert [file.name for file in tmp_path.iterdir()] == ["state.safetensors"]


def test_a_folder_is_resumed_with_what_it_was_begun_with(tmp_path):
    about = {"method": "paddle", "options": {"tol": 1e-6}}
    claim(tmp_path / "run", about)
    claim(tmp_path / "run", about)
    with pytest.raises(OptionError, match="differs in options"):
        claim(tmp_path / "run", {**about, "options": {"tol": 1e-5}})
