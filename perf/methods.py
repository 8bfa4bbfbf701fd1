"""CPU milliseconds per task of every method, at 20 and at 160 classes, on one thread.

    python perf/methods.py

Gaussian classes in 512 dimensions, 5 shots, 75 queries of five of the classes. Each method has its default options and
gets features after the transform it names (not timed; the base mean of CL2N is zero here). Tasks are in memory. If one
task takes longer than a second, it is timed alone.
"""

from __future__ import annotations

import time

import torch

from handful import fewshot
from handful.fewshot.transforms import parameters_of

N_QUERY, DIM, SHOTS = 75, 512, 5
SHAPES = [(20, 32), (160, 8)]  # classes, tasks in memory
LONG = 1.0  # seconds


def random_tasks(n_classes: int, n_tasks: int, *, centre: float = 0.5, noise: float = 1.0) -> fewshot.TaskBatch:
    """Gaussian classes, five of them in each query; how far centres and points spread in every dimension."""
    generator = torch.Generator().manual_seed(0)
    centres = centre * torch.randn(n_tasks, n_classes, DIM, generator=generator)
    labels = torch.arange(n_classes).repeat_interleave(SHOTS).expand(n_tasks, -1)
    present = torch.randint(5, (n_tasks, N_QUERY), generator=generator)
    rows = torch.arange(n_tasks).unsqueeze(-1)
    support = centres[rows, labels] + noise * torch.randn(n_tasks, n_classes * SHOTS, DIM, generator=generator)
    query = centres[rows, present] + noise * torch.randn(n_tasks, N_QUERY, DIM, generator=generator)
    return fewshot.TaskBatch(support, labels, query, n_classes)


def milliseconds_per_task(method: str, task: fewshot.TaskBatch) -> tuple[float, float]:
    """CPU time and mean number of iterations; the fastest of three runs where they are short."""
    named = fewshot.METHODS[method].transform
    given = {"base_mean": torch.zeros(DIM)} if "base_mean" in parameters_of(named) else {}
    task = fewshot.transform(named, task, **given)
    first = task.select(slice(0, 1))
    start = time.process_time()
    iterations = fewshot.solve(method, first).n_iter
    alone = time.process_time() - start
    if alone > LONG:
        return 1e3 * alone, iterations.double().mean().item()
    times = []
    for _ in range(3):
        start = time.process_time()
        iterations = fewshot.solve(method, task).n_iter
        times.append(time.process_time() - start)
    return 1e3 * min(times) / task.n_tasks, iterations.double().mean().item()


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    tasks = {n_classes: random_tasks(n_classes, n_tasks) for n_classes, n_tasks in SHAPES}
    heads = " ".join(f"{f'K={n_classes}':>9} {'iter.':>6}" for n_classes in tasks)
    print(f"{'method':<18} {heads}   CPU ms per task, mean iterations; {SHOTS} shots, |Q|={N_QUERY}, d={DIM}")
    for method in fewshot.METHODS:
        figures = [milliseconds_per_task(method, task) for task in tasks.values()]
        print(f"{method:<18} " + " ".join(f"{ms:9.2f} {iterations:6.0f}" for ms, iterations in figures), flush=True)


if __name__ == "__main__":
    main()
