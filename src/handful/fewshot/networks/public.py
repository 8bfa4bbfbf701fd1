"""Public few-shot checkpoints: files of SimpleShot's and TIM's code, read as tensors and nothing else.

Such a file is a pickle of `{"epoch", "arch", "state_dict", "best_prec1", "optimizer"}`; names in the state dict begin
with `module.`, and the classifier is called `fc` (ResNet-18) or `linear` (WRN28-10). `torch.load(weights_only=True)`
reads it, which runs no code from the file.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from handful.errors import CheckpointError
from handful.fewshot.networks import NETWORKS
from handful.fewshot.networks.checkpoint import CLASSIFIER, Checkpoint
from handful.fewshot.networks.views import CentreView
from handful.machine.untrusted import refuse_irregular

# What torch.nn.DataParallel puts before every name.
PARALLEL = "module."
CLASSIFIER_NAMES = ("fc", "linear")
# Networks of that code see 84 × 84 pixels, cut out of an image whose shorter side is 96.
VIEW = CentreView(side=84, shorter_side=96)
# A count that no forward pass uses; torch before 0.4.1 did not keep it.
COUNT = "num_batches_tracked"


def read_public(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a `.pth.tar` file of ResNet-18 or WRN28-10; the parameter names tell which."""
    path = Path(path)
    state = _state_dict(path)
    plain = {name.removeprefix(PARALLEL): value for name, value in state.items()}
    weights = {name: value for name, value in plain.items() if name.partition(".")[0] not in CLASSIFIER_NAMES}
    network = _network_of(weights, path)
    counts = [name for name in NETWORKS[network].outline().state_dict() if name.endswith(COUNT)]
    weights = {**dict.fromkeys(counts, torch.tensor(0)), **weights}
    heads = [name for name in CLASSIFIER_NAMES if f"{name}.weight" in plain]
    for name in heads:
        weights |= dict(zip(CLASSIFIER, (plain[f"{name}.weight"], plain[f"{name}.bias"]), strict=True))
    n_classes = len(weights[CLASSIFIER[0]]) if heads else 0
    return Checkpoint(network, weights, VIEW, tuple(map(str, range(n_classes))), {}, "", 0, {})


def _state_dict(path: Path) -> Mapping[str, Tensor]:
    refuse_irregular(path, CheckpointError)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} does not exist; check the path") from error
    except pickle.UnpicklingError as error:
        raise CheckpointError(
            f"{path} contains more than tensors, and only tensors are read from a pickle; if you trust it, load it "
            "with the code it came from and save its state dict again with torch.save"
        ) from error
    except (RuntimeError, EOFError, OSError, ValueError, TypeError, AttributeError, LookupError) as error:
        raise CheckpointError(f"{path} cannot be read as a file of torch ({error}); download it again") from error
    state = content.get("state_dict", content) if isinstance(content, dict) else content
    if not isinstance(state, dict) or not state or not all(isinstance(value, Tensor) for value in state.values()):
        raise CheckpointError(f"{path} contains no state dict; expected names and tensors, or these under 'state_dict'")
    return state


def _network_of(weights: Mapping[str, Tensor], path: Path) -> str:
    """Find the network that has the same names with the same shapes."""
    given = _shapes(weights)
    wanted = {name: _shapes(known.outline().state_dict()) for name, known in NETWORKS.items()}
    for name, shapes in wanted.items():
        if given == shapes:
            return name
    closest = max(wanted, key=lambda name: len(given.items() & wanted[name].items()))
    differing = sorted(name for name, _ in given.items() ^ wanted[closest].items())
    raise CheckpointError(
        f"{path} fits no known network ({', '.join(NETWORKS)}); the closest is {closest}, but {differing[0]!r} is "
        f"{given.get(differing[0], 'missing')} where {wanted[closest].get(differing[0], 'nothing')} is expected"
    )


def _shapes(weights: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in weights.items() if not name.endswith(COUNT)}
