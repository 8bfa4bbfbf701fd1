"""Checkpoint: a trained network as a folder, read without running any code from it.

    checkpoint.json                 network, view, classes, recipe, hash of the data, epoch, validation accuracy
    weights-<epoch>.safetensors     parameters and buffers, and the classifier of the base classes

The JSON file is replaced in one step and names the other, so a folder always holds a complete checkpoint. The checksum
of the weights covers the content of the JSON file too, so a change of either is refused.

Public few-shot checkpoints, of SimpleShot's and TIM's code, are pickles of `{"epoch", "arch", "state_dict",
"best_prec1", "optimizer"}`; names in the state dict begin with `module.`, and the classifier is called `fc` (ResNet-18)
or `linear` (WRN28-10). `torch.load(weights_only=True)` reads them, which runs no code from the file.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from handful.errors import FileFormatError, UnknownNameError
from handful.machine.outputs import written_whole
from handful.machine.safetensors_format import read_tensors, write_tensors
from handful.machine.untrusted import read_json, refuse_irregular
from handful_fewshot.errors import CheckpointError
from handful_fewshot.networks import NETWORKS, architecture
from handful_fewshot.networks.views import CentreView, Normalisation

MANIFEST = "checkpoint.json"
FORMAT = "handful checkpoint"
FORMAT_VERSION = 2
# Names of the classifier among the weights; no network has a part of that name.
CLASSIFIER = ("classifier.weight", "classifier.bias")

# What torch.nn.DataParallel puts before every name.
PARALLEL = "module."
CLASSIFIER_NAMES = ("fc", "linear")
# Networks of that code see 84 × 84 pixels, cut out of an image whose shorter side is 96.
VIEW = CentreView(side=84, shorter_side=96)
# A count that no forward pass uses; torch before 0.4.1 did not keep it.
COUNT = "num_batches_tracked"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A trained network and how it was trained."""

    network: str  # a key of `NETWORKS`
    weights: Mapping[str, Tensor]  # parameters and buffers, and those of the classifier, see `CLASSIFIER`
    view: CentreView  # how an image is prepared for the network
    classes: tuple[str, ...]  # of the base classes, in the classifier's order
    recipe: Mapping[str, Any]  # see `handful_fewshot.training.Recipe`; empty where it is not known
    data_hash: str  # of the base images, see `handful.extraction.items`; empty where it is not known
    epoch: int  # epochs the weights were trained for
    validation: Mapping[str, float]  # few-shot accuracies on validation classes, by name

    def module(self) -> nn.Module:
        """Make the network, [item, 3, height, width] -> [item, dim], without its classifier."""
        built = architecture(self.network).outline()
        weights = {name: value for name, value in self.weights.items() if name not in CLASSIFIER}
        try:
            built.load_state_dict({name: value.clone() for name, value in weights.items()}, assign=True)
        except RuntimeError as error:
            raise CheckpointError(f"the weights do not fit the network {self.network}: {error}") from error
        return built.eval()

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the checkpoint, replacing any that exists."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        file = f"weights-{self.epoch:04d}.safetensors"
        stated = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "network": self.network,
            "weights": file,
            "view": dataclasses.asdict(self.view),
            "data_hash": self.data_hash,
            "epoch": self.epoch,
            "validation": dict(self.validation),
            "recipe": dict(self.recipe),
            "classes": list(self.classes),
        }
        write_tensors(folder / file, self.weights, {"format": FORMAT}, _as_text(stated))
        with written_whole(folder / MANIFEST) as place:
            place.write_text(json.dumps(stated, indent=1, ensure_ascii=False), encoding="utf-8")
        for other in folder.glob("weights-*.safetensors"):
            if other.name != file:
                other.unlink()

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Checkpoint:
        """Read a folder that `save` wrote."""
        folder = Path(folder)
        stated = _read_manifest(folder)
        try:
            file = stated["weights"]
            view = stated["view"]
            if Path(file).name != file or "\0" in file:
                raise ValueError(f"{file!r} is not a file of this folder")
            weights, _ = read_tensors(folder / file, _as_text(stated))
            normalisation = Normalisation(*(tuple(view["normalisation"][name]) for name in ("mean", "std")))
            return cls(
                architecture(stated["network"]).name,
                {name: torch.from_numpy(array) for name, array in weights.items()},
                CentreView(int(view["side"]), int(view["shorter_side"]), normalisation),
                tuple(map(str, stated["classes"])),
                dict(stated["recipe"]),
                str(stated["data_hash"]),
                int(stated["epoch"]),
                {str(name): float(value) for name, value in stated["validation"].items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, OSError) as error:
            if isinstance(error, (FileFormatError, UnknownNameError)):
                raise CheckpointError(f"{folder}: {error}; copy it again, or update handful") from error
            raise CheckpointError(
                f"{folder / MANIFEST} is not a complete checkpoint ({type(error).__name__}: {error}); copy it again"
            ) from error


def _as_text(stated: Mapping[str, Any]) -> str:
    return json.dumps(stated, sort_keys=True)


def _read_manifest(folder: Path) -> dict[str, Any]:
    if not (folder / MANIFEST).exists():
        raise CheckpointError(
            f"{folder} has no {MANIFEST}; expected the folder of a run of `handful train` that finished an epoch"
        )
    stated = read_json(folder / MANIFEST, CheckpointError, f"a {FORMAT}")
    if not isinstance(stated, dict) or stated.get("format") != FORMAT:
        raise CheckpointError(f"{folder / MANIFEST} does not describe a {FORMAT}; check the path")
    if stated.get("format_version") != FORMAT_VERSION:
        raise CheckpointError(
            f"{folder} has format version {stated.get('format_version')!r}, this handful reads {FORMAT_VERSION}; "
            "train it again with this version, or update handful"
        )
    return stated


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
