"""Feature transforms, each with its own name: pure functions from a TaskBatch to a TaskBatch.

No method transforms features by itself. `METHODS[...].transform` names the transform that published results used.

Every transform maps the names of classes, if a task has them, by the function that maps features, so that both stay in
one space; means and ranges are those of the features alone. Names that lie elsewhere than features, as texts do beside
images in CLIP, are meant for `l2`, which looks at each vector alone.

Features that are far from one are multiplied by a power of two first, which changes no digit, if a transform has a
constant: the offset of `pt_map_preprocess`, or the minimum that `range_scale_public_code` subtracts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from handful.arguments import did_you_mean
from handful.errors import TaskError, UnknownNameError
from handful.shapes import Float
from handful_fewshot.errors import TransformError
from handful_fewshot.numerics.fixed_point import concatenated
from handful_fewshot.numerics.geometry import labelled_moments
from handful_fewshot.numerics.scale import found_factor
from handful_fewshot.numerics.vectors import unit
from handful_fewshot.task import Array, TaskBatch

# Exponent and offset of PT-MAP's power transform, as its authors published them.
POWER = 0.5
POWER_OFFSET = 1e-6
# A task whose longest vector is in this range is not rescaled.
SMALLEST = 2.0**-12
LARGEST = 2.0**12
# Room for temperatures and for sums over points and dimensions when features are raised to their fourth power.
HEADROOM = 100
# Numbers in the points and distances of the tasks whose scale is found together: 64 MB of float32.
FOUND_SCALE_NUMBERS = 16_000_000


def raw(task: TaskBatch) -> TaskBatch:
    """Leave features as they are."""
    return task


def l2(task: TaskBatch) -> TaskBatch:
    """`z ← z / ‖z‖`; a zero vector stays zero."""
    return task.mapped(unit)


def l2_times(task: TaskBatch, *, factor: float) -> TaskBatch:
    """`z ← factor · z / ‖z‖`: the factor sets how a method weighs distances against nats."""
    return task.mapped(lambda z: unit(z).mul_(factor))


def range_scale(task: TaskBatch) -> TaskBatch:
    """`z_j ← (z_j - min_Q z_j) / (max_Q z_j - min_Q z_j)`: scale each dimension by its range over the task's query."""
    low, width = _query_range(task)
    # The second step is done in place: allocating memory for a large support costs more than the arithmetic.
    return task.mapped(lambda z: (z - low).div_(width))


def range_scale_public_code(task: TaskBatch) -> TaskBatch:
    """`z_j ← z_j / (max_Q z_j - min_Q z_j) - min_Q z_j`: the scaling in PADDLE's public code, with its mistake.

    The minimum is subtracted unscaled, so the result is `range_scale` moved by a constant vector per task. Methods
    that use only differences of features give the same answer; reported prototypes differ by that vector.
    """
    task = _near_one(task)
    low, width = _query_range(task)
    return task.mapped(lambda z: (z / width).sub_(low))


def cl2n(task: TaskBatch, *, base_mean: Array | Sequence[float]) -> TaskBatch:
    """`z ← (z - z̄) / ‖z - z̄‖`, with z̄ the mean feature of the base classes (Wang et al., arXiv 1911.04623).

    Parameters
    ----------
    base_mean : Float[Tensor, "dim"]
        Mean over the classes the encoder was trained on, without any class of the task.
    """
    origin = torch.as_tensor(base_mean).to(task.device, task.dtype)
    if origin.shape != (task.dim,):
        raise TransformError(
            f"base_mean must have one number per dimension, shape ({task.dim},), got shape {tuple(origin.shape)}; "
            "give the mean feature of the base classes"
        )
    return task.mapped(lambda z: unit(z - origin))


def task_cl2n(task: TaskBatch) -> TaskBatch:
    """`z ← (z - z̄) / ‖z - z̄‖`, with z̄ the mean over support and query of the task (Boudiaf et al., CVPR 2023)."""
    sums = [task.zeroed(name).sum(-2, keepdim=True) for name in ("support", "query")]
    counts = [task.present(name).sum(-1)[:, None, None] for name in ("support", "query")]
    mean = (sums[0] + sums[1]) / (counts[0] + counts[1])
    return task.mapped(lambda z: unit(z - mean))


def found_scale(task: TaskBatch) -> TaskBatch:
    """`z ← c (z - z̄) / ‖z - z̄‖`: distances become nats, by a factor c that is found for each task.

    Points are brought to unit length first, and z̄ is the mean of the class means of the support. The factor is found
    from the support and from the query without its labels, see `handful_fewshot.numerics.scale`. A support that tasks
    share is copied, because each task has its own factor.
    """
    centred = about_the_classes(l2(task))
    numbers = (task.support_slots + task.query_slots) * (task.n_classes + task.dim)
    factors = concatenated([found_factors(block) for block in centred.blocks(numbers, FOUND_SCALE_NUMBERS)])
    return centred.mapped(lambda z: z * factors)


def pt_map_preprocess(task: TaskBatch) -> TaskBatch:
    """`z ← (z + 10⁻⁶)^½`, to unit length, minus the mean of its own set, to unit length (Hu et al., ICANN 2021).

    Support, query and names are each centred on their own mean, without padding. For a negative feature, where the
    formula is undefined, the root of its magnitude is used with its sign. The authors also rotate the points of a task
    into their span (the R factor of a QR decomposition); this changes no distance and is left out.
    """
    task = _near_one(task)
    sets = (task.support, task.support_mask), (task.query, task.query_mask)
    support, query = (unit(_centred(unit(_root(features)), mask)) for features, mask in sets)
    names = None if task.names is None else unit(_centred(unit(_root(task.names)), None))
    return task.with_features(support, query, names)


TRANSFORMS: Mapping[str, Callable[..., TaskBatch]] = MappingProxyType(
    {
        "raw": raw,
        "l2": l2,
        "l2_times": l2_times,
        "cl2n": cl2n,
        "task_cl2n": task_cl2n,
        "found_scale": found_scale,
        "pt_map_preprocess": pt_map_preprocess,
        "range_scale": range_scale,
        "range_scale_public_code": range_scale_public_code,
    }
)

# What features are called after each transform, wherever a method is printed.
SCALES: Mapping[str, str] = MappingProxyType(
    {
        "raw": "raw features",
        "l2": "unit length",
        "l2_times": "unit length",
        "cl2n": "centred on base classes",
        "task_cl2n": "centred on the task",
        "found_scale": "found scale",
        "pt_map_preprocess": "PT-MAP's preprocessing",
        "range_scale": "range scale",
        "range_scale_public_code": "published scale",
    }
)


def scale_name(name: str, parameters: Mapping[str, Any] = MappingProxyType({})) -> str:
    """Return what features are called after the transform of this name, with its factor if it has one."""
    factor = parameters.get("factor")
    return SCALES[name] if factor is None else f"{SCALES[name]} × {factor:g}"


def method_at(method: str, scale: str, *options: str) -> str:
    """Return how a method is printed: with its options and the scale of its features, since it has an answer for each.

    Examples
    --------
    >>> method_at("paddle", scale_name("found_scale")), method_at("paddle", scale_name("l2_times", {"factor": 4.0}))
    ('paddle (found scale)', 'paddle (unit length × 4)')
    >>> method_at("paddle", "published scale", "max_iter=5")
    'paddle (max_iter=5, published scale)'
    """
    return f"{method} ({', '.join((*options, scale))})"


def transform(name: str, task: TaskBatch, **parameters: object) -> TaskBatch:
    """Apply the transform with the given name and its parameters.

    Parameters
    ----------
    name : str
        A key of `TRANSFORMS`.
    task : TaskBatch
        The tasks; they are not changed.
    **parameters
        Parameters of the transform, such as `base_mean` of `cl2n`.

    Returns
    -------
    TaskBatch
        The same tasks with other features.

    Examples
    --------
    >>> task = TaskBatch.single([[3.0, 4.0]], [0], [[0.0, 2.0]], n_classes=1)
    >>> transform("l2", task).support.tolist()
    [[[0.6000000238418579, 0.800000011920929]]]
    >>> transform("cl2n", task, base_mean=[0.0, 4.0]).support.tolist()
    [[[1.0, 0.0]]]
    """
    wanted = parameters_of(name)
    if set(parameters) != set(wanted):
        raise TransformError(
            f"transform {name!r} takes {_listed(wanted)} in addition to the task, got {_listed(tuple(parameters))}; "
            f"call transform({', '.join([repr(name), 'task', *(f'{p}=...' for p in wanted)])})"
        )
    if name != "raw":  # squares must not underflow
        refuse_magnitudes(task, torch.finfo(task.dtype).tiny ** 0.5, "multiply all features by a number")
    return TRANSFORMS[name](task, **parameters)


def parameters_of(name: str) -> tuple[str, ...]:
    """Names of the parameters that a transform needs in addition to the task; their values define it completely."""
    if name not in TRANSFORMS:
        alike = did_you_mean(name, TRANSFORMS)
        raise UnknownNameError(f"no transform is called {name!r}{alike}; choose from {', '.join(TRANSFORMS)}")
    return tuple(inspect.signature(TRANSFORMS[name]).parameters)[1:]


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "nothing"


def refuse_magnitudes(task: TaskBatch, least: float, advice: str) -> None:
    """Refuse features that are too small, or whose fourth powers might overflow; `advice` says what to do."""
    most = torch.finfo(task.dtype).max ** 0.25 / HEADROOM
    wrong = (task.magnitude > most) | ((task.magnitude < least) & (task.magnitude > 0))
    if bool(wrong.any()):
        t = int(wrong.nonzero()[0])
        raise TaskError(
            f"the vectors of task {t} have lengths of up to {float(task.magnitude[t]):.2g}, but lengths between "
            f"{least:.2g} and {most:.2g} are needed to compute in {task.dtype}; {advice} that brings them near one"
        )


def _near_one(task: TaskBatch) -> TaskBatch:
    """Multiply features far from one by a power of two per task, or by a single one if tasks share a support."""
    largest = task.magnitude.amax(0, keepdim=True) if len(task.support) == 1 else task.magnitude
    far = (largest < SMALLEST) | (largest > LARGEST)
    if not bool(far.any()):
        return task
    factor = torch.ldexp(torch.ones_like(largest), -torch.frexp(largest).exponent).where(far, 1).reshape(-1, 1, 1)
    return task.mapped(lambda z: z * factor)


def about_the_classes(task: TaskBatch) -> TaskBatch:
    """`z ← (z - z̄) / ‖z - z̄‖`, with z̄ the mean of the class means of the support, for features of unit length."""
    labels = task.support_labels.expand(task.n_tasks, -1)
    mask = task.support_mask
    mask = None if mask is None else mask.expand(task.n_tasks, -1)
    support = task.zeroed("support").expand(task.n_tasks, -1, -1)
    query = task.zeroed("query")
    origin = labelled_moments(support, labels, mask, task.n_classes).mean().mean(-2, keepdim=True)
    support = unit(support - origin)
    query = unit(query - origin)
    if mask is not None:
        support = support.where(mask.unsqueeze(-1), 0)
    if task.query_mask is not None:
        query = query.where(task.query_mask.unsqueeze(-1), 0)
    names = None if task.names is None else unit(task.names - origin)
    return task.with_features(support, query, names)


def found_factors(task: TaskBatch) -> Float[Tensor, "task 1 1"]:
    """Return the factor c of each task of `about_the_classes`; neither query labels nor other tasks matter."""
    labels = task.support_labels.expand(task.n_tasks, -1)
    mask = task.support_mask
    mask = None if mask is None else mask.expand(task.n_tasks, -1)
    moments = labelled_moments(task.support, labels, mask, task.n_classes)
    return found_factor(task.support, labels, mask, moments, task.query, task.query_mask)[:, None, None]


def _root(features: Tensor) -> Tensor:
    """`(z + 10⁻⁶)^½` where z ≥ 0, its mirror image elsewhere."""
    magnitude = (features.abs() + POWER_OFFSET).pow(POWER)
    return magnitude.where(features >= 0, -magnitude)


def _centred(features: Float[Tensor, "set point dim"], mask: Tensor | None) -> Float[Tensor, "set point dim"]:
    """`z - z̄`, with z̄ the mean over the rows without padding; padding becomes zero."""
    if mask is None:
        return features - features.mean(-2, keepdim=True)
    real = mask.unsqueeze(-1)
    features = features.where(real, 0)
    mean = features.sum(-2, keepdim=True) / real.sum(-2, keepdim=True)
    return (features - mean).where(real, 0)


def _query_range(task: TaskBatch) -> tuple[Float[Tensor, "task 1 dim"], Float[Tensor, "task 1 dim"]]:
    """Minimum and width per task and dimension; a width of zero becomes one."""
    query = task.query
    if task.query_mask is None:
        low = query.amin(1, keepdim=True)
        high = query.amax(1, keepdim=True)
    else:
        real = task.query_mask.unsqueeze(-1)
        low = query.where(real, torch.inf).amin(1, keepdim=True)
        high = query.where(real, -torch.inf).amax(1, keepdim=True)
    width = high - low
    return low, width.where(width > 0, 1)
