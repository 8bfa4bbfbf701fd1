"""EfficientNet-Lite: how its images are prepared, and Lite0, which comes with handful and runs by ONNX Runtime.

`efficientnet_lite0.onnx` was made by `tools/make_efficientnet_lite0.py`; `EFFICIENTNET_LITE0.md` says from what.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from handful.errors import ExtractionError, MissingExtraError, OptionError
from handful.extraction.encoder import Encoder, InColour, identified
from handful.machine.extras import import_extra
from handful.shapes import Float

# Pixels of a side that each network sees: those that 1 and 2 were trained with; 0 has 192 of its 224, which is quicker.
# [pixels; the networks, and work]
CROPS = {0: 192, 1: 240, 2: 260}
# The shorter side of an image over the side that is seen, as in the training. [ratio; the networks]
MARGIN = 8 / 7
# What is subtracted from a pixel, 0 … 255, and what the rest is divided by. [brightness; the networks]
OFFSET = 127
SCALE = 128

GRAPH = Path(__file__).with_name("efficientnet_lite0.onnx")
# SHA-256 of the graph; and of the weights that it was made of, as PyTorch has them. They name the encoder in catalogues
# and banks, whichever library runs it.
GRAPH_HASH = "1d6c5839b558c0027ee66e59948d9b075de230d98654051f8ceaa8bac13b6b3b"
WEIGHTS_HASH = "1173f14829736d98ea5725cb23a17a74c64de3242afa71a32cf7bfe94f7a7dc5"
NUMBERS_HASH = "e824cacaf5a8a1d78660c68969567cb9ed5ef55acac20a47532a804136a86b71"


@dataclass(frozen=True)
class ShorterSideThenCentre:
    """Resize the shorter side (bicubic), crop the centre, `x ← (x - offset) / scale` on pixels 0 … 255."""

    shorter_side: int
    crop: int
    offset: float
    scale: float

    def __call__(self, image: Any) -> Float[np.ndarray, "channel height width"]:
        """One RGB image to an array."""
        bicubic = import_extra("PIL.Image", "images").Resampling.BICUBIC
        factor = self.shorter_side / min(image.size)
        resized = image.resize([round(side * factor) for side in image.size], bicubic)
        left, top = ((side - self.crop) // 2 for side in resized.size)
        cut = resized.crop((left, top, left + self.crop, top + self.crop))
        pixels = np.array(cut, dtype=np.float32).transpose(2, 0, 1)
        return (pixels - self.offset) / self.scale


def transform_of(number: int) -> ShorterSideThenCentre:
    """Return what happens to an image before EfficientNet-Lite of this number."""
    return ShorterSideThenCentre(round(CROPS[number] * MARGIN), CROPS[number], OFFSET, SCALE)


def described(number: int) -> str:
    """Return what happens to an image and to the last feature map, in words, which are part of an encoder's version."""
    transform = transform_of(number)
    seen = f"shorter side to {transform.shorter_side} (bicubic), centre crop {transform.crop}"
    return f"{seen}, (x - {transform.offset}) / {transform.scale}; last feature map averaged"


def lite0(device: str) -> Encoder:
    """Load EfficientNet-Lite0, which comes with handful; only the extra `images` is needed."""
    if device != "cpu":
        raise OptionError(
            f"efficientnet-lite0 runs on the processor, by ONNX Runtime, and device is {device!r}; leave the device "
            "out, or choose efficientnet-lite1 or efficientnet-lite2"
        )
    return identified(
        "efficientnet-lite0",
        "image",
        InColour(transform_of(0)),
        run_lite0,
        (WEIGHTS_HASH, NUMBERS_HASH),
        described(0),
        ("onnxruntime", "pillow"),
    )


def run_lite0(images: Sequence[Float[np.ndarray, "channel height width"]]) -> Float[np.ndarray, "item dim"]:
    """Return the vectors of prepared images; threads may call it at the same time, and each call takes one core."""
    (vectors,) = session().run(None, {"images": np.stack(images)})
    return vectors  # type: ignore[no-any-return]


@cache
def session() -> Any:
    """Load the graph, once for all threads of this process."""
    onnxruntime = load_onnxruntime()
    graph = GRAPH.read_bytes()
    if hashlib.sha256(graph).hexdigest() != GRAPH_HASH:
        raise ExtractionError(f"{GRAPH.name} is not the file that came with this version; install handful again")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def load_onnxruntime() -> Any:
    """Import ONNX Runtime, and let it send nothing.

    From version 1.29 it reports to Microsoft what it runs, with an identifier that it keeps on the disk, unless a
    variable of the environment forbids it before it is loaded; older builds for Windows report to the system.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        onnxruntime = import_extra("onnxruntime", "images")
    except MissingExtraError:
        raise
    except ImportError as error:  # it is there, but a library of the system that it needs is not
        raise MissingExtraError(
            f"ONNX Runtime is installed but cannot be loaded: {error}; on Windows, install the Microsoft Visual C++ "
            "Redistributable; elsewhere, run: pip install --force-reinstall onnxruntime"
        ) from error
    onnxruntime.disable_telemetry_events()
    return onnxruntime
