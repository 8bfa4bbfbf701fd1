import numpy as np
import pytest
import torch
from PIL import Image

from handful.fewshot.networks.views import BILINEAR, CentreView, Normalisation, as_pixels

PLAIN = Normalisation((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def test_the_constant_is_pillows():
    assert Image.Resampling.BILINEAR == BILINEAR


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


def test_pixels_are_channel_height_width():
    picture = Image.new("RGB", (5, 4))
    picture.putpixel((3, 1), (255, 0, 0))
    pixels = as_pixels(picture)
    assert pixels.shape == (3, 4, 5)
    assert pixels[0, 1, 3] == 1
    assert pixels.sum() == 1


def test_it_says_in_words_what_it_does():
    said = CentreView(84, 96).describe()
    assert said.startswith("shorter side to 96 (bilinear), centre crop 84, (x / 255 - (0.485, 0.456, 0.406))")
