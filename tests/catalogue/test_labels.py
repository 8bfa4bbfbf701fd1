import numpy as np
import pytest

from handful.catalogue.labels import distinct, places_of, same_kind, with_label
from handful.errors import LabelError


def objects(*values: object) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def test_places_of_labels():
    assert places_of(np.array(["b", "x", "a"]), np.array(["a", "b", "c"])).tolist() == [1, -1, 0]
    assert places_of(np.array([9, 1]), np.array([1, 5])).tolist() == [-1, 0]
    assert places_of(objects((1, 2), (0, 0)), objects((0, 1), (1, 2))).tolist() == [1, -1]
    assert places_of(np.array(["a"]), np.array([], dtype="<U1")).tolist() == [-1]


def test_kinds_do_not_mix():
    with pytest.raises(LabelError, match="must be of the catalogue's kind"):
        same_kind(np.array([1]), np.array(["a"]))
    with pytest.raises(LabelError, match="of one kind"):
        distinct(objects("a", 1))


def test_another_label_in_some_places():
    where = np.array([False, True, False])
    assert with_label(np.array([1, 2, 3]), where, -1).tolist() == [1, -1, 3]
    assert with_label(np.array([1, 2, 3], np.uint8), where, -1).tolist() == [1, -1, 3]
    assert with_label(np.array(["a", "b", "c"]), where, "none of these").tolist() == ["a", "none of these", "c"]
    days = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "M8[D]")
    assert with_label(days, where, np.datetime64("NaT")).tolist()[1] is None
    tuples = np.empty(3, object)
    tuples[:] = [(1, 2), (3, 4), (5, 6)]
    assert with_label(tuples, where, (0, 0)).tolist() == [(1, 2), (0, 0), (5, 6)]
    assert tuples[1] == (3, 4)
    with pytest.raises(LabelError, match="labels must be of the catalogue's kind"):
        with_label(np.array([1, 2, 3]), where, "other")
    with pytest.raises(LabelError, match="a label must be a single value"):
        with_label(np.array([1, 2, 3]), where, [1, 2])
