"""Recipe: everything that determines the result of a training, with the paper's values as defaults.

Martin et al. (NeurIPS 2022) use the networks of TIM (Boudiaf et al., NeurIPS 2020): cross-entropy with label smoothing
0.1, 90 epochs of SGD, learning rate 0.1 divided by 10 at epochs 45 and 66, batches of 256 (ResNet-18) or 128
(WRN28-10), colour jitter, random crop, horizontal flip. Momentum 0.9, weight decay 1e-4, factors of the jitter and the
range of the crop are those of TIM's code.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from handful_fewshot.methods.method import Options, above, at_least, limited
from handful_fewshot.networks import architecture
from handful_fewshot.networks.views import IMAGENET_MEAN, IMAGENET_STD, CentreView, Normalisation, RandomView

# Where in the training the learning rate drops: epochs 45 and 66 of 90.
DROPS = (45 / 90, 66 / 90)
# Shorter side before the central crop, over the side of the crop: 256 to 224, as is usual for ImageNet.
ENLARGED = 256 / 224


@dataclass(frozen=True)
class Recipe(Options):
    """Settings of a training.

    Attributes
    ----------
    network : str
        A key of `handful_fewshot.networks.NETWORKS`.
    side : int, optional
        Height and width of the network's input; None means what it was made for, 84 or 28.
    epochs : int
        Passes over the base classes.
    batch_size : int, optional
        Images per step, over all processes; None means the paper's value for this network, 256 or 128.
    learning_rate, momentum, weight_decay : float
        Of stochastic gradient descent.
    drop_at : tuple of int, optional
        Epochs from which the learning rate is a tenth of what it was; None means 45/90 and 66/90 of the way.
    label_smoothing : float
        Share ε of a label that is divided equally among all other classes.
    smallest_area : float
        Smallest share of an image's area in a random crop; 1 means no crop.
    jitter : float
        Brightness, contrast and colour are multiplied by factors in 1 ± jitter; 0 means none.
    flip : bool
        Whether half of the images are mirrored.
    rotations : bool
        Whether each of an image's four rotations by 90° belongs to a class of its own: four times the classes, for
        drawings in which a rotated character is another character.
    enlarge : bool
        Whether validation and extraction resize to 8/7 of the side and crop the centre, or just resize to the side.
    mean, std : tuple of three float
        Each channel becomes (x / 255 - mean) / std.
    seed : int
        Seed of initial weights, order and views.

    Examples
    --------
    >>> recipe = Recipe()
    >>> [recipe.learning_rate_at(epoch) for epoch in (0, 44, 45, 65, 66, 89)]
    [0.1, 0.1, 0.01, 0.01, 0.001, 0.001]
    >>> recipe.images_a_step, Recipe(network="wrn28-10").images_a_step
    (256, 128)
    """

    network: str = "resnet18"
    side: int | None = at_least(8, None)
    epochs: int = at_least(1, 90)
    batch_size: int | None = at_least(2, None)
    learning_rate: float = above(0, 0.1)
    momentum: float = limited(lambda share: 0 <= share < 1, "in 0 … 1, 1 excluded", 0.9)
    weight_decay: float = at_least(0, 1e-4)
    drop_at: tuple[int, ...] | None = limited(lambda epochs: min(epochs, default=1) > 0, "epochs from 1 on", None)
    label_smoothing: float = limited(lambda share: 0 <= share < 1, "in 0 … 1, 1 excluded", 0.1)
    smallest_area: float = limited(lambda share: 0 < share <= 1, "in 0 … 1, 0 excluded", 0.08)
    jitter: float = limited(lambda share: 0 <= share <= 1, "in 0 … 1", 0.4)
    flip: bool = True
    rotations: bool = False
    enlarge: bool = True
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = limited(lambda std: 0 not in std, "three numbers that are not 0", IMAGENET_STD)
    seed: int = limited(lambda seed: 0 <= seed < 2**63, "in 0 … 2^63-1", 0)

    def __post_init__(self) -> None:
        architecture(self.network)
        super().__post_init__()

    @property
    def pixels(self) -> int:
        """Height and width of the network's input."""
        return architecture(self.network).side if self.side is None else self.side

    @property
    def images_a_step(self) -> int:
        """Images of a batch, over all processes."""
        return architecture(self.network).batch_size if self.batch_size is None else self.batch_size

    def learning_rate_at(self, epoch: int) -> float:
        """`rate · 10^-(drops up to this epoch)`, epochs counted from 0."""
        drops = [int(part * self.epochs) for part in DROPS] if self.drop_at is None else self.drop_at
        return self.learning_rate / 10.0 ** sum(epoch >= drop for drop in drops)

    @property
    def random_view(self) -> RandomView:
        """What training sees of an image."""
        return RandomView(self.pixels, self.smallest_area, self.jitter, self.flip, Normalisation(self.mean, self.std))

    @property
    def centre_view(self) -> CentreView:
        """What validation and extraction see of an image."""
        shorter_side = int(self.pixels * ENLARGED) if self.enlarge else self.pixels
        return CentreView(self.pixels, shorter_side, Normalisation(self.mean, self.std))

    def to_mapping(self) -> dict[str, Any]:
        """Return the fields as plain values, fit for JSON."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in dataclasses.asdict(self).items()
        }
