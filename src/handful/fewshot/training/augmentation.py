"""Random views of an image, each a function of (image, random numbers): crop, colour jitter, horizontal flip.

In this order, as for the public checkpoints: a part of random area and shape is resized to a square; brightness,
contrast and colour are each multiplied by a random factor; and half of the images are mirrored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from handful.fewshot.networks.views import BILINEAR, Normalisation, as_pixels
from handful.shapes import Float

# Width over height of the crop.
ASPECT_RATIOS = (3 / 4, 4 / 3)
# How often a crop is drawn that may not fit into the image; after that, the largest central one is taken.
TRIES = 10
# Weights of red, green and blue in the brightness people see (ITU-R 601).
LUMA = (0.299, 0.587, 0.114)


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
        w, h = round(float(np.sqrt(area * ratio))), round(float(np.sqrt(area / ratio)))
        if 0 < w <= width and 0 < h <= height:
            left, top = int(random.integers(width - w + 1)), int(random.integers(height - h + 1))
            return left, top, left + w, top + h
    w = min(width, round(height * ASPECT_RATIOS[1]))
    h = min(height, round(width / ASPECT_RATIOS[0]))
    left, top = (width - w) // 2, (height - h) // 2
    return left, top, left + w, top + h


def jittered(pixels: Float[Tensor, "3 height width"], factors: np.ndarray) -> Float[Tensor, "3 height width"]:
    """`x ← m + f (x - m)` with m black, then with the mean grey, then with each pixel's own grey; clipped to 0 … 1."""
    brightness, contrast, colour = map(float, factors)
    pixels = (pixels * brightness).clamp(0, 1)
    pixels = pixels.lerp(_grey(pixels).mean(), 1 - contrast).clamp(0, 1)
    return pixels.lerp(_grey(pixels).expand_as(pixels), 1 - colour).clamp(0, 1)


def _grey(pixels: Float[Tensor, "3 height width"]) -> Float[Tensor, "1 height width"]:
    return (pixels * torch.tensor(LUMA)[:, None, None]).sum(0, keepdim=True)
