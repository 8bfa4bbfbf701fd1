"""Small images and a small encoder, made the same in every process."""

from __future__ import annotations

import io
import time
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from handful.extraction.encoder import Encoder
from tests.conftest import SHARED
from tests.optional import optional

torch = optional("torch")


def shared_data(path: str) -> Path:
    """A file or folder of the shared data; the test is skipped where there is none."""
    found = SHARED / "data" / path
    if not found.exists():
        pytest.skip(f"real data is not here: expected shared/data/{path} beside the repository")
    return found


def image_bytes(seed: int, size: tuple[int, int] = (24, 16)) -> bytes:
    noise = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(noise).save(stream, "PNG")
    return stream.getvalue()


def image_folder(root: Path, n_classes: int = 3, each: int = 8) -> Path:
    for k in range(n_classes):
        (root / f"class{k}").mkdir(parents=True)
        for i in range(each):
            (root / f"class{k}" / f"{i:02d}.png").write_bytes(image_bytes(100 * k + i))
    return root


def zipped(root: Path, archive: Path, prefix: str = "") -> Path:
    with zipfile.ZipFile(archive, "w") as out:
        # Reversed: the order inside an archive must not matter.
        for file in sorted(root.rglob("*.*"), reverse=True):
            out.write(file, prefix + file.relative_to(root).as_posix())
    return archive


@dataclass(frozen=True)
class Resized:
    side: int = 12

    def __call__(self, image: Any) -> torch.Tensor:
        pixels = np.array(image.resize((self.side, self.side)), dtype=np.float32)
        return torch.from_numpy(pixels).permute(2, 0, 1) / 255


def small_network(seed: int = 0) -> torch.nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten()
        )


def small_encoder(seed: int = 0, side: int = 12) -> Encoder:
    return Encoder.of_images(small_network(seed), Resized(side), name="small")


@dataclass(frozen=True)
class Slowly:
    """A network that takes its time and signs a book with the node it ran on, before and after."""

    forward: Any
    book: Path
    seconds: float

    def __call__(self, items: Any) -> np.ndarray:
        import ray

        signature = self.book / ray.get_runtime_context().get_node_id()
        with signature.open("a") as stream:
            stream.write("started\n")
        time.sleep(self.seconds)
        return self.forward(items)


def slowly(encoder: Encoder, book: Path, seconds: float) -> Encoder:
    return replace(encoder, forward=Slowly(encoder.forward, book, seconds))


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a, b = a.astype(np.float64), b.astype(np.float64)
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
