"""Views: a Pillow image as the tensor a network sees, its centre or a random part of it.

A random view is a function of (image, random numbers). In this order, as for the public checkpoints: a part of random
area and shape is resized to a square; brightness, contrast and colour are each multiplied by a random factor; and half
of the images are mirrored.
"""

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
# The value of `PIL.Image.Resampling.BILINEAR`, so that Pillow is not imported for a constant.
BILINEAR = 2
# Width over height of the crop.
ASPECT_RATIOS = (3 / 4, 4 / 3)
# How often a crop is drawn that may not fit into the image; after that, the largest central one is taken.
TRIES = 10
# Weights of red, green and blue in the brightness people see (ITU-R 601).
LUMA = (0.299, 0.587, 0.114)


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
        left = (width - self.side) // 2
        top = (height - self.side) // 2
        resized = image.resize((width, height), resample=BILINEAR)
        return self.normalisation(as_pixels(resized.crop((left, top, left + self.side, top + self.side))))

    def describe(self) -> str:
        """Describe in words how an image is prepared."""
        mean, std = (", ".join(f"{value:g}" for value in values) for values in vars(self.normalisation).values())
        return (
            f"shorter side to {self.shorter_side} (bilinear), centre crop {self.side}, (x / 255 - ({mean})) / ({std})"
        )


@dataclass(frozen=True)
class RandomView:
    """What training sees of an image."""

    side: int  # height and width of the view
    smallest_area: float  # smallest share of the image's area in a crop; 1 keeps the whole image
    jitter: float  # brightness, contrast and colour are multiplied by factors in 1 - jitter … 1 + jitter
    flip: bool  # whether half of the views are mirrored
    normalisation: Normalisation

    def __call__(self, image: Any, random: np.random.Generator) -> Float[Tensor, "3 height width"]:
        """One RGB image of Pillow to a tensor."""
        box = random_box(image.size, self.smallest_area, random)
        pixels = as_pixels(image.resize((self.side, self.side), resample=BILINEAR, box=box))
        if self.jitter:
            pixels = jittered(pixels, random.uniform(1 - self.jitter, 1 + self.jitter, size=3))
        if self.flip and random.random() < 0.5:
            pixels = pixels.flip(-1)
        return self.normalisation(pixels)


def random_box(size: tuple[int, int], smallest_area: float, random: np.random.Generator) -> tuple[int, int, int, int]:
    """Left, top, right, bottom of a crop whose area and shape are drawn, the shape on a logarithmic scale."""
    width, height = size
    if smallest_area >= 1:
        return 0, 0, width, height
    for _ in range(TRIES):
        area = width * height * random.uniform(smallest_area, 1)
        ratio = np.exp(random.uniform(*np.log(ASPECT_RATIOS)))
        w = round(float(np.sqrt(area * ratio)))
        h = round(float(np.sqrt(area / ratio)))
        if 0 < w <= width and 0 < h <= height:
            left = int(random.integers(width - w + 1))
            top = int(random.integers(height - h + 1))
            return left, top, left + w, top + h
    w = min(width, round(height * ASPECT_RATIOS[1]))
    h = min(height, round(width / ASPECT_RATIOS[0]))
    left = (width - w) // 2
    top = (height - h) // 2
    return left, top, left + w, top + h


def jittered(pixels: Float[Tensor, "3 height width"], factors: np.ndarray) -> Float[Tensor, "3 height width"]:
    """`x ← m + f (x - m)` with m black, then with the mean grey, then with each pixel's own grey; clipped to 0 … 1."""
    brightness, contrast, colour = map(float, factors)
    pixels = (pixels * brightness).clamp(0, 1)
    pixels = pixels.lerp(_grey(pixels).mean(), 1 - contrast).clamp(0, 1)
    return pixels.lerp(_grey(pixels).expand_as(pixels), 1 - colour).clamp(0, 1)


def _grey(pixels: Float[Tensor, "3 height width"]) -> Float[Tensor, "1 height width"]:
    return (pixels * torch.tensor(LUMA)[:, None, None]).sum(0, keepdim=True)


def as_pixels(image: Any) -> Float[Tensor, "3 height width"]:
    """Pixels of an RGB image of Pillow, divided by 255."""
    return torch.from_numpy(np.array(image, dtype=np.uint8)).permute(2, 0, 1).float() / 255
