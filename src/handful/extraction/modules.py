"""Modules of PyTorch as what an encoder calls, and the hashes of their weights."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from handful.extraction.encoder import without_addresses
from handful.shapes import Float


@dataclass(frozen=True)
class ImageModule:
    """Stack prepared images, run the network."""

    module: nn.Module

    def __call__(self, images: Sequence[Any]) -> Float[np.ndarray, "item dim"]:
        """From prepared images to [item, dim]."""
        batch = torch.stack([torch.as_tensor(image) for image in images])
        with torch.inference_mode():
            return _array(self.module(batch.to(_device(self.module))))

    def __deepcopy__(self, memo: dict[int, Any]) -> ImageModule:
        return ImageModule(for_a_thread(self.module, memo))


@dataclass(frozen=True)
class SentenceModule:
    """Transform all sentences at once (they are padded to one length), run the network."""

    module: nn.Module
    transform: Callable[[list[str]], Any]

    def __call__(self, sentences: Sequence[str]) -> Float[np.ndarray, "item dim"]:
        """From sentences to [item, dim]."""
        batch = self.transform(list(sentences))
        device = _device(self.module)
        with torch.inference_mode():
            if isinstance(batch, Tensor):
                return _array(self.module(batch.to(device)))
            return _array(self.module(**{name: value.to(device) for name, value in batch.items()}))

    def __deepcopy__(self, memo: dict[int, Any]) -> SentenceModule:
        return SentenceModule(for_a_thread(self.module, memo), copy.deepcopy(self.transform, memo))


def for_a_thread(module: nn.Module, memo: dict[int, Any]) -> nn.Module:
    """Copy a module for another thread, and share its weights: they are only read.

    What a module keeps of a call is its own. Copies of all would take gigabytes for a large network and many cores.
    """
    shared = {id(tensor): tensor for tensor in (*module.parameters(), *module.buffers())}
    return copy.deepcopy(module, memo | shared)


def hashes_of(module: nn.Module) -> tuple[str, str]:
    """Return SHA-256 over structure, names, shapes and values of all weights, and over their numbers alone."""
    structure = hashlib.sha256(without_addresses(repr(module)).encode())
    numbers = []
    for name, value in sorted(module.state_dict().items()):
        if not isinstance(value, Tensor):  # a module may also keep plain values as extra state
            continue
        structure.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        structure.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
        if value.is_floating_point():
            single = value.detach().to("cpu", torch.float32).contiguous().numpy()
            numbers.append(hashlib.sha256(single.astype("<f4", copy=False).data).digest())
    return structure.hexdigest(), hashlib.sha256(b"".join(sorted(numbers))).hexdigest()


def _device(module: nn.Module) -> torch.device:
    return next((parameter.device for parameter in module.parameters()), torch.device("cpu"))


def _array(vectors: Tensor) -> np.ndarray:
    return vectors.float().cpu().numpy()
