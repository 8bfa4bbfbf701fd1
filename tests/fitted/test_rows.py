"""Transforms of single rows: unit length at any scale, and what numbers of a type cannot hold is refused."""

import numpy as np
import pytest

from handful.errors import TaskError
from handful.fitted.rows import ROW_TRANSFORMS, transform_rows, unit
from handful_fewshot.task import TaskBatch
from handful_fewshot.transforms import transform


def rows(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((6, 5))


@pytest.mark.parametrize(("dtype", "exponents"), [("f4", [-37, -20, 0, 20, 37]), ("f8", [-300, -160, 0, 160, 300])])
def test_rows_have_unit_length_at_any_scale(dtype, exponents):
    expected = rows() / np.linalg.norm(rows(), axis=1, keepdims=True)
    for exponent in exponents:
        found = unit((rows() * 10.0**exponent).astype(dtype))
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == "f4" else 1e-12)


@pytest.mark.parametrize("name", ROW_TRANSFORMS)
def test_transforms_are_those_of_the_methods(name):
    task = transform(name, TaskBatch.single(rows(), np.arange(6) % 2, rows(1), 2))
    np.testing.assert_allclose(transform_rows(name, rows()), task.support[0], atol=1e-12)
    np.testing.assert_allclose(transform_rows(name, rows(1)), task.query[0], atol=1e-12)


def test_what_a_type_cannot_hold_is_refused():
    wrong = rows()
    wrong[2, 1] = np.inf
    with pytest.raises(TaskError, match="row 12 has a feature that is not finite"):
        transform_rows("l2", wrong, first=10)
    with pytest.raises(TaskError, match=r"the rows 0 … 5 is .* use transform='l2'"):
        transform_rows("raw", rows() * 1e200)
    assert np.isfinite(transform_rows("l2", rows() * 1e200)).all()
    with pytest.raises(TaskError, match="has lost digits"):
        transform_rows("l2", (rows() * 1e-42).astype("f4"))
