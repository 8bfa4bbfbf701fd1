"""An independent referee: EM for a mixture of unit Gaussians, one task, float64, NumPy only.

Support labels are clamped, proportions come from the query alone and are raised to `power` (λ/|Q|) in the E step,
after adding `floor`.
"""

import numpy as np


def em(support, labels, query, n_classes, n_iter, power=1.0, floor=0.0):
    """Yield (responsibilities, proportions, means) after each iteration."""
    one_hot = np.eye(n_classes)[labels]
    means = one_hot.T @ support / one_hot.sum(0)[:, None]
    proportions = np.full(n_classes, 1 / n_classes)
    for _ in range(n_iter):
        squares = ((query[:, None, :] - means[None, :, :]) ** 2).sum(-1)
        with np.errstate(divide="ignore"):
            log_joint = -0.5 * squares + power * np.log(proportions + floor) if power else -0.5 * squares
        likelihood = np.exp(log_joint - log_joint.max(1, keepdims=True))
        responsibilities = likelihood / likelihood.sum(1, keepdims=True)
        proportions = responsibilities.mean(0)
        everything = np.concatenate([one_hot, responsibilities])
        means = everything.T @ np.concatenate([support, query]) / everything.sum(0)[:, None]
        yield responsibilities, proportions, means
