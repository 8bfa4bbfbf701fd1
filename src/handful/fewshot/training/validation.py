"""Validation: few-shot accuracy of the nearest prototype on classes that the network has not seen.

There are two kinds of tasks, with five shots each: five classes with fifteen queries per class, as in the literature;
and all validation classes with a query in which five of them occur, as the networks will be used. With fewer than five
validation classes, both have as many as there are, and the first is called after their number.
"""

from __future__ import annotations

import numpy as np

from handful.banks import FeatureBank
from handful.errors import TrainingError
from handful.extraction.items import Items
from handful.fewshot.dispatch import solve
from handful.fewshot.gathering import gather
from handful.fewshot.tasks import Balanced, ShotsPerClass, TaskSpec, UniformOverPool, draw
from handful.fewshot.transforms import transform
from handful.shapes import Float, Int

SHOTS = 5
CLASSES = 5
N_QUERY = 75
N_TASKS = 200
# Names of tasks, by their number of classes.
WAYS = {2: "two_way", 3: "three_way", 4: "four_way", 5: "five_way"}
# Name of the accuracy that decides which epoch is the best.
REALISTIC = "realistic"


def validation_specs(labels: Int[np.ndarray, "row"]) -> dict[str, TaskSpec]:
    """Return the kinds of tasks, by the name of their accuracy; smaller queries where classes have few images."""
    sizes = np.bincount(labels)
    occurring, left = min(CLASSES, len(sizes)), int(sizes.min()) - SHOTS
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
