"""Numbers that callers give."""

import numpy as np
import pytest
import torch

import handful
from handful.arguments import option, some_of, whole
from handful.errors import OptionError, TaskError


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), torch.tensor(3)])
def test_whole_numbers_of_any_library_become_pythons(value):
    found = whole("n", value, least=1, error=TaskError)
    assert (found, type(found)) == (3, int)


@pytest.mark.parametrize("value", [0, -1, 2.5, 3.0, "3", None, True, np.True_, [3], 2**70])
def test_anything_else_is_refused_with_the_error_asked_for(value):
    with pytest.raises(TaskError, match="n must be a whole number of at least 1, got"):
        whole("n", value, least=1, error=TaskError)


def test_options_follow_their_annotation():
    assert option("x", float | None, None) is None
    assert option("x", float | None, 2) == 2.0
    assert option("x", bool, np.False_) is False
    with pytest.raises(OptionError, match="x must be a finite number or None, got 'a'"):
        option("x", float | None, "a")
    with pytest.raises(OptionError, match="x must be a finite number, got None"):
        option("x", float, None)


def test_an_error_names_all_of_a_few_columns_and_three_of_many():
    assert some_of("abcdef") == "a, b, c, d, e, f"
    assert some_of(range(385)) == "0, 1, 2 and 382 more"
    assert some_of([*range(384), "label"]) == "label, 0, 1 and 382 more"
    assert some_of([]) == ""


def test_users_see_names_for_users_alone():
    private = {"Any", "TYPE_CHECKING", "import_module", "_HOME", "_HOMES", "_PARTS"}
    assert not private & set(dir(handful))
    assert set(handful.__all__) < set(dir(handful))
    assert all(getattr(handful, name) is not None for name in dir(handful))
