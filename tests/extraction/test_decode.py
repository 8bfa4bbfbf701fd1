import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from handful.extraction.decode import Unreadable, decode_image
from tests.items_at_hand import image_bytes


def saved(image: Image.Image, kind: str, **settings) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **settings)
    return stream.getvalue()


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few hundred bytes that says it has width × height pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = chunk(b"IDAT", zlib.compress(b"\0" * 1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + rows + chunk(b"IEND", b"")


def test_pixels_arrive_as_they_are():
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    assert (np.asarray(decode_image(saved(Image.fromarray(pixels), "PNG"))) == pixels).all()


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "I;16"])
def test_every_mode_becomes_rgb(mode):
    kind = "TIFF" if mode == "CMYK" else "PNG"
    assert decode_image(saved(Image.new(mode, (5, 4)), kind)).mode == "RGB"


def test_a_palette_with_transparency_is_no_reason_to_refuse():
    image = Image.new("P", (4, 4))
    data = saved(image, "PNG", transparency=b"\0\x10")
    assert decode_image(data).size == (4, 4)


@pytest.mark.parametrize(
    "data",
    [b"", b"not an image", image_bytes(0)[:-40], image_bytes(0)[:30], image_bytes(0).replace(b"IDAT", b"IDAX")],
    ids=["empty", "text", "cut short", "header only", "damaged"],
)
def test_broken_files_are_unreadable_and_say_why(data):
    assert isinstance(found := decode_image(data), Unreadable)
    assert found.reason
    assert found == decode_image(data)


# Pillow itself would only warn of the first, whose size lies between its limit and twice its limit.
@pytest.mark.parametrize("size", [(10_000, 10_000), (50_000, 50_000)])
def test_a_decompression_bomb_is_refused(size):
    found = decode_image(bomb(*size))
    assert isinstance(found, Unreadable)
    assert "Decompression" in found.reason


def test_a_strip_that_would_explode_when_resized_is_refused():
    found = decode_image(saved(Image.new("L", (1, 5000)), "PNG"))
    assert found == Unreadable("1 × 5000 pixels are too long and thin for a photograph")
