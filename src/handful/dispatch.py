"""solve: find the method by name, build its options, cut the batch into chunks that fit, join the answers."""

from __future__ import annotations

from handful.errors import UnknownNameError
from handful.methods import METHODS
from handful.solution import Solution
from handful.task import TaskBatch

# Numbers a chunk may have in flight: 32 MB of float32. Larger chunks are not faster, their arrays leave the cache.
CHUNK_NUMBERS = 8_000_000
# Arrays of shape [query, class] that live at the same time inside an iteration.
LIVE_ASSIGNMENTS = 8


def solve(method: str, task: TaskBatch, **options: object) -> Solution:
    """Label all queries of every task jointly.

    Parameters
    ----------
    method : str
        A key of `METHODS`.
    task : TaskBatch
        Features as the method shall see them: no transform is applied, see `transform`.
    **options
        Fields of that method's options, see `METHODS[method].options`.

    Examples
    --------
    >>> task = TaskBatch.single([[0.0], [9.0]], [0, 1], [[1.0], [0.5], [0.0]], n_classes=2)
    >>> solution = solve("paddle", task)
    >>> solution.predictions.tolist(), solution.proportions.round(decimals=3).tolist()
    ([[0, 0, 0]], [[1.0, 0.0]])
    """
    if method not in METHODS:
        raise UnknownNameError(f"no method is called {method!r}; there are {', '.join(METHODS)}")
    chosen = METHODS[method]
    settings = chosen.make_options(**options)
    size = tasks_per_chunk(task, chosen.support_arrays)
    chunks = [task.select(slice(start, start + size)) for start in range(0, task.n_tasks, size)]
    return Solution.join([chosen.solve(chunk, settings) for chunk in chunks])


def tasks_per_chunk(task: TaskBatch, support_arrays: int) -> int:
    """How many tasks to solve at once: sums, query, Gram matrix and assignments of all must fit `CHUNK_NUMBERS`."""
    n_query, dim = task.query.shape[1:]
    assignments = (LIVE_ASSIGNMENTS * n_query + support_arrays * task.support.shape[1]) * task.n_classes
    each = task.n_classes * dim + 2 * n_query * dim + n_query**2 + assignments
    return max(1, CHUNK_NUMBERS // each)
