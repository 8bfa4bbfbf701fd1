"""Wide residual network, depth 28 and width 10, for 84 × 84 images, as in SimpleShot and TIM.

Zagoruyko, Komodakis, "Wide Residual Networks", BMVC 2016, in the variant of the few-shot literature: no dropout,
convolutions with a bias, the stride of a stage on the second convolution of its first block. Three stages of four
blocks, 160, 320 and 640 channels. The vector of an image is its last map, normalised, rectified and averaged.
Parameters and buffers have the names they have in the public checkpoints.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from handful.fewshot.networks.batch_norm import BatchNorm
from handful.shapes import Float

WIDTHS = (160, 320, 640)
BLOCKS = 4  # of two convolutions each: 3 · 4 · 2 layers, the first, and three projections make 28
DIM = WIDTHS[-1]


class WideBlock(nn.Module):
    """`y = x' + conv(relu(bn(conv(relu(bn(x))))))`, where x' is x, or its projection if the shape changes."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.bn1 = BatchNorm(channels_in)
        self.conv1 = nn.Conv2d(channels_in, channels, 3, padding=1)
        self.bn2 = BatchNorm(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, stride, padding=1)
        self.shortcut = nn.Sequential()
        if stride != 1 or channels_in != channels:
            self.shortcut = nn.Sequential(nn.Conv2d(channels_in, channels, 1, stride))

    def forward(self, x: Float[Tensor, "item _ _ _"]) -> Float[Tensor, "item _ _ _"]:
        """Add the output of the two convolutions to the input."""
        said = self.conv2(functional.relu(self.bn2(self.conv1(functional.relu(self.bn1(x))))))
        return said + self.shortcut(x)  # type: ignore[no-any-return]


class WideResNet28x10(nn.Module):
    """[item, 3, height, width] -> [item, 640], not negative."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1)
        channels = 16
        for number, width in enumerate(WIDTHS, 1):
            strides = [1 if number == 1 else 2] + [1] * (BLOCKS - 1)
            blocks = [WideBlock(channels if k == 0 else width, width, stride) for k, stride in enumerate(strides)]
            self.add_module(f"layer{number}", nn.Sequential(*blocks))
            channels = width
        # The running statistics of the last normalisation follow the latest batch closely, as in the public
        # checkpoints.
        self.bn1 = BatchNorm(DIM, momentum=0.9)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Float[Tensor, "item 3 height width"]) -> Float[Tensor, "item 640"]:
        """Features of images."""
        x = self.conv1(images)
        for number in range(1, len(WIDTHS) + 1):
            x = self.get_submodule(f"layer{number}")(x)
        return functional.relu(self.bn1(x)).mean((-2, -1))
