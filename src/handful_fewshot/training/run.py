"""train: images and a recipe to a checkpoint; run again after an interruption, it resumes.

The folder of a run:

    run.json              recipe and hashes of the data, see `handful_fewshot.training.begun`
    checkpoint.json, weights-<epoch>.safetensors      the best network so far, see `handful_fewshot.networks.checkpoint`
    resume.pt             where a killed training resumes
    finished              there if the training is; `resume.pt` is then removed
    logs/                 loss and accuracies of each epoch, as CSV

An epoch is judged by the accuracy of the nearest prototype on few-shot tasks of classes that the network has not seen.
There are two kinds of tasks, with five shots each: five classes with fifteen queries per class, as in the literature;
and all validation classes with a query in which five of them occur, as the networks will be used. With fewer than five
validation classes, both have as many as there are, and the first is called after their number.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from handful import FeatureBank
from handful.errors import OptionError
from handful.extraction.items import Items
from handful.machine.extras import import_extra
from handful.machine.outputs import written_whole
from handful.progress import Progress, Reporter, bars
from handful.shapes import Float, Int
from handful_fewshot.dispatch import solve
from handful_fewshot.errors import TrainingError
from handful_fewshot.gathering import gather
from handful_fewshot.networks.checkpoint import Checkpoint
from handful_fewshot.tasks import Balanced, ShotsPerClass, TaskSpec, UniformOverPool, draw
from handful_fewshot.training.batches import Pictures
from handful_fewshot.training.begun import ABOUT_FILE, begin, refuse_another
from handful_fewshot.training.recipe import Recipe
from handful_fewshot.training.splits import BaseSplit, check_disjoint
from handful_fewshot.transforms import transform

STATE = "resume.pt"
FINISHED = "finished"
# Incremented when the meaning of a run's files changes.
FORMAT = 1
PRECISIONS = ("32-true", "16-mixed", "bf16-mixed", "64-true")

# Of the tasks that an epoch is judged by.
SHOTS = 5
CLASSES = 5
N_QUERY = 75
N_TASKS = 200
# Names of tasks, by their number of classes.
WAYS = {2: "two_way", 3: "three_way", 4: "four_way", 5: "five_way"}
# Name of the accuracy that decides which epoch is the best.
REALISTIC = "realistic"


def train(
    split: BaseSplit,
    recipe: Recipe,
    out: str | os.PathLike[str],
    *,
    accelerator: str = "auto",
    devices: int = 1,
    precision: str = "32-true",
    workers: int = 0,
    on_progress: Callable[[Progress], None] | None = None,
) -> Checkpoint | None:
    """Train a network on base classes and keep the epoch that is best on validation classes.

    Parameters
    ----------
    split : BaseSplit
        Images to train on and to validate with; without validation the last epoch is kept.
    recipe : Recipe
        Network, epochs, learning rates, views.
    out : path
        Folder of the run. If a training with this recipe and these images was killed there, it resumes; on one
        processor the weights are the same as without the interruption.
    accelerator : str
        As Lightning names them: auto, cpu, gpu.
    devices : int
        Processes that train together, one per device; each takes its share of every batch, and normalises over it.
    precision : str
        32-true, 16-mixed, bf16-mixed or 64-true. The checkpoint is in single precision.
    workers : int
        Processes that load images, per training process; 0 loads in the training process itself.
    on_progress : callable, optional
        Called with a `handful.progress.Progress` while images are checked, and after every step of the training. By
        default there are bars, on a terminal and in a notebook.

    Returns
    -------
    Checkpoint or None
        The best network, as loaded from `out`; None in all processes but the first.

    Examples
    --------
    Tiles of six colours; with real images leave out what makes this recipe small.

    >>> from tempfile import mkdtemp
    >>> from PIL import Image
    >>> from handful.extraction.items import list_items
    >>> folder = Path(mkdtemp())
    >>> for colour in ("black", "blue", "green", "grey", "red", "white"):
    ...     (folder / "tiles" / colour).mkdir(parents=True)
    ...     for i in range(8):
    ...         Image.new("RGB", (12, 12), colour).save(folder / "tiles" / colour / f"{i}.png")
    >>> from handful_fewshot.training import hold_out
    >>> split = hold_out(list_items(folder / "tiles"), 2, seed=0)
    >>> recipe = Recipe(network="conv4", side=12, epochs=2, batch_size=8)
    >>> checkpoint = train(split, recipe, folder / "run", accelerator="cpu")
    >>> checkpoint.classes, sorted(checkpoint.validation)
    (('black', 'blue', 'green', 'white'), ['realistic', 'two_way'])
    """
    if precision not in PRECISIONS:
        raise OptionError(f"precision must be {', '.join(PRECISIONS)}, got {precision!r}")
    if devices < 1 or workers < 0:
        raise OptionError(f"devices must be at least 1 and workers at least 0, got {devices} and {workers}")
    _check(split)
    out = Path(os.path.abspath(out))
    there = [name for name in os.listdir(out) if not name.startswith(".")] if out.exists() else []
    if set(there) - {"items.csv"} and ABOUT_FILE not in there:
        raise TrainingError(f"{out} is neither empty nor a run of `handful train`; choose another folder")
    about = _about(split, recipe)
    refuse_another(out, about)
    if (out / FINISHED).exists():
        return Checkpoint.load(out)
    on_lightning = import_extra("handful_fewshot.training.on_lightning", "train")
    with bars("train", on_progress) as listener:
        base = Pictures(split.base, on_progress=listener)
        validation = None if split.validation is None else Pictures(split.validation)
        begin(out, about)
        machine = {"accelerator": accelerator, "devices": devices, "precision": precision, "workers": workers}
        first = on_lightning.fit(base, validation, recipe, out, reporter=Reporter(listener), **machine)
    if not first:
        return None
    with written_whole(out / FINISHED) as place:
        place.touch()
    (out / STATE).unlink(missing_ok=True)
    return Checkpoint.load(out)


def _check(split: BaseSplit) -> None:
    sizes = np.bincount(split.base.labels, minlength=len(split.base.class_names))
    if len(sizes) < 2 or sizes.min() == 0:
        raise TrainingError(
            f"training needs at least 2 base classes with images, got {np.count_nonzero(sizes)}; expected one folder "
            "per class"
        )
    if split.validation is not None:
        check_disjoint(split.base, split.validation)
        check_validation(split.validation)


def _about(split: BaseSplit, recipe: Recipe) -> dict[str, Any]:
    """Return what must be the same for a training to resume."""
    sets = {"base images": split.base, "validation images": split.validation}
    inputs = {role: {"name": "none", "content": ""} for role in sets}
    for role, items in sets.items():
        if items is not None:
            name = f"the set of {len(items)} images of {len(items.class_names)} classes"
            inputs[role] = {"name": name, "content": items.data_hash}
    return {"format": FORMAT, "inputs": inputs, **recipe.to_mapping()}


def validation_specs(labels: Int[np.ndarray, "row"]) -> dict[str, TaskSpec]:
    """Return the kinds of tasks, by the name of their accuracy; smaller queries where classes have few images."""
    sizes = np.bincount(labels)
    occurring = min(CLASSES, len(sizes))
    left = int(sizes.min()) - SHOTS
    each = min(N_QUERY // CLASSES, left)
    return {
        WAYS[occurring]: TaskSpec(
            ShotsPerClass(SHOTS), Balanced(k_eff=occurring), each * occurring, n_classes=occurring
        ),
        REALISTIC: TaskSpec(ShotsPerClass(SHOTS), UniformOverPool(k_eff=occurring), each * occurring),
    }


def check_validation(items: Items) -> None:
    """Refuse classes from which no task can be drawn."""
    sizes = np.bincount(items.labels, minlength=len(items.class_names))
    if len(sizes) < 2:
        raise TrainingError(f"validation needs at least 2 classes, got {len(sizes)}; hold out more, or none")
    if sizes.min() <= SHOTS:
        raise TrainingError(
            f"validation class {items.class_names[int(sizes.argmin())]!r} has {sizes.min()} images, but {SHOTS} shots "
            f"and a query need at least {SHOTS + 1}; add images, or train without validation"
        )


def few_shot_accuracies(
    features: Float[np.ndarray, "row dim"], labels: Int[np.ndarray, "row"], *, n_tasks: int = N_TASKS
) -> dict[str, float]:
    """Mean accuracy of the nearest prototype on unit-norm features, over the first tasks of seed 0 of each kind."""
    bank = FeatureBank.from_arrays(features, labels, [str(k) for k in range(int(labels.max()) + 1)])
    accuracies = {}
    for name, spec in validation_specs(labels).items():
        task, truth = gather(bank, draw(labels, spec, seed=0, indices=range(n_tasks)))
        answer = solve("nearest_prototype", transform("l2", task))
        accuracies[name] = float((answer.predictions == truth).double().mean())
    return accuracies
