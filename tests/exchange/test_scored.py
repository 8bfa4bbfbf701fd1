"""Classes and scores of an item belong together."""

import pytest

from handful.errors import FileFormatError
from handful.exchange.scored import checked_scores


def test_scores_are_numbers_between_zero_and_one():
    assert checked_scores(["a", "b"], [1, 0.25], "x") == (["a", "b"], [1.0, 0.25])
    for classes, scores in (
        ("a", [1]),
        (["a"], [True]),
        (["a"], [float("nan")]),
        ([1], [0.5]),
        (["a"], []),
        (["a"], [10**400]),
        ([" "], [0.5]),
    ):
        with pytest.raises(FileFormatError, match="item 3 must"):
            checked_scores(classes, scores, "item 3")
