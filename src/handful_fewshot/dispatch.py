"""solve: find the method, build its options, cut the batch into chunks that fit in memory, join the answers.

No method transforms features, so features whose powers overflow are refused, and so are those too small to tell classes
apart: most methods treat half squared distances as nats. For features of 1e-6 these are 1e-12, which is lost in single
precision when added to `ln 1/K`.
"""

from __future__ import annotations

import torch

from handful.errors import TaskError
from handful.progress import silent
from handful_fewshot.methods import METHODS, Method, no_method
from handful_fewshot.solution import Solution
from handful_fewshot.task import TaskBatch
from handful_fewshot.transforms import refuse_magnitudes

# Numbers in memory at once while a chunk is solved: 64 MB of float32.
CHUNK_NUMBERS = 16_000_000
# Arrays of shape [query, class] in memory at the same time during an iteration.
LIVE_ASSIGNMENTS = 8


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
        raise no_method(method)
    settings = chosen.make_options(**options)
    ready = "l2" if chosen.transform == "raw" else chosen.transform
    advice = f"apply transform({ready!r}, task) first, or multiply all features by a number"
    refuse_magnitudes(task, torch.finfo(task.dtype).eps ** 0.5, advice)
    # A trace has the time of the whole batch, so a batch that is recorded is not cut.
    most = task.n_tasks if getattr(settings, "record", False) else tasks_per_chunk(task, chosen.support_arrays)
    n_chunks = -(-task.n_tasks // most)
    size = -(-task.n_tasks // n_chunks)  # about equal sizes: a small last chunk would be inefficient
    chunks = [task.select(slice(start, start + size)) for start in range(0, task.n_tasks, size)]
    with silent():  # a method may fit a catalogue for each task
        solution = Solution.join([chosen.solve(chunk, settings) for chunk in chunks])
    missing = ~solution.proportions.isfinite().all(-1)
    if bool(missing.any()):
        t = int(missing.nonzero()[0])
        raise TaskError(
            f"task {t} has no finite answer: with these options, vectors of length {float(task.magnitude[t]):.2g} "
            f"exceed the range of {task.dtype}; {advice} that brings them near one"
        )
    return solution


def tasks_per_chunk(task: TaskBatch, support_arrays: int) -> int:
    """How many tasks to solve at once: as many as fit in `CHUNK_NUMBERS`, at least one.

    A task has `|Q|² + (8|Q| + r|S|) K + (2|Q| + K) d` numbers: queries in few coordinates, assignments in flight, r
    arrays of shape [support, class] that the method keeps, centred query, its basis, and support sums.
    """
    n_query = task.query_slots
    n_classes = task.n_classes
    rows = LIVE_ASSIGNMENTS * n_query + support_arrays * task.support_slots
    return max(1, CHUNK_NUMBERS // (n_query**2 + rows * n_classes + (2 * n_query + n_classes) * task.dim))
