"""Soft K-means: PADDLE without its partition term, the first ablation of Martin et al., NeurIPS 2022.

Minimises `Σ_{n∈S∪Q} Σ_k u_nk ½‖z_n - w_k‖² + Σ_Q u_nk ln u_nk` by alternating U and W; support rows of U are clamped to
their labels:

    U: u_n = softmax_k( -½‖z_n - w_k‖² )          W: w_k = (Σ_S y_nk z_n + Σ_Q u_nk z_n) / (c_k + Σ_Q u_nk)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from handful.fewshot.methods.method import Method, Options, among, at_least
from handful.fewshot.numerics.geometry import Space
from handful.fewshot.numerics.simplex import SoftLabels, softmax
from handful.fewshot.solution import DescriptionLength, Solution
from handful.fewshot.solvers.frame import GEOMETRIES, Frame, data_length, iterate
from handful.fewshot.task import TaskBatch
from handful.shapes import Float


@dataclass(frozen=True)
class SoftKMeansOptions(Options):
    """Options of soft K-means."""

    max_iter: int = at_least(1, 100)
    tol: float = at_least(0, 1e-6)  # a task stops when `mean_k ‖w_k - w_k'‖ ≤ tol`; at zero after `max_iter` iterations
    geometry: str = among(GEOMETRIES, "auto")  # of prototypes while iterating; the answer is the same
    record: bool = False  # keep objective, criterion and time of every iteration in `Solution.trace`


def step(space: Space, prototypes: Any) -> tuple[Any, SoftLabels]:
    """Update U, then W from the new U."""
    u = softmax(space.scores(prototypes))
    return (space.support + space.moments(u.weights)).mean(), u


def mean_move(space: Space, new: Any, old: Any) -> Any:
    """`mean_k ‖w_k - w_k'‖`."""
    return space.moves(new, old).mean(-1)


def description_length(frame: Frame, weights: Float[Tensor, "task query class"]) -> DescriptionLength:
    """`Σ u D + Σ u ln u` for the data, nothing for the partition."""
    return DescriptionLength(data_length(frame, weights), torch.zeros_like(frame.n_query))


def solve(task: TaskBatch, options: SoftKMeansOptions) -> Solution:
    """Sum the support once, then iterate `step` until each task converges."""
    frame = Frame(task)
    space = frame.space(options.geometry, options.max_iter)
    return iterate(frame, step, mean_move, space, space.support.mean(), options, measure=description_length)


METHOD = Method(
    "soft_kmeans",
    SoftKMeansOptions,
    "range_scale_public_code",
    solve,
    "Martin et al., NeurIPS 2022, ablation without the partition term.",
)
