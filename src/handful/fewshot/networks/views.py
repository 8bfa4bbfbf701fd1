"""Views: a Pillow image as the tensor a network sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from handful.shapes import Float

# Means and deviations of the channels over ImageNet, with which the public checkpoints were trained.
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Normalisation:
    """`x ← (x - mean) / std` of each channel, where x is pixels / 255."""

    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD

    def __call__(self, pixels: Float[Tensor, "*item 3 height width"]) -> Float[Tensor, "*item 3 height width"]:
        """Normalise pixels in 0 … 1."""
        return (pixels - torch.tensor(self.mean)[:, None, None]) / torch.tensor(self.std)[:, None, None]


@dataclass(frozen=True)
class CentreView:
    """Resize the shorter side (bilinear), crop a square from the centre, normalise."""

    side: int  # of the square
    shorter_side: int  # before the crop; 96 for 84 in the public checkpoints
    normalisation: Normalisation = Normalisation()

    def __call__(self, image: Any) -> Float[Tensor, "3 height width"]:
        """One RGB image to a tensor."""
        factor = self.shorter_side / min(image.size)
        width, height = (max(self.side, round(length * factor)) for length in image.size)
        left, top = (width - self.side) // 2, (height - self.side) // 2
        resized = image.resize((width, height), resample=BILINEAR)
        return self.normalisation(as_pixels(resized.crop((left, top, left + self.side, top + self.side))))

    def describe(self) -> str:
        """Describe in words how an image is prepared."""
        mean, std = (", ".join(f"{value:g}" for value in values) for values in vars(self.normalisation).values())
        return (
            f"shorter side to {self.shorter_side} (bilinear), centre crop {self.side}, (x / 255 - ({mean})) / ({std})"
        )


# The value of `PIL.Image.Resampling.BILINEAR`, so that Pillow is not imported for a constant.
BILINEAR = 2


def as_pixels(image: Any) -> Float[Tensor, "3 height width"]:
    """Pixels of an RGB image of Pillow, divided by 255."""
    return torch.from_numpy(np.array(image, dtype=np.uint8)).permute(2, 0, 1).float() / 255
