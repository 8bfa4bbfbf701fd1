"""A pretended device: the arithmetic is the CPU's, but an operation that mixes tensors of two devices is refused."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

ELSEWHERE = "cuda:7"
DEVICE = torch.device(ELSEWHERE)


class Elsewhere(Tensor):
    """A tensor that says that it is on the pretended device."""

    device = property(lambda _: DEVICE)  # type: ignore[assignment]
    __torch_function__ = torch._C._disabled_torch_function_impl


def is_elsewhere(tensor: Tensor) -> bool:
    """Whether a tensor is on the pretended device."""
    return isinstance(tensor, Elsewhere)


class MixedDevices(AssertionError):
    """Tensors of two devices met."""


class OtherDevice(TorchFunctionMode):
    """Within it, tensors can be made on, moved to and fetched from `ELSEWHERE`; zero-dimensional ones may mix."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given, tree = tree_flatten((args, kwargs or {}))
        tensors = [leaf for leaf in given if isinstance(leaf, Tensor)]
        named = [
            str(leaf) for leaf in given if isinstance(leaf, torch.device | str) and str(leaf) in ("cpu", ELSEWHERE)
        ]
        name = getattr(func, "__name__", "")
        there = any(map(is_elsewhere, tensors))
        if name == "cpu" or named:
            there = named == [ELSEWHERE]
        elif name == "to" and len(tensors) == 2:
            there = is_elsewhere(tensors[1])
        elif name in ("numpy", "__array__") and there:
            raise MixedDevices("NumPy cannot read a tensor of this device")
        elif len({is_elsewhere(x) for x in tensors if x.ndim}) > 1:
            raise MixedDevices(f"{name} got tensors of two devices")
        plain = [_plain(leaf) for leaf in given]
        args, kwargs = tree_unflatten(plain, tree)
        result = func(*args, **kwargs)
        return tree_map_only(Tensor, lambda x: x.as_subclass(Elsewhere) if there else x, result)


def _plain(value: Any) -> Any:
    """Return a tensor as it is to torch, and the real device for a named one."""
    if isinstance(value, Elsewhere):
        return value.as_subclass(Tensor)
    return "cpu" if isinstance(value, torch.device) or (isinstance(value, str) and value == ELSEWHERE) else value
