import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance

from handful.fewshot.networks.views import Normalisation, as_pixels
from handful.fewshot.training.augmentation import RandomView, jittered, random_box

PLAIN = Normalisation((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def photograph(width: int = 40, height: int = 30) -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8))


def view(**changes) -> RandomView:
    return RandomView(
        **{"side": 16, "smallest_area": 1.0, "jitter": 0.0, "flip": False, "normalisation": PLAIN} | changes
    )


def test_a_view_is_a_function_of_picture_and_random_numbers():
    full = view(smallest_area=0.08, jitter=0.4, flip=True)
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
