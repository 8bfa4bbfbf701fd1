"""The encoder `checkpoint:PATH`: a network that `handful train` or a public few-shot repository has trained."""

from __future__ import annotations

from pathlib import Path

from handful.extraction.encoder import Encoder
from handful_fewshot.networks.checkpoint import Checkpoint, read_public


def of_checkpoint(path: str, device: str) -> Encoder:
    """Load the folder of a run of `handful train`, or a `.pth.tar` file of ResNet-18 or WRN28-10."""
    found = Checkpoint.load(path) if Path(path).is_dir() else read_public(path)
    return Encoder.of_images(
        found.module().to(device),
        found.view,
        # Not the path: the same weights elsewhere are the same encoder.
        name=f"checkpoint of {found.network}",
        preprocessing=f"{found.view.describe()}; last feature map averaged",
    )
