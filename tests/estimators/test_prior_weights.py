"""Prior weights in every form that they may have."""

import numpy as np
import pytest

from handful.errors import LabelError, OptionError
from handful.estimators.prior_weights import prior_of, weights_of
from tests.optional import optional

pd = optional("pandas")
pl = optional("polars")
pa = optional("pyarrow")
torch = optional("torch")

CLASSES = np.array(["fox", "hare", "owl"])
GROUPS = np.array(["marsh", "wood"])


@pytest.mark.parametrize(
    "prior",
    [
        lambda: [1.0, 2.0, 0.5],
        lambda: np.array([1, 2, 0.5]),
        lambda: torch.tensor([1, 2, 0.5]),
        lambda: {"owl": 0.5, "hare": 2},
        lambda: pd.DataFrame({"class": ["owl", "hare"], "weight": [0.5, 2]}),
        lambda: pl.DataFrame({"class": ["owl", "hare"], "weight": [0.5, 2]}),
        lambda: pa.table({"class": ["owl", "hare"], "weight": [0.5, 2]}),
    ],
    ids=["list", "array", "tensor", "mapping", "pandas", "polars", "arrow"],
)
def test_one_row_for_all(prior):
    for groups in (None, GROUPS):
        np.testing.assert_array_equal(weights_of(prior(), None, CLASSES, groups), [[1, 2, 0.5]])


@pytest.mark.parametrize(
    "prior",
    [
        lambda: {"wood": {"owl": 3}, "city": {"fox": 9}},
        lambda: pd.DataFrame({"group": ["wood", "city"], "class": ["owl", "fox"], "weight": [3, 9]}),
        lambda: pl.DataFrame({"group": ["wood", "city"], "class": ["owl", "fox"], "weight": [3, 9]}),
    ],
    ids=["mapping", "pandas", "polars"],
)
def test_a_row_for_each_group_and_others_are_passed_over(prior):
    np.testing.assert_array_equal(weights_of(prior(), None, CLASSES, GROUPS), [[1, 1, 1], [1, 1, 3]])


def test_candidates():
    np.testing.assert_array_equal(weights_of(None, ["owl", "fox"], CLASSES, None), [[1, 0, 1]])
    np.testing.assert_array_equal(weights_of(None, {"owl"}, CLASSES, GROUPS), [[0, 0, 1]])
    by_group = weights_of(None, {"marsh": ["hare"]}, CLASSES, GROUPS)
    np.testing.assert_array_equal(by_group, [[0, 1, 0], [1, 1, 1]])
    both = weights_of({"fox": 5}, {"marsh": ["hare", "fox"]}, CLASSES, GROUPS)
    np.testing.assert_array_equal(both, [[5, 1, 0], [5, 1, 1]])


def test_nothing_is_known():
    assert weights_of(None, None, CLASSES, GROUPS) is None


def test_labels_may_be_numbers_or_tuples():
    np.testing.assert_array_equal(weights_of({3: 0.0}, None, np.array([1, 3]), None), [[1, 0]])
    pairs = np.empty(2, dtype=object)
    pairs[:] = [("a", 1), ("b", 2)]
    np.testing.assert_array_equal(weights_of(None, [("b", 2)], pairs, None), [[0, 1]])


@pytest.mark.parametrize(
    ("prior", "candidates", "groups", "error", "said"),
    [
        ([1.0, 2.0], None, None, OptionError, "one weight for each of the 3 classes"),
        (["owl", "fox", "hare"], None, None, OptionError, "must be numbers"),
        ({"owl": -1}, None, None, OptionError, "at least zero"),
        ({"owl": float("nan")}, None, None, OptionError, "at least zero"),
        ({"wolf": 1}, None, None, LabelError, "class 'wolf' is not in the catalogue"),
        (None, ["wolf"], None, LabelError, "class 'wolf' is not in the catalogue"),
        (None, "owl", None, OptionError, "put it in a list"),
        (None, [], None, OptionError, "no class is left"),
        (None, {"wood": []}, GROUPS, OptionError, "no class is left in group 'wood'"),
        ({"wood": {"owl": 1}}, None, None, OptionError, "give the argument groups"),
        ({"wod": {"owl": 1}}, None, GROUPS, OptionError, "none of the groups"),
    ],
)
def test_refusals(prior, candidates, groups, error, said):
    with pytest.raises(error, match=said):
        weights_of(prior, candidates, CLASSES, groups)


def test_columns_of_another_name_are_refused():
    with pytest.raises(OptionError, match="columns class and weight"):
        weights_of(pd.DataFrame({"class": ["owl"], "share": [1]}), None, CLASSES, None)


def test_one_row_is_the_prior_of_all_batches():
    prior = prior_of(np.array([[1.0, 2.0, 1.0]]), 4)
    np.testing.assert_allclose(prior.shares, [[0.25, 0.5, 0.25]] * 4)
    assert prior.concentration.shape == (4,)
