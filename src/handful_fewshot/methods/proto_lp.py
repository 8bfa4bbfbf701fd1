"""protoLP: labels spread over a graph between points and prototypes (Zhu, Koniusz, CVPR 2023).

Prototypes are the anchors of a graph: the soft labels Z of support and query, with the rows of the support at their
labels, join points to prototypes. With `Λ = diag(Σ_n z_nk)`, and C the number of examples of each class, the labels A
of the prototypes minimise

    ‖Z_S A - Y_S‖² + γ tr( Aᵀ L A ),     L = Zᵀ(I - Z Λ⁻¹ Zᵀ) Z = G - G Λ⁻¹ G,     G = Zᵀ Z,

so `A = (C + γL)⁻¹ C`. From the support means, brought to unit length, repeat `max_iter` times

    Z: z_n = softmax_k( -λ ‖x_n - w_k‖² ) for the query
    F: f_n = Σ_j z_nj A_j, the labels of the prototypes passed on to the points
    W: w_k ← w_k + η ( Σ_n m_nk x_n / Σ_n m_nk - w_k ),     M = βF + (1 - β)Z, and the labels for the support,

then label the query with a final Z. Rows of L sum to zero, so those of A and F sum to one.

The authors' public code is for balanced tasks: Z and F are rescaled until every class has |Q|/K queries. That is
`balanced` here. Their code for other tasks is lost; without `balanced` the rescaling is left out. Their Laplacian is
`G - G G Λ⁻¹`, which is the same when classes have equal shares, and not symmetric otherwise. The constants are those of
their script for mini-ImageNet and ResNet-12, which also projects a task of five classes to 40 dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from handful.shapes import Float
from handful_fewshot.frame import Frame
from handful_fewshot.methods.method import Method, Options, above, at_least, limited
from handful_fewshot.numerics.geometry import masked, soft_moments
from handful_fewshot.numerics.transport import sinkhorn
from handful_fewshot.numerics.vectors import SoftLabels, half_squared_distances, softmax, unit
from handful_fewshot.solution import Solution
from handful_fewshot.task import TaskBatch

# Error of the row sums at which the rescaling of Z and of F ends, as in the authors' code.
Z_TOLERANCE = 1e-3
F_TOLERANCE = 1e-2


@dataclass(frozen=True)
class ProtoLPOptions(Options):
    """Options of protoLP; the defaults are its authors', except `balanced`.

    **Assumes** that items near the same prototypes share a class. **Use it** to compare with the literature, or
    when every class occurs. **Do not use it** when few of the classes occur: it cannot say that a class is absent.
    With `balanced`, most labels are wrong if shares are unequal. It has no objective. **Cost.** 50 times 4|Q|Kd,
    and a system of K equations.
    """

    cost_weight: float = above(0, 10.0)  # λ, nats of a unit of squared distance
    smoothness: float = at_least(0, 0.05)  # γ
    propagated_share: float = limited(lambda share: 0 <= share <= 1, "in 0 … 1", 0.7)  # β
    step_size: float = limited(lambda size: 0 <= size <= 1, "in 0 … 1", 0.2)  # η
    max_iter: int = at_least(0, 50)
    # Give every class |Q|/K queries, as the authors do. This tells the method the shares of the classes; if they are
    # not equal, most labels are wrong.
    balanced: bool = False


def prototype_labels(
    z: Float[Tensor, "task query class"], counts: Float[Tensor, "#task class"], smoothness: float
) -> Float[Tensor, "task class class"]:
    """Return `A = (C + γL)⁻¹ C`, with `L = G - G Λ⁻¹ G` over support and query."""
    c = torch.diag_embed(counts)
    g = c + z.mT @ z
    laplacian = g - g @ (g / (counts + z.sum(-2)).unsqueeze(-1))
    labels: Tensor = torch.linalg.solve(c + smoothness * laplacian, c.expand_as(g))
    return labels


def rescaled(log_labels: Float[Tensor, "task query class"], frame: Frame, tol: float) -> SoftLabels:
    """Scale rows and columns until every class has |Q|/K queries."""
    n_classes = frame.task.n_classes
    share = (frame.n_query / n_classes).unsqueeze(-1).expand(-1, n_classes)
    real = frame.task.present("query")
    plan = sinkhorn(-log_labels, real.to(log_labels.dtype), share, tol=tol)
    return softmax(plan.log_plan.where(real.unsqueeze(-1), 0))


def solve(task: TaskBatch, options: ProtoLPOptions) -> Solution:
    """Alternate labels and prototypes."""
    frame = Frame(task)
    prototypes = unit(frame.placed(frame.support.mean())) - frame.origin.unsqueeze(-2)
    z = _nearest(frame, prototypes, options)
    for _ in range(options.max_iter):
        weights = masked(z.weights, task.query_mask)
        f = (weights @ prototype_labels(weights, frame.support.mass, options.smoothness)).clamp(min=0)
        if options.balanced:
            f = rescaled(f.clamp(min=torch.finfo(f.dtype).tiny).log(), frame, F_TOLERANCE).weights
        m = masked(torch.lerp(weights, f, options.propagated_share), task.query_mask)
        average = (frame.support + soft_moments(frame.query, m)).mean()
        prototypes = torch.lerp(prototypes, average, options.step_size)
        z = _nearest(frame, prototypes, options)
    return frame.solution(z, n_iter=options.max_iter, find_prototypes=frame.placed(prototypes))


def _nearest(frame: Frame, prototypes: Float[Tensor, "task class dim"], options: ProtoLPOptions) -> SoftLabels:
    """Z of the query."""
    log_z = -2 * options.cost_weight * half_squared_distances(frame.query, prototypes)
    return rescaled(log_z, frame, Z_TOLERANCE) if options.balanced else softmax(log_z)


METHOD = Method(
    "proto_lp",
    ProtoLPOptions,
    "task_cl2n",
    solve,
    "Zhu, Koniusz. Transductive Few-Shot Learning With Prototype-Based Label Propagation by Iterative Graph "
    "Refinement. CVPR 2023.",
)
