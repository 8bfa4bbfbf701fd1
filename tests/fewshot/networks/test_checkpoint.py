import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from handful.errors import CheckpointError
from handful.fewshot.networks import NETWORKS
from handful.fewshot.networks.checkpoint import MANIFEST, Checkpoint, _as_text
from handful.fewshot.networks.views import CentreView, Normalisation
from handful.machine.safetensors_format import write_tensors


def checkpoint(seed: int = 0, epoch: int = 3) -> Checkpoint:
    weights = NETWORKS["conv4"].build(seed).state_dict()
    classifier = {"classifier.weight": torch.ones(2, 256), "classifier.bias": torch.zeros(2)}
    view = CentreView(28, 32, Normalisation((1.0, 1.0, 1.0), (0.5, 0.5, 0.5)))
    return Checkpoint(
        "conv4", {**weights, **classifier}, view, ("ä", "b"), {"epochs": 3}, "abc", epoch, {"realistic": 0.5}
    )


def test_what_is_saved_is_loaded(tmp_path):
    saved = checkpoint()
    saved.save(tmp_path / "run")
    loaded = Checkpoint.load(tmp_path / "run")
    assert {**vars(loaded), "weights": None} == {**vars(saved), "weights": None}
    assert loaded.weights.keys() == saved.weights.keys()
    assert all(torch.equal(loaded.weights[name], saved.weights[name]) for name in saved.weights)
    images = torch.randn(2, 3, 28, 28)
    assert torch.equal(loaded.module()(images), NETWORKS["conv4"].build(0).eval()(images))


def test_killed_between_weights_and_manifest_the_earlier_one_is_whole(tmp_path, monkeypatch):
    checkpoint(seed=0, epoch=1).save(tmp_path)

    def killed(path):
        raise KeyboardInterrupt

    monkeypatch.setattr("handful.fewshot.networks.checkpoint.written_whole", killed)
    with pytest.raises(KeyboardInterrupt):
        checkpoint(seed=1, epoch=2).save(tmp_path)
    loaded = Checkpoint.load(tmp_path)
    assert loaded.epoch == 1
    assert torch.equal(loaded.weights["layers.0.weight"], checkpoint(seed=0).weights["layers.0.weight"])


def test_weights_of_another_network_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match="do not fit the network resnet18"):
        replace(checkpoint(), network="resnet18").module()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "something else"}, "does not describe a handful checkpoint"),
        ({"format_version": 99}, "update handful"),
        ({"network": "vgg"}, "no network is called 'vgg'"),
        ({"weights": "../weights.safetensors"}, "not a file of this folder"),
        ({"weights": "gone.safetensors"}, "copy it again"),
        ({"weights": "null\0character"}, "not a file of this folder"),
        ({"epoch": float("inf")}, "not a complete checkpoint"),
        ({"view": None}, "not a complete checkpoint"),
        ({"validation": None}, "not a complete checkpoint"),
    ],
)
def test_a_manifest_that_is_not_right_says_so(tmp_path, change, message):
    checkpoint().save(tmp_path)
    stated = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps({**stated, **change}))
    write_tensors(tmp_path / stated["weights"], checkpoint().weights, None, _as_text({**stated, **change}))
    with pytest.raises(CheckpointError, match=message):
        Checkpoint.load(tmp_path)


def test_no_flipped_bit_and_no_exchange_goes_unnoticed(tmp_path):
    checkpoint(seed=0).save(tmp_path / "one")
    replace(checkpoint(seed=1), validation={"realistic": 0.6}).save(tmp_path / "two")
    file, rng = tmp_path / "one" / MANIFEST, np.random.default_rng(0)
    content = file.read_bytes()
    for place in rng.integers(0, len(content), 50).tolist():
        file.write_bytes(content[:place] + bytes([content[place] ^ 1 << rng.integers(8)]) + content[place + 1 :])
        try:
            found = Checkpoint.load(tmp_path / "one")
        except CheckpointError:
            continue
        assert {**vars(found), "weights": None} == {**vars(checkpoint()), "weights": None}
    file.write_bytes(content)
    Checkpoint.load(tmp_path / "one")
    (weights,) = (tmp_path / "two").glob("*.safetensors")
    weights.rename(tmp_path / "one" / weights.name)
    with pytest.raises(CheckpointError, match="does not fit its checksum"):
        Checkpoint.load(tmp_path / "one")


def test_damaged_and_missing_files_say_what_to_do(tmp_path):
    with pytest.raises(CheckpointError, match="expected the folder of a run"):
        Checkpoint.load(tmp_path)
    checkpoint().save(tmp_path)
    (tmp_path / "weights-0003.safetensors").write_bytes(b"no")
    with pytest.raises(CheckpointError, match="copy it again"):
        Checkpoint.load(tmp_path)
    for text in ("{", "[" * 100_000):
        (tmp_path / MANIFEST).write_text(text)
        with pytest.raises(CheckpointError, match="is not JSON"):
            Checkpoint.load(tmp_path)
