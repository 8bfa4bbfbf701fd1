"""Baseline and Baseline++ as published, with mini-batches and a random start, beside the deterministic epochs here.

    python -m tests.fewshot.oracles.stochastic_epochs

Needs the folder of reference outputs, shared/oracle beside the repository. Prints accuracies of two seeds and of ours,
and on which share of the queries the answers agree.
"""

import torch

import handful_fewshot as fewshot
from tests.conftest import SHARED
from tests.fewshot.oracles.test_authors_competitors import query_labels
from tests.fewshot.oracles.test_authors_predictions import load_tasks

SETS = {"k20_d64_bal5w": 20, "k20_d64_s5": 10, "k20_d512_s5": 5}
CASES = [("baseline", "raw"), ("baseline", "l2"), ("baseline_pp", "raw")]


def trained(task: fewshot.TaskBatch, seed: int, cosine: bool) -> torch.Tensor:
    """Logits of the query after 100 epochs; tasks do not interact, as their losses are summed."""
    generator = torch.Generator().manual_seed(seed)
    n_tasks, n_support, dim = task.support.shape
    if cosine:
        unit = fewshot.transform("l2", task)
        task = task.with_features(2 * unit.support, 2 * unit.query)
    weights = ((2 * torch.rand(n_tasks, task.n_classes, dim, generator=generator) - 1) / dim**0.5).to(task.dtype)
    norms = weights.norm(dim=-1, keepdim=True).requires_grad_()
    bias = ((2 * torch.rand(n_tasks, 1, task.n_classes, generator=generator) - 1) / dim**0.5).to(task.dtype)
    bias.requires_grad_()
    weights.requires_grad_()

    def logits(points: torch.Tensor) -> torch.Tensor:
        if cosine:
            return points @ (norms * torch.nn.functional.normalize(weights, dim=-1)).mT
        return points @ weights.mT + bias

    parameters = [weights, norms if cosine else bias]
    optimiser = torch.optim.SGD(parameters, lr=0.01, momentum=0.9, dampening=0.9, weight_decay=1e-3)
    for _ in range(100):
        order = torch.stack([torch.randperm(n_support, generator=generator) for _ in range(n_tasks)])
        for rows in order.split(4, dim=1):
            points = task.support.gather(1, rows.unsqueeze(-1).expand(-1, -1, dim))
            labels = task.support_labels.gather(1, rows)
            optimiser.zero_grad()
            losses = -logits(points).log_softmax(-1).gather(-1, labels.unsqueeze(-1))
            losses.mean(1).sum().backward()
            optimiser.step()
    return logits(task.query).detach()


def main() -> None:
    torch.set_num_threads(1)
    print("| tasks | method, features | ours | two seeds | ours and seeds agree | seeds agree |")
    print("|---|---|---|---|---|---|")
    for name, n_tasks in SETS.items():
        truth = query_labels(SHARED / "oracle", name, n_tasks)
        for method, transform in CASES:
            task = fewshot.transform(transform, load_tasks(SHARED / "oracle", name, n_tasks))
            ours = fewshot.solve(method, task).predictions
            seeds = [trained(task, seed, method == "baseline_pp").argmax(-1) for seed in (0, 1)]
            pairs = [(ours, truth), *((s, truth) for s in seeds), *((ours, s) for s in seeds), tuple(seeds)]
            a, b, c, d, e, f = (f"{100 * (x == y).double().mean().item():.1f}" for x, y in pairs)
            print(f"| {name} ({n_tasks}) | {method}, {transform} | {a} | {b}, {c} | {d}, {e} | {f} |", flush=True)


if __name__ == "__main__":
    main()
