"""Reach: whether a method can compute with features of this magnitude, and whether it found an answer.

No method transforms features, so features whose squares overflow or underflow are refused. Three checks:

- before: the powers of features that a method computes must fit their dtype, including sums over all points;
- after: every share must be a number;
- after: classes must differ. Most methods treat half squared distances as nats. For features of 1e-6 these are 1e-12,
  which is lost in single precision when added to `ln 1/K`: all classes tie, and the first one would be reported for
  every query.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from handful.errors import TaskError
from handful.fewshot.rows import squares_fit
from handful.fewshot.solution import Solution
from handful.fewshot.solvers.frame import Frame
from handful.fewshot.task import TaskBatch
from handful.fewshot.transforms import refuse_lost_digits
from handful.shapes import Float

# Factors that multiply the square of a feature inside methods: two differences, temperatures of about 15.
SLACK = 64
# Log-probabilities of classes that differ by fewer rounding errors than this are a tie.
ROUNDINGS_OF_A_TIE = 64
# Squared lengths, in nats, below which a tie is blamed on the scale.
FEW_NATS = 1e-2


def refuse_beyond_reach(task: TaskBatch, degree: int, advice: str) -> None:
    """Refuse features whose powers up to `degree`, or whose sums of squares, do not fit their dtype.

    `advice` says what to do; it ends the sentence of the error.
    """
    refuse_lost_digits(task)
    least, most = squares_fit(task.dtype)
    slack = math.sqrt(SLACK)
    most = min(most / (slack * (task.support_slots + task.query_slots)), most ** (2 / degree) / slack)
    wrong = (task.magnitude > most) | ((task.magnitude < least) & (task.magnitude > 0))
    if bool(wrong.any()):
        t = int(wrong.nonzero()[0])
        raise TaskError(
            f"the longest vector of task {t} has length {float(task.magnitude[t]):.2g}, but this method needs lengths "
            f"between {least:.2g} and {most:.2g} to compute in {task.dtype}; {advice}"
        )


def refuse_no_answer(task: TaskBatch, solution: Solution, advice: str) -> None:
    """Refuse answers that are not finite, and answers in which all classes tie because features are too small."""
    missing = ~solution.proportions.isfinite().all(-1)
    if bool(missing.any()):
        t = int(missing.nonzero()[0])
        raise TaskError(
            f"task {t} has no finite answer: with these options, vectors of length {float(task.magnitude[t]):.2g} "
            f"exceed the range of {task.dtype}; {advice}"
        )
    if task.n_classes == 1:
        return
    small = task.magnitude.square() < FEW_NATS
    tie = ROUNDINGS_OF_A_TIE * torch.finfo(task.dtype).eps * max(1.0, math.log(task.n_classes))
    for t in (small & (task.magnitude > 0)).nonzero().squeeze(-1).tolist():
        if _spread(solution, t) <= tie and _means_differ(task.select(slice(t, t + 1))):
            raise TaskError(
                f"the vectors of task {t} have lengths up to {float(task.magnitude[t]):.2g}, too small for this "
                f"method: every class has the same probability for every query; {advice}"
            )


def _spread(solution: Solution, t: int) -> float:
    """Largest difference between the log-probabilities of two classes for one query, over the queries of a task."""
    log_u: Float[Tensor, "query class"] = solution.log_assignments[t]
    if solution.query_mask is not None:
        log_u = log_u[solution.query_mask[t]]
    return float((log_u.amax(-1) - log_u.amin(-1)).max())


def _means_differ(task: TaskBatch) -> bool:
    """Whether the class means of a single task differ by more than rounding."""
    means = Frame(task).support.mean()
    away = float((means.amax(-2) - means.amin(-2)).max())
    return away > ROUNDINGS_OF_A_TIE * torch.finfo(task.dtype).eps * float(task.magnitude)
