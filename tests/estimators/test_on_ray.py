import sys

import numpy as np
import pytest

from handful.errors import MissingExtraError, OptionError, TaskError
from handful.estimators.on_ray import BUCKET, GroupLabeller, labelled_dataset, vectors, with_buckets
from tests.groups_at_hand import WHERE, world_of_groups

pa = pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def world():
    return world_of_groups()


def expected(world):
    classifier, _, points, groups = world
    return classifier.infer(points, groups=groups)


def test_a_table_of_whole_groups_is_labelled_like_infer(world, tmp_path):
    classifier, table, _, _ = world
    found = GroupLabeller(classifier, **WHERE)(table)
    assert found.column_names == ["row", "site", "day", "label", "certainty"]
    np.testing.assert_array_equal(found["label"].to_numpy(), expected(world).labels)
    np.testing.assert_allclose(found["certainty"].to_numpy(), expected(world).certainty, rtol=1e-6)
    classifier.save(tmp_path / "classifier")
    again = GroupLabeller(tmp_path / "classifier", **WHERE, keep_features=True, prefix="our_")(table)
    assert again.column_names == [*table.column_names, "our_label", "our_certainty"]
    np.testing.assert_array_equal(again["our_label"].to_numpy(), found["label"].to_numpy())


def test_what_does_not_fit_is_said(world):
    classifier, table, _, _ = world
    with pytest.raises(OptionError, match="no column 'place'; choose from row, site"):
        GroupLabeller(classifier, group_by="place", features="vector")(table)
    with pytest.raises(OptionError, match="at least one column"):
        GroupLabeller(classifier, group_by=(), features="vector")
    with pytest.raises(OptionError, match="a column 'label' already"):
        GroupLabeller(classifier, **WHERE)(table.append_column("label", table["row"]))
    with pytest.raises(TaskError, match="a vector in every row, got int64"):
        GroupLabeller(classifier, group_by="site", features="row")(table)
    with pytest.raises(TaskError, match="from 1 to 2 numbers"):
        vectors(pa.chunked_array([[[1.0], [2.0, 3.0]]]), "x")
    with pytest.raises(TaskError, match="different lengths"):
        vectors(pa.chunked_array([[[1.0]], [[2.0, 3.0]]]), "x")
    with pytest.raises(TaskError, match="a vector in every row"):
        vectors(pa.chunked_array([[[1.0], None]]), "x")
    with pytest.raises(TaskError, match="some rows have no value in groups"):
        GroupLabeller(classifier, group_by="site", features="vector")(
            table.set_column(1, "site", pa.array([None] + ["here"] * (len(table) - 1)))
        )


def test_what_is_known_is_that_of_infer(world):
    classifier, table, points, groups = world
    for known in ({"candidates": classifier.classes_[:6].tolist()}, {"prior": {str(classifier.classes_[0]): 9.0}}):
        found = GroupLabeller(classifier, **WHERE, **known)(table)
        wanted = classifier.predict(points, groups=groups, **known)
        assert found["label"].to_pylist() == wanted.tolist()
    rows = np.arange(len(table)) // 2
    pairs, sequence = table.append_column("pair", pa.array(rows)), ("site", "day", "pair")
    found = GroupLabeller(classifier, **WHERE, sequence=sequence)(pairs)
    both = np.stack([groups, rows], axis=1)
    assert found["label"].to_pylist() == classifier.predict(points, groups=groups, sequence=both).tolist()
    with pytest.raises(OptionError, match="has items in the groups"):
        GroupLabeller(classifier, **WHERE, sequence="pair")(pairs)
    empty = GroupLabeller(classifier, **WHERE)(table.slice(0, 0))
    assert (empty.column_names, len(empty)) == (["row", "site", "day", "label", "certainty"], 0)


def test_a_bucket_holds_whole_groups_whatever_the_block(world):
    table = world[1]
    whole = with_buckets(("site", "day"), 7, table)[BUCKET].to_pylist()
    assert set(whole) == set(range(7))
    assert with_buckets(("site", "day"), 7, table.slice(100, 50))[BUCKET].to_pylist() == whole[100:150]


def test_without_ray_the_extra_is_named(monkeypatch, world):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"\[ray\]"):
        labelled_dataset(None, world[0], **WHERE)
