"""Decode an image, or say in a sentence why not: a broken file costs its row, never the run."""

from __future__ import annotations

import io
import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from handful.machine.extras import import_extra

if TYPE_CHECKING:
    from PIL.Image import Image

# Resizing the shorter side multiplies the longer one too: a strip of 1 × 80,000,000 pixels passes every check of its
# size and then asks for terabytes.
MAX_ASPECT_RATIO = 200


@dataclass(frozen=True)
class Unreadable:
    """An item that gives no features, and why."""

    reason: str


def decode_image(data: bytes) -> Image | Unreadable:
    """Decode an image file to RGB; truncated, unknown, oversized or absurdly long ones are `Unreadable`.

    Oversized means more pixels than `PIL.Image.MAX_IMAGE_PIXELS`, for which Pillow alone would only warn.
    """
    image_module = import_extra("PIL.Image", "images")
    with warnings.catch_warnings():
        # Pillow warns about odd metadata in files that decode well; only the warning about a bomb matters.
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", image_module.DecompressionBombWarning)
        # Hostile bytes make decoders raise nearly anything (OSError, SyntaxError, struct.error, zlib.error, …), and
        # all of it means the same here. The bytes are in memory, so no fault of disk or network is hidden.
        try:
            with image_module.open(io.BytesIO(data)) as image:
                short, long = sorted(image.size)
                if long > MAX_ASPECT_RATIO * short:
                    return Unreadable(f"{image.width} × {image.height} pixels are too long and thin for a photograph")
                return image.convert("RGB")  # type: ignore[no-any-return]
        except Exception as error:
            # Pillow names the object it read from, with an address that differs from run to run.
            return Unreadable(re.sub(r" <[^<>]* at 0x[0-9a-fA-F]+>", "", f"{type(error).__name__}: {error}"))
