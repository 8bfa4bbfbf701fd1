import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score

from handful.fewshot.benchmark.detection import detection


@given(seed=st.integers(0, 10_000), levels=st.sampled_from([2, 5, 1000]), share=st.floats(0.05, 0.95))
def test_measures_are_those_of_scikit_learn(seed, levels, share):
    """Few levels make many ties."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, levels, (4, 40)) / levels
    unknown = rng.random((4, 40)) < share
    unknown[:, 0], unknown[:, 1] = True, False
    found = detection(torch.from_numpy(scores), torch.from_numpy(unknown))
    for t in range(4):
        assert found.auroc[t] == pytest.approx(roc_auc_score(unknown[t], scores[t]))
        assert found.aupr[t] == pytest.approx(average_precision_score(unknown[t], scores[t]))
        precision, recall, _ = precision_recall_curve(unknown[t], scores[t])
        assert found.precision_at_recall[t] == pytest.approx(precision[recall >= 0.9][-1])


def test_nine_of_ten_are_ninety_percent():
    scores = torch.arange(20, 0, -1, dtype=torch.float64)[None]
    unknown = torch.tensor([[True] * 9 + [False] * 10 + [True]])
    assert detection(scores, unknown).precision_at_recall.item() == 1.0


@pytest.mark.parametrize("all_unknown", [True, False])
def test_one_kind_alone_has_no_measure(all_unknown):
    found = detection(torch.rand(2, 5), torch.full((2, 5), all_unknown))
    assert all(math.isnan(value) for measure in found for value in measure.tolist())
