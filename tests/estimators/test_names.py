"""Names as a caller gives them."""

import numpy as np
import pytest
import torch

from handful.errors import LabelError, TaskError
from handful.estimators.names import rows_of_names


def test_a_vector_or_several_of_each_class():
    rows, labels = rows_of_names({4: torch.ones(3), 2: np.eye(3)[:2].tolist()}, 3)
    assert labels.tolist() == [4, 2, 2]
    assert rows.tolist() == [[1, 1, 1], [1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize(
    ("names", "error", "said"),
    [
        (["cat"], LabelError, "map labels to vectors"),
        ({}, LabelError, "at least one class"),
        ({"cat": "cat"}, TaskError, "embed texts first"),
        ({"cat": [[[1.0]]]}, TaskError, "'cat' must be a vector"),
        ({"cat": []}, TaskError, "'cat' must be a vector"),
        ({"cat": [1.0, 2.0], "dog": [1.0]}, TaskError, "'dog' has 1 numbers, and 2 are expected"),
        ({"cat": [1.0, np.nan]}, TaskError, "NaN"),
        ({"cat": [0.0, 0.0]}, TaskError, "zeros"),
    ],
)
def test_what_is_refused(names, error, said):
    with pytest.raises(error, match=said):
        rows_of_names(names, None)
