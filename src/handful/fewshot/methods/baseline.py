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
from functools import partial

from handful.fewshot.methods.method import Method, require
from handful.fewshot.numerics.distances import half_squared_distances
from handful.fewshot.numerics.simplex import softmax
from handful.fewshot.solution import Solution
from handful.fewshot.solvers.finetuning import LabelledPoints, fit_linear, fit_prototypes
from handful.fewshot.solvers.frame import Frame, placed
from handful.fewshot.task import TaskBatch

HEADS = ("linear", "prototypes")
LEARNING_RATES = {"linear": 1e-2, "prototypes": 1e-3}


@dataclass(frozen=True)
class BaselineOptions:
    """Options of Baseline.

    Attributes
    ----------
    head : {"linear", "prototypes"}
        What is trained: a linear layer, as published, or prototypes, as in PADDLE's public code.
    max_iter : int
        Epochs of the linear layer, or steps of the prototypes; there is no early stopping.
    learning_rate : float or None
        Learning rate per mini-batch for the linear layer, or of Adam for prototypes. None means 1e-2 and 1e-3.
    batch_size, weight_decay : int, float
        Used by the linear layer only.
    temperature : float
        τ of the prototypes' logits.
    """

    head: str = "linear"
    max_iter: int = 100
    learning_rate: float | None = None
    batch_size: int = 4
    weight_decay: float = 1e-3
    temperature: float = 15.0

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        require(self.head in HEADS, f"head must be one of {HEADS}", self.head)
        require(self.max_iter >= 0, "max_iter must be at least 0", self.max_iter)
        rate = 1.0 if self.learning_rate is None else self.learning_rate
        require(rate > 0, "learning_rate must be None or above 0", self.learning_rate)
        require(self.batch_size >= 1, "batch_size must be at least 1", self.batch_size)
        require(self.weight_decay >= 0, "weight_decay must be at least 0", self.weight_decay)
        require(self.temperature > 0, "temperature must be above 0", self.temperature)


def solve(task: TaskBatch, options: BaselineOptions) -> Solution:
    """Train the head on the support and apply it to the query."""
    frame = Frame(task)
    rate = LEARNING_RATES[options.head] if options.learning_rate is None else options.learning_rate
    if options.head == "prototypes":
        prototypes = fit_prototypes(
            LabelledPoints.of(task, frame.origin),
            frame.support.mean(),
            temperature=options.temperature,
            learning_rate=rate,
            steps=options.max_iter,
        )
        u = softmax(-options.temperature * half_squared_distances(frame.query, prototypes))
        return frame.solution(u, n_iter=options.max_iter, find_prototypes=partial(placed, prototypes))
    layer = fit_linear(
        LabelledPoints.of(task),
        task.n_classes,
        learning_rate=rate,
        batch_size=options.batch_size,
        weight_decay=options.weight_decay,
        epochs=options.max_iter,
        bias=True,
    )
    return frame.solution(softmax(layer.logits(task.query)), n_iter=options.max_iter)


METHOD = Method(
    name="baseline",
    options=BaselineOptions,
    transform="raw",
    solve=solve,
    citation="Chen, Liu, Kira, Wang, Huang. A Closer Look at Few-shot Classification. ICLR 2019.",
    support_arrays=4,
)
