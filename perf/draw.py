"""CPU time of drawing tasks compared with solving them with PADDLE, in one run on one thread.

    python perf/draw.py

Tasks as in the paper's largest setting: 227 classes, 5 shots, |Q| = 75 over 5 classes, here with random features of 512
dimensions and the range scaling of the published numbers. Drawing is timed over 10,000 tasks, gathering and solving
over the first 64; times are per task.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch

import handful
import handful_fewshot as fewshot

N_CLASSES, ROWS_A_CLASS, DIM, N_TASKS, N_SOLVED = 227, 112, 512, 10_000, 64
Answer = TypeVar("Answer")


def timed(call: Callable[[], Answer]) -> tuple[Answer, float]:
    """Return the answer of a call and its CPU time in milliseconds."""
    start = time.process_time()
    answer = call()
    return answer, 1e3 * (time.process_time() - start)


def main() -> None:
    """Print milliseconds per task."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(N_CLASSES), ROWS_A_CLASS)
    centres = 0.2 * rng.standard_normal((N_CLASSES, DIM), dtype=np.float32)
    features = centres[labels] + rng.standard_normal((len(labels), DIM), dtype=np.float32)
    bank = handful.FeatureBank.from_arrays(features, labels, [str(k) for k in range(N_CLASSES)])
    print(f"{'query rule':<42} {'draw':>8} {'gather':>8} {'solve':>8} {'draw / solve':>13}   CPU ms per task")
    for query in (fewshot.UniformOverPool(5), fewshot.Balanced(5), fewshot.Dirichlet(5, 2.0)):
        spec = fewshot.TaskSpec(fewshot.ShotsPerClass(5), query, 75)
        _, drawing = timed(lambda spec=spec: fewshot.draw(labels, spec, 0, range(N_TASKS)))  # type: ignore[misc]
        some = fewshot.draw(labels, spec, 0, range(N_SOLVED))
        (task, _), gathering = timed(lambda some=some: fewshot.gather(bank, some))  # type: ignore[misc]
        scaled = fewshot.transform("range_scale", task)
        _, solving = timed(lambda scaled=scaled: fewshot.solve("paddle", scaled))  # type: ignore[misc]
        each = drawing / N_TASKS, gathering / N_SOLVED, solving / N_SOLVED
        print(f"{query!s:<42} {each[0]:8.3f} {each[1]:8.3f} {each[2]:8.3f} {each[0] / each[2]:13.3f}")


if __name__ == "__main__":
    main()
