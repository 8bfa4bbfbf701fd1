"""Decode an image, or say in a sentence why not: a broken file costs its row, never the run."""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from handful.errors import BankError, MissingExtraError
from handful.machine.extras import import_extra
from handful.machine.untrusted import refuse_irregular
from handful.reading.contents import FORMATS, Unreadable

if TYPE_CHECKING:
    from PIL.Image import Image

# How an image is turned by the values 2 … 8 of the EXIF tag "orientation", as Pillow calls it.
ORIENTATION = 0x0112
TURNS = ("FLIP_LEFT_RIGHT", "ROTATE_180", "FLIP_TOP_BOTTOM", "TRANSPOSE", "ROTATE_270", "TRANSVERSE", "ROTATE_90")
# The TIFF tag that says whether numbers are unsigned (1), signed (2) or floating (3).
SAMPLE_FORMAT = 339
# Resizing the shorter side multiplies the longer one too: a strip of 1 × 80,000,000 pixels passes every check of its
# size and then asks for terabytes.
MAX_ASPECT_RATIO = 200
# What a HEIC file says about itself after its first eight bytes.
HEIC_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")


def decode_image(data: bytes) -> Image | Unreadable:
    """Decode an image file to RGB, upright; truncated, unknown, oversized or absurdly long ones are `Unreadable`.

    Oversized means more pixels than `PIL.Image.MAX_IMAGE_PIXELS`, for which Pillow alone would only warn. Grey values
    of more than 8 bits are scaled to 8: from 0 … 65535 in PNG and PGM; in TIFF, which does not say what is black and
    what is white, from the least to the greatest value.
    """
    image_module = import_extra("PIL.Image", "images")
    with _pillow_quiet(image_module.DecompressionBombWarning):
        # Hostile bytes make decoders raise nearly anything (OSError, SyntaxError, struct.error, zlib.error, …), and
        # all of it means the same here. The bytes are in memory, so no fault of disk or network is hidden.
        try:
            with image_module.open(io.BytesIO(data), formats=_formats(data)) as image:
                short, long = sorted(image.size)
                if long > MAX_ASPECT_RATIO * short:
                    return Unreadable(f"{image.width} × {image.height} pixels are too long and thin for a photograph")
                image.load()
                eight_bits = _in_eight_bits(image_module, image)
                if isinstance(eight_bits, Unreadable):
                    return eight_bits
                return _upright(image_module, eight_bits.convert("RGB"), image)  # type: ignore[no-any-return]
        except MissingExtraError as error:
            return Unreadable(str(error))
        except Exception as error:
            # Pillow names the object it read from, with an address that differs from run to run.
            said = re.sub(r" <[^<>]* at 0x[0-9a-fA-F]+>", "", str(error)) or type(error).__name__
            return Unreadable(f"damaged, or no image: {said}")


class _Quiet:
    """What is kept while images are decoded: by how many threads, and the filters of warnings from before."""

    lock = Lock()
    n_decoding = 0
    before: warnings.catch_warnings[None] | None = None


@contextmanager
def _pillow_quiet(bomb: type[Warning]) -> Iterator[None]:
    """Ignore warnings about odd metadata in files that decode well, and let that about a bomb be an error.

    Filters of warnings belong to the process: the first of the threads that decode sets them, the last one puts them
    back. If each did, one of them would put back what another one had set.
    """
    with _Quiet.lock:
        if _Quiet.n_decoding == 0:
            _Quiet.before = warnings.catch_warnings()
            _Quiet.before.__enter__()
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", bomb)
        _Quiet.n_decoding += 1
    try:
        yield
    finally:
        with _Quiet.lock:
            _Quiet.n_decoding -= 1
            if _Quiet.n_decoding == 0 and _Quiet.before is not None:
                _Quiet.before.__exit__(None, None, None)


def _formats(data: bytes) -> tuple[str, ...]:
    """Return the formats that Pillow tries: those that are read, or HEIC, which the extra `heic` adds to it."""
    if data[4:8] != b"ftyp" or data[8:12] not in HEIC_BRANDS:
        return tuple(FORMATS)
    import_extra("pillow_heif", "heic").register_heif_opener()
    return ("HEIF",)


def picture_of(image: Any) -> Any:
    """Return the pixels of a path, of bytes, of an array or of an image of Pillow, or a sentence why there are none."""
    if isinstance(image, str | os.PathLike):
        try:
            refuse_irregular(image, BankError)
            image = Path(image).read_bytes()
        except (OSError, BankError) as error:
            return str(error)
    if isinstance(image, bytes):
        image = decode_image(image)
    return image.reason if isinstance(image, Unreadable) else np.asarray(image)


def _in_eight_bits(image_module: Any, image: Any) -> Any:
    """Scale grey values of 16 bits, 32 bits or floating point, which Pillow would cut at 255."""
    if not image.mode.startswith(("I", "F")):
        return image
    values = np.asarray(image)
    low = 0.0
    high = 65535.0
    if image.format == "TIFF":
        if values.dtype == np.int32 and image.tag_v2.get(SAMPLE_FORMAT, (1,))[0] == 1:
            values = values.view(np.uint32)  # Pillow reads unsigned numbers as signed ones
        low = float(values.min())
        high = float(values.max())
    if not np.isfinite([low, high]).all():
        return Unreadable("some pixels are not finite numbers")
    if low == high:
        return Unreadable(f"all pixels are {low:g}, and the file does not say whether that is black or white")
    # Divided first: the range of floating-point numbers can be too large to subtract.
    scale = max(abs(low), abs(high)) / 255
    grey = (values / scale - low / scale) * (255 / (high / scale - low / scale))
    return image_module.fromarray(np.rint(grey).clip(0, 255).astype(np.uint8))


def _upright(image_module: Any, image: Any, source: Any) -> Any:
    """Turn an image as the EXIF data of its file say."""
    try:
        turn = source.getexif().get(ORIENTATION, 1)
    except Exception:  # damaged metadata in a file that decodes well
        return image
    if turn not in range(2, 9):
        return image
    return image.transpose(image_module.Transpose[TURNS[turn - 2]])
