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

from handful.fewshot.methods.method import Method, Options, above, among, at_least
from handful.fewshot.numerics.simplex import softmax
from handful.fewshot.numerics.vectors import cosines, unit
from handful.fewshot.solution import Solution
from handful.fewshot.solvers.finetuning import fit_linear, fit_prototypes
from handful.fewshot.solvers.frame import Frame
from handful.fewshot.task import TaskBatch

HEADS = ("cosine", "prototypes")
# The authors' factors on cosines; the larger one is for more classes than this.
SCALE, LARGE_SCALE, MANY_CLASSES = 2.0, 10.0, 200


@dataclass(frozen=True)
class BaselinePPOptions(Options):
    """Options of Baseline++."""

    head: str = among(HEADS, "cosine")  # class vectors with cosine logits, as published, or prototypes
    max_iter: int = at_least(0, 100)  # epochs of the class vectors, or steps of the prototypes
    learning_rate: float | None = above(0, None)  # per mini-batch, or of Adam; None means 1e-2 and 1e-3
    batch_size: int = at_least(1, 4)  # of the class vectors
    weight_decay: float = at_least(0, 1e-3)  # of the class vectors
    scale: float | None = above(0, None)  # s of the cosine logits; None means 2, or 10 for more than 200 classes
    temperature: float = above(0, 15.0)  # τ of the prototypes' logits


def solve(task: TaskBatch, options: BaselinePPOptions) -> Solution:
    """Train the head on the support and apply it to the query."""
    frame = Frame(task)
    if options.head == "prototypes":
        prototypes = fit_prototypes(frame, options)
        u = softmax(options.temperature * cosines(task.query, prototypes + frame.origin.unsqueeze(-2)))
        return frame.solution(u, n_iter=options.max_iter, find_prototypes=frame.placed(prototypes))
    # Scaling the unit features scales the logits, in training and in prediction.
    default = SCALE if task.n_classes <= MANY_CLASSES else LARGE_SCALE
    scale = default if options.scale is None else options.scale
    scaled = task.with_features(scale * unit(task.support), scale * unit(task.query))
    layer = fit_linear(scaled, options, bias=False)
    return frame.solution(softmax(layer.logits(scaled.query)), n_iter=options.max_iter)


METHOD = Method(
    "baseline_pp",
    BaselinePPOptions,
    "raw",
    solve,
    "Chen, Liu, Kira, Wang, Huang. A Closer Look at Few-shot Classification. ICLR 2019.",
    support_arrays=4,
)
