"""CPU time of TIM and α-TIM with closed-form gradients against the same loop with autograd, in one run on one thread.

    python perf/tim.py

Prints, for K = 20 and K = 160 with 5 shots, |Q| = 75 and d = 512, microseconds per task and iteration of (a) handful,
(b) the usual loop with autograd and torch's Adam, (c) the two matrix products alone, which both need: W Zᵀ and R Z, in
the faster of the layouts. Tasks are in memory and solved all at once; a single task is timed as well, where calls cost
more than arithmetic. Denormal floats are flushed for all three; handful avoids them itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

import handful_fewshot as fewshot

N_QUERY, DIM, SHOTS, REPEATS = 75, 512, 5, 5
SHAPES = [(20, 1, 100), (20, 32, 20), (160, 1, 10), (160, 8, 5)]  # classes, tasks in memory, iterations timed


def random_tasks(n_classes: int, n_tasks: int, *, centre: float, noise: float) -> fewshot.TaskBatch:
    """Gaussian classes, five of them in each query; how far centres and points spread in every dimension."""
    generator = torch.Generator().manual_seed(0)
    centres = centre * torch.randn(n_tasks, n_classes, DIM, generator=generator)
    labels = torch.arange(n_classes).repeat_interleave(SHOTS).expand(n_tasks, -1)
    present = torch.randint(5, (n_tasks, N_QUERY), generator=generator)
    rows = torch.arange(n_tasks).unsqueeze(-1)
    support = centres[rows, labels] + noise * torch.randn(n_tasks, n_classes * SHOTS, DIM, generator=generator)
    query = centres[rows, present] + noise * torch.randn(n_tasks, N_QUERY, DIM, generator=generator)
    return fewshot.TaskBatch(support, labels, query, n_classes)


def ours(task: fewshot.TaskBatch, method: str, n_iter: int) -> fewshot.Solution:
    """Descend through the public door."""
    return fewshot.solve(method, task, max_iter=n_iter)


def with_autograd(task: fewshot.TaskBatch, method: str, n_iter: int) -> Tensor:
    """Descend on the same loss, gradients by autograd, steps by torch's optimiser; return W."""
    options = fewshot.METHODS[method].make_options()
    temperature: float = options.temperature
    one_hot = torch.nn.functional.one_hot(task.support_labels, task.n_classes).to(task.support.dtype)
    w = (one_hot.mT @ task.support / one_hot.sum(1).unsqueeze(-1)).requires_grad_()
    optimiser = torch.optim.Adam([w], lr=options.learning_rate)

    def probabilities(points: Tensor) -> Tensor:
        squares = points.square().sum(-1, keepdim=True) + w.square().sum(-1).unsqueeze(1)
        return torch.softmax(temperature * (points @ w.mT - 0.5 * squares), -1)

    def entropy(p: Tensor, order: float) -> Tensor:
        return -(p * torch.log(p + 1e-12)).sum(-1) if order == 1 else (1 - p.pow(order).sum(-1)) / (order - 1)

    for _ in range(n_iter):
        fit = -(one_hot * torch.log(probabilities(task.support) + 1e-12)).sum(-1).mean(-1)
        p = probabilities(task.query)
        marginal = entropy(p.mean(1), getattr(options, "tsallis_alpha_marginal", 1.0))
        conditional = entropy(p, getattr(options, "tsallis_alpha_conditional", 1.0)).mean(-1)
        loss = options.support_weight * fit + options.conditional_weight * conditional
        optimiser.zero_grad()
        (loss - options.marginal_weight * marginal).sum().backward()
        optimiser.step()
    return w.detach()


def bare_products(task: fewshot.TaskBatch, n_iter: int) -> None:
    """Do `W Zᵀ` and `R Z` and nothing else."""
    points = torch.cat([task.support, task.query], 1)
    by_dim = points.mT.contiguous()
    w = torch.ones(task.n_tasks, task.n_classes, task.dim)
    for _ in range(n_iter):
        torch.bmm(torch.bmm(w, by_dim), points)


def per_iteration(functions: list[Callable[[int], object]], n_iter: int, n_tasks: int) -> list[float]:
    """Microseconds per task and iteration of each function: what `n_iter` more iterations cost, setting up left out.

    The least of several turns counts, and functions take turns: the machine may be busy with other things.
    """
    best = [[float("inf"), float("inf")] for _ in functions]
    for _ in range(REPEATS):
        for function, times in zip(functions, best, strict=True):
            for which, n in enumerate((2, 2 + n_iter)):
                start = time.process_time()
                function(n)
                times[which] = min(times[which], time.process_time() - start)
    return [1e6 * (long - short) / n_iter / n_tasks for short, long in best]


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    print("microseconds per task and iteration; `apart` is the largest difference in W after 20 iterations")
    print("    method    K tasks  handful autograd products  ratio  apart")
    for n_classes, n_tasks, n_iter in SHAPES:
        task = fewshot.transform("l2", random_tasks(n_classes, n_tasks, centre=0.2, noise=0.3))
        for method in ("tim", "alpha_tim"):
            fast, slow, products = per_iteration(
                [partial(ours, task, method), partial(with_autograd, task, method), partial(bare_products, task)],
                n_iter,
                n_tasks,
            )
            apart = float((ours(task, method, 20).prototypes - with_autograd(task, method, 20)).abs().max())
            print(
                f"{method:>10} {n_classes:>4} {n_tasks:>5} {fast:>8.0f} {slow:>8.0f} {products:>8.0f} "
                f"{slow / fast:>6.1f}  {apart:.0e}"
            )


if __name__ == "__main__":
    main()
