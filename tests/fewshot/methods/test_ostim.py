import torch

from handful import fewshot
from handful.fewshot.methods.ostim import OstimOptions
from tests.tasks_at_hand import random_task


def open_probabilities(points: torch.Tensor, w: torch.Tensor, temperature: float) -> torch.Tensor:
    logits = temperature * torch.nn.functional.cosine_similarity(points[:, None], w[None], dim=-1)
    return torch.cat([logits, -logits.mean(1, keepdim=True)], 1).softmax(1)


def loss(support, labels, query, w, o: OstimOptions) -> torch.Tensor:
    """The formula, for one task."""
    p_support = open_probabilities(support, w, o.temperature)
    p = open_probabilities(query, w, o.temperature)
    fit = -p_support[torch.arange(len(labels)), labels].log().mean()
    marginal = p.mean(0)
    return (
        o.support_weight * fit
        + o.marginal_weight * (marginal * marginal.log()).sum()
        - o.conditional_weight * (p * p.log()).sum(1).mean()
    )


def test_it_is_the_same_loop_with_autograd_and_the_adam_of_torch():
    task = random_task(1, n_tasks=2, spread=2.0)
    options = OstimOptions(learning_rate=0.02, max_iter=25)
    solution = fewshot.solve("ostim", task, learning_rate=0.02, max_iter=25)
    for t in range(2):
        support, labels, query = task.support[t], task.support_labels[t], task.query[t]
        w = torch.stack([support[labels == k].mean(0) for k in range(6)]).requires_grad_()
        adam = torch.optim.Adam([w], lr=0.02)
        for _ in range(25):
            adam.zero_grad()
            loss(support, labels, query, w, options).backward()
            adam.step()
        p = open_probabilities(query, w.detach(), options.temperature)
        torch.testing.assert_close(solution.unknown[t], p[:, -1], atol=1e-7, rtol=1e-6)
        closed = p[:, :-1] / p[:, :-1].sum(1, keepdim=True)
        torch.testing.assert_close(solution.log_assignments[t].exp(), closed, atol=1e-7, rtol=1e-6)
        torch.testing.assert_close(solution.prototypes[t], w.detach(), atol=1e-7, rtol=1e-6)
