"""Groups of items: every row has one, all of one kind."""

import pytest

from handful.classification.grouping import Grouping
from handful.errors import TaskError


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (["a", None, "b", ""], "a table: 2 rows have no 'site' and so no group, the first is row 1; fill in or drop"),
        ([1.0, float("nan")], "1 row has no 'site' and so no group, the first is row 1"),
        (["a", 1], "groups must be of one kind, text, numbers or dates; column 'site' has int, str"),
        ([True, 1], "column 'site' has bool, int"),
        ([["a"], ["b"]], "column 'site' has list"),
    ],
)
def test_what_names_no_group_is_refused(values, sentence):
    with pytest.raises(TaskError) as caught:
        Grouping.of({"site": values}, "a table")
    assert sentence in str(caught.value)


def test_whole_and_other_numbers_may_be_mixed():
    assert Grouping.of({"site": [2.5, 1, 2.5]}, "a table").groups == ((1,), (2.5,))
