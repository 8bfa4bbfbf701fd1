"""LR+ICI: the published procedure written out with scikit-learn, and what each part promises."""

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, enet_path

import handful_fewshot as fewshot
from handful_fewshot.methods.ici import outlier_path
from tests.tasks_at_hand import random_task


def written_out(support, support_labels, query, n_classes: int, step: int) -> tuple[np.ndarray, int]:
    """Predictions and rounds of the procedure, one loop after the other, ties by position."""
    points, n_support = np.concatenate([support, query]), len(support)
    components = PCA(2).fit_transform(points)
    remainder = np.eye(len(points)) - components @ np.linalg.inv(components.T @ components) @ components.T
    chosen = list(range(n_support))
    classifier = LogisticRegression(C=10.0, max_iter=1000).fit(support, support_labels)
    n_rounds = 0
    while len(chosen) < len(points):
        n_rounds += 1
        labels = np.concatenate([support_labels, classifier.predict(query)])
        one_hot = np.eye(n_classes)[labels]
        _, gamma, _ = enet_path(remainder, remainder @ one_hot, l1_ratio=1.0)
        taken = np.zeros(n_classes)
        for level in reversed(range(gamma.shape[2])):
            for i in range(n_support, len(points)):
                if not gamma[:, i, level].any() and i not in chosen and taken[labels[i]] < step:
                    chosen.append(i)
                    taken[labels[i]] += 1
        classifier.fit(points[chosen], labels[chosen])
    return classifier.predict(query), n_rounds


@pytest.mark.parametrize("step", [1, 3])
def test_it_is_the_published_procedure(step):
    task = fewshot.transform("l2", random_task(3, spread=2.0))
    solution = fewshot.solve("ici", task, step=step, ties="position")
    for t in range(task.n_tasks):
        arrays = (task.support[t].numpy(), task.support_labels[t].numpy(), task.query[t].numpy())
        predictions, n_rounds = written_out(*arrays, task.n_classes, step)
        assert solution.predictions[t].tolist() == predictions.tolist()
        assert solution.n_iter[t] == n_rounds
    assert solution.converged.all()


def random_problem(seed: int, n_points: int = 30, n_components: int = 2, n_classes: int = 4):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.cat(
        [torch.arange(n_classes), torch.randint(n_classes, (n_points - n_classes,), generator=generator)]
    )
    centres = torch.randn(n_classes, n_components, dtype=torch.float64, generator=generator)
    points = centres[labels] + 0.5 * torch.randn(n_points, n_components, dtype=torch.float64, generator=generator)
    return torch.linalg.qr(points - points.mean(0)).Q, labels, n_classes


@pytest.mark.parametrize(("seed", "n_components"), [(0, 1), (1, 2), (2, 5)])
def test_it_is_the_group_lasso_path(seed, n_components):
    basis, labels, n_classes = random_problem(seed, n_components=n_components)
    levels, residuals = outlier_path(basis, labels, n_classes, 12, 1e-2)
    projection = (torch.eye(len(basis), dtype=torch.float64) - basis @ basis.mT).numpy()
    one_hot = torch.nn.functional.one_hot(labels, n_classes).double().numpy()
    unexplained = projection @ one_hot
    torch.testing.assert_close(float(levels[-1]), float((unexplained**2).sum(1).max() ** 0.5))
    alphas = levels.flip(0).numpy() / len(basis)
    _, coefficients, _ = enet_path(projection, unexplained, l1_ratio=1.0, alphas=alphas, tol=1e-12, max_iter=100_000)
    theirs = torch.from_numpy(coefficients).norm(dim=0).mT
    ours = (residuals - levels.unsqueeze(-1)).clamp(min=0).flip(0)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
