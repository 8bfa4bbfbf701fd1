"""A folder of small photographs, and an encoder that counts what it embeds."""

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from handful.extraction.encoder import Encoder
from handful.extraction.encoders import register_encoder
from tests.items_at_hand import image_bytes, small_encoder
from tests.optional import optional

torch = optional("torch")

ENCODER = "counting"
VOWELS = "vowels of a test"
# How many images each call embedded.
CALLS: list[int] = []


@dataclass(frozen=True)
class Counting:
    forward: Any
    slow: float = 0.0

    def __call__(self, images):
        CALLS.append(len(images))
        time.sleep(self.slow)
        return self.forward(images)


def counting_encoder(seed: int = 0, slow: float = 0.0):
    encoder = small_encoder(seed)
    return replace(encoder, name=ENCODER, forward=Counting(encoder.forward, slow))


def register(seed: int = 0, slow: float = 0.0) -> None:
    register_encoder(ENCODER, lambda device: counting_encoder(seed, slow))
    register_encoder(VOWELS, lambda device: Encoder.of_sentences(torch.nn.Identity(), vowels, name=VOWELS))
    CALLS.clear()


def vowels(sentences):
    return torch.tensor([[float(sentence.count(letter)) for letter in "aeiou"] for sentence in sentences])


def aged(file: Path) -> None:
    """Make a file a minute old, so that its stamp counts."""
    then = time.time() - 60
    os.utime(file, (then, then))


def photograph(file: Path, seed: int) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(image_bytes(seed))
    aged(file)
    return file


def photographs(folder: Path, n: int, first: int = 0) -> Path:
    for k in range(first, first + n):
        photograph(folder / f"{k:03d}.png", k)
    return folder
