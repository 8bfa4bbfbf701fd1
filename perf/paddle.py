"""CPU time of PADDLE compared with the straightforward arithmetic, in one run on one thread.

    python perf/paddle.py

Prints, for three shapes with |Q| = 75 and d = 512, milliseconds per task for 20 iterations of (a) handful's PADDLE on
tasks in memory and (b) the same iterations in feature space, with the support sums computed again each time by a
product with one-hot labels, as the public code does. Denormal floats are flushed while (b) runs, so that the ratio
compares only arithmetic; handful avoids them by itself. A last line shows what an iteration costs when most assignments
are in their range, compared with an early iteration.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor

from handful import fewshot
from handful.fewshot.methods import paddle
from handful.fewshot.solvers.frame import Frame

N_QUERY, DIM, N_ITER, REPEATS = 75, 512, 20, 7
CENTRE, SCALE = 0.7, 1.4  # nearest prototype is right for about four queries in five at K = 160
STRAIGHT_CHUNKS = (8, 32, 64)  # the best of these stands for the straightforward arithmetic
SHAPES = [(20, 5, 256), (160, 5, 16), (160, 20, 8)]  # classes, shots, tasks in memory


def random_tasks(n_classes: int, shots: int, n_tasks: int, *, scale: float = SCALE) -> fewshot.TaskBatch:
    """Gaussian classes whose variance falls off over the dimensions, as that of embeddings does; five in each query."""
    generator = torch.Generator().manual_seed(0)
    spectrum = scale * torch.arange(1, DIM + 1).float().rsqrt()

    def normal(*shape: int) -> Tensor:
        return spectrum * torch.randn(*shape, DIM, generator=generator)

    centres = CENTRE * normal(n_tasks, n_classes)
    labels = torch.arange(n_classes).repeat_interleave(shots).expand(n_tasks, -1)
    present = torch.randint(5, (n_tasks, N_QUERY), generator=generator)
    rows = torch.arange(n_tasks).unsqueeze(-1)
    support = centres[rows, labels] + normal(n_tasks, n_classes * shots)
    return fewshot.TaskBatch(support, labels, centres[rows, present] + normal(n_tasks, N_QUERY), n_classes)


def straightforward(task: fewshot.TaskBatch) -> Tensor:
    """Run the updates as one would first write them, support sums included; return U."""
    one_hot = torch.nn.functional.one_hot(task.support_labels, task.n_classes).to(task.support.dtype)
    prototypes = one_hot.mT @ task.support / one_hot.sum(1).unsqueeze(-1)
    dual = task.query.new_zeros(task.n_tasks, 1, task.n_classes)
    for _ in range(N_ITER):
        squares = task.query.square().sum(-1, keepdim=True) + prototypes.square().sum(-1).unsqueeze(1)
        distances = 0.5 * squares - task.query @ prototypes.mT
        u = (-distances + dual).softmax(-1)
        dual = 1 + torch.log(u.mean(1, keepdim=True))
        sums = one_hot.mT @ task.support + u.mT @ task.query
        prototypes = sums / (one_hot.sum(1) + u.sum(1)).unsqueeze(-1)
    return u


def ours(task: fewshot.TaskBatch) -> Tensor:
    """Run PADDLE through the public interface; return U."""
    return fewshot.solve("paddle", task, max_iter=N_ITER, tol=0.0).log_assignments


def cpu_milliseconds(function: Callable[[], object], repeats: int = REPEATS) -> float:
    """Median CPU time of a call."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return 1e3 * sorted(times)[repeats // 2]


def straight_milliseconds(task: fewshot.TaskBatch, size: int) -> float:
    """CPU time of the straightforward arithmetic on chunks of that many tasks: large ones leave the cache."""
    chunks = [task.select(slice(start, start + size)) for start in range(0, task.n_tasks, size)]
    return cpu_milliseconds(lambda: [straightforward(chunk) for chunk in chunks], 3)


def denormal_ratio() -> tuple[float, float]:
    """Share of assignments in float32's denormal range once converged, and the price of an iteration there.

    Classes lie so far apart that most assignments converge to about e^-95; the price is the CPU time of `step` from the
    converged state over that from the second.
    """
    task = random_tasks(160, 5, 16, scale=5.0)
    frame = Frame(task)
    problem = paddle.Problem(frame.space("gram", N_ITER), frame.n_query, torch.ones_like(frame.n_query))
    start = state = paddle.init(problem)
    for _ in range(30):
        state, u = paddle.step(problem, state, floor=1e-6)
    log_u = u.log()
    share = ((log_u < -87.3) & (log_u > -103.3)).float().mean().item()
    second, _ = paddle.step(problem, start, floor=1e-6)
    prices = [
        cpu_milliseconds(lambda at=at: [paddle.step(problem, at, floor=1e-6) for _ in range(20)])  # type: ignore[misc]
        for at in (second, state)
    ]
    return share, prices[1] / prices[0]


def main() -> None:
    """Print the table and the ratio."""
    torch.set_num_threads(1)
    print(f"{'classes':>8} {'shots':>6} {'handful':>9} {'straight':>9} {'ratio':>6}   CPU ms per task, 20 iterations")
    for n_classes, shots, n_tasks in SHAPES:
        task = random_tasks(n_classes, shots, n_tasks)
        assert torch.allclose(ours(task).exp(), straightforward(task), atol=1e-3)
        mine = cpu_milliseconds(lambda task=task: ours(task)) / n_tasks  # type: ignore[misc]
        torch.set_flush_denormal(True)
        plain = min(straight_milliseconds(task, size) for size in STRAIGHT_CHUNKS) / n_tasks
        torch.set_flush_denormal(False)
        print(f"{n_classes:8d} {shots:6d} {mine:9.3f} {plain:9.2f} {plain / mine:6.1f}")
    share, price = denormal_ratio()
    print(f"iteration with {100 * share:.0f} % of the assignments in denormal range: {price:.2f} times an early one")


if __name__ == "__main__":
    main()
