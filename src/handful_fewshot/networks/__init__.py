"""Networks from images to vectors: two from the few-shot literature, a small one, and their checkpoints."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import nn

from handful.arguments import did_you_mean
from handful.errors import UnknownNameError
from handful_fewshot.networks.convolutional import Conv4, ResNet18, WideResNet28x10

__all__ = ["NETWORKS", "Architecture", "architecture"]


@dataclass(frozen=True)
class Architecture:
    """A network by name."""

    name: str
    module: Callable[[], nn.Module]  # makes one, with random weights
    dim: int  # length of a vector
    side: int  # height and width of the images it was made for
    batch_size: int  # images per step, in the paper's training

    def build(self, seed: int = 0) -> nn.Module:
        """Make the network; its initial weights depend on the seed alone; the global random state is kept."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self.module()

    def outline(self) -> nn.Module:
        """Make the network without values, only names and shapes, at no cost; weights are loaded later."""
        with torch.device("meta"):
            return self.module()


NETWORKS: Mapping[str, Architecture] = MappingProxyType(
    {
        known.name: known
        for known in (
            Architecture("resnet18", ResNet18, dim=512, side=84, batch_size=256),
            Architecture("wrn28-10", WideResNet28x10, dim=640, side=84, batch_size=128),
            Architecture("conv4", Conv4, dim=256, side=28, batch_size=128),
        )
    }
)


def architecture(name: str) -> Architecture:
    """Find a network by name."""
    if name not in NETWORKS:
        alike = did_you_mean(name, NETWORKS)
        raise UnknownNameError(f"no network is called {name!r}{alike}; choose from {', '.join(NETWORKS)}")
    return NETWORKS[name]
