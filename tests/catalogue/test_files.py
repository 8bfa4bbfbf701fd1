import json

import numpy as np
import pytest
import torch

from handful.catalogue import Catalogue, load_catalogue, save_catalogue
from handful.errors import FileFormatError
from handful.machine.safetensors_format import read_tensors, write_tensors


def catalogue() -> Catalogue:
    rng = np.random.default_rng(0)
    return Catalogue.of(torch.from_numpy(rng.standard_normal((12, 5))), np.array(["ant", "bee", "cat", "dog"] * 3))


def test_a_catalogue_comes_back_whole(tmp_path):
    made = catalogue()
    save_catalogue(made, tmp_path / "c.safetensors")
    again = load_catalogue(tmp_path / "c.safetensors")
    assert again.content_hash == made.content_hash
    assert again.examples.labels.tolist() == made.examples.labels.tolist()
    more = torch.ones(2, 5, dtype=torch.float64), np.array(["ant", "elk"])
    assert again.with_examples(*more).content_hash == made.with_examples(*more).content_hash


@pytest.mark.parametrize(
    "change",
    [
        {"format_version": 99},
        {"transform": "range_scale"},
        {"squared_scale": "x"},
        {"classes": 3},
        {"n_examples": None},
    ],
)
def test_what_does_not_hold_together_is_refused(tmp_path, change):
    save_catalogue(catalogue(), tmp_path / "c")
    tensors, metadata = read_tensors(tmp_path / "c")
    write_tensors(tmp_path / "c", tensors, {"handful": json.dumps(json.loads(metadata["handful"]) | change)})
    with pytest.raises(FileFormatError, match="is not a catalogue that this handful can read"):
        load_catalogue(tmp_path / "c")
