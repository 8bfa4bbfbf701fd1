"""solve: find the method, build its options, cut the batch into chunks that fit in memory, join the answers.

No method transforms features, so features whose squares overflow or underflow are refused. So are answers that are not
finite, and answers in which all classes tie because of the scale: most methods treat half squared distances as nats.
For features of 1e-6 these are 1e-12, which is lost in single precision when added to `ln 1/K`.
"""

from __future__ import annotations

import math

import torch

from handful.errors import TaskError, UnknownNameError
from handful.fewshot.frame import Frame
from handful.fewshot.methods import METHODS, Method
from handful.fewshot.numerics.vectors import squares_fit
from handful.fewshot.solution import Solution
from handful.fewshot.task import TaskBatch
from handful.fewshot.transforms import refuse_lost_digits

# Numbers in memory at once while a chunk is solved: 64 MB of float32.
CHUNK_NUMBERS = 16_000_000
# Arrays of shape [query, class] in memory at the same time during an iteration.
LIVE_ASSIGNMENTS = 8
# Factors that multiply the square of a feature inside methods: two differences, temperatures of about 15.
SLACK = 64
# Log-probabilities of classes that differ by fewer rounding errors than this are a tie.
ROUNDINGS_OF_A_TIE = 64
# Squared lengths, in nats, below which a tie is blamed on the scale.
FEW_NATS = 1e-2


def solve(method: str | Method, task: TaskBatch, **options: object) -> Solution:
    """Label all queries of every task jointly.

    Parameters
    ----------
    method : str or Method
        A key of `METHODS`, or a `Method` itself.
    task : TaskBatch
        The tasks, with features as the method will use them: no transform is applied, see `transform`. Raises
        `TaskError` if squares of features do not fit their dtype, or if features are too small to tell classes apart.
    **options
        Options of the method, see `Method.options`.

    Returns
    -------
    Solution
        Probabilities and labels of every query, proportions of the classes, and whether the method converged.

    Examples
    --------
    >>> task = TaskBatch.single([[0.0], [9.0]], [0, 1], [[1.0], [0.5], [0.0]], n_classes=2)
    >>> solution = solve("paddle", task)
    >>> solution.predictions.tolist(), solution.proportions.round(decimals=3).tolist()
    ([[0, 0, 0]], [[1.0, 0.0]])
    """
    chosen = method if isinstance(method, Method) else METHODS.get(str(method))
    if chosen is None:
        raise UnknownNameError(f"no method is called {method!r}; choose from {', '.join(METHODS)}")
    settings = chosen.make_options(**options)
    ready = "l2" if chosen.transform == "raw" else chosen.transform
    advice = f"apply transform({ready!r}, task) first, or multiply all features by a number that brings them near one"
    refuse_magnitudes(task, chosen.degree, advice)
    most = tasks_per_chunk(task, chosen.support_arrays)
    n_chunks = -(-task.n_tasks // most)
    size = -(-task.n_tasks // n_chunks)  # about equal sizes: a small last chunk would be inefficient
    chunks = [task.select(slice(start, start + size)) for start in range(0, task.n_tasks, size)]
    solution = Solution.join([chosen.solve(chunk, settings) for chunk in chunks])
    refuse_no_answer(task, solution, advice)
    return solution


def tasks_per_chunk(task: TaskBatch, support_arrays: int) -> int:
    """How many tasks to solve at once: as many as fit in `CHUNK_NUMBERS`, at least one.

    A task has `|Q|² + (8|Q| + r|S|) K + (|Q| + K) d` numbers: Gram matrix, assignments in flight, r arrays of shape
    [support, class] that the method keeps, centred query and support sums.
    """
    n_query, n_classes = task.query_slots, task.n_classes
    rows = LIVE_ASSIGNMENTS * n_query + support_arrays * task.support_slots
    return max(1, CHUNK_NUMBERS // (n_query**2 + rows * n_classes + (n_query + n_classes) * task.dim))


def refuse_magnitudes(task: TaskBatch, degree: int, advice: str) -> None:
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
    small = (task.magnitude > 0) & (task.magnitude.square() < FEW_NATS)
    rounding = ROUNDINGS_OF_A_TIE * torch.finfo(task.dtype).eps
    for t in small.nonzero().squeeze(-1).tolist():
        log_u = solution.log_assignments[t]
        if solution.query_mask is not None:
            log_u = log_u[solution.query_mask[t]]
        means = Frame(task.select(slice(t, t + 1))).support.mean()
        tie = float((log_u.amax(-1) - log_u.amin(-1)).max()) <= rounding * max(1.0, math.log(task.n_classes))
        if tie and float((means.amax(-2) - means.amin(-2)).max()) > rounding * float(task.magnitude[t]):
            raise TaskError(
                f"the vectors of task {t} have lengths up to {float(task.magnitude[t]):.2g}, too small for this "
                f"method: every class has the same probability for every query; {advice}"
            )
