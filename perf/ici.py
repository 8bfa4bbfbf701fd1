"""CPU time of LR+ICI, and of its credibility path compared with scikit-learn's on the same problem, on one thread.

    python perf/ici.py [--also-160]

Prints milliseconds of the whole method per task (5 shots, |Q| = 75, d = 512) and of one path of 100 levels over two
components: as a robust regression (handful) and as a group lasso by coordinate descent (scikit-learn, to its default
duality gap). Scikit-learn's path at K = 160 takes half a minute and runs only when asked for.
"""

from __future__ import annotations

import sys
import time

import torch
from sklearn.linear_model import enet_path

import handful_fewshot as fewshot
from handful_fewshot.methods.ici import N_LEVELS, SMALLEST_LEVEL, outlier_path, principal_coordinates

N_QUERY, DIM, SHOTS = 75, 512, 5


def random_task(n_classes: int) -> fewshot.TaskBatch:
    """One task of Gaussian classes on the unit sphere, five of them in the query."""
    generator = torch.Generator().manual_seed(0)
    centres = 0.2 * torch.randn(n_classes, DIM, generator=generator)
    labels = torch.arange(n_classes).repeat_interleave(SHOTS)
    present = torch.randint(5, (N_QUERY,), generator=generator)
    support = centres[labels] + 0.5 * torch.randn(len(labels), DIM, generator=generator)
    query = centres[present] + 0.5 * torch.randn(N_QUERY, DIM, generator=generator)
    return fewshot.transform("l2", fewshot.TaskBatch.single(support, labels, query, n_classes))


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    for n_classes in (20, 160):
        task = random_task(n_classes)
        fewshot.solve("ici", task)  # scikit-learn is imported here
        start = time.process_time()
        solution = fewshot.solve("ici", task)
        whole = time.process_time() - start
        labels = torch.cat([task.support_labels[0], solution.predictions[0]])
        points = torch.cat([task.support[0], task.query[0]]).double()
        _, basis = principal_coordinates(points, 2)
        outlier_path(basis, labels, n_classes, N_LEVELS, SMALLEST_LEVEL)
        start = time.process_time()
        outlier_path(basis, labels, n_classes, N_LEVELS, SMALLEST_LEVEL)
        ours = time.process_time() - start
        n_rounds = int(solution.n_iter)
        line = f"K = {n_classes:>3}: a task {1e3 * whole:.0f} ms, {n_rounds} rounds; a path {1e3 * ours:.0f} ms"
        if n_classes == 20 or "--also-160" in sys.argv:
            projection = (torch.eye(len(points), dtype=torch.float64) - basis @ basis.mT).numpy()
            one_hot = torch.nn.functional.one_hot(labels, n_classes).double().numpy()
            start = time.process_time()
            enet_path(projection, projection @ one_hot, l1_ratio=1.0)
            line += f", by scikit-learn {1e3 * (time.process_time() - start):.0f} ms"
        print(line, flush=True)


if __name__ == "__main__":
    main()
