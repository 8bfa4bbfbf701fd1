"""What a batch says about its classes."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from handful.estimators.inference import presence


@given(seed=st.integers(0, 1000))
def test_presence_is_one_minus_the_chance_of_no_item(seed):
    probabilities = np.random.default_rng(seed).dirichlet(np.full(4, 0.3), 12)
    np.testing.assert_allclose(
        presence(torch.from_numpy(probabilities)), 1 - np.prod(1 - probabilities, axis=0), atol=1e-12
    )


def test_presence_of_the_certain_and_of_the_barely_possible():
    probabilities = np.array([[1.0, 0.0, 0.0], [1.0 - 1e-18, 0.0, 1e-18], [1.0, 0.0, 1e-18]])
    found = presence(torch.from_numpy(probabilities))
    assert found[:2].tolist() == [1.0, 0.0]
    assert float(found[2]) == pytest.approx(2e-18, rel=1e-6)
