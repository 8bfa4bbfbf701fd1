"""LR+ICI: the published procedure written out with scikit-learn, and what each part promises."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, enet_path

from handful import fewshot
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
