"""Baseline: a classifier trained on the support alone (Chen, Liu, Kira, Wang, Huang, ICLR 2019).

Two heads, both trained on the mean cross-entropy of the support; each query is then labelled on its own:

- "linear", the published method: a linear layer with bias, trained by stochastic gradient descent (100 epochs,
  mini-batches of 4, learning rate 0.01, weight decay 1e-3). Here an epoch is one deterministic step along the mean
  gradient of its mini-batches, see `fit_linear`.
- "prototypes", called Baseline in PADDLE's tables: logits `-(τ/2)‖z_n - w_k‖²`, with prototypes that start at the
  support means and take 100 steps of Adam on the whole support, learning rate 1e-3. Without any step it is the nearest
  prototype.
"""

from __future__ import annotations

from dataclasses import dataclass

from handful.fewshot.methods.method import Method, Options, above, among, at_least
from handful.fewshot.numerics.simplex import softmax
from handful.fewshot.numerics.vectors import half_squared_distances
from handful.fewshot.solution import Solution
from handful.fewshot.solvers.finetuning import fit_linear, fit_prototypes
from handful.fewshot.solvers.frame import Frame
from handful.fewshot.task import TaskBatch

HEADS = ("linear", "prototypes")


@dataclass(frozen=True)
class BaselineOptions(Options):
    """Options of Baseline."""

    head: str = among(HEADS, "linear")  # a linear layer, as published, or prototypes, as in PADDLE's public code
    max_iter: int = at_least(0, 100)  # epochs of the linear layer, or steps of the prototypes
    learning_rate: float | None = above(0, None)  # per mini-batch, or of Adam; None means 1e-2 and 1e-3
    batch_size: int = at_least(1, 4)  # of the linear layer
    weight_decay: float = at_least(0, 1e-3)  # of the linear layer
    temperature: float = above(0, 15.0)  # τ of the prototypes' logits


def solve(task: TaskBatch, options: BaselineOptions) -> Solution:
    """Train the head on the support and apply it to the query."""
    frame = Frame(task)
    if options.head == "prototypes":
        prototypes = fit_prototypes(frame, options)
        u = softmax(-options.temperature * half_squared_distances(frame.query, prototypes))
        return frame.solution(u, n_iter=options.max_iter, find_prototypes=frame.placed(prototypes))
    layer = fit_linear(task, options, bias=True)
    return frame.solution(softmax(layer.logits(task.query)), n_iter=options.max_iter)


METHOD = Method(
    "baseline",
    BaselineOptions,
    "raw",
    solve,
    "Chen, Liu, Kira, Wang, Huang. A Closer Look at Few-shot Classification. ICLR 2019.",
    support_arrays=4,
)
