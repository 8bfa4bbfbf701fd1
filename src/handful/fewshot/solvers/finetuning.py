"""Train a small classifier on the support by gradient steps, many tasks at once; gradients in closed form.

The loss is the mean cross-entropy of the support, `L = -(1/|S|) Σ_S ln p_{n y_n}`. Its derivative in the logits is
`e_nk = (p_nk - y_nk) / |S|`. For the two kinds of logits this gives

- prototypes, `-(τ/2)‖z_n - w_k‖²`:     ∂L/∂w_k = τ ( Σ_n e_nk z_n - w_k Σ_n e_nk );
- a linear layer, `⟨v_k, z_n⟩ + b_k`:   ∂L/∂v_k = Σ_n e_nk z_n,   ∂L/∂b_k = Σ_n e_nk.

The query is not used. If all tasks share a support, the classifier is trained once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from handful.fewshot.numerics.adam import minimised
from handful.fewshot.numerics.simplex import softmax
from handful.fewshot.solvers.frame import Frame
from handful.fewshot.task import TaskBatch
from handful.shapes import Float, Int


@dataclass(frozen=True)
class LabelledPoints:
    """The support as a training set; padded points are zero and have class 0 and weight zero."""

    points: Float[Tensor, "set support dim"]
    labels: Int[Tensor, "set support"]
    real: Float[Tensor, "set support"]  # 1, or 0 for padding

    @classmethod
    def of(cls, task: TaskBatch, origin: Float[Tensor, "#set dim"] | None = None) -> LabelledPoints:
        """Take the support of every task, as it is or relative to `origin`."""
        points = task.support if origin is None else task.support - origin.unsqueeze(-2)
        present = task.present("support")
        points, labels = points.where(present.unsqueeze(-1), 0), task.support_labels.where(present, 0)
        n_sets = max(len(points), len(labels), len(present))
        return cls(points.expand(n_sets, -1, -1), labels.expand(n_sets, -1), present.to(points).expand(n_sets, -1))

    def size(self) -> Float[Tensor, "set"]:
        """|S| of each task."""
        return self.real.sum(-1)

    def slope(self, logits: Float[Tensor, "set support class"]) -> Float[Tensor, "set support class"]:
        """`∂L/∂logits_nk = (p_nk - y_nk) / |S|`."""
        error = softmax(logits).weights
        error.scatter_add_(-1, self.labels.unsqueeze(-1), error.new_full((), -1).expand_as(self.labels).unsqueeze(-1))
        return error * (self.real / self.size().unsqueeze(-1)).unsqueeze(-1)


@dataclass(frozen=True)
class LinearLayer:
    """`logits_nk = ⟨v_k, z_n⟩ + b_k`."""

    weights: Float[Tensor, "set class dim"]
    bias: Float[Tensor, "set class"]

    def logits(self, points: Float[Tensor, "task point dim"]) -> Float[Tensor, "task point class"]:
        """Apply the layer."""
        return points @ self.weights.mT + self.bias.unsqueeze(-2)


def prototype_gradient(
    data: LabelledPoints, prototypes: Float[Tensor, "set class dim"], temperature: float
) -> Float[Tensor, "set class dim"]:
    """∂L/∂W for the logits `-(τ/2)‖z_n - w_k‖²`; the softmax depends on `τ (⟨z_n, w_k⟩ - ½‖w_k‖²)` only."""
    half_norms = 0.5 * prototypes.square().sum(-1).unsqueeze(-2)
    error = data.slope(torch.baddbmm(-half_norms, data.points, prototypes.mT).mul_(temperature))
    return temperature * (error.mT @ data.points - error.sum(-2).unsqueeze(-1) * prototypes)


def fit_prototypes(frame: Frame, options: Any) -> Float[Tensor, "set class dim"]:
    """Train prototypes with Adam on the whole support, from its means; about the frame's origin.

    `options` has `temperature`, `learning_rate` (None means 1e-3) and `max_iter`.
    """
    data = LabelledPoints.of(frame.task, frame.origin)
    start = frame.support.mean().expand(len(data.points), -1, -1)
    rate, temperature = options.learning_rate or 1e-3, options.temperature
    return minimised(lambda w: [prototype_gradient(data, w, temperature)], [start], rate, options.max_iter)[0]


def fit_linear(task: TaskBatch, options: Any, *, bias: bool) -> LinearLayer:
    """Train a linear layer from zero; each epoch is one step along the mean gradient of its mini-batches.

    `options` has `learning_rate` (None means 1e-2), `batch_size`, `weight_decay` and `max_iter`, the number of epochs.
    An epoch of stochastic descent takes `⌈|S|/batch⌉` steps whose gradients average to that of the whole support; here
    it is a single step with that many times the learning rate. Momentum is left out: if it equals the dampening, as
    published, it averages the gradients of the last few mini-batches, and the whole support gives that average. Zero
    is the mean of a layer's random initialisation. So the answer depends neither on a seed nor on the order of the
    support.
    """
    data, n_classes, decay = LabelledPoints.of(task), task.n_classes, options.weight_decay
    n_sets, _, dim = data.points.shape
    rate = ((options.learning_rate or 1e-2) * torch.ceil(data.size() / options.batch_size)).unsqueeze(-1)
    layer = LinearLayer(data.points.new_zeros(n_sets, n_classes, dim), data.points.new_zeros(n_sets, n_classes))
    for _ in range(options.max_iter):
        error = data.slope(layer.logits(data.points))
        weights = layer.weights - rate.unsqueeze(-1) * (error.mT @ data.points + decay * layer.weights)
        offsets = layer.bias - rate * (error.sum(-2) + decay * layer.bias) if bias else layer.bias
        layer = LinearLayer(weights, offsets)
    return layer
