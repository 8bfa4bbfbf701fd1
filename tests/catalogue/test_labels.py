import numpy as np
import pytest

from handful.catalogue.labels import distinct, places_of, same_kind
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
