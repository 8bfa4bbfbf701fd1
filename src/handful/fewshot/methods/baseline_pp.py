"""Baseline++: cosine similarity to class vectors trained on the support (Chen, Liu, Kira, Wang, Huang, ICLR 2019).

Logits are `s ‖v_k‖ cos(z_n, v_k)`: a linear layer without bias on unit features, whose class norms are learned; s = 2,
or 10 for more than 200 classes, as in the authors' code. It is trained like Baseline's linear layer, on the mean
cross-entropy of the support; each query is then labelled on its own. The authors write v as a norm times a direction;
where norm and parameter agree, as they do at initialisation, a step is the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from handful.fewshot.methods.method import Method, Options, above, at_least
from handful.fewshot.numerics.simplex import softmax
from handful.fewshot.numerics.vectors import unit
from handful.fewshot.solution import Solution
from handful.fewshot.solvers.finetuning import fit_linear
from handful.fewshot.solvers.frame import Frame
from handful.fewshot.task import TaskBatch

# The authors' factors on cosines; the larger one is for more classes than this.
SCALE, LARGE_SCALE, MANY_CLASSES = 2.0, 10.0, 200


@dataclass(frozen=True)
class BaselinePPOptions(Options):
    """Options of Baseline++."""

    max_iter: int = at_least(0, 100)  # epochs
    learning_rate: float = above(0, 1e-2)  # per mini-batch
    batch_size: int = at_least(1, 4)
    weight_decay: float = at_least(0, 1e-3)
    scale: float | None = above(0, None)  # s; None means 2, or 10 for more than 200 classes


def solve(task: TaskBatch, options: BaselinePPOptions) -> Solution:
    """Train the class vectors on the support and apply them to the query."""
    # Scaling the unit features scales the logits, in training and in prediction.
    default = SCALE if task.n_classes <= MANY_CLASSES else LARGE_SCALE
    scale = default if options.scale is None else options.scale
    scaled = task.with_features(scale * unit(task.support), scale * unit(task.query))
    layer = fit_linear(scaled, options, bias=False)
    return Frame(task).solution(softmax(layer.logits(scaled.query)), n_iter=options.max_iter)


METHOD = Method(
    "baseline_pp",
    BaselinePPOptions,
    "raw",
    solve,
    "Chen, Liu, Kira, Wang, Huang. A Closer Look at Few-shot Classification. ICLR 2019.",
    support_arrays=4,
)
