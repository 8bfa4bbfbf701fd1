import io
import struct
import sys
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from handful.extraction.decode import decode_image
from handful.reading.contents import FORMATS, Unreadable
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


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK"])
def test_every_mode_becomes_rgb(mode):
    kind = "TIFF" if mode == "CMYK" else "PNG"
    assert decode_image(saved(Image.new(mode, (5, 4)), kind)).mode == "RGB"


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
    assert "decompression bomb" in found.reason


def test_a_strip_that_would_explode_when_resized_is_refused():
    found = decode_image(saved(Image.new("L", (1, 5000)), "PNG"))
    assert found == Unreadable("1 × 5000 pixels are too long and thin for a photograph")


RAMP = np.tile(np.linspace(0, 1, 64), (8, 1))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ((RAMP * 65535).astype(np.uint16), "PNG"),
        ((RAMP * 65535).astype(np.uint16), "TIFF"),
        ((RAMP * 4095).astype(np.uint16), "TIFF"),
        ((RAMP * 65535).astype(np.int32), "PPM"),
        ((RAMP * 65535).astype(np.int32), "TIFF"),
        ((RAMP * 20_000 - 10_000).astype(np.int32), "TIFF"),
        (RAMP.astype(np.float32), "TIFF"),
        ((RAMP * 6e38 - 3e38).astype(np.float32), "TIFF"),
    ],
    ids=["PNG", "TIFF", "12 bits", "PGM", "32 bits", "signed", "float", "huge floats"],
)
def test_grey_values_of_more_than_eight_bits_are_scaled(values, kind):
    found = np.asarray(decode_image(saved(Image.fromarray(values), kind)))
    assert found.shape == (8, 64, 3)
    assert np.abs(found - 255 * RAMP[:, :, None]).max() <= 1


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("turn", range(1, 9))
def test_pictures_are_turned_as_exif_says(kind, turn):
    pixels = np.zeros((16, 32, 3), np.uint8)
    pixels[:8, :16] = 255  # white at the top left
    exif = Image.Exif()
    exif[0x0112] = turn
    found = np.asarray(decode_image(saved(Image.fromarray(pixels), kind, exif=exif)))[:, :, 0] > 127
    upright = {
        1: found, 2: found[:, ::-1], 3: found[::-1, ::-1], 4: found[::-1],
        5: found.T, 6: found.T[::-1], 7: found.T[::-1, ::-1], 8: found.T[:, ::-1],
    }  # fmt: skip
    assert (upright[turn] == (pixels[:, :, 0] > 127)).all()


def test_damaged_exif_data_are_no_reason_to_refuse():
    data = saved(Image.new("RGB", (8, 8)), "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff")
    assert decode_image(data).size == (8, 8)


def test_a_file_that_is_eps_starts_no_program(tmp_path, monkeypatch):
    (tmp_path / "gs").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\nexit 1\n")
    (tmp_path / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr("PIL.EpsImagePlugin.gs_binary", None, raising=False)  # Pillow looks for it once
    data = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 50 50\n%%EndComments\nshowpage\n%%EOF\n"
    assert isinstance(decode_image(data), Unreadable)
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("kind", ["PCX", "TGA", "ICO"])
def test_formats_that_are_not_listed_are_refused(kind):
    assert isinstance(decode_image(saved(Image.new("RGB", (8, 8)), kind)), Unreadable)


@pytest.mark.parametrize("kind", FORMATS)
def test_listed_formats_are_read(kind):
    assert decode_image(saved(Image.new("RGB", (8, 8)), kind)).size == (8, 8)


# -- HEIC --------------------------------------------------------------------------------------------------------------


def heic(size=(60, 40), **about):
    """A photograph with a red left half, as a telephone writes it."""
    extra = pytest.importorskip("pillow_heif", reason='pillow-heif is not installed: pip install ".[heic]"')
    image, stream = Image.new("RGB", size, "blue"), io.BytesIO()
    image.paste("red", (0, 0, size[0] // 2, size[1]))
    extra.from_pillow(image).save(stream, quality=90, **about)
    return stream.getvalue()


def test_heic_is_read_upright():
    image = decode_image(heic())
    assert image.size == (60, 40)
    pixels = np.asarray(image).astype(int)
    assert np.abs(pixels[20, 5] - [255, 0, 0]).max() < 40
    assert np.abs(pixels[20, 55] - [0, 0, 255]).max() < 40
    exif = Image.Exif()
    exif[0x0112] = 6
    assert decode_image(heic(exif=exif.tobytes())).size == (40, 60)


def test_broken_heic_is_unreadable(monkeypatch):
    data = heic()
    for broken in (data[:40], data[: len(data) // 2], data[:12] + b"\0" * 400):
        assert isinstance(decode_image(broken), Unreadable)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    assert "decompression bomb" in decode_image(data).reason


def test_heic_without_the_extra_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    found = decode_image(b"\0\0\0\x18ftypheic" + bytes(40))
    assert "needs the package 'pillow_heif'" in found.reason
    assert "[heic]" in found.reason


def test_threads_that_decode_leave_the_filters_of_warnings_as_they_were():
    picture = io.BytesIO()
    Image.fromarray(np.zeros((300, 300, 3), np.uint8)).save(picture, "png")
    before = list(warnings.filters)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(decode_image, [picture.getvalue()] * 400):
            assert found.size == (300, 300)
    assert warnings.filters == before
