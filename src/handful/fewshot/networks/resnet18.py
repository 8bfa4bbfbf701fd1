"""ResNet-18 for 84 × 84 images, as in SimpleShot and TIM.

He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", CVPR 2016, with a first convolution of 3 × 3 and
stride 1 and no pooling after it, so that small images keep their size: four stages of two blocks, 64, 128, 256 and 512
channels, each stage but the first halving height and width. The vector of an image is its last map, averaged.
Parameters and buffers have the names they have in the public checkpoints.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from handful.fewshot.networks.batch_norm import BatchNorm
from handful.shapes import Float

WIDTHS = (64, 128, 256, 512)


class BasicBlock(nn.Module):
    """`y = relu( x' + bn(conv(relu(bn(conv(x))))) )`, where x' is x, or its projection if the shape changes."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, padding=1, bias=False)
        self.bn1 = BatchNorm(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = BatchNorm(channels)
        self.downsample: nn.Module | None = None
        if stride != 1 or channels_in != channels:
            self.downsample = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride, bias=False), BatchNorm(channels)
            )

    def forward(self, x: Float[Tensor, "item _ _ _"]) -> Float[Tensor, "item _ _ _"]:
        """Add the output of the two convolutions to the input."""
        said = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        kept = x if self.downsample is None else self.downsample(x)
        return functional.relu(kept + said)


class ResNet18(nn.Module):
    """[item, 3, height, width] -> [item, 512], not negative."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, WIDTHS[0], 3, padding=1, bias=False)
        self.bn1 = BatchNorm(WIDTHS[0])
        before = (WIDTHS[0], *WIDTHS)
        for number, width in enumerate(WIDTHS, 1):
            first = BasicBlock(before[number - 1], width, stride=1 if number == 1 else 2)
            self.add_module(f"layer{number}", nn.Sequential(first, BasicBlock(width, width, stride=1)))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Float[Tensor, "item 3 height width"]) -> Float[Tensor, "item 512"]:
        """Features of images."""
        x = functional.relu(self.bn1(self.conv1(images)))
        for number in range(1, len(WIDTHS) + 1):
            x = self.get_submodule(f"layer{number}")(x)
        return x.mean((-2, -1))
