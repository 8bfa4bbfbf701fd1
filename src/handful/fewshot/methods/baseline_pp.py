"""Baseline++: cosine similarity to class vectors trained on the support (Chen, Liu, Kira, Wang, Huang, ICLR 2019).

Two heads, both trained on the mean cross-entropy of the support; each query is then labelled on its own:

- "cosine", the published method: logits `s ‖v_k‖ cos(z_n, v_k)`, that is, a linear layer without bias on unit
  features, whose class norms are learned; s = 2, or 10 for more than 200 classes, as in the authors' code. It is
  trained like Baseline's linear layer. The authors write v as a norm times a direction; where norm and parameter agree,
  as they do at initialisation, a step is the same.
- "prototypes", a former version of PADDLE's public code: prototypes trained like Baseline's, with Euclidean logits
  `-(τ/2)‖z_n - w_k‖²`, and queries labelled by cosine, `τ cos(z_n, w_k)`. PADDLE's tables do not include it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from handful.fewshot.methods.method import Method, require
from handful.fewshot.numerics.distances import cosines
from handful.fewshot.numerics.simplex import softmax
from handful.fewshot.rows import unit
from handful.fewshot.solution import Solution
from handful.fewshot.solvers.finetuning import LabelledPoints, fit_linear, fit_prototypes
from handful.fewshot.solvers.frame import Frame, placed
from handful.fewshot.task import TaskBatch

HEADS = ("cosine", "prototypes")
LEARNING_RATES = {"cosine": 1e-2, "prototypes": 1e-3}
# The authors' factors on cosines; the larger one is for more classes than this.
SCALE, LARGE_SCALE, MANY_CLASSES = 2.0, 10.0, 200


@dataclass(frozen=True)
class BaselinePPOptions:
    """Options of Baseline++.

    Attributes
    ----------
    head : {"cosine", "prototypes"}
        What is trained: class vectors with cosine logits, as published, or prototypes, as in a former version of
        PADDLE's public code.
    max_iter : int
        Epochs of the class vectors, or steps of the prototypes; there is no early stopping.
    learning_rate : float or None
        Learning rate per mini-batch for the class vectors, or of Adam for prototypes. None means 1e-2 and 1e-3.
    batch_size, weight_decay : int, float
        Used by the class vectors only.
    scale : float or None
        s of the cosine logits. None means 2, or 10 for more than 200 classes.
    temperature : float
        τ of the prototypes' logits.
    """

    head: str = "cosine"
    max_iter: int = 100
    learning_rate: float | None = None
    batch_size: int = 4
    weight_decay: float = 1e-3
    scale: float | None = None
    temperature: float = 15.0

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        require(self.head in HEADS, f"head must be one of {HEADS}", self.head)
        require(self.max_iter >= 0, "max_iter must be at least 0", self.max_iter)
        rate = 1.0 if self.learning_rate is None else self.learning_rate
        require(rate > 0, "learning_rate must be None or above 0", self.learning_rate)
        require(self.batch_size >= 1, "batch_size must be at least 1", self.batch_size)
        require(self.weight_decay >= 0, "weight_decay must be at least 0", self.weight_decay)
        require(self.scale is None or self.scale > 0, "scale must be None or above 0", self.scale)
        require(self.temperature > 0, "temperature must be above 0", self.temperature)


def solve(task: TaskBatch, options: BaselinePPOptions) -> Solution:
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
        similarity = cosines(task.query, prototypes + frame.origin.unsqueeze(-2))
        return frame.solution(
            softmax(options.temperature * similarity),
            n_iter=options.max_iter,
            find_prototypes=partial(placed, prototypes),
        )
    # Scaling the unit features scales the logits, in training and in prediction.
    default = SCALE if task.n_classes <= MANY_CLASSES else LARGE_SCALE
    scale = default if options.scale is None else options.scale
    scaled = task.with_features(scale * unit(task.support), scale * unit(task.query))
    layer = fit_linear(
        LabelledPoints.of(scaled),
        task.n_classes,
        learning_rate=rate,
        batch_size=options.batch_size,
        weight_decay=options.weight_decay,
        epochs=options.max_iter,
        bias=False,
    )
    return frame.solution(softmax(layer.logits(scaled.query)), n_iter=options.max_iter)


METHOD = Method(
    name="baseline_pp",
    options=BaselinePPOptions,
    transform="raw",
    solve=solve,
    citation="Chen, Liu, Kira, Wang, Huang. A Closer Look at Few-shot Classification. ICLR 2019.",
    support_arrays=4,
)
