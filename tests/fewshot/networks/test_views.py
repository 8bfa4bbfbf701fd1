import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance

from handful_fewshot.networks.views import CentreView, Normalisation, RandomView, as_pixels, jittered, random_box

PLAIN = Normalisation((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


@pytest.mark.parametrize("size", [(96, 96), (192, 96), (96, 150), (300, 200), (20, 31), (84, 84)])
def test_every_picture_becomes_a_square(size):
    view = CentreView(84, 96)
    assert view(Image.new("RGB", size)).shape == (3, 84, 84)


def test_the_middle_is_what_is_left():
    picture = np.zeros((30, 60, 3), np.uint8)
    picture[:, 30:] = 255
    view = CentreView(28, 30, PLAIN)(Image.fromarray(picture))
    assert torch.equal(view[:, :, :14], torch.zeros(3, 28, 14))
    assert torch.equal(view[:, :, 14:], torch.ones(3, 28, 14))


def test_channels_are_normalised_each_by_its_own():
    picture = Image.new("RGB", (8, 8), (255, 0, 51))
    expected = torch.tensor([(1 - 0.1) / 2, (0 - 0.2) / 4, (0.2 - 0.3) / 8])
    view = CentreView(8, 8, Normalisation((0.1, 0.2, 0.3), (2.0, 4.0, 8.0)))(picture)
    torch.testing.assert_close(view, expected[:, None, None].expand(3, 8, 8))


def photograph(width: int = 40, height: int = 30) -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8))


def random_view(**changes) -> RandomView:
    return RandomView(
        **{"side": 16, "smallest_area": 1.0, "jitter": 0.0, "flip": False, "normalisation": PLAIN} | changes
    )


def test_a_view_is_a_function_of_picture_and_random_numbers():
    full = random_view(smallest_area=0.08, jitter=0.4, flip=True)
    a, b, c = (full(photograph(), np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert a.shape == (3, 16, 16)
    assert torch.equal(a, b)
    assert not torch.equal(a, c)


@pytest.mark.parametrize("size", [(40, 30), (30, 40), (500, 3), (3, 500), (1, 1)])
def test_boxes_lie_inside_with_the_areas_and_shapes_asked_for(size):
    width, height = size
    for seed in range(50):
        left, top, right, bottom = random_box(size, 0.25, np.random.default_rng(seed))
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height
        if min(size) >= 30:
            assert (right - left) * (bottom - top) >= 0.25 * 0.9 * width * height  # sides are whole pixels
            assert 0.7 < (right - left) / (bottom - top) < 1.43


@pytest.mark.parametrize(
    ("factors", "enhancer"),
    [
        ((1.3, 1, 1), ImageEnhance.Brightness),
        ((0.7, 1, 1), ImageEnhance.Brightness),
        ((1, 1.4, 1), ImageEnhance.Contrast),
        ((1, 0.6, 1), ImageEnhance.Contrast),
        ((1, 1, 1.4), ImageEnhance.Color),
        ((1, 1, 0.6), ImageEnhance.Color),
    ],
)
def test_colours_move_as_pillow_moves_them(factors, enhancer):
    picture = photograph()
    expected = as_pixels(enhancer(picture).enhance(next(f for f in factors if f != 1)))
    found = jittered(as_pixels(picture), np.array(factors, dtype=float))
    # Pillow rounds each pixel, and grey and its mean on the way.
    torch.testing.assert_close(found, expected, rtol=0, atol=2.5 / 255)
