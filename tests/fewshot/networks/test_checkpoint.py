"""Checkpoints: folders that `save` wrote, and files as the public code writes them."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from handful.machine.safetensors_format import write_tensors
from handful_fewshot.errors import CheckpointError
from handful_fewshot.networks import NETWORKS
from handful_fewshot.networks.checkpoint import MANIFEST, Checkpoint, _as_text, read_public
from handful_fewshot.networks.views import CentreView, Normalisation


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

    monkeypatch.setattr("handful_fewshot.networks.checkpoint.written_whole", killed)
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


def batch_norm(name: str, channels: int) -> dict[str, tuple[int, ...]]:
    shapes = {f"{name}.{part}": (channels,) for part in ("weight", "bias", "running_mean", "running_var")}
    return {**shapes, f"{name}.num_batches_tracked": ()}


def resnet18_shapes() -> dict[str, tuple[int, ...]]:
    """Names and shapes in `checkpoints/mini/softmax/resnet18/model_best.pth.tar`, written out from TIM's code."""
    shapes: dict[str, tuple[int, ...]] = {"conv1.weight": (64, 3, 3, 3), **batch_norm("bn1", 64)}
    before = 64
    for layer, width in enumerate((64, 128, 256, 512), 1):
        for block in range(2):
            name, first = f"layer{layer}.{block}", block == 0
            shapes[f"{name}.conv1.weight"] = (width, before if first else width, 3, 3)
            shapes |= batch_norm(f"{name}.bn1", width)
            shapes[f"{name}.conv2.weight"] = (width, width, 3, 3)
            shapes |= batch_norm(f"{name}.bn2", width)
            if first and layer > 1:
                shapes[f"{name}.downsample.0.weight"] = (width, before, 1, 1)
                shapes |= batch_norm(f"{name}.downsample.1", width)
        before = width
    return {**shapes, "fc.weight": (64, 512), "fc.bias": (64,)}


def wrn28_10_shapes() -> dict[str, tuple[int, ...]]:
    """The same for `wideres`: every convolution has a bias, and the classifier is called `linear`."""

    def convolution(name, channels_in, channels, size):
        return {f"{name}.weight": (channels, channels_in, size, size), f"{name}.bias": (channels,)}

    shapes: dict[str, tuple[int, ...]] = convolution("conv1", 3, 16, 3)
    before = 16
    for layer, width in enumerate((160, 320, 640), 1):
        for block in range(4):
            name, channels_in = f"layer{layer}.{block}", before if block == 0 else width
            shapes |= batch_norm(f"{name}.bn1", channels_in) | convolution(f"{name}.conv1", channels_in, width, 3)
            shapes |= batch_norm(f"{name}.bn2", width) | convolution(f"{name}.conv2", width, width, 3)
            if block == 0:
                shapes |= convolution(f"{name}.shortcut.0", before, width, 1)
        before = width
    return {**shapes, **batch_norm("bn1", 640), "linear.weight": (64, 640), "linear.bias": (64,)}


def state_dict(shapes: dict[str, tuple[int, ...]]) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    state = {}
    for name, shape in shapes.items():
        if name.endswith("num_batches_tracked"):
            state[name] = torch.tensor(7)
        elif name.endswith("running_var"):
            state[name] = torch.rand(shape, generator=generator) + 0.5
        else:
            state[name] = torch.randn(shape, generator=generator) * 0.05
    return state


def saved_as_tim_does(path, shapes, arch):
    state = {f"module.{name}": value for name, value in state_dict(shapes).items()}
    optimizer = {"state": {0: {"momentum_buffer": torch.zeros(3)}}, "param_groups": [{"lr": 0.1, "params": [0]}]}
    whole = {"epoch": 90, "arch": arch, "state_dict": state, "best_prec1": 0.61, "optimizer": optimizer}
    torch.save(whole, path)
    return path


@pytest.mark.parametrize(
    ("network", "shapes", "head"),
    [("resnet18", resnet18_shapes(), "fc"), ("wrn28-10", wrn28_10_shapes(), "linear")],
    ids=["resnet18", "wrn28-10"],
)
def test_files_with_the_public_names_load(tmp_path, network, shapes, head):
    found = read_public(saved_as_tim_does(tmp_path / "model_best.pth.tar", shapes, network))
    assert found.network == network
    assert (found.view.side, found.view.shorter_side) == (84, 96)
    assert len(found.classes) == 64
    state = state_dict(shapes)
    assert torch.equal(found.weights["classifier.weight"], state[f"{head}.weight"])
    module = found.module()
    loaded = module.state_dict()
    assert loaded.keys() == {name for name in state if not name.startswith(head)}
    assert all(torch.equal(loaded[name], state[name]) for name in loaded)
    features = module(torch.randn(1, 3, 16, 16))
    assert features.shape == (1, NETWORKS[network].dim)


def test_bare_state_dicts_load_too_without_counts_and_without_classifier(tmp_path):
    state = {
        name: value
        for name, value in state_dict(resnet18_shapes()).items()
        if not name.endswith("num_batches_tracked") and not name.startswith("fc")
    }
    torch.save(state, tmp_path / "bare.pt")
    found = read_public(tmp_path / "bare.pt")
    assert found.classes == ()
    assert found.module()(torch.zeros(1, 3, 8, 8)).shape == (1, 512)


def test_another_network_is_named_with_what_does_not_fit(tmp_path):
    shapes = {**resnet18_shapes(), "conv1.weight": (64, 3, 7, 7)}
    with pytest.raises(CheckpointError, match=r"closest is resnet18, but 'conv1.weight' is \(64, 3, 7, 7\)"):
        read_public(saved_as_tim_does(tmp_path / "x.pth.tar", shapes, "resnet18"))


def test_code_in_a_file_is_not_run(tmp_path):
    ran = tmp_path / "ran"

    class Hostile:
        def __reduce__(self):
            return ran.write_text, ("yes",)

    torch.save({"state_dict": {"conv1.weight": torch.zeros(1)}, "best_prec1": Hostile()}, tmp_path / "x.pth.tar")
    with pytest.raises(CheckpointError, match="only tensors are read from a pickle"):
        read_public(tmp_path / "x.pth.tar")
    assert not ran.exists()


@pytest.mark.parametrize("content", [{"epoch": 3}, {}, [torch.zeros(1)], {"state_dict": {"a": 1}}])
def test_files_without_weights_say_so(tmp_path, content):
    torch.save(content, tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match="contains no state dict"):
        read_public(tmp_path / "x.pt")


def test_missing_and_broken_files_say_so(tmp_path):
    with pytest.raises(CheckpointError, match="does not exist"):
        read_public(tmp_path / "gone.pt")
    (tmp_path / "text.pt").write_text("not torch's")
    with pytest.raises(CheckpointError):
        read_public(tmp_path / "text.pt")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(CheckpointError):
        read_public(tmp_path / "other.npz")
