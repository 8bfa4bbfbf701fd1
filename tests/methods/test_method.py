"""The record that stands for a method."""

import pytest

from handful import METHODS
from handful.errors import OptionError


def test_the_table_is_read_only():
    with pytest.raises(TypeError):
        METHODS["mine"] = METHODS["paddle"]


def test_options_are_built_by_name():
    assert METHODS["paddle"].make_options(max_iter=7).max_iter == 7
    with pytest.raises(OptionError, match="paddle has no option 'lambda_'; it has complexity_weight, "):
        METHODS["paddle"].make_options(lambda_=3)
