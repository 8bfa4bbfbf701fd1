import numpy as np
import pytest
import torch
from PIL import Image

from handful.fewshot.networks.views import CentreView, Normalisation

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
