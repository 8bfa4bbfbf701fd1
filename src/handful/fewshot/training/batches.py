"""Batches: which images a step sees and how, as a function of (seed, epoch, step); there is no state.

A view of an image is addressed, not produced: its crop, colours and mirroring are drawn from (seed, epoch, row). The
order of an epoch is drawn from (seed, epoch), and process p of P takes every P-th row of each batch. So a resumed
training, another number of loading workers, or two processes instead of one see exactly the same images.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, Sampler

from handful.errors import TrainingError
from handful.fewshot.training.pictures import Pictures
from handful.fewshot.training.recipe import Recipe
from handful.shapes import Float, Int

# What a random number is for; part of its address.
ORDER, VIEW = 0, 1


class RandomViews(Dataset[tuple[Float[Tensor, "item 3 height width"], Int[Tensor, "item"]]]):
    """A batch of random views with their labels, by the addresses (epoch, row) of its images.

    With `recipe.rotations`, row `n q + i` is image i turned by q quarters and class `K q + k`: n images of K classes
    become 4 n of 4 K.
    """

    def __init__(self, pictures: Pictures, recipe: Recipe) -> None:
        self.pictures, self.recipe = pictures, recipe
        self.turns = 4 if recipe.rotations else 1

    def __len__(self) -> int:
        return self.turns * len(self.pictures)

    @property
    def n_classes(self) -> int:
        """Classes to tell apart."""
        return self.turns * len(self.pictures.items.class_names)

    def __getitem__(
        self, addresses: Sequence[tuple[int, int]]
    ) -> tuple[Float[Tensor, "item 3 height width"], Int[Tensor, "item"]]:
        """Return views and labels."""
        items, view = self.pictures.items, self.recipe.random_view
        views, labels = [], []
        for epoch, row in addresses:
            turn, image = divmod(row, len(self.pictures))
            random = np.random.default_rng((VIEW, self.recipe.seed, epoch, row))
            views.append(torch.rot90(view(self.pictures[image], random), turn, (-2, -1)))
            labels.append(turn * len(items.class_names) + int(items.labels[image]))
        return torch.stack(views), torch.tensor(labels)


class EpochBatches(Sampler[list[tuple[int, int]]]):
    """Addresses of the batches of an epoch, as process `process` of `processes` sees them.

    Rows that do not fill a whole batch are left out; the next epoch leaves out others.
    """

    def __init__(self, n_rows: int, batch_size: int, seed: int, process: int = 0, processes: int = 1) -> None:
        if batch_size % processes:
            raise TrainingError(
                f"a batch of {batch_size} images cannot be shared equally by {processes} processes; "
                f"choose a batch size that is a multiple of {processes}"
            )
        if batch_size > n_rows:
            raise TrainingError(
                f"a batch of {batch_size} images was asked for, but there are {n_rows}; lower the batch size"
            )
        self.n_rows, self.batch_size, self.seed = n_rows, batch_size, seed
        self.process, self.processes = process, processes
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch; Lightning calls this at its beginning."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self.n_rows // self.batch_size

    def __iter__(self) -> Iterator[list[tuple[int, int]]]:
        order = np.random.default_rng((ORDER, self.seed, self.epoch)).permutation(self.n_rows)
        for step in range(len(self)):
            batch = order[step * self.batch_size : (step + 1) * self.batch_size]
            yield [(self.epoch, int(row)) for row in batch[self.process :: self.processes]]


class CentreViews(Dataset[tuple[Int[Tensor, "item"], Float[Tensor, "item 3 height width"]]]):
    """A batch of central views, as extraction will see them, with their rows."""

    def __init__(self, pictures: Pictures, recipe: Recipe) -> None:
        self.pictures, self.recipe = pictures, recipe

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, rows: Sequence[int]) -> tuple[Int[Tensor, "item"], Float[Tensor, "item 3 height width"]]:
        """Return rows and views."""
        view = self.recipe.centre_view
        return torch.tensor(list(rows)), torch.stack([view(self.pictures[row]) for row in rows])
