"""Baseline and Baseline++: a classifier trained on the support alone (Chen, Liu, Kira, Wang, Huang, ICLR 2019).

Every head is trained on the mean cross-entropy of the support, `L = -(1/|S|) Σ_S ln p_{n y_n}`; each query is then
labelled on its own. If all tasks share a support, the head is trained once.

- Baseline, head "linear", as published: logits `⟨v_k, z_n⟩ + b_k`, trained by stochastic gradient descent (100 epochs,
  mini-batches of 4, learning rate 0.01, weight decay 1e-3). Here an epoch is one deterministic step, see `fit_linear`.
- Baseline, head "prototypes", called Baseline in PADDLE's tables: logits `-(τ/2)‖z_n - w_k‖²`, with prototypes that
  start at the support means and take 100 steps of Adam on the whole support, learning rate 1e-3. Without any step it is
  the nearest prototype.
- Baseline++: logits `s ‖v_k‖ cos(z_n, v_k)`, a linear layer without bias on unit features, whose class norms are
  learned; s = 2, or 10 for more than 200 classes, as in the authors' code. The authors write v as a norm times a
  direction; where norm and parameter agree, as they do at initialisation, a step is the same.
- Names probe: logits `τ cos(z_n, w_k)`, with w that starts at the names of the classes, so that without any step it is
  CLIP's zero-shot answer. Silva-Rodríguez, Hajimiri, Ben Ayed and Dolz (CVPR 2024) call it ZS-LP. They train it by
  stochastic descent on augmented images; assumed here are the steps of the prototypes above, and features as they are.

The derivative of L in the logits is `e_nk = (p_nk - y_nk) / |S|`, so

    ∂L/∂w_k = τ ( Σ_n e_nk z_n - w_k Σ_n e_nk ),     ∂L/∂v_k = Σ_n e_nk z_n,     ∂L/∂b_k = Σ_n e_nk,

and that of the cosines, with ŵ and ẑ of unit length, `∂L/∂w_k = (τ/‖w_k‖) (I - ŵ_k ŵ_kᵀ) Σ_n e_nk ẑ_n`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from handful.shapes import Float
from handful_fewshot.frame import Frame
from handful_fewshot.methods.method import Method, Options, above, among, at_least
from handful_fewshot.numerics.adam import minimised
from handful_fewshot.numerics.vectors import cosines, half_squared_distances, softmax, unit
from handful_fewshot.solution import Solution
from handful_fewshot.task import TaskBatch

HEADS = ("linear", "prototypes")
# The authors' factors on cosines; the larger one is for more classes than this.
SCALE = 2.0
LARGE_SCALE = 10.0
MANY_CLASSES = 200


@dataclass(frozen=True)
class BaselinePPOptions(Options):
    """Options of Baseline++.

    **Assumes** nothing about the query, and does not look at it. **Use it** where the directions of features matter
    more than their lengths. PADDLE's tables do not have it: its public code lacks the class. The authors start at
    random, and here v starts at zero; two of their stochastic runs agree with each other on 95-98% of predictions,
    and with this one on 94-98% (`python -m tests.fewshot.oracles.stochastic_epochs`). **Cost.** 4|S|Kd per step,
    100 steps.
    """

    max_iter: int = at_least(0, 100)  # epochs
    learning_rate: float = above(0, 1e-2)  # per mini-batch
    batch_size: int = at_least(1, 4)
    weight_decay: float = at_least(0, 1e-3)
    scale: float | None = above(0, None)  # s; None means 2, or 10 for more than 200 classes


@dataclass(frozen=True)
class BaselineOptions(Options):
    """Options of Baseline.

    **Assumes** nothing about the query, and does not look at it. **Use it** to see what training alone gives. The
    linear layer of the authors starts at random, with momentum; two of their stochastic runs agree with each other
    on 67-93% of predictions, and with this one on 76-95% (`python -m tests.fewshot.oracles.stochastic_epochs`).
    PADDLE's public code has prototypes on `l2` features, the code of its submission on raw ones. The linear layer
    has no prototypes: asking its `Solution` for them raises `UndefinedError`. **Cost.** 4|S|Kd per step, 100 steps.
    """

    head: str = among(HEADS, "linear")  # a linear layer, as published, or prototypes, as in PADDLE's public code
    max_iter: int = at_least(0, 100)  # epochs of the linear layer, or steps of the prototypes
    learning_rate: float | None = above(0, None)  # per mini-batch, or of Adam; None means 1e-2 and 1e-3
    batch_size: int = at_least(1, 4)  # of the linear layer
    weight_decay: float = at_least(0, 1e-3)  # of the linear layer
    temperature: float = above(0, 15.0)  # τ of the prototypes' logits


@dataclass(frozen=True)
class NamesProbeOptions(Options):
    """Options of the linear probe that starts at the names.

    **Assumes** names and examples, and does not look at the query. **Use it** as what names and examples give each
    item alone. **Cost.** 4|S|Kd per step, 100 steps.
    """

    temperature: float = above(0, 100.0)  # τ, nats per unit of cosine; 100 is CLIP's own
    max_iter: int = at_least(0, 100)  # steps of Adam on the whole support; zero is the zero-shot answer
    learning_rate: float = above(0, 1e-3)


def slope(
    logits: Float[Tensor, "set support class"], targets: Float[Tensor, "set support class"]
) -> Float[Tensor, "set support class"]:
    """`∂L/∂logits_nk = (p_nk - y_nk) / |S|`, and zero for padding, whose targets are all zero."""
    real = targets.sum(-1, keepdim=True)
    return (softmax(logits).weights - targets) * (real / real.sum(-2, keepdim=True))


def prototype_gradient(
    points: Float[Tensor, "set support dim"],
    targets: Float[Tensor, "set support class"],
    prototypes: Float[Tensor, "set class dim"],
    temperature: float,
) -> Float[Tensor, "set class dim"]:
    """∂L/∂W for the logits `-(τ/2)‖z_n - w_k‖²`; the softmax depends on `τ (⟨z_n, w_k⟩ - ½‖w_k‖²)` only."""
    half_norms = 0.5 * prototypes.square().sum(-1).unsqueeze(-2)
    error = slope(torch.baddbmm(-half_norms, points, prototypes.mT).mul_(temperature), targets)
    return temperature * (error.mT @ points - error.sum(-2).unsqueeze(-1) * prototypes)


def fit_prototypes(frame: Frame, options: BaselineOptions) -> Float[Tensor, "set class dim"]:
    """Train prototypes with Adam on the whole support, from its means; about the frame's origin."""
    points = frame.support_points
    targets = frame.task.targets
    start = frame.support.mean().expand(len(points), -1, -1)

    def gradient(w: Tensor) -> list[Tensor]:
        return [prototype_gradient(points, targets, w, options.temperature)]

    return minimised(gradient, [start], options.learning_rate or 1e-3, options.max_iter)[0]


def fit_linear(
    task: TaskBatch, options: BaselineOptions | BaselinePPOptions, *, bias: bool
) -> tuple[Float[Tensor, "set class dim"], Float[Tensor, "set class"]]:
    """Train a linear layer from zero; each epoch is one step along the mean gradient of its mini-batches.

    An epoch of stochastic descent takes `⌈|S|/batch⌉` steps whose gradients average to that of the whole support; here
    it is a single step with that many times the learning rate. Momentum is left out: if it equals the dampening, as
    published, it averages the gradients of the last few mini-batches, and the whole support gives that average. Zero
    is the mean of a layer's random initialisation. So the answer depends neither on a seed nor on the order of the
    support.
    """
    points = task.zeroed("support")
    targets = task.targets
    steps = torch.ceil(targets.sum((-2, -1)) / options.batch_size)
    rate = ((options.learning_rate or 1e-2) * steps).unsqueeze(-1)
    decay = options.weight_decay
    weights = points.new_zeros(len(targets), task.n_classes, task.dim)
    offsets = weights[..., 0]
    for _ in range(options.max_iter):
        error = slope(points @ weights.mT + offsets.unsqueeze(-2), targets)
        weights = weights - rate.unsqueeze(-1) * (error.mT @ points + decay * weights)
        offsets = offsets - rate * (error.sum(-2) + decay * offsets) if bias else offsets
    return weights, offsets


def solve_baseline(task: TaskBatch, options: BaselineOptions) -> Solution:
    """Train the head on the support and apply it to the query."""
    frame = Frame(task)
    if options.head == "prototypes":
        prototypes = fit_prototypes(frame, options)
        u = softmax(-options.temperature * half_squared_distances(frame.query, prototypes))
        return frame.solution(u, n_iter=options.max_iter, find_prototypes=frame.placed(prototypes))
    weights, offsets = fit_linear(task, options, bias=True)
    return frame.solution(softmax(task.query @ weights.mT + offsets.unsqueeze(-2)), n_iter=options.max_iter)


def solve_baseline_pp(task: TaskBatch, options: BaselinePPOptions) -> Solution:
    """Train the class vectors on the support and apply them to the query."""
    # Scaling the unit features scales the logits, in training and in prediction.
    default = SCALE if task.n_classes <= MANY_CLASSES else LARGE_SCALE
    scale = default if options.scale is None else options.scale
    scaled = task.with_features(scale * unit(task.support), scale * unit(task.query))
    weights, _ = fit_linear(scaled, options, bias=False)
    return Frame(task).solution(softmax(scaled.query @ weights.mT), n_iter=options.max_iter)


def cosine_gradient(
    points: Float[Tensor, "set support dim"],
    targets: Float[Tensor, "set support class"],
    weights: Float[Tensor, "set class dim"],
    temperature: float,
) -> Float[Tensor, "set class dim"]:
    """∂L/∂W for the logits `τ cos(z_n, w_k)`; points have unit length."""
    directions = unit(weights)
    pull = temperature * slope(temperature * points @ directions.mT, targets).mT @ points
    across = pull - (pull * directions).sum(-1, keepdim=True) * directions
    lengths: Tensor = torch.linalg.vector_norm(weights, dim=-1, keepdim=True)
    return (across / lengths).where(lengths > 0, 0)


def solve_names_probe(task: TaskBatch, options: NamesProbeOptions) -> Solution:
    """Train directions on the support, from those of the names, and compare the query with them."""
    frame = Frame(task)
    points = unit(task.zeroed("support"))
    targets = task.targets
    shared = len(points) == 1 and (task.names is None or len(task.names) == 1)
    start = unit(frame.names[:1] if shared else frame.names)

    def gradient(w: Tensor) -> list[Tensor]:
        return [cosine_gradient(points, targets, w, options.temperature)]

    weights = minimised(gradient, [start], options.learning_rate, options.max_iter)[0]
    u = softmax(options.temperature * cosines(task.zeroed("query"), weights))
    return frame.solution(u, n_iter=options.max_iter, find_prototypes=weights.expand(task.n_tasks, -1, -1))


CITATION = "Chen, Liu, Kira, Wang, Huang. A Closer Look at Few-shot Classification. ICLR 2019."
BASELINE = Method("baseline", BaselineOptions, "raw", solve_baseline, CITATION, support_arrays=6)
BASELINE_PP = Method("baseline_pp", BaselinePPOptions, "raw", solve_baseline_pp, CITATION, support_arrays=6)
NAMES_PROBE = Method(
    "names_probe",
    NamesProbeOptions,
    "l2",
    solve_names_probe,
    "Silva-Rodríguez, Hajimiri, Ben Ayed, Dolz. A Closer Look at the Few-Shot Adaptation of Large Vision-Language "
    "Models. CVPR 2024.",
    support_arrays=6,
    names=True,
)
