"""solve: find the method, build its options, cut the batch into chunks that fit in memory, join the answers."""

from __future__ import annotations

from handful.errors import UnknownNameError
from handful.fewshot.methods import METHODS, Method
from handful.fewshot.solution import Solution
from handful.fewshot.solvers.reach import refuse_beyond_reach, refuse_no_answer
from handful.fewshot.task import TaskBatch

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
    chosen = method if isinstance(method, Method) else named(method)
    settings = chosen.make_options(**options)
    ready = "l2" if chosen.transform == "raw" else chosen.transform
    advice = f"apply transform({ready!r}, task) first, or multiply all features by a number that brings them near one"
    refuse_beyond_reach(task, chosen.degree, advice)
    most = tasks_per_chunk(task, chosen.support_arrays)
    n_chunks = -(-task.n_tasks // most)
    size = -(-task.n_tasks // n_chunks)  # about equal sizes: a small last chunk would be inefficient
    chunks = [task.select(slice(start, start + size)) for start in range(0, task.n_tasks, size)]
    solution = Solution.join([chosen.solve(chunk, settings) for chunk in chunks])
    refuse_no_answer(task, solution, advice)
    return solution


def named(method: object) -> Method:
    """Return the method with the given name."""
    if not isinstance(method, str) or method not in METHODS:
        raise UnknownNameError(f"no method is called {method!r}; there are {', '.join(METHODS)}")
    return METHODS[method]


def tasks_per_chunk(task: TaskBatch, support_arrays: int) -> int:
    """How many tasks to solve at once: as many as fit in `CHUNK_NUMBERS`, at `numbers_per_task` each, at least one."""
    return max(1, CHUNK_NUMBERS // numbers_per_task(task, support_arrays))


def numbers_per_task(task: TaskBatch, support_arrays: int) -> int:
    """`|Q|² + (8|Q| + r|S|) K + (|Q| + K) d`: Gram matrix, assignments in flight, centred query and support sums.

    r is the number of arrays of shape [support, class] that a method keeps; zero if the support is summed once.
    """
    n_query, n_classes = task.query_slots, task.n_classes
    rows = LIVE_ASSIGNMENTS * n_query + support_arrays * task.support_slots
    return n_query**2 + rows * n_classes + (n_query + n_classes) * task.dim
