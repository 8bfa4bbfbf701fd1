"""Base training on Lightning: loss, optimiser, validation and checkpoints; nothing else in handful knows Lightning.

`loss = -Σ_k y_k ln softmax(W f(x) + b)_k`, where the label y gives 1 - ε to its class and ε / (K - 1) to every other
class. The learning rate of an epoch is a function of its number, so there is no scheduler whose state could be lost.
"""

from __future__ import annotations

import hashlib
import io
import logging
import pickle
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import torch
from lightning.fabric.plugins.io.checkpoint_io import CheckpointIO
from lightning.pytorch.loggers import CSVLogger
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler

from handful.extraction.items import Items
from handful.machine.outputs import written_whole
from handful.progress import Reporter
from handful.shapes import Float, Int
from handful_fewshot.errors import CheckpointError
from handful_fewshot.networks import architecture
from handful_fewshot.networks.checkpoint import Checkpoint
from handful_fewshot.training.batches import CentreViews, EpochBatches, Pictures, RandomViews
from handful_fewshot.training.recipe import Recipe
from handful_fewshot.training.run import REALISTIC, STATE, few_shot_accuracies

DIGEST_BYTES = hashlib.sha256().digest_size


class BaseTraining(lightning.LightningModule):
    """A network with a linear classifier of the base classes."""

    def __init__(self, recipe: Recipe, n_classes: int, validation: Items | None) -> None:
        super().__init__()
        self.recipe = recipe
        self.validation = validation
        known = architecture(recipe.network)
        self.network = known.build(recipe.seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(recipe.seed + 1)
            self.classifier = nn.Linear(known.dim, n_classes)
        # torch spreads ε over all K classes, the public checkpoints over the other K - 1.
        self.smoothing = min(recipe.label_smoothing * n_classes / (n_classes - 1), 1.0)
        self._seen: list[tuple[Tensor, Tensor]] = []
        self.accuracies: dict[str, float] = {}

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Stochastic gradient descent with momentum."""
        recipe = self.recipe
        return torch.optim.SGD(
            self.parameters(), recipe.learning_rate, momentum=recipe.momentum, weight_decay=recipe.weight_decay
        )

    def on_train_epoch_start(self) -> None:
        """Set the learning rate of the epoch."""
        for group in self.optimizers().param_groups:  # type: ignore[union-attr]
            group["lr"] = self.recipe.learning_rate_at(self.current_epoch)

    def training_step(self, batch: tuple[Float[Tensor, "item 3 height width"], Int[Tensor, "item"]], _: int) -> Tensor:
        """Cross-entropy of one batch."""
        images, labels = batch
        logits = self.classifier(self.network(images))
        loss = functional.cross_entropy(logits, labels, label_smoothing=self.smoothing)
        right = (logits.detach().argmax(1) == labels).float().mean()
        seen = {"loss": loss.detach(), "base_accuracy": right}
        n = len(labels)
        self.log_dict(seen, prog_bar=True, on_step=False, on_epoch=True, sync_dist=True, batch_size=n)
        return loss

    def validation_step(self, batch: tuple[Int[Tensor, "item"], Float[Tensor, "item 3 height width"]], _: int) -> None:
        """Features of one batch of validation images."""
        rows, images = batch
        self._seen.append((rows, self.network(images).float()))

    def on_validation_epoch_end(self) -> None:
        """Gather the features of all processes and solve few-shot tasks with them."""
        assert self.validation is not None
        rows, features = (torch.cat(parts) for parts in zip(*self._seen, strict=True))
        self._seen.clear()
        # Lightning adds an axis of processes if there are several.
        every: list[Any] = [self.all_gather(part) for part in (rows, features)]
        places = every[0].reshape(-1).cpu().numpy()
        vectors = every[1].flatten(0, -2).cpu().numpy()
        placed = np.empty((len(self.validation), features.shape[-1]), np.float32)
        placed[places] = vectors
        self.accuracies = few_shot_accuracies(placed, self.validation.labels)
        self.log_dict(self.accuracies, prog_bar=True, rank_zero_only=True)


class ReportSteps(lightning.Callback):
    """Reports every step of the training."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Begin after the steps of a killed training."""
        total = int(trainer.estimated_stepping_batches)
        self.report = self.reporter.stage("train", total, trainer.global_step, "steps")

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: Any, **__: Any) -> None:
        """Report one step, in the first of all processes."""
        if trainer.is_global_zero:
            self.report(1)


class KeepBest(lightning.Callback):
    """After each epoch, save the network if it is the best so far, then the state from which to resume.

    In this order: if killed in between, the epoch is trained again and saves the same network again. Without validation
    the latest is the best.
    """

    def __init__(self, folder: Path, base: Items) -> None:
        self.folder = folder
        self.base = base
        self.best = -1.0

    def state_dict(self) -> dict[str, float]:
        """Return what a resumed training must know."""
        return {"best": self.best}

    def load_state_dict(self, state_dict: Mapping[str, float]) -> None:
        """Take over from a killed training."""
        self.best = state_dict["best"]

    def on_train_epoch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Save the network if it is the best, then the state."""
        assert isinstance(pl_module, BaseTraining)
        score = pl_module.accuracies.get(REALISTIC, 0.0)
        if score >= self.best:
            self.best = score
            if trainer.is_global_zero:
                self._checkpoint(pl_module, trainer.current_epoch + 1).save(self.folder)
        trainer.save_checkpoint(self.folder / STATE)

    def _checkpoint(self, module: BaseTraining, epoch: int) -> Checkpoint:
        weights = module.network.state_dict()
        weights |= {f"classifier.{name}": value for name, value in module.classifier.state_dict().items()}
        names = self.base.class_names
        if module.recipe.rotations:
            names = tuple(f"{name} turned by {90 * turn}°" if turn else name for turn in range(4) for name in names)
        return Checkpoint(
            module.recipe.network,
            {name: value.float() if value.is_floating_point() else value for name, value in weights.items()},
            module.recipe.centre_view,
            names,
            module.recipe.to_mapping(),
            self.base.data_hash,
            epoch,
            module.accuracies,
        )


def sealed(content: bytes) -> bytes:
    """Return the content behind its SHA-256."""
    return hashlib.sha256(content).digest() + content


class WholeStates(CheckpointIO):
    """Lightning's own state on disk: complete or not at all, and read without running any code from it."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """Write the state."""
        content = io.BytesIO()
        torch.save(checkpoint, content)
        with written_whole(Path(path)) as place:
            place.write_bytes(sealed(content.getvalue()))

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: bool | None = None) -> dict[str, Any]:
        """Read the state; Lightning moves tensors where they belong."""
        stored = Path(path).read_bytes()
        content = stored[DIGEST_BYTES:]
        try:
            if stored != sealed(content):
                raise ValueError("another checksum")
            state: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
            raise CheckpointError(
                f"{path} is not the state of a training, or it was changed; remove it to start the training again"
            ) from error
        return state

    def remove_checkpoint(self, path: Any) -> None:
        """Delete the state."""
        Path(path).unlink(missing_ok=True)


def fit(
    base: Pictures,
    validation: Pictures | None,
    recipe: Recipe,
    folder: Path,
    *,
    accelerator: str,
    devices: int,
    precision: str,
    workers: int,
    reporter: Reporter,
) -> bool:
    """Train, from the state in `folder` if there is one; return whether this process is the first of all."""
    views = RandomViews(base, recipe)
    module = BaseTraining(recipe, views.n_classes, None if validation is None else validation.items)
    with _few_words():
        trainer = lightning.Trainer(
            accelerator=accelerator,
            devices=devices,
            strategy="ddp" if devices > 1 else "auto",
            precision=precision,  # type: ignore[arg-type]
            max_epochs=recipe.epochs,
            callbacks=[KeepBest(folder, base.items), ReportSteps(reporter)],
            plugins=[WholeStates()],
            logger=CSVLogger(folder, name="logs"),
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            num_sanity_val_steps=0,
            use_distributed_sampler=False,
            default_root_dir=folder,
        )
        place = {"process": trainer.global_rank, "processes": trainer.world_size}
        loading = {"batch_size": None, "num_workers": workers, "persistent_workers": workers > 0}
        step = EpochBatches(len(views), recipe.images_a_step, recipe.seed, **place)
        training_batches = DataLoader(views, sampler=step, **loading)  # type: ignore[arg-type]
        validation_batches = None
        if validation is not None:
            centres = CentreViews(validation, recipe)
            # Every process gets as many rows, some twice: the processes can only gather features of equal shapes.
            rows: DistributedSampler[int] = DistributedSampler(
                centres, trainer.world_size, trainer.global_rank, shuffle=False
            )
            batches = BatchSampler(rows, recipe.images_a_step, drop_last=False)
            validation_batches = DataLoader(centres, sampler=batches, **loading)  # type: ignore[arg-type]
        state = folder / STATE
        trainer.fit(module, training_batches, validation_batches, ckpt_path=state if state.exists() else None)
    return trainer.is_global_zero


@contextmanager
def _few_words() -> Iterator[None]:
    """Silence Lightning's advertisements and advice; errors are still shown."""
    log = logging.getLogger("lightning.pytorch")
    level = log.level
    log.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            # Workers are the caller's choice, and an epoch may have fewer steps than the logging interval.
            warnings.filterwarnings("ignore", ".*does not have many workers.*")
            warnings.filterwarnings("ignore", ".*The number of training batches.*")
            warnings.filterwarnings("ignore", ".*You defined a `validation_step` but have no `val_dataloader`.*")
            # Lightning 2.6 uses what torch 2.13 deprecates; a user cannot change that.
            warnings.filterwarnings("ignore", ".*LeafSpec.*is deprecated.*")
            yield
    finally:
        log.setLevel(level)
