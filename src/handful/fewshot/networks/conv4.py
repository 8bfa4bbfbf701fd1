"""Four convolutions for small images, such as the drawings of Omniglot at 28 × 28.

Each layer is `relu(bn(conv 3 × 3))`, 32, 64, 128 and 256 channels, with a maximum over 2 × 2 between layers. The vector
of an image is its last map, averaged. Training takes a few minutes on one processor.
"""

from __future__ import annotations

from torch import Tensor, nn

from handful.fewshot.networks.batch_norm import BatchNorm
from handful.shapes import Float

WIDTHS = (32, 64, 128, 256)


class Conv4(nn.Module):
    """[item, 3, height, width] -> [item, 256], not negative."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for channels_in, channels in zip((3, *WIDTHS), WIDTHS, strict=False):
            pooling = [nn.MaxPool2d(2)] if layers else []
            convolution = nn.Conv2d(channels_in, channels, 3, padding=1, bias=False)
            nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
            layers += [*pooling, convolution, BatchNorm(channels), nn.ReLU()]
        self.layers = nn.Sequential(*layers)

    def forward(self, images: Float[Tensor, "item 3 height width"]) -> Float[Tensor, "item 256"]:
        """Features of images."""
        return self.layers(images).mean((-2, -1))  # type: ignore[no-any-return]
