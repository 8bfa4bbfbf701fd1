"""Batches: images decoded once, and which of them a step sees and how, as a function of (seed, epoch, step).

Every image is decoded once before a training begins. So a broken file is reported in the first minutes and not hours
later, and images that fit into the memory reserved for them are never decoded again.

A view of an image is addressed, not produced: its crop, colours and mirroring are drawn from (seed, epoch, row). The
order of an epoch is drawn from (seed, epoch), and process p of P takes every P-th row of each batch. So a resumed
training, another number of loading workers, or two processes instead of one see exactly the same images.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, Sampler

from handful.extraction.decode import decode_image
from handful.extraction.items import Items
from handful.progress import Progress, Reporter
from handful.reading.contents import Unreadable, ZipFiles
from handful.shapes import Float, Int
from handful_fewshot.errors import TrainingError
from handful_fewshot.training.recipe import Recipe

# What a random number is for; part of its address.
ORDER = 0
VIEW = 1

# Decoded images kept in memory, in each process that trains.
KEPT_BYTES = 2 * 2**30
# Images decoded between two progress messages.
BLOCK = 500
# Unreadable images named in the message about them.
SHOWN = 5


class Pictures:
    """RGB images of Pillow by row; images beyond `kept_bytes`, three for each pixel, are decoded each time.

    `on_progress` is called with a `Progress` now and then.
    """

    def __init__(
        self, items: Items, *, kept_bytes: int = KEPT_BYTES, on_progress: Callable[[Progress], None] | None = None
    ) -> None:
        if items.kind != "image":
            raise TrainingError(
                "networks are trained on images, but these items are sentences; give a folder of images"
            )
        self.items = items
        self._kept: list[Any] = []
        self._archive: tuple[int, zipfile.ZipFile] | None = None
        broken: list[str] = []
        report = Reporter(on_progress).stage("check images", len(items), unit="images")
        before = 0
        for row, content in enumerate(items.source):
            image = _decoded(content)
            if isinstance(image, Unreadable):
                broken.append(f"{items.names[row]}: {image.reason}")
                continue
            kept_bytes -= 3 * image.width * image.height
            if kept_bytes >= 0 and len(self._kept) == row:
                self._kept.append(image)
            if row + 1 == len(items) or row % BLOCK == 0:
                report(row + 1 - before)
                before = row + 1
        if broken:
            more = [f"and {len(broken) - SHOWN} more"] if len(broken) > SHOWN else []
            listed = "; ".join([*broken[:SHOWN], *more])
            raise TrainingError(f"{len(broken)} of {len(items)} images cannot be read; fix or remove them: {listed}")

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, row: int) -> Any:
        """Return one image."""
        if row < len(self._kept):
            return self._kept[row]
        image = _decoded(self._content(row))
        if isinstance(image, Unreadable):
            raise TrainingError(f"{self.items.names[row]} could be read before but no longer can: {image.reason}")
        return image

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the open archive: each process opens its own."""
        return {**self.__dict__, "_archive": None}

    def _content(self, row: int) -> bytes | str | Unreadable:
        source = self.items.source
        if not isinstance(source, ZipFiles):
            return next(iter(source[row : row + 1]))
        # Opening an archive reads its whole table of contents, so it stays open; but not across processes, which would
        # share the position in the file.
        if self._archive is None or self._archive[0] != os.getpid():
            self._archive = (os.getpid(), zipfile.ZipFile(source.root))
        return self._archive[1].read(source.names[row])


def _decoded(content: bytes | str | Unreadable) -> Any:
    return decode_image(content) if isinstance(content, bytes) else content


class RandomViews(Dataset[tuple[Float[Tensor, "item 3 height width"], Int[Tensor, "item"]]]):
    """A batch of random views with their labels, by the addresses (epoch, row) of its images.

    With `recipe.rotations`, row `n q + i` is image i turned by q quarters and class `K q + k`: n images of K classes
    become 4 n of 4 K.
    """

    def __init__(self, pictures: Pictures, recipe: Recipe) -> None:
        self.pictures = pictures
        self.recipe = recipe
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
        items = self.pictures.items
        view = self.recipe.random_view
        views = []
        labels = []
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
        self.n_rows = n_rows
        self.batch_size = batch_size
        self.seed = seed
        self.process = process
        self.processes = processes
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
        self.pictures = pictures
        self.recipe = recipe

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, rows: Sequence[int]) -> tuple[Int[Tensor, "item"], Float[Tensor, "item 3 height width"]]:
        """Return rows and views."""
        view = self.recipe.centre_view
        return torch.tensor(list(rows)), torch.stack([view(self.pictures[row]) for row in rows])
