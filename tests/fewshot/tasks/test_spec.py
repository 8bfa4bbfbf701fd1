import pickle

import pytest

from handful.errors import TaskError
from handful.fewshot import Balanced, Dirichlet, FixedSupport, ShotsPerClass, TaskSpec, UniformOverPool


def test_specs_are_values():
    one, two = (TaskSpec(FixedSupport([1, 2]), Dirichlet(2, 1.0), 6) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    assert pickle.loads(pickle.dumps(one)) == one


@pytest.mark.parametrize(
    ("query", "sizes", "sentence"),
    [
        (UniformOverPool(5), {"n_query": 0}, "at least 1"),
        (UniformOverPool(5), {"n_classes": 4}, "k_eff=5 .* n_classes=4"),
        (Balanced(4), {"n_query": 75}, "ask for 72 or 76 queries"),
        (Balanced(4), {"n_query": 3}, "ask for 4 or 4 queries"),
    ],
)
def test_impossible_specs_are_refused(query, sizes, sentence):
    with pytest.raises(TaskError, match=sentence):
        TaskSpec(ShotsPerClass(5), query, **sizes)


@pytest.mark.parametrize("rule", [UniformOverPool, Balanced, Dirichlet])
@pytest.mark.parametrize("k_eff", [0, -1, True])
def test_impossible_numbers_of_classes_are_refused(rule, k_eff):
    with pytest.raises(TaskError, match="k_eff must be a whole number of at least 1"):
        rule(k_eff)
