"""The path through a robust regression against coordinate descent on the group lasso itself."""

import pytest
import torch
from sklearn.linear_model import enet_path

from handful.fewshot.numerics.outlier_path import outlier_path

N_LEVELS, SMALLEST = 12, 1e-2


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
    levels, residuals = outlier_path(basis, labels, n_classes, N_LEVELS, SMALLEST)
    projection = (torch.eye(len(basis), dtype=torch.float64) - basis @ basis.mT).numpy()
    one_hot = torch.nn.functional.one_hot(labels, n_classes).double().numpy()
    unexplained = projection @ one_hot
    torch.testing.assert_close(float(levels[-1]), float((unexplained**2).sum(1).max() ** 0.5))
    alphas = levels.flip(0).numpy() / len(basis)
    _, coefficients, _ = enet_path(projection, unexplained, l1_ratio=1.0, alphas=alphas, tol=1e-12, max_iter=100_000)
    theirs = torch.from_numpy(coefficients).norm(dim=0).mT
    ours = (residuals - levels.unsqueeze(-1)).clamp(min=0).flip(0)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
