"""decide, label, merge, summary: a batch that nobody holds has the answer of memory."""

import itertools
import pickle

import numpy as np
import pyarrow as pa
import pytest

from handful.errors import TaskError
from handful.estimators import BatchClassifier
from handful.fitted import FittedModel
from handful.scale import decide, label_table, merge
from tests.scale_at_hand import SAME, assert_same, lists, world

KNOWN = [{}, {"expect_unknown": 0.3}, {"candidates": [f"class {k:02}" for k in range(25)]}]


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    return world(tmp_path_factory.mktemp("world"), sizes=(700,))


def mapped(decision, table, cuts, order=False):
    """All parts of a table labelled by copies of the decision, and the group."""
    ends = [0, *cuts, len(table)]
    parts = [table.slice(a, b - a) for a, b in itertools.pairwise(ends)]
    found = [pickle.loads(pickle.dumps(decision)).label(part) for part in parts]
    totals = [pickle.loads(pickle.dumps(part.totals)) for part in found]
    totals = [totals[k] for k in np.random.default_rng(len(cuts)).permutation(len(totals))] if order else totals
    return pa.concat_tables([part.items for part in found]), decision.summary(merge(totals))


@pytest.mark.parametrize("known", KNOWN)
def test_a_small_batch_has_the_answer_of_memory(here, known):
    items, groups = label_table(here.table(), here.path, **known)
    again, of_batch = mapped(decide(here.table(), here.path, **known), here.table(), [64, 65, 400])
    assert items.schema.equals(again.schema)
    assert again["label"].equals(items["label"])
    np.testing.assert_allclose(again["certainty"], items["certainty"], atol=3e-5)
    np.testing.assert_allclose(again["unknown"], items["unknown"], atol=1e-3)
    assert_same(of_batch, groups, "class", atol=1e-3)


@pytest.mark.parametrize("known", KNOWN)
def test_parts_in_any_order_and_of_any_size_have_one_answer(here, known):
    decision = decide(here.table(slice(0, 300)), here.path, **known)
    items, group = mapped(decision, here.table(), [])
    for cuts in ([1, 2, 3], [350], list(range(50, 700, 50))):
        again, of_batch = mapped(decision, here.table(), cuts, order=True)
        assert_same(again, items, "id")
        assert_same(of_batch, group, "class", atol=SAME)
    order = np.random.default_rng(0).permutation(700)
    again, of_batch = mapped(decision, here.table(order), [100])
    assert_same(again, items, "id")
    assert_same(of_batch, group, "class", atol=SAME)


def test_the_order_of_the_sample_decides_nothing(here):
    order = np.random.default_rng(0).permutation(700)
    one, other = (decide(here.table(rows), here.path) for rows in (slice(None), order))
    assert_same(one.label(here.table()).items, other.label(here.table()).items, "id", atol=1e-4)


def test_a_decision_is_small_and_names_its_model(here, tmp_path):
    decision = decide(here.table(), here.path)
    assert len(pickle.dumps(decision)) < 400_000
    items = decision.label(here.table()).items
    by_object = decide(here.table(), here.classifier).label(here.table()).items
    assert by_object["label"].equals(items["label"])


def test_a_model_that_was_replaced_is_refused(here, tmp_path):
    place = tmp_path / "birds.model"
    here.classifier.save(place)
    decision = pickle.loads(pickle.dumps(decide(here.table(), place)))
    other = BatchClassifier().fit(np.eye(16, dtype=np.float32), [f"class {k}" for k in range(16)])
    other.save(place)
    with pytest.raises(TaskError, match="was replaced since this work began"):
        decision.label(here.table())


def test_bad_rows_have_reasons_and_are_counted(here):
    vectors = here.vectors.copy()
    vectors[[3, 500]] = np.nan
    table = here.table().set_column(2, "vector", lists(vectors))
    decision = decide(table, here.path)
    parts = [decision.label(table.slice(0, 400)), decision.label(table.slice(400)), decision.label(table.slice(3, 1))]
    assert [part.totals.n_bad for part in parts] == [1, 1, 1]
    assert parts[2].totals.found is None
    group = decision.summary(merge(part.totals for part in parts[:2]))
    assert set(zip(group["items"].to_pylist(), group["bad_rows"].to_pylist(), strict=True)) == {(698, 2)}
    nothing = decision.summary(parts[2].totals)
    assert nothing.to_pylist()[0]["class"] is None
    with pytest.raises(TaskError, match=r"no row of the sample can be labelled .*NaN"):
        decide(table.slice(3, 1), here.path)


def test_names_alone_have_no_sample(here):
    names = FittedModel.of_names(np.eye(16), np.arange(16))
    with pytest.raises(TaskError, match="names alone"):
        decide(here.table(), names)
