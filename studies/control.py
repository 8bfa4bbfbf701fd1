"""The simple control of the studies: a linear head, and EM of the shares of the classes (`sparse_em`).

What labelling a batch as a whole is worth is what it gains over this. See `handful_fewshot.methods.sparse_em`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bank_data import Ints
from handful_fewshot.methods import sparse_em

CONTROL = "sparse_em"


def head_scores(fitted: Any, points: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return scores of all classes under equal shares, by the head of a fitted `BatchClassifier`."""
    catalogue = fitted.model_
    return np.asarray(catalogue.head.scores(catalogue.points(points)))


def control(scores: npt.NDArray[Any]) -> Ints:
    """Return the class that the control gives each item of a batch, as a column of the scores."""
    labels: Ints = chances(scores).argmax(-1)
    return labels


def chances(scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the chance of each class for each item of a batch, by the control."""
    found = sparse_em.solve_scores(torch.from_numpy(scores)[None], None, sparse_em.SparseEMOptions())
    return np.asarray(found.answer.weights[0])
