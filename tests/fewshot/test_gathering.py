import numpy as np
import pytest
import torch

import handful_fewshot as fewshot
from handful.errors import TaskError
from handful_fewshot import FixedSupport, ShotsPerClass, TaskSpec, UniformOverPool, draw
from handful_fewshot.gathering import gather
from tests.banks_at_hand import random_bank


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("n_classes", [None, 3])
def test_features_and_labels_are_those_of_the_rows(dtype, n_classes):
    bank = random_bank(n_classes=6, least=8, dtype=dtype).classes([5, 0, 3, 1])
    drawn = draw(bank.labels, TaskSpec(ShotsPerClass(2), UniformOverPool(2), 5, n_classes), 0, range(4))
    task, truth = gather(bank, drawn)
    assert task.support.dtype == task.query.dtype == torch.float32
    assert task.n_classes == (n_classes or 4)
    features = bank.features.astype(np.float32)
    np.testing.assert_array_equal(task.support, features[drawn.support])
    np.testing.assert_array_equal(task.query, features[drawn.query])
    for t in range(4):
        classes = drawn.classes[t if n_classes else 0]
        np.testing.assert_array_equal(classes[task.support_labels[t]], bank.labels[drawn.support[t]])
        np.testing.assert_array_equal(classes[truth[t]], bank.labels[drawn.query[t]])


def test_support_and_query_may_come_from_two_banks():
    support_bank, bank = random_bank(1, n_classes=3), random_bank(2, n_classes=3, least=8)
    spec = TaskSpec(FixedSupport.whole(support_bank.labels), UniformOverPool(2), 5)
    drawn = draw(bank.labels, spec, 0, range(7))
    task, _ = gather(bank, drawn, support_bank=support_bank)
    np.testing.assert_array_equal(task.support[0], support_bank.features[drawn.support[0]])
    np.testing.assert_array_equal(task.query, bank.features[drawn.query])
    ragged, _ = gather(
        bank,
        draw(bank.labels, TaskSpec(spec.support, spec.query, 5, n_classes=2), 0, range(9)),
        support_bank=support_bank,
    )
    assert not ragged.support_mask.all()
    assert fewshot.solve("paddle", ragged).converged.shape == (9,)

    with pytest.raises(TaskError, match="give that bank as support_bank"):
        gather(bank, drawn)
    with pytest.raises(TaskError, match=r"same classes in the same order .* got 2 classes of dimension 6 and 3 of 6"):
        gather(bank, drawn, support_bank=support_bank.classes([0, 1]))
    own = draw(bank.labels, TaskSpec(ShotsPerClass(1), UniformOverPool(2), 5), 0, [0])
    with pytest.raises(TaskError, match="leave support_bank out"):
        gather(bank, own, support_bank=support_bank)


def test_a_draw_from_other_labels_is_refused():
    drawn = draw(np.repeat([0, 1], 500), TaskSpec(ShotsPerClass(5), UniformOverPool(2), 50), 0, range(5))
    with pytest.raises(TaskError, match="whose labels were used for the draw"):
        gather(random_bank(n_classes=2), drawn)


def test_tasks_have_the_names_of_their_own_classes():
    bank = random_bank(n_classes=6, least=8)
    vectors = np.random.default_rng(0).normal(size=(6, bank.dim))
    drawn = draw(bank.labels, TaskSpec(ShotsPerClass(2), UniformOverPool(2), 5, n_classes=3), 0, range(4))
    task, _ = gather(bank, drawn, names=vectors)
    assert task.names.dtype == torch.float32
    np.testing.assert_array_equal(task.names, vectors.astype(np.float32)[drawn.classes])
    whole = draw(bank.labels, TaskSpec(ShotsPerClass(2), UniformOverPool(2), 5), 0, range(4))
    assert gather(bank, whole, names=vectors)[0].names.shape == (1, 6, bank.dim)
    assert gather(bank, whole)[0].names is None
    with pytest.raises(TaskError, match=r"one vector per class of the bank, shape \(6, .*embed bank.class_names"):
        gather(bank, drawn, names=vectors[:3])
