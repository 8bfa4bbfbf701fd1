"""Convolutional networks from images to vectors; the vector of an image is its last map, averaged.

Conv4, for small images such as the drawings of Omniglot at 28 × 28: four layers `relu(bn(conv 3 × 3))` of 32, 64, 128
and 256 channels, with a maximum over 2 × 2 between layers. Training takes a few minutes on one processor.

ResNet-18 for 84 × 84 images, as in SimpleShot and TIM: He, Zhang, Ren, Sun, "Deep Residual Learning for Image
Recognition", CVPR 2016, with a first convolution of 3 × 3 and stride 1 and no pooling after it, so that small images
keep their size: four stages of two blocks, 64, 128, 256 and 512 channels, each but the first halving height and width.

WRN28-10, as in SimpleShot and TIM: Zagoruyko, Komodakis, "Wide Residual Networks", BMVC 2016, in the variant of the
few-shot literature: no dropout, convolutions with a bias, the stride of a stage on the second convolution of its first
block. Three stages of four blocks, 160, 320 and 640 channels. The last map is normalised and rectified.

Parameters and buffers of the last two have the names they have in the public checkpoints.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from handful.shapes import Float

CONV4_WIDTHS = (32, 64, 128, 256)


def initialise(network: nn.Module) -> None:
    """Draw the weights of all convolutions as for a rectifier (He et al., 2015)."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


class Conv4(nn.Module):
    """[item, 3, height, width] -> [item, 256], not negative."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for channels_in, channels in zip((3, *CONV4_WIDTHS), CONV4_WIDTHS, strict=False):
            pooling = [nn.MaxPool2d(2)] if layers else []
            convolution = nn.Conv2d(channels_in, channels, 3, padding=1, bias=False)
            initialise(convolution)
            layers += [*pooling, convolution, nn.BatchNorm2d(channels), nn.ReLU()]
        self.layers = nn.Sequential(*layers)

    def forward(self, images: Float[Tensor, "item 3 height width"]) -> Float[Tensor, "item 256"]:
        """Features of images."""
        return self.layers(images).mean((-2, -1))  # type: ignore[no-any-return]


RESNET18_WIDTHS = (64, 128, 256, 512)


class BasicBlock(nn.Module):
    """`y = relu( x' + bn(conv(relu(bn(conv(x))))) )`, where x' is x, or its projection if the shape changes."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample: nn.Module | None = None
        if stride != 1 or channels_in != channels:
            self.downsample = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x: Float[Tensor, "item _ _ _"]) -> Float[Tensor, "item _ _ _"]:
        """Add the output of the two convolutions to the input."""
        residual = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        shortcut = x if self.downsample is None else self.downsample(x)
        return functional.relu(shortcut + residual)


class ResNet18(nn.Module):
    """[item, 3, height, width] -> [item, 512], not negative."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, RESNET18_WIDTHS[0], 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(RESNET18_WIDTHS[0])
        before = (RESNET18_WIDTHS[0], *RESNET18_WIDTHS)
        for number, width in enumerate(RESNET18_WIDTHS, 1):
            first = BasicBlock(before[number - 1], width, stride=1 if number == 1 else 2)
            self.add_module(f"layer{number}", nn.Sequential(first, BasicBlock(width, width, stride=1)))
        initialise(self)

    def forward(self, images: Float[Tensor, "item 3 height width"]) -> Float[Tensor, "item 512"]:
        """Features of images."""
        x = functional.relu(self.bn1(self.conv1(images)))
        for number in range(1, len(RESNET18_WIDTHS) + 1):
            x = self.get_submodule(f"layer{number}")(x)
        return x.mean((-2, -1))


WIDE_WIDTHS = (160, 320, 640)
WIDE_BLOCKS = 4  # of two convolutions each: 3 · 4 · 2 layers, the first, and three projections make 28


class WideBlock(nn.Module):
    """`y = x' + conv(relu(bn(conv(relu(bn(x))))))`, where x' is x, or its projection if the shape changes."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(channels_in)
        self.conv1 = nn.Conv2d(channels_in, channels, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, stride, padding=1)
        self.shortcut = nn.Sequential()
        if stride != 1 or channels_in != channels:
            self.shortcut = nn.Sequential(nn.Conv2d(channels_in, channels, 1, stride))

    def forward(self, x: Float[Tensor, "item _ _ _"]) -> Float[Tensor, "item _ _ _"]:
        """Add the output of the two convolutions to the input."""
        residual = self.conv2(functional.relu(self.bn2(self.conv1(functional.relu(self.bn1(x))))))
        return residual + self.shortcut(x)  # type: ignore[no-any-return]


class WideResNet28x10(nn.Module):
    """[item, 3, height, width] -> [item, 640], not negative."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1)
        channels = 16
        for number, width in enumerate(WIDE_WIDTHS, 1):
            strides = [1 if number == 1 else 2] + [1] * (WIDE_BLOCKS - 1)
            blocks = [WideBlock(channels if k == 0 else width, width, stride) for k, stride in enumerate(strides)]
            self.add_module(f"layer{number}", nn.Sequential(*blocks))
            channels = width
        # The running statistics of the last normalisation follow the latest batch closely, as in the public
        # checkpoints.
        self.bn1 = nn.BatchNorm2d(WIDE_WIDTHS[-1], momentum=0.9)
        initialise(self)

    def forward(self, images: Float[Tensor, "item 3 height width"]) -> Float[Tensor, "item 640"]:
        """Features of images."""
        x = self.conv1(images)
        for number in range(1, len(WIDE_WIDTHS) + 1):
            x = self.get_submodule(f"layer{number}")(x)
        return functional.relu(self.bn1(x)).mean((-2, -1))
