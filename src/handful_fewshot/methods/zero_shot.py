"""CLIP's zero-shot answer: each query goes to the class whose name is nearest (Radford et al., ICML 2021).

With t_k the vector of the name of class k, in the space of the features,

    u_n = softmax_k( τ cos(z_n, t_k) ).

Each query is labelled on its own, and the examples of the support are not used. If a task has no names, the mean of the
support of class k stands for its name.
"""

from __future__ import annotations

from dataclasses import dataclass

from handful_fewshot.frame import Frame
from handful_fewshot.methods.method import Method, Options, above
from handful_fewshot.numerics.vectors import cosines, softmax
from handful_fewshot.solution import Solution
from handful_fewshot.task import TaskBatch


@dataclass(frozen=True)
class ZeroShotOptions(Options):
    """Options of the zero-shot answer.

    **Assumes** names in the space of the features: sentences and names of one network, or the images and texts of a
    network like CLIP. **Use it** as what names give each item alone: what a method for names adds is what it
    gains over this. **Cost.** |Q|Kd, once.
    """

    temperature: float = above(
        0, 100.0
    )  # τ, nats per unit of cosine; 100 is CLIP's own, and labels do not depend on it


def solve(task: TaskBatch, options: ZeroShotOptions) -> Solution:
    """Compare every query with every name."""
    frame = Frame(task)
    u = softmax(options.temperature * cosines(task.zeroed("query"), frame.names))
    return frame.solution(u, find_prototypes=frame.names)


METHOD = Method(
    "zero_shot",
    ZeroShotOptions,
    "l2",
    solve,
    "Radford et al. Learning Transferable Visual Models From Natural Language Supervision. ICML 2021.",
    names=True,
)
